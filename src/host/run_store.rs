//! Keeps runs in the store: this program's [`RunKeeper`]. It also keeps the key of the digests in
//! redacted logs, a file next to the store: logs of one user can be compared, and no one else can
//! find a short text by trying texts.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::crypto::ring;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::Dirs;
use super::recorded::events_from;
use crate::base::private_file::TempFile;
use crate::base::refused::Refused;
use crate::base::time::{millis, now_ms};
use crate::base::visible::first_bytes;
use crate::base::{read_file, to_hex};
use crate::engine::{RunHandle, RunKeeper};
use crate::log::bus::{LogReader, StoredMark, publish_unless_ended};
use crate::log::event::{
    Command, Event, EventKind, Initiator, ModelLabel, RunId, RunStarted, Seq, SpanId, StopReason,
};
use crate::log::world::RunFold;
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::scenario::config::StoreDefaults;
use crate::store::database::removal::Retention;
use crate::store::database::rows::RunCourse;
use crate::store::database::writer::LockWaits;
use crate::store::database::{Database, OpenError, StoreError};
use crate::store::recorder::{RecordError, RecordListener, record};
use crate::store::{AppendError, ReadError};
use crate::words::verdict::run_stop_line;

/// How often the row of a run is updated while it runs.
const COURSE_EVERY: Duration = Duration::from_secs(1);

/// How often the row of a run is tried again while the store cannot be written.
const RETRY_ROW: Duration = Duration::from_secs(1);

/// Opens the store of this user, and whether it was created just now. `waits` reports that another
/// process holds its lock.
///
/// # Errors
/// Runs are not kept.
pub fn open_store(waits: LockWaits) -> Result<(Database, bool), Refused> {
    let not_kept = || Refused::new("runs are not kept");
    let path = Dirs::find().map(|dirs| dirs.runs());
    let path = path.ok_or_else(|| not_kept().because("no home directory").help("set HOME"))?;
    let is_new = !path.exists();
    let database = Database::open_with(&path, waits).map_err(|error| {
        let help = open_advice(&error, &path);
        not_kept().because(format!("{}: {error}", path.display())).help(help)
    })?;
    // What is wrong with the store is said where it is read or written next.
    if let Err(error) = complete_rows(&database) {
        tracing::debug!("the rows of runs were not completed: {error}");
    }
    Ok((database, is_new))
}

/// What the operator can do about a store that cannot be opened.
pub fn open_advice(error: &OpenError, path: &Path) -> String {
    match error {
        // The error says what to do.
        OpenError::Newer { .. } => String::new(),
        error if error.is_of_contents() => {
            let path = path.display();
            format!("move {path} (and {path}-wal, {path}-shm) aside, or use --no-store")
        }
        OpenError::Store(error) if !error.advice().is_empty() => {
            format!("{}, or use --no-store", error.advice())
        }
        _ => FIX.to_owned(),
    }
}

/// Completes the rows of runs whose process was killed between their last event and their row. Blocks.
fn complete_rows(database: &Database) -> Result<(), ReadError> {
    for row in database.interrupted()? {
        match complete_row(database, &row.id) {
            Ok(()) => {}
            // Its readers report the damage; the other rows are completed.
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::debug!(run = %row.id, "its row was not completed: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn complete_row(database: &Database, run: &RunId) -> Result<(), ReadError> {
    let is_closed = |event: Event| matches!(event.kind, EventKind::RunClosed(_));
    if !database.last_event(run)?.is_some_and(is_closed) {
        return Ok(());
    }
    let mut course = RunFold::default();
    let mut from = Seq(0);
    loop {
        let events = events_from(database, run, from)?;
        let Some(last) = events.last() else { break };
        from = Seq(last.seq.0 + 1);
        events.iter().for_each(|event| course.apply_course(event));
        course.forget_old(events.len());
    }
    Ok(database.update_now(run, &row_course(&course))?)
}

/// What the operator can do about a store that cannot be opened.
const FIX: &str = if cfg!(windows) {
    "make its folder writable, or use --no-store"
} else {
    "set XDG_STATE_HOME to a folder that can be written, or use --no-store"
};

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string()).help(error.advice())
    }
}

