//! Finds kept runs by their names on the command line (an id, the beginning of one, `last`,
//! `last~2`, or an exported file), and prepares the continuation of one whose process ended.

use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use futures::StreamExt as _;

use super::models::LiveModels;
use super::recorded::{RecordedRun, RecordedRunError};
use super::run_store::row_course;
use super::trust::Trust;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::engine::{Launch, Resumption};
use crate::log::event::{Event, EventKind, Initiator, RunId, RunStarted, Seq};
use crate::log::world::RunFold;
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::run::questions::PeopleMode;
use crate::scenario::{Consent, Scenario};
use crate::store::database::{Database, StoreError};
use crate::store::file::LogFile;
use crate::store::{ReadError, RunLog as _};

/// Most ids in a message about a beginning that several runs have.
const MAX_NAMED: usize = 5;

/// Longest id that an imported run keeps, in characters.
const MAX_ID_CHARS: usize = 40;

/// Why a run cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindRunError {
    /// No kept run has this name.
    #[error("no kept run is called {0}")]
    None(String),
    /// Several runs have ids that begin so.
    #[error("{0} is the beginning of several runs: {1}")]
    Several(String, String),
    /// The store cannot be read.
    #[error("the store cannot be read: {0}")]
    Store(#[from] StoreError),
}

impl From<FindRunError> for Refused {
    fn from(error: FindRunError) -> Self {
        match error {
            FindRunError::None(_) => {
                Self::new(error.to_string()).help("`roundtable runs` lists them")
            }
            FindRunError::Several(..) => Self::new(error.to_string()),
            FindRunError::Store(error) => {
                Self::new("the store cannot be read").because(Self::from(error))
            }
        }
    }
}

/// The stored events of a run before this one, as far as they can be read.
#[cfg(unix)]
pub(crate) async fn events_before(database: &Database, run: &RunId, end: Seq) -> Vec<Arc<Event>> {
    let (mut groups, mut before) = (database.read(run, Seq(0)), Vec::new());
    while let Some(Ok(group)) = groups.next().await {
        let Ok(events) = group.events(Seq(0)) else { break };
        before.extend(events.into_iter().filter(|event| event.seq < end));
        if group.next() >= end {
            break;
        }
    }
    before
}

/// Finds a kept run by its id, the beginning of its id, `last` or `last~N` (N runs before the last).
/// Blocks.
///
/// # Errors
/// See [`FindRunError`].
pub fn find_run(database: &Database, name: &str) -> Result<RunRow, FindRunError> {
    let none = || FindRunError::None(crate::base::visible::visible(name).into_owned());
    if let Some(back) = runs_back(name) {
        return database.nth_last(back)?.ok_or_else(none);
    }
    if let Some(row) = database.run(name)? {
        return Ok(row);
    }
    if name.is_empty() {
        return Err(none());
    }
    let mut rows = database.runs_with_prefix(name, MAX_NAMED as u32 + 1)?;
    // People leave out what every id has.
    if rows.is_empty() {
        rows = database.runs_with_prefix(&format!("r-{name}"), MAX_NAMED as u32 + 1)?;
    }
    match &mut rows[..] {
        [] => Err(none()),
        [_] => rows.pop().ok_or_else(none),
        _ => {
            let ids = rows.iter().take(MAX_NAMED).map(|row| row.id.as_str());
            let more = if rows.len() > MAX_NAMED { ", …" } else { "" };
            let ids = ids.collect::<Vec<_>>().join(", ") + more;
            Err(FindRunError::Several(name.to_owned(), ids))
        }
    }
}

/// `last` is 0, `last~2` is 2.
fn runs_back(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() {
        return Some(0);
    }
    rest.strip_prefix('~')?.parse().ok()
}

/// Whether a name on the command line is that of a file, not of a kept run.
pub fn is_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") || name.contains('/')
}

/// Puts the log of a file into the store, as an ended run or an interrupted one. A run of the same id
/// gets a new one. Returns the row. Blocks.
///
/// # Errors
/// It cannot be read or stored.
pub fn import_file(database: &Database, path: &Path) -> Result<(RunId, Vec<String>), Refused> {
    let what = format_args!("{} cannot be imported", path.display());
    let file = LogFile::open(path).or_refuse(what)?;
    Ok((import_log(database, &file).or_refuse(what)?, file.notes))
}

