//! What a run is started or continued with, from its log alone.

use std::sync::Arc;

use super::core::Runner;
use super::grants;
use crate::bus::Recording;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::request::RunRequest;
use crate::engine::{Launch, Resumption, Schedule};
use crate::event::kind::Initiator;
use crate::event::{Event, EventKind, Seq};
use crate::host::prepare::{PrepareError, prepare};
use crate::host::recorded::{RecordedRun, scenario_of_text};
use crate::host::trust::Trust;
use crate::run::Session;
use crate::scenario::Scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::spec::in_doubt::InDoubt;

/// The log of a run, read to be played.
pub(super) struct PlayedLog {
    pub request: RunRequest,
    /// The events that are stored.
    pub events: Vec<Arc<Event>>,
    /// The last message.
    pub place: u64,
    /// When the last group was stored, as Unix time in milliseconds of the server.
    pub stored_ms: u64,
    /// How often the run was claimed.
    pub claims: u32,
}

impl PlayedLog {
    /// Reads a log.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it is executed then.
    pub fn new(entries: Vec<LogEntry>) -> Result<Self, String> {
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or("the log is empty")?;
        let LogPart::Requested(request) = first.part else {
            return Err("log.broken: the log does not begin with its request".to_owned());
        };
        let mut log = Self {
            request: *request,
            events: Vec::new(),
            place: first.place,
            stored_ms: first.stored_ms,
            claims: 0,
        };
        for entry in entries {
            log.place = entry.place;
            match entry.part {
                LogPart::Claimed(_) => log.claims += 1,
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
pub(super) enum PreparedPlay {
    /// From its start.
    New(Launch),
    /// Where its former owner stopped.
    Continued(Launch, Resumption),
}

/// Prepares to play a run: checks what the runner allows, then makes models and tools.
///
/// # Errors
/// Why this runner does not play it, in one sentence.
pub(super) fn prepare_play(runner: &Runner, log: &PlayedLog) -> Result<PreparedPlay, String> {
    if !log.request.is_playable() {
        let schema = log.request.schema;
        return Err(format!("a newer version of roundtable handed it over (schema {schema})"));
    }
    if log.events.is_empty() {
        return new_run(runner, &log.request).map(PreparedPlay::New);
    }
    let (events, run) = (log.events.clone(), log.request.run.clone());
    let recording = Recording::new(events.clone())
        .map_err(|error| format!("log.broken: it cannot be continued: {error}"))?;
    let recorded = RecordedRun::new(run, events, true)?;
    let scenario = recorded.scenario(&[])?;
    check(runner, &scenario, log.request.live)?;
    let trust = Trust::saved_in(None);
    // What the scenario would do was checked above; the operator was asked where it was handed over.
    let launched =
        recorded.launch(scenario, &recorded.model()?, (&runner.models, &trust), |_, _| true);
    let (launch, _) = launched.map_err(|error| match error {
        crate::host::recorded::RecordedRunError::Refused(why) => why,
        crate::host::recorded::RecordedRunError::Permission(..) => {
            "the runner does not allow what its scenario would do".to_owned()
        }
    })?;
    let resumption = Resumption { recording, by: Initiator::Runner, in_doubt: InDoubt::Stop };
    Ok(PreparedPlay::Continued(launch, resumption))
}

fn check(runner: &Runner, scenario: &Scenario, live: bool) -> Result<(), String> {
    match grants::refusal(scenario, live, &runner.settings.allow) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

fn new_run(runner: &Runner, request: &RunRequest) -> Result<Launch, String> {
    let record = &request.launch;
    let scenario = scenario_of_text(&request.run, &request.scenario, &record.source, true)?;
    check(runner, &scenario, request.live)?;
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
        session: request.message.as_deref().map(Session::first),
    })
}
