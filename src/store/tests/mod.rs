//! The contract of every log, held against memory and SQLite alike; exported files; runs that started
//! while the clock of the machine was wrong.

mod database;
mod failures;
mod recorder;
mod text_index;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use futures::stream::BoxStream;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::database::Database;
use super::database::removal::Retention;
use super::database::rows::RunCourse;
use super::file::{LogFile, LogFileLimits};
use super::*;
use crate::log::event::{Event, EventKind, RunClosed, SpanId, StopReason};
use crate::log::world::run_row::{RunRow, RunStatus};

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
        let (seq, at) = (Seq(seq), crate::log::event::Elapsed(seq));
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

/// The same questions to every log.
async fn keeps_the_contract(log: &dyn RunLog, run: &RunId) {
    let (first, second) =
        (group(0, &[warning("a"), warning("b")]), group(2, &[warning("c"), closed()]));
    assert_eq!(log.next(run).await, Ok(Seq(0)));
    assert_eq!(log.append(run, Seq(0), &first).await, Ok(Seq(2)));
    // The same group again, a gap, and another's place.
    assert_eq!(log.append(run, Seq(0), &first).await, Err(AppendError::Fenced));
    assert_eq!(log.append(run, Seq(3), &group(3, &[closed()])).await, Err(AppendError::Fenced));
    assert_eq!(log.append(&id("r-none"), Seq(0), &first).await, Err(AppendError::Gone));
    assert_eq!(log.next(&id("r-none")).await, Err(AppendError::Gone));

    let mut tail = log.tail(run, Seq(1));
    let told = tail.next().await.expect("a group").expect("read");
    assert_eq!(told, first, "the group that has event 1");
    let (later, appended) = tokio::join!(tail.next(), log.append(run, Seq(2), &second));
    assert_eq!(appended, Ok(Seq(4)));
    assert_eq!(later.expect("a group").expect("read"), second);
    drop(tail);

    let read: Vec<EventGroup> =
        log.read(run, Seq(0)).map(|group| group.expect("read")).collect().await;
    assert_eq!(read, [first, second.clone()]);
    let rest: Vec<EventGroup> =
        log.read(run, Seq(3)).map(|group| group.expect("read")).collect().await;
    assert_eq!(rest, [second]);
    assert_eq!(log.read(run, Seq(4)).count().await, 0);
    let none: Vec<_> = log.read(&id("r-none"), Seq(0)).collect().await;
    assert_eq!(none, [Err(ReadError::NoSuchRun)]);
}

#[tokio::test]
async fn memory_log_keeps_contract() {
    let log = MemoryLog::default();
    log.begin(id("r-1"));
    keeps_the_contract(&log, &id("r-1")).await;
}

#[tokio::test]
async fn database_log_keeps_contract() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    keeps_the_contract(&temp.database, &run).await;
}

#[tokio::test]
async fn a_tail_ends_with_its_run() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
    temp.end(&run, "success").await;
    assert_eq!(temp.database.tail(&run, Seq(0)).count().await, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Any division of a log into groups reads back as the same events, from any event on.
    #[test]
    fn log_reads_alike_in_any_groups(
        sizes in prop::collection::vec(1_usize..6, 1..12),
        from in 0_u64..60,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (temp, memory) = (Temp::new(), MemoryLog::default());
            let run = temp.begin("r-1", 1, false);
            memory.begin(run.clone());
            let mut next = Seq(0);
            for size in sizes {
                let kinds: Vec<_> = (0..size).map(|at| warning(&format!("{}", next.0 + at as u64))).collect();
                let group = group(next.0, &kinds);
                memory.append(&run, next, &group).await.expect("appended");
                next = temp.database.append(&run, next, &group).await.expect("appended");
            }
            let logs: [&dyn RunLog; 2] = [&temp.database, &memory];
            for log in logs {
                let groups: Vec<EventGroup> = log.read(&run, Seq(from)).map(|it| it.expect("read")).collect().await;
                let read: Vec<Seq> = groups.iter().flat_map(|it| it.events(Seq(from)).expect("events")).map(|it| it.seq).collect();
                prop_assert_eq!(read, (from..next.0).map(Seq).collect::<Vec<_>>());
            }
            Ok(())
        })?;
    }
}

fn lines(kinds: &[&str]) -> String {
    kinds.iter().map(|line| format!("{line}\n")).collect()
}

const HEAD: &str = include_str!("../../../tests/golden/v2/facts.jsonl");

