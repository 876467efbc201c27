//! Reads the log of a run before a runner plays it, and makes from it alone what the run is started
//! or continued with.

use std::sync::Arc;

use super::{Runner, grants};
use crate::base::visible::visible;
use crate::cluster::Cluster;
use crate::cluster::archive::RunArchive;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::request::RunRequest;
use crate::engine::{Launch, Resumption, Schedule};
use crate::host::prepare::{PrepareError, prepare};
use crate::host::recorded::{RecordedRun, scenario_of_text};
use crate::host::trust::Trust;
use crate::log::bus::Recording;
use crate::log::event::kind::Initiator;
use crate::log::event::{Event, EventKind, RunId, Seq};
use crate::run::{LeftSession, Session};
use crate::scenario::Scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::spec::InDoubt;

/// The log of a run, read to be played.
pub(crate) struct PlayedLog {
    pub request: RunRequest,
    /// The events that are stored.
    pub events: Vec<Arc<Event>>,
    /// The last message.
    pub place: u64,
    /// When the last group was stored, as Unix time in milliseconds of the server.
    pub stored_ms: u64,
    /// How often the run was claimed.
    pub claims: u32,
    /// The runner that has claimed it last.
    pub runner: Option<String>,
}

impl PlayedLog {
    /// Reads the log of a run.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it is executed then.
    pub fn new(run: &RunId, entries: Vec<LogEntry>) -> Result<Self, String> {
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or("the log is empty")?;
        let LogPart::Requested(request) = first.part else {
            return Err("log.broken: the log does not begin with its request".to_owned());
        };
        if request.run != *run {
            return Err("log.broken: its request is that of another run".to_owned());
        }
        let mut log = Self {
            request: *request,
            events: Vec::new(),
            place: first.place,
            stored_ms: first.stored_ms,
            claims: 0,
            runner: None,
        };
        for entry in entries {
            log.place = entry.place;
            match entry.part {
                LogPart::Claimed(claim) => {
                    log.claims += 1;
                    log.runner = Some(claim.runner);
                }
                LogPart::Events(group) => {
                    if group.first() != log.next() {
                        let (found, next) = (group.first().0, log.next().0);
                        return Err(format!(
                            "log.broken: event {found} follows where {next} belongs"
                        ));
                    }
                    let events = group.events(Seq(0));
                    log.events.extend(events.map_err(|error| format!("log.broken: {error}"))?);
                    log.stored_ms = entry.stored_ms;
                }
                LogPart::Requested(_) => {
                    return Err("log.broken: the run was handed over twice".to_owned());
                }
                LogPart::Elsewhere(..) => {
                    return Err("log.broken: a group is not in the object store".to_owned());
                }
            }
        }
        Ok(log)
    }

    /// Sequence number of the next event.
    pub fn next(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// A kind of event that this program does not know, if there is one.
    pub fn unknown_kind(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::Unknown { kind, .. } => Some(&**kind),
            _ => None,
        })
    }

    /// The stop reason, if the run has ended.
    pub fn reason(&self) -> Option<String> {
        match self.events.last().map(|event| &event.kind) {
            Some(EventKind::RunClosed(closed)) => Some(closed.reason.to_string()),
            _ => None,
        }
    }

    /// The last command that the run has taken.
    pub fn last_command(&self) -> u64 {
        let places = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::CommandTaken { place, .. } => Some(*place),
            _ => None,
        });
        places.max().unwrap_or(0)
    }
}

/// How a run begins here.
pub(crate) enum PreparedPlay {
    /// From its start.
    New(Launch),
    /// Where its former owner stopped.
    Continued(Launch, Resumption),
}

