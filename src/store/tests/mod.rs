//! What each log has to do, held against memory and SQLite alike, and what a database must not lose.

mod clock;
mod contract;
mod database;
mod failures;
mod file;
mod recorder;
mod said;

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::database::Database;
use super::database::rows::RunCourse;
use super::*;
use crate::event::kind::RunClosed;
use crate::event::run_row::{RunRow, RunStatus};
use crate::event::{Event, EventKind, SpanId, StopReason};

/// A store of version 1 with three runs, written by the program of that version.
const VERSION_1: &[u8] = include_bytes!("../../../tests/data/runs-v1.db.gz");

fn write_version_1(path: &Path) {
    let mut bytes = Vec::new();
    GzDecoder::new(VERSION_1).read_to_end(&mut bytes).expect("unpacked");
    std::fs::write(path, bytes).expect("written");
}

fn id(text: &str) -> RunId {
    RunId::new(text)
}

fn warning(text: &str) -> EventKind {
    EventKind::Warning { text: text.to_owned() }
}

fn closed() -> EventKind {
    EventKind::RunClosed(Box::new(RunClosed {
        reason: StopReason::Success,
        phase: None,
        boundary: None,
        elapsed_ms: 0,
        paused_ms: 0,
        in_flight: 0,
    }))
}

fn group(first: u64, kinds: &[EventKind]) -> EventGroup {
    let mut group = EventGroup::starting_at(Seq(first));
    for (seq, kind) in (first..).zip(kinds) {
        let (seq, at) = (Seq(seq), crate::event::Elapsed(seq));
        let event = Event { seq, at, span: SpanId::RUN, kind: kind.clone() };
        group.push(&event, &id("r-1")).expect("a line");
    }
    group
}

fn texts(group: &EventGroup) -> Vec<String> {
    let events = group.events(Seq(0)).expect("events");
    events
        .iter()
        .map(|event| match &event.kind {
            EventKind::Warning { text } => text.clone(),
            other => other.name().to_owned(),
        })
        .collect()
}

fn row(id: &str, started_ms: u64, live: bool) -> RunRow {
    RunRow {
        started_ms,
        title: "A title".into(),
        scenario: "a-scenario".into(),
        pattern: "team".into(),
        live,
        ..RunRow::begun(RunId::new(id))
    }
}

/// A database in a folder that lives as long as it.
struct Temp {
    database: Database,
    folder: TempDir,
}

impl Temp {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::open(&folder.path().join("state/runs.db")).expect("opens");
        Self { database, folder }
    }

    fn again(&self) -> Database {
        Database::open(&self.folder.path().join("state/runs.db")).expect("opens")
    }

    fn begin(&self, id: &str, started_ms: u64, live: bool) -> RunId {
        let row = row(id, started_ms, live);
        assert!(self.database.reserve(&row.id, started_ms).expect("reserved"));
        assert_eq!(self.database.begin(&row, "00ff"), Ok(true));
        row.id
    }

    async fn end(&self, run: &RunId, reason: &str) {
        let ended = Some(reason.to_owned());
        let course = RunCourse { ended, ..RunCourse::default() };
        self.database.update(run, &course).await.expect("updated");
    }
}