#[test]
fn reads_exported_file_while_intact() {
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let head = head.replacen("\"seq\":", "\"seq\":0,\"was\":", 1);
    let second = r#"{"v":2,"seq":1,"at_us":7,"span":0,"kind":"warning","text":"a"}"#;
    let outcome = r#"{"v":2,"kind":"outcome","status":"ok"}"#;
    let read = |text: &str| LogFile::read(std::io::Cursor::new(text.as_bytes().to_vec()));
    let whole = read(&lines(&[&head, second, outcome])).expect("a log");
    assert_eq!((whole.events.len(), whole.notes.len()), (2, 0));
    let torn = read(&format!("{}{}", lines(&[&head, second]), &second[..30])).expect("a log");
    assert_eq!(torn.events.len(), 2);
    assert_eq!(torn.notes, ["line 3 is cut off and was left out"]);
    // A line that is whole but without a line break is an event.
    assert_eq!(read(&format!("{head}\n{second}")).expect("a log").events.len(), 2);
    assert!(matches!(read(""), Err(ReadError::Damaged { .. })));
    assert!(matches!(read(second), Err(ReadError::Damaged { .. })), "no head");
    assert!(matches!(read(&lines(&[&head, &head])), Err(ReadError::Damaged { at: 1, .. })));
    let broken = lines(&[&head, "{\"seq\":1", second]);
    assert!(matches!(read(&broken), Err(ReadError::Damaged { at: 1, .. })));
    let jump = second.replacen("\"seq\":1", "\"seq\":9", 1);
    let jumped = read(&lines(&[&head, &jump])).expect("a log");
    assert_eq!((jumped.events[1].seq, jumped.notes.len()), (Seq(1), 1));
}

#[test]
fn skips_byte_order_mark() {
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let log = LogFile::read(format!("\u{feff}{head}\n").as_bytes()).expect("a log");
    assert_eq!((log.events.len(), log.notes.len()), (1, 0));
}

#[test]
fn logs_of_older_versions_are_refused() {
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let old = head.replacen("\"v\":2", "\"v\":1", 1);
    let error = LogFile::read(format!("{old}\n").as_bytes()).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "event 0 cannot be read: it has version 1 of the events, and this program reads version 2; move \
         the file aside"
    );
}

#[test]
fn detects_compressed_file_by_bytes() {
    use std::io::Write as _;
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writeln!(packed, "{head}").expect("packed");
    let bytes = packed.finish().expect("packed");
    assert_eq!(LogFile::read(&bytes[..]).expect("a log").events.len(), 1);
    let cut = LogFile::read(&bytes[..bytes.len() / 2]).expect_err("its head is cut off");
    assert_eq!(cut.to_string(), "event 0 cannot be read: the file is cut off in its first line");
}

