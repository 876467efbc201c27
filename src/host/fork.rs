//! Forks recorded runs: a new run that continues from a boundary of another one.

use super::models::LiveModels;
use super::recorded::{RecordedRun, RecordedRunError};
use super::trust::Trust;
use crate::base::name::FlagName;
use crate::bus::{PassedBoundary, ReplayError};
use crate::engine::{Engine, EngineSettings, ForkStart, Launch, ModelChoice, Schedule, Toolbox};
use crate::event::kind::Initiator;
use crate::event::launch::ForkPlace;
use crate::event::{BoundaryId, RunId};
use crate::scenario::Scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::consent::Consent;
use crate::scenario::spec::in_doubt::InDoubt;

/// What is different in a fork.
#[derive(Clone, Debug, Default)]
pub struct ForkChanges {
    /// Overrides of the scenario, as on the command line.
    pub set: Vec<String>,
    /// The flags to switch where the fork begins.
    pub flags: Vec<(FlagName, bool)>,
    /// The flags to switch at later boundaries.
    pub later: Vec<(BoundaryId, FlagName, bool)>,
    /// What answers its model calls; `None`: what answered those of the other run.
    pub model: Option<RequestedModel>,
}

/// A fork that can be started.
pub struct PreparedFork {
    /// What it is started with.
    pub launch: Launch,
    /// What it begins with.
    pub fork: ForkStart,
    /// What the operator should know, one sentence each.
    pub notes: Vec<String>,
}

/// Prepares to fork a recorded run at a boundary. `allow` is asked where permission is needed;
/// `in_doubt` is what is done with a call in doubt.
///
/// # Errors
/// See [`RecordedRunError`].
pub fn prepare_fork(
    recorded: &RecordedRun,
    at: BoundaryId,
    changes: &ForkChanges,
    in_doubt: InDoubt,
    with: (&LiveModels, &Trust),
    allow: impl FnOnce(&Consent, &Scenario) -> bool,
) -> Result<PreparedFork, RecordedRunError> {
    let recording = recorded.recording()?;
    let scenario = recorded.scenario(&changes.set)?;
    let later = changes.later.iter().map(|(_, flag, _)| flag);
    for flag in changes.flags.iter().map(|(flag, _)| flag).chain(later) {
        if scenario.flag(flag.as_str()).is_none() {
            return Err(format!("{} has no flag {flag}", recorded.id).into());
        }
    }
    let model = match &changes.model {
        Some(model) => model.clone(),
        None => recorded.model()?,
    };
    let (mut launch, notes) = recorded.launch(scenario, &model, with, allow)?;
    launch.schedule.flags.extend(changes.later.iter().cloned());
    // Where the other run was to pause was for who watched it.
    launch.schedule.breaks.clear();
    let flags = changes.flags.clone();
    let fork = ForkStart { recording, at, flags, by: Initiator::You, in_doubt };
    Ok(PreparedFork { launch, fork, notes })
}

/// To fork a run like before: the run that `fork` was forked from, and the overrides that `fork` has
/// beyond those of it. What an imported log says is data: its overrides were not typed by the operator,
/// so that the parent of an imported fork counts as imported too.
///
/// # Errors
/// A log is one of an earlier version, or redacted.
pub fn repeat_fork(
    fork: &RecordedRun,
    mut parent: RecordedRun,
) -> Result<(RecordedRun, Vec<String>), String> {
    let inherited = parent.record()?.source.set.len();
    let set = fork.record()?.source.set.iter().skip(inherited).cloned().collect();
    parent.imported |= fork.imported;
    Ok((parent, set))
}

/// Why a fork cannot be made at this boundary, and what to do.
pub fn fork_failure(run: &RunId, at: &BoundaryId, error: &ReplayError) -> String {
    let advice = match error {
        ReplayError::NotReached { .. } => {
            format!("`roundtable fork {run}` lists its boundaries")
        }
        ReplayError::Diverged(_) => {
            format!("what is different affects what comes before {at}, so fork earlier")
        }
    };
    format!("{run} cannot be forked at {at}: {error}; {advice}")
}

