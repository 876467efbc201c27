//! The index over folders of documents, as it is and as a table of SQLite's FTS5 with the same stems:
//! 10,000 documents, 60 questions whose answer is known. `cargo bench --bench search_engines` prints the
//! order of the answers, the times and the sizes of both; it judges neither.

mod documents;
mod paired;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use documents::{WORDS, number, word};
use frostem::{Algorithm, Stemmer};
use paired::{median, report, timed};
use roundtable::bench::{
    CancelFlag, Catalogue, DocumentSource, Layout, TextIndex, query_words, words,
};
use rusqlite::{Connection, OptionalExtension as _, params};

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

/// Writes a document as it is in this turn; returns its size in bytes.
fn write(root: &Path, document: u64, turn: u64) -> u64 {
    documents::write(root, document, document + turn * GENERATED)
}

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

fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("a folder").flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|it| it.is_file()).map(|it| it.len()).sum()
}

/// The index as a table of FTS5, without its text, beside a table of the documents.
struct Fts {
    connection: Connection,
}

impl Fts {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("opens");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536;
                 CREATE TABLE IF NOT EXISTS page (
                    id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE, modified INTEGER NOT NULL,
                    size INTEGER NOT NULL, title TEXT, date TEXT, body TEXT
                 ) STRICT;
                 CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
                    title, body, place, date, content = '', contentless_delete = 1,
                    tokenize = 'ascii'
                 );",
            )
            .expect("tables");
        Self { connection }
    }

    fn known(&self) -> HashMap<String, (i64, u64, u64)> {
        let mut all =
            self.connection.prepare("SELECT address, id, modified, size FROM page").unwrap();
        let rows = all.query_map([], |row| {
            let (modified, size): (i64, i64) = (row.get(2)?, row.get(3)?);
            Ok((row.get(0)?, (row.get(1)?, modified as u64, size as u64)))
        });
        rows.unwrap().map(|row| row.unwrap()).collect()
    }

    fn refresh(&mut self, source: &DocumentSource, catalogue: &Catalogue) -> u64 {
        let known = self.known();
        let stemmer = Stemmer::new(Algorithm::English);
        let mut seen: HashMap<String, String> = HashMap::new();
        let mut stems = |text: &str| {
            let mut out = String::with_capacity(text.len());
            for (_, word) in words(text) {
                match seen.get(&word) {
                    Some(stem) => out.push_str(stem),
                    None => {
                        let stem = stemmer.stem(&word).into_owned();
                        out.push_str(&stem);
                        seen.insert(word, stem);
                    }
                }
                out.push(' ');
            }
            out
        };
        let change = self.connection.transaction().expect("begun");
        let mut read = 0;
        for entry in &catalogue.entries {
            let stamp = entry.file.stamp;
            let was = known.get(&entry.address);
            if was.is_some_and(|it| (it.1, it.2) == (stamp.modified, stamp.size)) {
                continue;
            }
            let Ok(page) = source.read(entry, &CancelFlag::default()) else { continue };
            if let Some((id, ..)) = was {
                change
                    .prepare_cached("DELETE FROM words WHERE rowid = ?1")
                    .unwrap()
                    .execute([id])
                    .unwrap();
                change
                    .prepare_cached("DELETE FROM page WHERE id = ?1")
                    .unwrap()
                    .execute([id])
                    .unwrap();
            }
            let page = page.document;
            change
                .prepare_cached(
                    "INSERT INTO page (address, modified, size, title, date, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )
                .unwrap()
                .execute(params![
                    entry.address,
                    stamp.modified as i64,
                    stamp.size as i64,
                    page.title,
                    page.published_at,
                    page.text
                ])
                .unwrap();
            let id = change.last_insert_rowid();
            change
                .prepare_cached(
                    "INSERT INTO words (rowid, title, body, place, date) VALUES (?1, ?2, ?3, ?4, ?5)",
                )
                .unwrap()
                .execute(params![
                    id,
                    stems(&page.title),
                    stems(&page.text),
                    stems(&entry.address),
                    stems(&page.published_at)
                ])
                .unwrap();
            read += 1;
        }
        change.commit().expect("committed");
        read
    }

    fn search(&self, query: &str, k: usize) -> Vec<String> {
        let asked: Vec<String> =
            query_words(query).iter().map(|word| format!("\"{word}\"")).collect();
        if asked.is_empty() {
            return Vec::new();
        }
        let mut found = self
            .connection
            .prepare_cached(
                "SELECT rowid, bm25(words, 2.0, 1.0, 0.5, 0.5) FROM words WHERE words MATCH ?1",
            )
            .unwrap();
        let rows = found.query_map([asked.join(" OR ")], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?))
        });
        let mut all: Vec<(i64, f64)> = rows.unwrap().map(|row| row.unwrap()).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        let mut page = self
            .connection
            .prepare_cached("SELECT address, title, body, date FROM page WHERE id = ?1")
            .unwrap();
        let address = |id: i64| {
            let row = page.query_row([id], |row| Ok((row.get(0)?, row.get::<_, String>(2)?)));
            row.optional().unwrap().map(|(address, _)| address)
        };
        all.into_iter().map(|(id, _)| id).filter_map(address).collect()
    }
}