/// The retention that the configuration sets.
pub fn retention(settings: &StoreDefaults) -> Retention {
    Retention { runs: settings.keep_runs, days: settings.keep_days, bytes: settings.keep_bytes }
}

/// What becomes of a run that cannot be stored any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFailure {
    /// A live run pauses until it can be stored; a scripted one continues unstored.
    Pause,
    /// A live run stops before its next paid call; a scripted one continues unstored.
    Stop,
    /// Every run stops: one that continues another is never left without its log.
    StopAll,
}

/// Stores the runs of this program in a database.
pub struct StoredRuns {
    database: Database,
    on_failure: StoreFailure,
    /// Number of runs that are being stored.
    open: watch::Sender<usize>,
    /// Whether a part of a run is not stored.
    has_lost: AtomicBool,
    notes: Mutex<Vec<String>>,
    /// What went wrong and is a warning in the log of its run.
    warnings: Mutex<Vec<String>>,
}

impl StoredRuns {
    /// Stores runs in this database.
    pub fn new(database: Database, on_failure: StoreFailure) -> Arc<Self> {
        let (open, _) = watch::channel(0);
        let (has_lost, notes, warnings) =
            (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Arc::new(Self { database, on_failure, open, has_lost, notes, warnings })
    }

    /// Whether a part of a run is not stored.
    pub fn has_lost(&self) -> bool {
        self.has_lost.load(Ordering::Acquire)
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Waits until every run that has ended is stored.
    pub async fn finish(&self) {
        // The sender lives as long as `self`.
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// What went wrong since the last call, one sentence each.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The runs that continued without being kept, one sentence each. The log of each has a warning,
    /// which a command without the dashboard has printed.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, text: String) {
        tracing::info!("{text}");
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// The keeper of an engine.
pub struct StoreKeeper(pub Arc<StoredRuns>);

impl RunKeeper for StoreKeeper {
    fn reserve(&self, id: &RunId) -> Result<bool, Refused> {
        Ok(self.0.database.reserve(id, now_ms())?)
    }

    fn end_waits(&self) {
        self.0.database.waits().cancel();
    }

    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq) {
        let (runs, run, mark) = (Arc::clone(&self.0), run.clone(), run.bus().stored_mark());
        runs.open.send_modify(|open| *open += 1);
        tokio::spawn(async move {
            keep_run(&runs, &run, reader, stored, &mark).await;
            runs.open.send_modify(|open| *open -= 1);
        });
    }
}

async fn keep_run(
    runs: &StoredRuns,
    run: &RunHandle,
    reader: LogReader,
    stored: Seq,
    mark: &StoredMark,
) {
    let is_resumed = stored > Seq(0);
    let (database, updated) = (&runs.database, Instant::now());
    let course = RunFold::default();
    let (is_paused, is_live, has_stored) = (false, false, is_resumed);
    let mut course =
        CourseOfRun { runs, run, course, updated, is_paused, is_live, is_resumed, has_stored };
    let recorded = match course.ensure_row(&reader).await {
        Ok(()) => record(database, run.id(), reader, stored, mark, &mut course).await,
        Err(error) => Err(error),
    };
    match recorded {
        Ok(()) => {
            if let Err(why) = database.update(run.id(), &course.of_run()).await {
                // All of its events are stored, and the next command completes its row from them.
                runs.note(format!("{} is listed as interrupted for now: {why}", run.id()));
            }
        }
        Err(lost) => {
            runs.has_lost.store(true, Ordering::Release);
            if lost == RecordError::Lost(AppendError::Fenced) {
                // Another process continues this run: calls that both make would be paid twice.
                run.stop(StopReason::StoreFailed);
            }
            match lost {
                RecordError::Lost(lost) => {
                    runs.note(format!("{} is not kept any more: {lost}", run.id()));
                }
                // It was said when it was given up.
                RecordError::GaveUp(_) => {}
            }
            // The mark of a log that is stored stays: it says that the log may leave memory.
            mark.abandon();
        }
    }
}

/// Follows a run while it is stored.
struct CourseOfRun<'a> {
    runs: &'a StoredRuns,
    run: &'a RunHandle,
    course: RunFold,
    updated: Instant,
    is_paused: bool,
    is_live: bool,
    is_resumed: bool,
    /// Whether an event of the run is stored.
    has_stored: bool,
}

impl CourseOfRun<'_> {
    /// Makes sure that the run has its row, which could not be reserved if the store failed then.
    async fn ensure_row(&mut self, reader: &LogReader) -> Result<(), RecordError> {
        let mut first = Vec::new();
        reader.clone().next_batch(&mut first, 1).await;
        let head = first.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted(head) => Some(Arc::clone(head)),
            _ => None,
        });
        let is_live = |head: &Arc<RunStarted>| matches!(head.model, ModelLabel::Live { .. });
        self.is_live = head.as_ref().is_some_and(is_live);
        let head = head.filter(|_| !self.is_resumed);
        let mut has_failed = false;
        loop {
            let (database, id, head) =
                (self.runs.database.clone(), self.run.id().clone(), head.clone());
            let made = spawn_blocking(move || match head {
                Some(head) => database.begin(&row_of(&head), &head.scenario_hash()),
                // Its row is there since it began.
                None => database.is_own(&id),
            });
            let why = match made.await {
                Ok(Ok(true)) => break,
                Ok(Ok(false)) => return Err(RecordError::Lost(AppendError::Fenced)),
                Ok(Err(error)) => error.with_advice(),
                Err(error) => error.to_string(),
            };
            if !self.failed(&why) {
                return Err(RecordError::GaveUp(why));
            }
            has_failed = true;
            sleep(RETRY_ROW).await;
        }
        if has_failed {
            self.recovered();
        }
        Ok(())
    }

    fn of_run(&self) -> RunCourse {
        row_course(&self.course)
    }

    /// Warns in the run's log; `false`: the run has ended meanwhile, and the end of the program says it.
    fn warn(&self, text: &str) -> bool {
        let kind = EventKind::Warning { text: text.to_owned() };
        let has_warned = publish_unless_ended(self.run.bus(), SpanId::RUN, kind);
        if !has_warned {
            self.runs.note(format!("{}: {text}", self.run.id()));
        }
        has_warned
    }
}

