//! A kept run of a million events, opened: from the database to the first frame that has its header,
//! its outcome and its panes; and the list of 100,000 runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roundtable::bench::{
    Database, DrawContext, EventGroup, Glyphs, RunLog as _, RunPage, Theme, first_row, render_run,
    second_row,
};
use roundtable::{Event, EventKind, RunClosed, RunId, Seq, SpanId, StopReason};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::long;
use crate::paired::{cpu, pairs, report, timed};
use crate::stored::{append, silent};

const EVENTS: usize = 1_000_000;
const RUNS: u32 = 100_000;

/// The part of this bench that opens the long run in a process of its own.
pub const OPEN_ONCE: &str = "open-once";

/// Events in one message to the dashboard.
const CHUNK: usize = 512;

/// A long run with its end.
fn long_run() -> Vec<Arc<Event>> {
    let mut log = long::log(EVENTS - 1);
    let last = log.last().expect("events");
    let closed = RunClosed {
        reason: StopReason::Success,
        phase: None,
        boundary: None,
        elapsed_ms: last.at.0 / 1_000,
        paused_ms: 0,
        in_flight: 0,
    };
    let (seq, at) = (Seq(last.seq.0 + 1), last.at);
    let kind = EventKind::RunClosed(Box::new(closed));
    log.push(Arc::new(Event { seq, at, span: SpanId::RUN, kind }));
    log
}

/// Groups as large as those of a run that does not pause.
fn large_groups(events: &[Arc<Event>], run: &RunId) -> Vec<EventGroup> {
    let mut groups = Vec::new();
    let mut group = EventGroup::starting_at(Seq(0));
    for event in events {
        group.push(event, run).expect("a line");
        if group.is_full() {
            let next = group.next();
            groups.push(std::mem::replace(&mut group, EventGroup::starting_at(next)));
        }
    }
    groups.push(group);
    groups.iter().map(silent).collect()
}

/// Draws the page as the dashboard does.
fn frame(page: &RunPage) {
    let (theme, area) = (Theme::default(), Rect::new(0, 0, 200, 50));
    let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs: Glyphs::Unicode };
    let rows = |y: u16, height: u16| Rect { y, height, ..area };
    let mut buf = Buffer::empty(area);
    first_row(page, &cx, rows(0, 1), &mut buf);
    second_row(page, true, &cx, rows(1, 1), &mut buf);
    render_run(page, &cx, rows(2, 46), &mut buf);
}

fn folded(events: &[Arc<Event>]) -> RunPage {
    let mut page = RunPage::new(RunId::new("r-long"), Duration::ZERO);
    events.chunks(CHUNK).for_each(|chunk| page.apply(chunk));
    page
}

/// Reads the log in the background and folds it here, as the dashboard does.
fn opened(runtime: &Runtime, database: &Database, run: &RunId) -> RunPage {
    let (send, mut events) = mpsc::unbounded_channel();
    let (database, id) = (database.clone(), run.clone());
    runtime.spawn(async move {
        let mut groups = database.read(&id, Seq(0));
        while let Some(group) = groups.next().await {
            for chunk in group.expect("read").events(Seq(0)).expect("events").chunks(CHUNK) {
                send.send(chunk.to_vec()).expect("read");
            }
        }
    });
    let mut page = RunPage::new(run.clone(), Duration::ZERO);
    while let Some(chunk) = events.blocking_recv() {
        page.apply(&chunk);
    }
    frame(&page);
    page
}

/// The most memory that this process has had, as the system says it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |kib| kib.trim().to_owned())
}

/// In a process of its own: opens the long run and prints its memory.
pub fn open_once(runtime: &Runtime, path: &Path) {
    let database = Database::open(path).expect("opens");
    let before = peak_memory();
    let page = opened(runtime, &database, &RunId::new("r-long"));
    assert_eq!(page.log().len(), EVENTS);
    print!("{} (before: {before})", peak_memory());
}

/// Opens the long run; returns the ratio to folding the same events.
#[allow(clippy::cast_precision_loss)]
pub fn open_long_run(runtime: &Runtime, folder: &Path) -> f64 {
    let database = Database::open(&folder.join("long").join("runs.db")).expect("opens");
    let id = RunId::new("r-long");
    let events = long_run();
    let groups = large_groups(&events, &id);
    let bytes: usize = groups.iter().map(|group| group.lines().len()).sum();
    append(runtime, &database, id.as_str(), &groups);
    let parsed = timed(|| {
        for group in &groups {
            assert_eq!(group.events(Seq(0)).expect("events").len(), group.len() as usize);
        }
    });
    let shown = format!("{:.2} us each", parsed.as_secs_f64() * 1e6 / EVENTS as f64);
    let what = format!("{EVENTS} lines parsed, {:.0} MB", bytes as f64 / 1e6);
    report(&what, &shown, "none");
    drop(groups);
    let mut spent = Vec::new();
    let beside = pairs(
        5,
        || {
            let begun = cpu();
            let mut page = None;
            let took = timed(|| page = Some(opened(runtime, &database, &id)));
            assert_eq!(page.map(|page| page.log().len()), Some(EVENTS));
            spent.push(cpu() - begun);
            took
        },
        || {
            let mut page = None;
            let took = timed(|| page = Some(folded(&events)));
            drop(page);
            took
        },
    );
    let (open, fold) = beside.medians();
    let shown = format!("{:.2}x ({open:.2} / {fold:.2} s)", beside.ratio());
    report(&format!("{EVENTS} events opened / folded"), &shown, "1 s");
    spent.sort();
    let shown = format!("{:.2} s", spent[spent.len() / 2].as_secs_f64());
    report("CPU time of opening", &shown, "none");
    let program = std::env::current_exe().expect("this program");
    let once = std::process::Command::new(program).arg(OPEN_ONCE).arg(database.path()).output();
    let memory = String::from_utf8_lossy(&once.expect("ends").stdout).into_owned();
    report("memory of a process that opens it", &memory, "none");
    beside.ratio()
}

/// Lists many runs.
pub fn list_runs(folder: &Path) {
    let path = folder.join("list").join("runs.db");
    let database = Database::open(&path).expect("opens");
    let raw = rusqlite::Connection::open(&path).expect("opens");
    raw.execute_batch("BEGIN").expect("begun");
    let mut insert = raw
        .prepare(
            "INSERT INTO run (id, started, title, scenario, scenario_hash, pattern, status, result,
             elapsed_ms, tokens, cost, owner, next, bytes)
             VALUES (?1, ?2, 'Launch readiness of the new checkout', 'checkout-launch', ?3,
             'collaboration', ?4, 'success', 61000, 12345, 0.12, ?5, 300, 90000)",
        )
        .expect("prepared");
    for nth in 0..RUNS {
        let (id, owner) = (format!("r-{nth:08x}"), format!("owner-{}", nth / 10));
        let status = if nth % 100 == 0 { "open" } else { "ended" };
        insert.execute((id, nth, "00ff".repeat(16), status, owner)).expect("inserted");
    }
    drop(insert);
    raw.execute_batch("COMMIT").expect("stored");
    let mut took: Vec<Duration> = (0..9)
        .map(|_| timed(|| assert_eq!(database.runs().expect("read").rows.len(), RUNS as usize)))
        .collect();
    took.sort();
    report(&format!("list of {RUNS} runs"), &format!("{:.1?}", took[took.len() / 2]), "100 ms");
}