/// Prepares to play a run: checks what the runner allows, then makes models and tools.
///
/// # Errors
/// Why this runner does not play it, in one sentence.
pub(super) fn prepare_play(
    runner: &Runner,
    log: &PlayedLog,
    session: Option<Session>,
) -> Result<PreparedPlay, String> {
    if !log.request.is_playable() {
        let schema = log.request.schema;
        return Err(format!("a newer version of roundtable handed it over (schema {schema})"));
    }
    if log.events.is_empty() {
        return new_run(runner, &log.request, session).map(PreparedPlay::New);
    }
    if let Some(kind) = log.unknown_kind() {
        return Err(format!(
            "a newer version of roundtable has played it: this one does not know its events `{}`",
            visible(kind)
        ));
    }
    let (events, run) = (log.events.clone(), log.request.run.clone());
    let recording = Recording::new(events.clone())
        .map_err(|error| format!("log.broken: it cannot be continued: {error}"))?;
    let recorded = RecordedRun::new(run, events, true)?;
    let scenario = recorded.scenario(&[])?;
    // Its events say what it calls, whatever its request says.
    let model = recorded.model()?;
    check_grants(runner, &scenario, log.request.live || matches!(model, RequestedModel::Live(_)))?;
    let trust = Trust::saved_in(None);
    // What the scenario would do was checked above; the operator was asked where it was handed over.
    let launched = recorded.launch(scenario, &model, (&runner.models, &trust), |_, _| true);
    let (launch, _) = launched.map_err(|error| match error {
        crate::host::recorded::RecordedRunError::Refused(why) => why,
        crate::host::recorded::RecordedRunError::Permission(..) => {
            "the runner does not allow what its scenario would do".to_owned()
        }
    })?;
    let resumption = Resumption { recording, by: Initiator::Runner, in_doubt: InDoubt::Stop };
    Ok(PreparedPlay::Continued(launch, resumption))
}

fn check_grants(runner: &Runner, scenario: &Scenario, live: bool) -> Result<(), String> {
    match grants::refusal(scenario, live, &runner.settings.allow) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// The session of a run that has not begun: its first message, or the next one after another run. `None`: it
/// has begun, or answers the goal of its scenario.
///
/// # Errors
/// What the former run has left cannot be read, in one sentence.
pub(crate) async fn next_session(
    cluster: &Cluster,
    log: &PlayedLog,
) -> Result<Option<Session>, String> {
    let Some(message) = log.request.message.as_deref().filter(|_| log.events.is_empty()) else {
        return Ok(None);
    };
    let Some(after) = &log.request.after else { return Ok(Some(Session::first(message))) };
    let left = RunArchive(cluster).left_session(after).await.map_err(|error| error.to_string())?;
    let left = left.ok_or_else(|| format!("what {after} left to its session is not stored"))?;
    let left: LeftSession = serde_json::from_slice(&left)
        .map_err(|error| format!("what {after} left to its session cannot be read: {error}"))?;
    Ok(Some(left.next(after.clone(), message)))
}

fn new_run(
    runner: &Runner,
    request: &RunRequest,
    session: Option<Session>,
) -> Result<Launch, String> {
    let record = &request.launch;
    let scenario = scenario_of_text(&request.run, &request.scenario, &record.source, true)?;
    check_grants(runner, &scenario, request.live)?;
    let wanted = match request.live {
        false => RequestedModel::Scripted { instant: record.instant },
        true => RequestedModel::Live(record.model.clone()),
    };
    let trust = Trust::saved_in(None);
    let prepared = prepare(&runner.models, &trust, &scenario, &wanted, 1, |_| true);
    let prepared = prepared.map_err(|error| match error {
        PrepareError::Endpoint(why) => why,
        PrepareError::Tools(missing) => missing.join("; "),
        PrepareError::Permission(_) => {
            "the runner does not allow what its scenario would do".to_owned()
        }
    })?;
    Ok(Launch {
        scenario: Arc::new(scenario),
        model: prepared.model,
        tools: prepared.toolboxes.into_iter().next(),
        flags: request.flags.clone(),
        schedule: Schedule {
            flags: record.flags.clone(),
            breaks: record.pauses.clone(),
            start_paused: false,
        },
        seed: request.seed,
        requested_model: wanted.name(),
        session,
    })
}