impl RecordListener for CourseOfRun<'_> {
    fn events(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.course.apply_course(event);
        }
        if self.course.progress.closed.is_none() {
            self.course.forget_old(events.len());
        }
    }

    async fn stored(&mut self) {
        self.has_stored = true;
        // The end may not be stored yet: the row says it once it is.
        let is_closed = self.course.progress.closed.is_some();
        if !is_closed && self.updated.elapsed() >= COURSE_EVERY {
            self.updated = Instant::now();
            // The next update repeats it.
            let _ = self.runs.database.update(self.run.id(), &self.of_run()).await;
        }
    }

    fn failed(&mut self, why: &str) -> bool {
        let (id, on_failure) = (self.run.id(), self.runs.on_failure);
        if self.course.progress.closed.is_some() {
            self.runs.note(format!("the end of {id} is not kept: {why}"));
            return false;
        }
        if on_failure == StoreFailure::StopAll || (self.is_live && on_failure == StoreFailure::Stop)
        {
            self.run.stop(StopReason::StoreFailed);
            self.runs.note(format!("{id} cannot be stored: {why}"));
            return false;
        }
        if !self.is_live {
            let any_more = if self.has_stored { " any more" } else { "" };
            let text = format!("this run is not kept{any_more}: {why}");
            if self.warn(&text) {
                let warnings = self.runs.warnings.lock();
                warnings.unwrap_or_else(PoisonError::into_inner).push(format!("{id}: {text}"));
            }
            return false;
        }
        if !self.is_paused {
            self.is_paused = true;
            self.warn(&format!("paused, because the run cannot be stored: {why}"));
            self.run.send(Command::Pause { by: Initiator::Store });
        }
        true
    }

    fn recovered(&mut self) {
        self.is_paused = false;
        self.run.send(Command::Resume { by: Initiator::Store });
    }
}