/// The boundaries that a recorded run came to, in this order. It is executed again; no model and no
/// tool is called. Must be called within a tokio runtime.
///
/// # Errors
/// Why it cannot be executed again, in one sentence.
pub async fn fork_places(recorded: &RecordedRun) -> Result<Vec<ForkPlace>, String> {
    let scenario = std::sync::Arc::new(recorded.scenario(&[])?);
    let launch = Launch {
        // Nothing is called before the run is live, which it never is.
        model: ModelChoice::Scripted { instant: true },
        tools: Some(Toolbox::offline(&scenario, true)),
        session: recorded.session(),
        schedule: Schedule { flags: recorded.record()?.flags.clone(), ..Schedule::default() },
        ..Launch::scripted(scenario, true)
    };
    let nowhere = ForkStart {
        recording: recorded.recording()?,
        at: BoundaryId::new(""),
        flags: Vec::new(),
        by: Initiator::You,
        in_doubt: InDoubt::Stop,
    };
    let run = Engine::new(EngineSettings::default()).fork(launch, nowhere);
    match run.wait_until_live().await {
        Err(ReplayError::NotReached { passed, .. }) => {
            let flags = recorded.flags_before(passed.iter().map(|it| it.next));
            let place = |(PassedBoundary { id, next, at }, flags)| {
                let at = recorded.world.progress.run_time(at);
                ForkPlace { id, next, at, flags }
            };
            Ok(passed.into_iter().zip(flags).map(place).collect())
        }
        Err(ReplayError::Diverged(divergence)) => {
            Err(format!("{} cannot be executed again: {divergence}", recorded.id))
        }
        Ok(()) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::kind::RunStarted;
    use crate::event::launch::LaunchRecord;
    use crate::event::{Event, EventKind};
    use crate::net::ProxyMode;
    use crate::scenario::spec::source_text::SourceText;
    use crate::scenario::{load, shipped};
    use crate::support::table;

    /// The events of a run, as if it had been started with these overrides too.
    fn with_overrides(events: &[Arc<Event>], set: &[&str]) -> Vec<Arc<Event>> {
        let mut events = events.to_vec();
        let mut first = Event::clone(&events[0]);
        let EventKind::RunStarted(head) = &first.kind else { panic!("{first:?}") };
        let record = head.launch.clone().expect("a record");
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let source = Arc::new(SourceText { set, ..SourceText::clone(&record.source) });
        let launch = Some(LaunchRecord { source, ..record });
        first.kind =
            EventKind::RunStarted(Arc::new(RunStarted { launch, ..RunStarted::clone(head) }));
        events[0] = Arc::new(first);
        events
    }

    #[tokio::test(start_paused = true)]
    async fn the_boundaries_of_a_run_with_a_scheduled_flag_are_found() {
        let shipped = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let flag = (BoundaryId::new("round:2"), FlagName::from("legal_analyst"), true);
        let schedule = Schedule { flags: vec![flag], ..Schedule::default() };
        let launch = Launch { schedule, ..Launch::scripted(Arc::new(scenario), true) };
        let events = table::facts(&table::engine().start(launch)).await;
        let run = RecordedRun::new(RunId::new("r-1"), events, false).expect("a run");
        let places = fork_places(&run).await.expect("the run is executed again");
        let of_lawyer = |it: &&ForkPlace| it.id.as_str() == "message:2:legal_analyst";
        assert!(places.iter().any(|it| of_lawyer(&it)), "{places:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_overrides_of_an_imported_fork_need_permission() {
        // It calls services, which only a shipped scenario may do without a question.
        let shipped = shipped().iter().find(|it| it.name == "real-services").expect("shipped");
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let run = table::engine().start(Launch::scripted(Arc::new(scenario), true));
        let events = table::facts(&run).await;
        let child = with_overrides(&events, &["title=Mine"]);
        let with = (&LiveModels::new(ProxyMode::Direct), &Trust::saved_in(None));
        for imported in [false, true] {
            let read = |id: &str, events: &[Arc<Event>], imported| {
                RecordedRun::new(RunId::new(id), events.to_vec(), imported).expect("a run")
            };
            let fork = read("r-child", &child, imported);
            let (parent, set) = repeat_fork(&fork, read("r-own", &events, false)).expect("a fork");
            assert_eq!(set, ["title=Mine"]);
            let changes = ForkChanges { set, ..ForkChanges::default() };
            let at = BoundaryId::new("finalize");
            let prepared = prepare_fork(&parent, at, &changes, InDoubt::Stop, with, |_, _| false);
            let asks = matches!(prepared, Err(RecordedRunError::Permission(..)));
            assert_eq!(asks, imported);
        }
    }
}
