//! Reads the log of a run before a runner plays it, and makes from it alone what the run is started
//! or continued with.

use std::sync::Arc;

use super::{Runner, grants};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::visible;
use crate::cluster::Cluster;
use crate::cluster::archive::RunArchive;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::request::RunRequest;
use crate::engine::{Launch, Resumption, Schedule};
use crate::host::prepare::{PrepareError, prepare};
use crate::host::recorded::{RecordedRun, RecordedRunError, scenario_of_text};
use crate::host::trust::Trust;
use crate::log::bus::Recording;
use crate::log::event::{Event, EventKind, Initiator, RunId, Seq};
use crate::run::{LeftSession, Session};
use crate::scenario::catalogue::RequestedModel;

/// The log of a run, read to be played.
pub(crate) struct PlayedLog {
    pub request: RunRequest,
    /// The events that are stored.
    pub events: Vec<Arc<Event>>,
    /// The last message.
    pub place: u64,
    /// When the last group was stored, as Unix time in milliseconds of the server.
    pub stored_ms: u64,
    pub claims: u32,
    /// The runner that has claimed it last.
    pub runner: Option<String>,
}

impl PlayedLog {
    /// Reads the log of a run.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it is executed then.
    pub fn new(run: &RunId, entries: Vec<LogEntry>) -> Result<Self, Refused> {
        let broken = |what: &str| Refused::new(format!("log.broken: {what}"));
        let mut entries = entries.into_iter();
        let first = entries.next().or_refuse("the log is empty")?;
        let LogPart::Requested(request) = first.part else {
            return Err(broken("the log does not begin with its request"));
        };
        if request.run != *run {
            return Err(broken("its request is that of another run"));
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
                        let what = format!("event {found} follows where {next} belongs");
                        return Err(broken(&what));
                    }
                    let events = group.events(Seq(0));
                    log.events.extend(events.map_err(|error| broken(&error.to_string()))?);
                    log.stored_ms = entry.stored_ms;
                }
                LogPart::Released(_) => {}
                LogPart::Requested(_) => {
                    return Err(broken("the run was handed over twice"));
                }
                LogPart::Elsewhere(..) => {
                    return Err(broken("a group is not in the object store"));
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

/// Why a run is not played here.
pub(super) enum NotPlayed {
    /// This runner does not play it.
    Refused(Refused),
    /// Its log cannot be continued; this version may be the reason.
    Broken(Refused),
}

impl From<Refused> for NotPlayed {
    fn from(why: Refused) -> Self {
        Self::Refused(why)
    }
}

/// What is wrong where a permission is missing all the same.
const NOT_ALLOWED: &str = "the runner does not allow what its scenario would do";

/// Prepares to play a run: checks what the runner allows, then makes models and tools.
pub(super) fn prepare_play(
    runner: &Runner,
    log: &PlayedLog,
    session: Option<Session>,
) -> Result<PreparedPlay, NotPlayed> {
    if !log.request.is_playable() {
        let schema = log.request.schema;
        let what = format!("a newer version of roundtable handed it over (schema {schema})");
        return Err(Refused::new(what).into());
    }
    if log.events.is_empty() {
        return Ok(PreparedPlay::New(new_run(runner, &log.request, session)?));
    }
    if let Some(kind) = log.unknown_kind() {
        let kind = visible(kind);
        let cause = format!("this one does not know its events `{kind}`");
        return Err(Refused::new("a newer version of roundtable has played it")
            .because(cause)
            .into());
    }
    let (events, run) = (log.events.clone(), log.request.run.clone());
    let recording = Recording::new(events.clone())
        .or_refuse("log.broken: it cannot be continued")
        .map_err(NotPlayed::Broken)?;
    let recorded = RecordedRun::new(run, events, true)?;
    let scenario = recorded.scenario(&[])?;
    // Its events say what it calls, whatever its request says.
    let model = recorded.model()?;
    let live = log.request.live || matches!(model, RequestedModel::Live(_));
    grants::check(&scenario, live, &runner.settings.allow)?;
    let trust = Trust::saved_in(None);
    // What the scenario would do was checked above; the operator was asked where it was handed over.
    let launched = recorded.launch(scenario, &model, (&runner.models, &trust), |_, _| true);
    let (mut launch, _) = launched.map_err(|error| match error {
        RecordedRunError::Refused(why) => why,
        RecordedRunError::Permission(..) => Refused::new(NOT_ALLOWED),
    })?;
    launch.people = log.request.people.into();
    let in_doubt = launch.people.in_doubt();
    let resumption = Resumption { recording, by: Initiator::Runner, in_doubt };
    Ok(PreparedPlay::Continued(launch, resumption))
}

/// The session of a run that has not begun: its first message, or the next one after another run. `None`: it
/// has begun, or answers the goal of its scenario.
pub(crate) async fn next_session(
    cluster: &Cluster,
    log: &PlayedLog,
) -> Result<Option<Session>, Refused> {
    let Some(message) = log.request.message.as_deref().filter(|_| log.events.is_empty()) else {
        return Ok(None);
    };
    let Some(after) = &log.request.after else { return Ok(Some(Session::first(message))) };
    let unread = format!("what {after} left to its session cannot be read");
    let left = RunArchive(cluster).left_session(after).await.or_refuse(&unread)?;
    let left = left.or_refuse(format_args!("what {after} left to its session is not stored"))?;
    let left: LeftSession = serde_json::from_slice(&left).or_refuse(&unread)?;
    Ok(Some(left.next(after.clone(), message)))
}

fn new_run(
    runner: &Runner,
    request: &RunRequest,
    session: Option<Session>,
) -> Result<Launch, Refused> {
    let record = &request.launch;
    let scenario = scenario_of_text(&request.run, &request.scenario, &record.source, true)?;
    grants::check(&scenario, request.live, &runner.settings.allow)?;
    let wanted = match request.live {
        false => RequestedModel::Scripted { instant: record.instant },
        true => RequestedModel::Live(record.model.clone()),
    };
    let trust = Trust::saved_in(None);
    let prepared = prepare(&runner.models, &trust, &scenario, &wanted, 1, |_| true);
    let prepared = prepared.map_err(|error| match error {
        PrepareError::Endpoint(why) => why,
        PrepareError::Tools(missing) => Refused::new(missing.join("; ")),
        PrepareError::Permission(_) => Refused::new(NOT_ALLOWED),
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
        people: request.people.into(),
    })
}
