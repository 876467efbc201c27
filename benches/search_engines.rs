//! Sixty questions whose answer is known, over 10,000 documents: `cargo bench --bench search_engines` prints
//! the order of the answers and the times, and fails if too few answers are among the first three.

mod documents;
mod paired;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use documents::{WORDS, number, word};
use paired::{median, report, timed};
use roundtable::bench::{CancelFlag, DocumentSource, Layout, TextIndex};

/// Least answers among the first three.
const MIN_IN_THREE: usize = 57;

const GENERATED: u64 = 9_962;
const BASE: &str = "https://notes.local/";

/// Questions about the shipped corpus, and the file that answers each.
const QUESTIONS: [(&str, &str); 20] = [
    ("What uptime does the Enterprise SLA promise?", "policies/enterprise-sla"),
    ("first response target for P1 incidents of Business customers", "policies/business-sla"),
    ("When is planned maintenance of the EU payment gateway?", "policies/maintenance-windows"),
    ("What does the Standard plan say about P3 incidents?", "policies/standard-sla"),
    ("definition of severity P2 and service credits", "policies/sla-definitions"),
    ("On which hours does support answer Business customers?", "policies/support-hours"),
    ("What is new in version 8.4 of the gateway?", "releases/2026-02"),
    ("archived Enterprise SLA of 2023", "policies/enterprise-sla-2023"),
    ("How often should clients retry a failed payment, and with which key?", "retrying-payments"),
    ("Why do retries hurt under stress?", "blog/retry-budgets"),
    ("How long does failover of one card route take?", "runbooks/payment-gateway-failover"),
    ("post-mortem impact of the incident of 7 March 2026", "post-mortems/payments-2026-03-07"),
    ("When is the initial incident report due under the rules?", "rules/incident-reporting"),
    ("incident reporting rules of 2021 for 100,000 customers", "rules/incident-reporting-2021"),
    ("card network outage in June 2024", "incidents/card-network-2024-06-02"),
    ("resolver with expired addresses in September 2025", "incidents/payments-2025-09-18"),
    ("measurements of the observatory with test payments", "reports/us-gateway-2026-03-07"),
    ("Fehlerquote bei Zahlungen am zweiten Tag der Störung", "de/hinweise-zahlungsstoerung"),
    ("перелік дій коли платежі карткою не проходять", "uk/perelik-dii-pry-zboi-platezhiv"),
    ("monthly uptime of the US payment gateway in February 2026", "history/uptime-2026"),
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

/// A question of words of one generated document: one of its title, the others of its text.
fn generated(nth: u64) -> (String, String) {
    let document = number(9, nth, GENERATED);
    let mut asked = vec![word(document, 9_000 + nth % 2)];
    asked.extend((0..2 + nth % 4).map(|at| word(document, number(nth, at, WORDS))));
    (asked.join(" "), format!("{document:05}"))
}

fn questions() -> Vec<(String, String)> {
    let known = QUESTIONS.iter().map(|(asked, file)| ((*asked).to_owned(), (*file).to_owned()));
    known.chain((0..40).map(generated)).collect()
}

/// Place of the known answer among the first ten, from 0.
fn place(found: &[String], file: &str) -> Option<usize> {
    found.iter().position(|address| {
        let path = address.rsplit_once('.').map_or(address.as_str(), |it| it.0);
        address.ends_with(file) || path.ends_with(file)
    })
}

fn times(mut each: Vec<Duration>) {
    each.sort_unstable();
    let ms: Vec<f64> = each.iter().map(|it| it.as_secs_f64() * 1e3).collect();
    let shown = format!("median {:.1}, p95 {:.1} ms", median(ms.clone()), ms[ms.len() * 95 / 100]);
    report("a question", &shown, "none");
}

fn main() -> ExitCode {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("notes");
    (0..GENERATED).for_each(|document| {
        documents::write(&root, document, document);
    });
    copy(Path::new("assets/corpus"), &root.join("corpus"));
    let source = DocumentSource::Folder(root.canonicalize().expect("there"));
    let layout = Layout::new(Some(BASE)).expect("a base");
    let stop = CancelFlag::default();
    let catalogue = source.catalogue(&layout, &stop).expect("looked through");
    let documents = catalogue.entries.len();
    let kept = dir.path().join("index");
    fs::create_dir_all(&kept).expect("made");
    let mut index = TextIndex::on_disk(&kept).expect("made");
    let took =
        timed(|| assert!(index.refresh(&source, &catalogue, &stop).expect("refreshed").read > 0));
    let rate = documents as f64 / took.as_secs_f64();
    report("indexing", &format!("{documents} documents, {rate:.0} a second"), "none");

    let asked = questions();
    let (mut places, mut each) = (Vec::new(), Vec::new());
    for round in 0..4 {
        for (question, file) in &asked {
            let begun = Instant::now();
            let found = index.search(question, 10).expect("searched").hits;
            each.push(begun.elapsed());
            if round == 0 {
                let found: Vec<String> = found.into_iter().map(|hit| hit.address).collect();
                places.push(place(&found, file));
                if places.last() != Some(&Some(0)) {
                    println!("  {:?}  {question}", places.last());
                }
            }
        }
    }
    times(each.split_off(asked.len()));
    let within = |most: usize| places.iter().filter(|it| it.is_some_and(|at| at < most)).count();
    let shown = format!("first {}, in 3 {}, in 10 {}", within(1), within(3), within(10));
    report("known answers of 60", &shown, &format!("in 3 {MIN_IN_THREE}"));
    if within(3) < MIN_IN_THREE { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
