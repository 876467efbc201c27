//! What a run is started or continued with, from its log alone.

use std::sync::Arc;

use super::core::Runner;
use super::grants;
use super::played_log::PlayedLog;
use crate::base::visible::visible;
use crate::bus::Recording;
use crate::cluster::Cluster;
use crate::cluster::archive::RunArchive;
use crate::cluster::request::RunRequest;
use crate::engine::{Launch, Resumption, Schedule};
use crate::event::kind::Initiator;
use crate::host::prepare::{PrepareError, prepare};
use crate::host::recorded::{RecordedRun, scenario_of_text};
use crate::host::trust::Trust;
use crate::run::{LeftSession, Session};
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
    check(runner, &scenario, log.request.live || matches!(model, RequestedModel::Live(_)))?;
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

fn check(runner: &Runner, scenario: &Scenario, live: bool) -> Result<(), String> {
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
pub(super) async fn next_session(
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
        session,
    })
}