/// The row of a run that begins.
pub fn row_of(head: &RunStarted) -> RunRow {
    let forked = head.launch.as_ref().and_then(|launch| launch.forked.as_ref());
    RunRow {
        started_ms: forked.map_or(head.wall_ms, |forked| forked.wall_ms),
        title: head.title.as_str().into(),
        scenario: head.scenario.as_str().into(),
        pattern: head.plan.name().into(),
        live: matches!(head.model, ModelLabel::Live { .. }),
        parent: forked.map(|forked| forked.parent.clone()),
        forked_at: forked.map(|forked| forked.at.to_string()),
        ..RunRow::begun(head.run.clone())
    }
}

/// The row of a run with this head, folded to its last event. Without an end it is interrupted, unless its
/// caller knows better.
pub fn row_of_log(head: &RunStarted, run: &RunFold, events: u64) -> RunRow {
    let course = row_course(run);
    RunRow {
        status: match course.ended {
            Some(reason) => RunStatus::Ended(reason),
            None => RunStatus::Interrupted,
        },
        events,
        elapsed_ms: course.elapsed_ms,
        tokens: course.tokens,
        cost_usd: course.cost_usd,
        result: course.result,
        ..match course.title {
            Some(title) => RunRow { title, ..row_of(head) },
            None => row_of(head),
        }
    }
}

/// Longest result in a row, in bytes.
const MAX_RESULT: usize = 600;

/// What a row says of a run after its events so far.
pub fn row_course(run: &RunFold) -> RunCourse {
    let progress = &run.progress;
    let closed = progress.closed.as_ref();
    let result = match closed.is_none_or(|closed| closed.reason.is_success()) {
        true => progress.result.clone(),
        // The list says what was wrong with a reply or a call that stopped the run.
        false => closed
            .filter(|_| run.stop_refusal().is_some() || run.stop_cause().is_some())
            .map(|closed| first_bytes(&run_stop_line(run, closed), MAX_RESULT).into()),
    };
    RunCourse {
        title: run.head.as_ref().map(|head| head.title.as_str().into()),
        elapsed_ms: millis(progress.active(progress.at)),
        tokens: run.tally.usage.total(),
        cost_usd: run.cost_usd(),
        result,
        ended: closed.map(|closed| closed.reason.to_string()),
    }
}

/// Name of its file, in the folder of the store.
const KEY_FILE: &str = "redaction.key";