/// Puts a log that was read into the store, as [`import_file`] does. Blocks.
pub fn import_log(database: &Database, file: &LogFile) -> Result<RunId, ReadError> {
    let damaged = |why: &str| ReadError::Damaged { at: 0, why: why.to_owned() };
    let head = file.head().ok_or_else(|| damaged("it has no head"))?;
    let unreadable = |error: StoreError| ReadError::Unreadable(error.with_advice());
    let id = database.free_id(&plain_id(&head.run)).map_err(unreadable)?;
    let course = RunFold::course_of(file.events.iter().map(|event| &**event));
    let row =
        RunRow { id: id.clone(), status: RunStatus::Interrupted, ..super::run_store::row_of(head) };
    let mut events = file.events.clone();
    if let Some(first) = events.first_mut().filter(|_| id != head.run) {
        // The log names the run that it is now.
        let head = RunStarted { run: id.clone(), ..RunStarted::clone(head) };
        let kind = EventKind::RunStarted(Arc::new(head));
        *first = Arc::new(Event { kind, ..Event::clone(first) });
    }
    database.import(&row, &super::run_store::row_course(&course), &events).map_err(unreadable)?;
    Ok(id)
}

/// The id of a log from elsewhere, if it is one that roundtable could have given; else an id made of
/// its digest. Ids are printed, and typed on the command line.
fn plain_id(id: &RunId) -> RunId {
    let text = id.as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_ID_CHARS).contains(&text.len())
        && text.chars().all(is_plain)
        && !text.starts_with('-')
    {
        return id.clone();
    }
    let digest = crate::base::sha256_of_text(text);
    RunId::new(format!("r-{}", digest.get(..8).unwrap_or_default()))
}

/// A kept run that can be continued now: this process owns it.
pub struct PreparedResume {
    pub launch: Launch,
    /// Its stored events.
    pub resumption: Resumption,
    /// What the operator should know, one sentence each.
    pub notes: Vec<String>,
}

/// Prepares to continue a kept run, and takes it over. `people` answer its questions; `None`: those who
/// answered them before, so that nothing is decided because it is continued elsewhere. `allow` is asked
/// where permission is needed. Blocks.
///
/// # Errors
/// See [`RecordedRunError`].
pub fn prepare_resume(
    database: &Database,
    row: &RunRow,
    people: Option<PeopleMode>,
    with: (&LiveModels, &Trust),
    mut allow: impl FnMut(&Consent, &Scenario) -> bool,
) -> Result<PreparedResume, RecordedRunError> {
    let id = &row.id;
    match &row.status {
        RunStatus::Interrupted => {}
        RunStatus::Waiting | RunStatus::Running => {
            return Err(Refused::new(format!("{id} is played by another process")).into());
        }
        RunStatus::Ended(reason) => {
            let what = format!("{id} has ended ({reason}): there is nothing to continue");
            return Err(Refused::new(what).into());
        }
    }
    let recorded = RecordedRun::read(database, row)?;
    if recorded.world.progress.closed.is_some() {
        // Its process died between its last event and its row.
        database.update_now(id, &row_course(&recorded.world)).map_err(Refused::from)?;
        return Err(Refused::new(format!("{id} has ended: there is nothing to continue")).into());
    }
    let recording = recorded.recording()?;
    let scenario = recorded.scenario(&[])?;
    let scenario = recorded.check_answers(scenario, with.1, &mut allow)?;
    let (mut launch, notes) = recorded.launch(scenario, &recorded.model()?, with, allow)?;
    let before = || recorded.record().ok()?.answerers.map(PeopleMode::from);
    launch.people = people.or_else(before).unwrap_or(PeopleMode::Wait);
    let in_doubt = launch.people.in_doubt();
    let owned = database.take_over(id).map_err(Refused::from);
    if owned.or_refuse(format_args!("{id} was not continued"))?.is_none() {
        return Err(Refused::new(format!("{id} is played by another process")).into());
    }
    let resumption = Resumption { recording, by: Initiator::You, in_doubt };
    Ok(PreparedResume { launch, resumption, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_is_counted_back() {
        let table =
            [("last", Some(0)), ("last~0", Some(0)), ("last~12", Some(12)), ("last~", None)];
        for (name, back) in table {
            assert_eq!(runs_back(name), back, "{name}");
        }
        assert_eq!(runs_back("r-7f3a"), None);
        assert_eq!(runs_back("lasting"), None);
    }

    #[test]
    fn imported_run_gets_printable_id() {
        for good in ["r-7f3a", "nightly_7", "r-0a1b2c3d-2"] {
            assert_eq!(plain_id(&RunId::new(good)).as_str(), good);
        }
        let long = "x".repeat(41);
        for bad in ["", "--json", "a b", "\u{1b}[2J", "r-1\n", "../up", "é", &long] {
            let id = plain_id(&RunId::new(bad));
            assert!(id.as_str().starts_with("r-") && id.as_str().len() == 10, "{bad:?}: {id}");
        }
        assert_ne!(plain_id(&RunId::new("a b")), plain_id(&RunId::new("a c")));
    }
}