#[test]
fn endless_log_is_read_to_limits() {
    use std::io::Read as _;
    let head = HEAD.lines().find(|line| line.contains("run.started")).expect("a head");
    let limits = LogFileLimits { line: 1 << 16, all: 1 << 18, lines: 1_000 };
    let long = |size: usize| {
        let text = "x".repeat(size);
        format!(r#"{{"v":2,"seq":1,"at_us":7,"span":0,"kind":"warning","text":"{text}"}}"#)
    };
    for (rest, at, says) in [
        ("\0".to_owned(), 1, "longer than 65536 bytes"),
        ("\n".to_owned(), 1_000, "at most 1000 lines"),
        (long(1) + "\n", 1_000, "at most 1000 lines"),
        (long(5_000) + "\n", 52, "262144 bytes uncompressed"),
        (long(70_000) + "\n", 1, "longer than 65536 bytes"),
    ] {
        let endless = std::iter::repeat_n(rest.clone(), 1 << 20).map(String::into_bytes);
        let mut endless = endless.take((1 << 20) / rest.len() + 1);
        let rest: Vec<u8> = endless.by_ref().flatten().collect();
        let log = format!("{head}\n").into_bytes();
        let read = LogFile::read_within(log.chain(&rest[..]), limits).expect_err(says);
        let text = read.to_string();
        assert!(matches!(read, ReadError::Damaged { at: found, .. } if found == at), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

const DAY: u64 = 86_400_000;

/// A store with these runs, started in this order on these days, all of which have ended.
async fn started_on(days: &[(&str, u64)]) -> Temp {
    let temp = Temp::new();
    for (name, day) in days {
        let run = temp.begin(name, day * DAY, false);
        temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
        temp.end(&run, "success").await;
    }
    temp
}

fn listed(temp: &Temp) -> Vec<String> {
    temp.database.runs().expect("read").rows.iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn last_run_is_last_started() {
    let temp = started_on(&[("r-1", 100), ("r-ahead", 500), ("r-2", 101), ("r-3", 101)]).await;
    let last = |back| temp.database.nth_last(back).expect("read").map(|row| row.id.to_string());
    assert_eq!(last(0).as_deref(), Some("r-3"));
    assert_eq!(last(1).as_deref(), Some("r-2"));
    assert_eq!(last(2).as_deref(), Some("r-ahead"));
    assert_eq!(last(4), None);
    // The list has the times of the clock, and one order.
    assert_eq!(listed(&temp), ["r-ahead", "r-3", "r-2", "r-1"]);
    assert_eq!(listed(&temp), listed(&temp));
}

#[tokio::test]
async fn clock_set_back_never_removes_run() {
    let days = [("r-ahead-1", 500), ("r-ahead-2", 501), ("r-1", 100), ("r-2", 101)];
    let temp = started_on(&days).await;
    let keep = Retention { runs: 2, days: 30, bytes: u64::MAX };
    assert_eq!(temp.database.prune(keep, 101 * DAY, 0).expect("pruned").runs, 2);
    assert_eq!(listed(&temp), ["r-2", "r-1"], "the last ones stay");
}

#[tokio::test]
async fn retention_days_follow_start_order() {
    let keep = Retention { runs: 10, days: 30, bytes: u64::MAX };
    // The clock of a machine without a battery begins in 1970.
    let temp = started_on(&[("r-1", 100), ("r-1970", 0), ("r-ahead", 500), ("r-2", 120)]).await;
    let prune = |day: u64| temp.database.prune(keep, day * DAY, 0).expect("pruned").runs;
    assert_eq!(prune(121), 0);
    assert_eq!(prune(0), 0, "a clock that is behind makes no run old");
    // They are as old as the run that was started before them.
    assert_eq!(prune(131), 3);
    assert_eq!(listed(&temp), ["r-2"]);
}

/// Logs in memory: the reference that the other implementations are tested against.
#[derive(Debug, Default)]
pub struct MemoryLog {
    runs: Mutex<BTreeMap<RunId, Vec<EventGroup>>>,
    changed: Notify,
}

impl MemoryLog {
    /// Begins the log of a run.
    pub fn begin(&self, run: RunId) {
        self.lock().entry(run).or_default();
    }

    /// Deletes a run.
    pub fn remove(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Vec<EventGroup>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn groups(&self, run: &RunId, from: Seq) -> Result<Vec<EventGroup>, ReadError> {
        let runs = self.lock();
        let groups = runs.get(run).ok_or(ReadError::NoSuchRun)?;
        Ok(groups.iter().filter(|group| group.next() > from).cloned().collect())
    }
}

fn end(groups: &[EventGroup]) -> Seq {
    groups.last().map_or(Seq(0), EventGroup::next)
}

/// Whether a group has the end of its run.
pub(crate) fn has_end(group: &EventGroup) -> bool {
    let last = Seq(group.next().0.saturating_sub(1));
    group.events(last).is_ok_and(|events| {
        events.iter().any(|event| matches!(event.kind, EventKind::RunClosed(_)))
    })
}

impl RunLog for MemoryLog {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let group = group.clone();
        Box::pin(async move {
            let mut runs = self.lock();
            let groups = runs.get_mut(run).ok_or(AppendError::Gone)?;
            if end(groups) != expect || group.first() != expect {
                return Err(AppendError::Fenced);
            }
            let next = group.next();
            groups.push(group);
            drop(runs);
            self.changed.notify_waiters();
            Ok(next)
        })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(
            async move { self.lock().get(run).map(|groups| end(groups)).ok_or(AppendError::Gone) },
        )
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        match self.groups(run, from) {
            Ok(groups) => stream::iter(groups.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        stream::unfold(Some(from), move |from| async move {
            let mut from = from?;
            loop {
                let changed = self.changed.notified();
                let mut groups = match self.groups(run, from) {
                    Ok(groups) => groups.into_iter(),
                    Err(error) => return Some((Err(error), None)),
                };
                if let Some(group) = groups.next() {
                    from = group.next();
                    let more = (!has_end(&group)).then_some(from);
                    return Some((Ok(group), more));
                }
                changed.await;
            }
        })
        .boxed()
    }
}