/// The key of the store in this file. Makes one if there is none. Blocks.
///
/// # Errors
/// That the key can be neither read nor made.
pub fn find_or_make_key(store: &Path) -> io::Result<[u8; 32]> {
    let path = store.with_file_name(KEY_FILE);
    match read_key(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let mut key = [0; 32];
    let random = ring::default_provider().secure_random;
    random.fill(&mut key).map_err(|_| io::Error::other("the system has no random numbers"))?;
    match TempFile::write_next_to(&path, to_hex(&key).as_bytes())?.rename_to(&path) {
        Ok(()) => Ok(key),
        // Another process has just made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(&path),
        Err(error) => Err(error),
    }
}

fn read_key(path: &Path) -> io::Result<[u8; 32]> {
    let text = read_file::read_file(path, 1 << 10)?;
    key_of(&text).ok_or_else(|| io::Error::other(format!("{} has no key in it", path.display())))
}

fn key_of(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let mut key = [0; 32];
    if text.len() != 2 * key.len() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineSettings, Launch};
    use crate::log::event::World;
    use crate::log::world::run_row::RunStatus;
    use crate::store::{EventGroup, RunLog as _};
    use crate::support::table;

    #[tokio::test]
    async fn killed_run_counts_as_ended() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("runs.db");
        let events = std::thread::spawn(|| table::shipped_log("checkout-launch"));
        let events = events.join().expect("a log");
        let database = Database::open(&path).expect("a store");
        // One that has ended, and one that has not.
        {
            let killed = Database::open(&path).expect("a store");
            for (id, len) in [("r-1", events.len()), ("r-2", events.len() - 1)] {
                let EventKind::RunStarted(head) = &events[0].kind else { panic!("{events:?}") };
                let run = RunId::new(id);
                assert!(killed.reserve(&run, 1).expect("reserved"));
                assert!(killed.begin(&RunRow { id: run.clone(), ..row_of(head) }, "") == Ok(true));
                let mut group = EventGroup::starting_at(Seq(0));
                for event in &events[..len] {
                    group.push(event, &run).expect("a line");
                }
                killed.append(&run, Seq(0), &group).await.expect("appended");
            }
        }
        let status = |id: &str| database.run(id).expect("read").expect("a row").status;
        assert_eq!(status("r-1"), RunStatus::Interrupted);
        complete_rows(&database).expect("completed");
        assert_eq!(status("r-1"), RunStatus::Ended("success".to_owned()));
        assert_eq!(status("r-2"), RunStatus::Interrupted);
        let row = database.run("r-1").expect("read").expect("a row");
        let world = World::from_events(events.iter().map(|event| &**event));
        assert_eq!((row.tokens, row.cost_usd), (world.tally.usage.total(), world.cost_usd()));
    }

    /// The logs of runs that the store has leave memory, whichever wrote last.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_stored_run_leaves_memory() {
        let dir = tempfile::tempdir().expect("a folder");
        let database = Database::open(&dir.path().join("runs.db")).expect("a store");
        let runs = StoredRuns::new(database, StoreFailure::Stop);
        let keeper = Arc::new(StoreKeeper(Arc::clone(&runs)));
        let settings = EngineSettings { stored_bytes: 0, ..EngineSettings::default() };
        let engine = Engine::with_keeper(settings, Some(keeper));
        let scenario = crate::scenario::shipped().iter().find(|it| it.name == "fraud-check");
        let scenario = scenario.expect("shipped");
        let scenario = crate::scenario::load(scenario.text, scenario.origin(), &[]).expect("good");
        let scenario = Arc::new(scenario);
        for _ in 0..3 {
            let run = engine.start(Launch::scripted(Arc::clone(&scenario), true));
            run.wait_until_finished().await;
            runs.finish().await;
        }
        assert_eq!(engine.runs().len(), 1, "the last one");
    }

    #[test]
    fn older_stores_are_to_be_moved() {
        let error = OpenError::Older { found: 1, known: 6 };
        let advice = open_advice(&error, Path::new("runs.db"));
        assert_eq!(
            format!("{error}; {advice}"),
            "an older version of roundtable wrote it (its tables have version 1, this program reads 6); \
             move runs.db (and runs.db-wal, runs.db-shm) aside, or use --no-store"
        );
    }

    #[test]
    fn keeps_one_key_even_if_damaged() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("runs.db");
        let key = find_or_make_key(&store).expect("made");
        assert_ne!(key, [0; 32]);
        assert_eq!(find_or_make_key(&store).expect("read"), key);
        let path = store.with_file_name(KEY_FILE);
        std::fs::write(&path, "short").expect("written");
        let error = find_or_make_key(&store).expect_err("no key");
        assert!(error.to_string().ends_with("redaction.key has no key in it"), "{error}");
        assert_eq!(std::fs::read(&path).expect("reads"), b"short");
    }
}
