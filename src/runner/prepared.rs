//! What a run is started or continued with, from its log alone.

use std::sync::Arc;

use super::core::Runner;
use super::grants;
use super::played_log::PlayedLog;
use crate::bus::Recording;
use crate::cluster::request::RunRequest;
use crate::engine::{Launch, Resumption, Schedule};
use crate::event::kind::Initiator;
use crate::host::prepare::{PrepareError, prepare};
use crate::host::recorded::{RecordedRun, scenario_of_text};
use crate::host::trust::Trust;
use crate::run::Session;
use crate::scenario::Scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::spec::in_doubt::InDoubt;

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
