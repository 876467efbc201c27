//! What search over a folder costs: ten thousand documents indexed, asked, and followed as they
//! change.

mod documents;
mod paired;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use documents::word;
use paired::{held, median, pairs, report, timed};
use roundtable::bench::{CancelFlag, DocumentSource, FolderSearch, FolderSpec, Layout, TextIndex};
use roundtable::{Tool, ToolRequest};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

const DOCUMENTS: u64 = 10_000;
const QUERIES: u64 = 200;
const BASE: &str = "https://notes.local/";

/// Writes a document as it is in this turn; returns its size in bytes.
fn write(root: &Path, document: u64, turn: u64) -> u64 {
    documents::write(root, document, document + turn * DOCUMENTS)
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one"));
    let of = |path: PathBuf| match path.is_dir() {
        true => bytes_below(&path),
        false => path.metadata().expect("a file").len(),
    };
    entries.map(|entry| of(entry.path())).sum()
}

/// A line of what the system says of this process's memory, in MiB.
fn memory(line: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|it| it.strip_prefix(line));
    let kib = found.and_then(|rest| rest.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok());
    kib.unwrap_or(f64::NAN) / 1_024.0
}

struct Bench {
    runtime: Runtime,
    spec: FolderSpec,
}

impl Bench {
    /// Asks a tool that knows nothing but what is kept, as the first call of a process does.
    fn first(&self, cache: &Path) -> (FolderSearch, Value) {
        let tool = FolderSearch::new(self.spec.clone(), Some(cache.to_owned()));
        let data = self.ask(&tool, &word(0, 0));
        (tool, data)
    }

    fn ask(&self, tool: &FolderSearch, query: &str) -> Value {
        let Value::Object(args): Value = json!({ "query": query, "k": 10 }) else { unreachable!() };
        let args: Map<String, Value> = args;
        let request = ToolRequest::bare(&args);
        self.runtime.block_on(tool.ask(request)).expect("an answer")["data"].clone()
    }
}

fn query(nth: u64) -> String {
    let words: Vec<String> = (0..3 + nth % 6).map(|at| word(77_000_000 + nth, at)).collect();
    words.join(" ")
}

/// The middle and the 95th of a hundred, in milliseconds.
fn spread(times: &[Duration]) -> (f64, f64) {
    let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1_000.0).collect();
    ms.sort_by(f64::total_cmp);
    (median(ms.clone()), ms.get(ms.len() * 95 / 100).copied().unwrap_or(f64::NAN))
}

#[allow(clippy::cast_precision_loss)]
fn main() -> ExitCode {
    let dir = tempfile::tempdir().expect("a folder");
    let (root, cache) = (dir.path().join("notes"), dir.path().join("cache"));
    let bytes: u64 = (0..DOCUMENTS).map(|document| write(&root, document, 0)).sum();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let spec = FolderSpec { folder: Some(root.clone()), base_url: Some(BASE.to_owned()) };
    let bench = Bench { runtime, spec };
    let before = memory("VmRSS");
    let (tool, data) = bench.first(&cache);
    assert_eq!((&data["refreshed"], &data["index"]), (&json!(DOCUMENTS), &json!("disk")));
    let after = memory("VmRSS");
    drop(tool);

    let mut anew = 0_u32;
    let indexing = pairs(
        3,
        || timed(|| assert_eq!(bench.first(&cache).1["refreshed"], 0)),
        || {
            anew += 1;
            let cache = dir.path().join(format!("cache-{anew}"));
            let time = timed(|| assert_eq!(bench.first(&cache).1["refreshed"], DOCUMENTS));
            fs::remove_dir_all(cache).expect("removed");
            time
        },
    );
    let (same, full) = indexing.medians();
    let rate = DOCUMENTS as f64 / full;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report("10,000 documents indexed", &format!("{rate:.0} documents/s, {full:.2} s"), "none");
    let kept = bytes_below(&cache);
    let sizes = format!("{:.1} MiB of {:.1} MiB", mib(kept), mib(bytes));
    report("the index on the disk", &sizes, "none");
    let opened = format!("{:.0} ms", same * 1_000.0);
    report("opened and followed, nothing changed", &opened, "none");

    let (tool, _) = bench.first(&cache);
    let again: Vec<Duration> =
        (0..20).map(|nth| timed(|| drop(bench.ask(&tool, &query(nth))))).collect();
    let (middle, _) = spread(&again);
    let asked: Vec<Duration> =
        (0..QUERIES).map(|nth| timed(|| drop(bench.ask(&tool, &query(nth))))).collect();
    let (median_ms, p95_ms) = spread(&asked);
    let shown = format!("median {median_ms:.1} ms, p95 {p95_ms:.1} ms");
    report("a call: folder looked through, asked, snippets cut", &shown, "none");

    let source = DocumentSource::Folder(root.canonicalize().expect("there"));
    let layout = Layout::new(Some(BASE)).expect("a base");
    let stop = CancelFlag::default();
    let catalogue = source.catalogue(&layout, &stop).expect("looked through");
    let mut index = TextIndex::in_memory().expect("made");
    index.refresh(&source, &catalogue, &stop).expect("followed");
    let alone: Vec<Duration> = (0..QUERIES)
        .map(|nth| {
            let start = Instant::now();
            index.search(&query(nth), 10).expect("searched");
            start.elapsed()
        })
        .collect();
    let (alone_ms, alone_p95) = spread(&alone);
    let shown = format!("median {alone_ms:.1} ms, p95 {alone_p95:.1} ms");
    report("the index alone, in memory", &shown, "none");
    drop(index);

    let mut turn = 0;
    let some: Vec<f64> = (0..3)
        .map(|_| {
            turn += 1;
            for document in (0..DOCUMENTS).step_by(100) {
                write(&root, document, turn);
            }
            let one_percent = DOCUMENTS / 100;
            timed(|| assert_eq!(bench.ask(&tool, "ba")["refreshed"], one_percent)).as_secs_f64()
        })
        .collect();
    let followed = format!("{:.0} ms (nothing changed {middle:.0} ms)", median(some) * 1_000.0);
    report("a call after 1 % have changed", &followed, "none");
    let grown = format!("+{:.0} MiB, peak {:.0} MiB", after - before, memory("VmHWM"));
    report("memory of the process for the first index", &grown, "none");

    let ratio = indexing.ratio();
    report("nothing changed, of a full index", &format!("{ratio:.3}x"), "0.2x");
    held(&[("a refresh with nothing changed", ratio, 0.2)])
}
