//! What a run is started with.

use std::sync::Arc;
use std::time::Duration;

use super::RunHandle;
use crate::Toolbox;
use crate::base::name::FlagName;
use crate::log::bus::Recording;
use crate::log::event::head::ForkOrigin;
use crate::log::event::{BoundaryId, Initiator, RunId, RunStarted};
use crate::model::Models;
use crate::model::recorded::RecordedModel;
use crate::run::Session;
use crate::run::questions::PeopleMode;
use crate::scenario::Scenario;
use crate::scenario::spec::InDoubt;

/// Everything that a run is started with.
pub struct Launch {
    /// The scenario to run.
    pub scenario: Arc<Scenario>,
    /// What answers the model calls.
    pub model: ModelChoice,
    /// The implementations of its tools; `None`: those that need nothing from the environment.
    pub tools: Option<Toolbox>,
    /// Flags whose position at the start differs from the scenario's.
    pub flags: Vec<(FlagName, bool)>,
    /// What to do at which boundary.
    pub schedule: Schedule,
    /// Seed of all random numbers; `None`: the scenario's.
    pub seed: Option<u64>,
    /// The model that the operator requested, in place of those that the scenario names: for the
    /// log, the choice is in `model`.
    pub requested_model: Option<Arc<str>>,
    /// The message of a session that this run answers; `None`: it starts a session with the
    /// scenario's goal.
    pub session: Option<Session>,
    /// Who answers the questions of the run.
    pub people: PeopleMode,
}

impl Launch {
    /// Runs the scenario as it is written: its script answers for the model and for people.
    pub fn scripted(scenario: Arc<Scenario>, instant: bool) -> Self {
        Self {
            scenario,
            model: ModelChoice::Scripted { instant },
            tools: None,
            flags: Vec::new(),
            schedule: Schedule::default(),
            seed: None,
            requested_model: None,
            session: None,
            people: PeopleMode::Script,
        }
    }
}

impl Launch {
    /// The launch of a later run of the same session, without tools.
    pub(crate) fn later(&self) -> Self {
        Self {
            scenario: Arc::clone(&self.scenario),
            model: self.model.clone(),
            tools: None,
            flags: self.flags.clone(),
            schedule: Schedule::default(),
            seed: self.seed,
            requested_model: self.requested_model.clone(),
            session: None,
            people: self.people.clone(),
        }
    }

    /// Sets the message that the run answers. After another run it is the next one of that session; else it
    /// is the first one, unless the launch has a session already.
    pub(crate) fn answer(&mut self, text: Arc<str>, before: Option<&RunHandle>) {
        self.session = match before {
            Some(run) => run.follow_up(text),
            None => self.session.take().or_else(|| Some(Session::first(text))),
        };
    }
}

/// A recorded run that is continued.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// The stored events of the run.
    pub recording: Recording,
    /// Who continues it.
    pub by: Initiator,
    /// What is done with a call in doubt if the scenario does not say it (`in_doubt`) and the tool is
    /// not idempotent.
    pub in_doubt: InDoubt,
}

/// A fork: a new run that is executed as a recorded one up to a boundary, and continues from there.
#[derive(Clone, Debug)]
pub struct ForkStart {
    pub recording: Recording,
    /// The boundary to continue from.
    pub at: BoundaryId,
    /// The flags to switch there.
    pub flags: Vec<(FlagName, bool)>,
    pub by: Initiator,
    /// What is done with a call that was in flight there and has no recorded end, as in
    /// [`Resumption::in_doubt`].
    pub in_doubt: InDoubt,
}

/// A recorded run that a new run begins with.
pub(crate) struct Replayed {
    pub recording: Recording,
    pub by: Initiator,
    pub in_doubt: InDoubt,
    /// `None`: the run is the recorded one.
    pub fork: Option<ForkOrigin>,
}

impl From<Resumption> for Replayed {
    fn from(resumption: Resumption) -> Self {
        let Resumption { recording, by, in_doubt } = resumption;
        Self { recording, by, in_doubt, fork: None }
    }
}

/// Why a recorded run is not continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// It has ended.
    #[error("the run has ended; a run can be resumed until its end")]
    Ended,
    /// This engine has the run already.
    #[error("the run {0} is open already")]
    Present(RunId),
}

/// What answers the model calls of a run.
#[derive(Clone)]
pub enum ModelChoice {
    /// The scenario's script.
    Scripted {
        /// Skips the delays of the script.
        instant: bool,
    },
    /// Models, and the timeout of one attempt if the scenario sets none.
    Live(Models, Duration),
    /// Agents of other programs answer for all callers. They come with the tools.
    Agents,
    /// The replies of the recorded run with this head.
    Recorded(Arc<RecordedModel>, Arc<RunStarted>),
}

/// What the command line schedules at boundaries.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Flags to switch, each at its boundary.
    pub flags: Vec<(BoundaryId, FlagName, bool)>,
    /// Boundaries to pause at.
    pub breaks: Vec<BoundaryId>,
    /// Whether to pause at the first boundary.
    pub start_paused: bool,
}