/// Place of the known answer among the first ten, from 0.
fn place(found: &[String], file: &str) -> Option<usize> {
    found.iter().position(|address| {
        let path = address.rsplit_once('.').map_or(address.as_str(), |it| it.0);
        address.ends_with(file) || path.ends_with(file)
    })
}

fn judged(name: &str, places: &[Option<usize>]) {
    let within = |most: usize| places.iter().filter(|it| it.is_some_and(|at| at < most)).count();
    let shown = format!(
        "first {}, in 3 {}, in 10 {} of {}",
        within(1),
        within(3),
        within(10),
        places.len()
    );
    report(&format!("{name}: known answers"), &shown, "none");
}

fn times(name: &str, mut each: Vec<Duration>) {
    each.sort_unstable();
    let ms: Vec<f64> = each.iter().map(|it| it.as_secs_f64() * 1e3).collect();
    let shown = format!("median {:.1}, p95 {:.1} ms", median(ms.clone()), ms[ms.len() * 95 / 100]);
    report(&format!("{name}: a question"), &shown, "none");
}

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("notes");
    (0..GENERATED).for_each(|document| {
        write(&root, document, 0);
    });
    copy(Path::new("assets/corpus"), &root.join("corpus"));
    let root = root.canonicalize().expect("there");
    let source = DocumentSource::Folder(root.clone());
    let layout = Layout::new(Some(BASE)).expect("a base");
    let stop = CancelFlag::default();
    let list = || source.catalogue(&layout, &stop).expect("looked through");
    let catalogue = list();
    report("documents", &catalogue.entries.len().to_string(), "none");

    let reading = timed(|| catalogue.entries.iter().for_each(|it| drop(source.read(it, &stop))));
    report("reading alone", &format!("{reading:.2?}"), "none");
    for round in 0..3 {
        let (tantivy, fts) =
            (dir.path().join(format!("t{round}")), dir.path().join(format!("f{round}")));
        fs::create_dir_all(&tantivy).expect("made");
        fs::create_dir_all(&fts).expect("made");
        let mut first = TextIndex::on_disk(&tantivy).expect("made");
        let took = timed(|| {
            assert!(first.refresh(&source, &catalogue, &stop).expect("refreshed").read > 0)
        });
        report("tantivy: indexing", &format!("{took:.2?}"), "none");
        let mut second = Fts::open(&fts.join("index.db"));
        let took = timed(|| assert!(second.refresh(&source, &catalogue) > 0));
        report("fts5: indexing", &format!("{took:.2?}"), "none");
    }
    let (tantivy, fts) = (dir.path().join("t2"), dir.path().join("f2"));
    let mut first = TextIndex::on_disk(&tantivy).expect("opened");
    first.refresh(&source, &catalogue, &stop).expect("refreshed");
    let mut second = Fts::open(&fts.join("index.db"));
    let mib = |folder: &Path| format!("{:.1} MB", size(folder) as f64 / 1e6);
    report("tantivy: size", &mib(&tantivy), "none");
    report("fts5: size", &mib(&fts), "none");
    for turn in 1..4 {
        (0..GENERATED).step_by(100).for_each(|document| {
            write(&root, document, turn);
        });
        let catalogue = list();
        let took = timed(|| {
            assert!(first.refresh(&source, &catalogue, &stop).expect("refreshed").read > 0)
        });
        report("tantivy: after 1 % have changed", &format!("{took:.1?}"), "none");
        let took = timed(|| assert!(second.refresh(&source, &catalogue) > 0));
        report("fts5: after 1 % have changed", &format!("{took:.1?}"), "none");
    }
    (0..GENERATED).step_by(100).for_each(|document| {
        write(&root, document, 0);
    });
    let catalogue = list();
    first.refresh(&source, &catalogue, &stop).expect("refreshed");
    second.refresh(&source, &catalogue);

    let asked = questions();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for round in 0..4 {
        for (question, file) in &asked {
            let begun = Instant::now();
            let found = first.search(question, 10).expect("searched").hits;
            our_times.push(begun.elapsed());
            let begun = Instant::now();
            let others = second.search(question, 10);
            their_times.push(begun.elapsed());
            if round == 0 {
                let found: Vec<String> = found.into_iter().map(|hit| hit.address).collect();
                ours.push(place(&found, file));
                theirs.push(place(&others, file));
                if ours.last() != theirs.last() {
                    println!("  {:?} {:?}  {question}", ours.last(), theirs.last());
                }
            }
        }
    }
    judged("tantivy", &ours);
    judged("fts5", &theirs);
    times("tantivy", our_times.split_off(60));
    times("fts5", their_times.split_off(60));
}
