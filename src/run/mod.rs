//! What a pattern gets to run with: the [`RunContext`] with its boundaries, flags, deadline and
//! models, and the [`OrderedJoinSet`], which runs several calls concurrently inside one task.
//! Dropping the pattern cancels its calls; each closes its span and returns its permit.
//!
//! Pause, step, breakpoints, cancel and the deadline are all in [`control`] and nowhere else. A
//! [`LiveControl`] is the part of a running pattern that commands change.

mod answerers;
pub mod control;
mod hold;
mod host;
pub mod model_call;
pub mod questions;
mod redelivery;
pub mod replay;
pub mod servers;
mod session;
pub(crate) mod spending;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

use self::control::RunStopped;
use self::questions::{PeopleMode, Question, Questions};
use self::servers::{SeenTools, ServerTool};
use self::spending::{DayAccount, Spending};
use crate::base::name::{FlagName, PersonName, RoleName, ToolName};
use crate::base::seeded_random::{Latency, random_duration, random_u64};
use crate::base::time::{Day, WallClock};
use crate::gateway::{GuardedTool, ToolRegistry, ToolSetup};
use crate::log::bus::Bus;
use crate::log::clock::Clock;
use crate::log::event::head::RunStarted;
use crate::log::event::question::AGAIN;
use crate::log::event::{
    Answer, Boundary, Command, EventKind, Purpose, RunId, Seq, SpanId, StopReason, Subject,
};
use crate::log::facts::PatternPlan;
use crate::model::Models;
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::people::{OPERATOR, Otherwise};
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{InjectedFault, ResultContract};
use crate::scenario::spec::{InDoubt, ModelCaller, SpendingLimits};

pub use self::control::RunControl;
pub use self::model_call::ModelRequest;
pub use self::session::LeftSession;
pub use self::session::{Session, SessionMemory};
pub use self::tools::{CallerPolicy, ProgramTool, ToolCallRequest};

/// Everything that a run's context is built from.
pub struct RunSettings {
    pub id: RunId,
    /// Log of the run.
    pub bus: Bus,
    /// Time limit of the whole run, pauses not counted.
    pub max: Duration,
    /// The flags and their positions at the start.
    pub flags: BTreeMap<FlagName, bool>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The models that answer its calls.
    pub models: Models,
    /// The tools behind the gateway; first the model's guard (`llm`).
    pub tools: Vec<Arc<GuardedTool>>,
    /// The message of a session that the run answers.
    pub session: Session,
    /// Whether the pauses that a scenario writes into its run are skipped.
    pub instant: bool,
    /// The day on which the run starts, in UTC, as in its head.
    pub today: Day,
    /// Limits of what the run may spend on its models.
    pub spending: SpendingLimits,
    /// The account of the day that the calls count for.
    pub day: Option<Arc<dyn DayAccount>>,
    /// What a resumed run does with a call in doubt, if its tool is not idempotent.
    pub in_doubt: InDoubt,
    /// The setup of the pattern, as the head of the log has it.
    pub plan: PatternPlan,
    /// How requests are written, and how often a model is asked again.
    pub asking: AskingRules,
    /// The scenario, for its people and what they may be asked.
    pub scenario: Arc<Scenario>,
    /// Who answers the questions of the run.
    pub people: PeopleMode,
    /// The clock by which the deadlines of questions go.
    pub wall: WallClock,
    /// What the operator has seen of the tools of MCP servers.
    pub seen_tools: Arc<dyn SeenTools>,
}

/// How a run asks its models, as the head of its log has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskingRules {
    /// How often a model is asked again after a refused JSON reply.
    pub ask_again: u32,
    /// Whether requests have the positions of the flags.
    pub shows_flags: bool,
}

impl AskingRules {
    /// The rules of a run. A run that is executed again, or answered by a recorded run, follows the
    /// rules of that run, where its scenario sets none.
    pub fn new(scenario: &Scenario, live: bool, recorded: Option<&RunStarted>) -> Self {
        let usual = recorded.map_or(u32::from(live), |head| head.ask_again);
        Self {
            ask_again: scenario.model.ask_again.unwrap_or(usual),
            shows_flags: !scenario.flags.is_empty() && recorded.is_none_or(|it| it.shows_flags),
        }
    }
}

/// Everything that a pattern may use while it runs.
pub struct RunContext {
    id: RunId,
    pub(crate) bus: Bus,
    pub(crate) control: Arc<RunControl>,
    pub(crate) seed: u64,
    pub(crate) models: Models,
    pub(crate) llm: Arc<GuardedTool>,
    /// The guards of the agents of other programs, by the callers for which they answer.
    outside: Vec<(ModelCaller, Arc<GuardedTool>)>,
    tools: Arc<ToolRegistry>,
    pub(crate) session: Session,
    instant: bool,
    today: Day,
    pub(crate) spending: Spending,
    pub(crate) in_doubt: InDoubt,
    plan: PatternPlan,
    asking: AskingRules,
    questions: Arc<Questions>,
    seen_tools: Arc<dyn SeenTools>,
    /// The tools of MCP servers, once they are listed.
    server_tools: OnceLock<BTreeMap<ToolName, ServerTool>>,
    phase: Mutex<Option<Phase>>,
    elapsed: OnceLock<Duration>,
    /// The pairs of model and parameter whose removal was published already (`request.adapted`).
    pub(crate) adapted: Mutex<BTreeSet<(String, String)>>,
    /// How often each call was made of the tools and models whose results depend on it.
    equal_calls: Mutex<BTreeMap<(ToolName, String), u32>>,
    /// The empty bindings that calls share if their conditions may read nothing.
    pub(crate) empty_bindings: Arc<CelBindings>,
}

impl RunContext {
    /// The context of a run that starts now.
    pub fn new(settings: RunSettings) -> Self {
        let RunSettings {
            id,
            bus,
            max,
            flags,
            seed,
            models,
            tools,
            session,
            instant,
            today,
            spending,
            day,
            in_doubt,
            plan,
            asking,
            scenario,
            people,
            wall,
            seen_tools,
        } = settings;
        let outside = scenario.pattern.get().outside_callers().into_iter().filter_map(|it| {
            let name = it.agent.guard_name();
            Some((it.caller, Arc::clone(tools.iter().find(|tool| *tool.guard.name() == name)?)))
        });
        let outside = outside.collect();
        let control = RunControl::new(bus.clone(), max, flags);
        let questions = Questions::new(
            bus.clone(),
            Arc::clone(&control),
            scenario,
            people,
            (seed, instant),
            wall,
        );
        let name = ToolName::from(LLM);
        let llm = tools.iter().find(|tool| *tool.guard.name() == name).cloned();
        let llm = llm.unwrap_or_else(|| {
            model_tool(name, Arc::default(), Duration::MAX, Vec::new(), bus.clock())
        });
        Self {
            id,
            tools: Arc::new(ToolRegistry::new(tools)),
            bus,
            control,
            seed,
            models,
            llm,
            outside,
            session,
            instant,
            today,
            spending: Spending::new(spending, day),
            in_doubt,
            plan,
            asking,
            questions,
            seen_tools,
            server_tools: OnceLock::new(),
            phase: Mutex::new(None),
            elapsed: OnceLock::new(),
            adapted: Mutex::default(),
            equal_calls: Mutex::default(),
            empty_bindings: Arc::default(),
        }
    }

    /// Id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The tools of this run.
    pub fn tools(&self) -> &Arc<ToolRegistry> {
        &self.tools
    }

    /// The session that the run belongs to, and its message.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether an endpoint answers the model calls, not a script.
    pub fn is_live(&self) -> bool {
        self.models.is_live()
    }

    /// The guard of the agent of another program that answers calls for this purpose.
    fn outside_guard(&self, purpose: &Purpose) -> Option<&Arc<GuardedTool>> {
        let found = self.outside.iter().find(|(caller, _)| purpose.is_called_by(caller));
        found.map(|(_, guard)| guard)
    }

    /// Whether an endpoint gives the replies of the model for this purpose, or gave them when they
    /// were recorded.
    pub fn has_live_replies(&self, purpose: &Purpose) -> bool {
        self.models.model_for(purpose).has_live_replies()
    }

    /// The day on which the run started, in UTC. It comes from the head, so a replay gets the same
    /// day.
    pub fn today(&self) -> Day {
        self.today
    }

    /// 64 random bits: a hash of seed, path, attempt and use.
    pub fn random_bits(&self, path: &str, attempt: u32, what: &str) -> u64 {
        random_u64(self.seed, path, attempt, what)
    }

    /// The control that commands are sent to.
    pub fn control(&self) -> &Arc<RunControl> {
        &self.control
    }

    /// Every pattern awaits this before it acts.
    ///
    /// # Errors
    /// [`RunStopped`] if the run was cancelled or stopped, or its time is up.
    pub async fn boundary(&self, at: Boundary) -> Result<(), RunStopped> {
        self.control.pass(&at).await
    }

    /// Whether a flag is on. Read it right after a boundary.
    pub fn flag(&self, flag: &FlagName) -> bool {
        self.control.flag(flag)
    }

    /// The positions of the flags, as a request has them: none if the scenario has no flags, or if
    /// the run continues one of an earlier version.
    pub fn shown_flags(&self) -> BTreeMap<FlagName, bool> {
        match self.asking.shows_flags {
            true => self.control.flags(),
            false => BTreeMap::new(),
        }
    }

    /// How often a model is asked again after a refused JSON reply.
    pub fn ask_again(&self) -> u32 {
        self.asking.ask_again
    }

    /// The setup of the pattern.
    pub fn plan(&self) -> &PatternPlan {
        &self.plan
    }

    /// Waits for the scenario's latency, drawn from the seed. Does not wait in an instant run.
    pub async fn wait(&self, latency: Latency, path: &str, nth: u32) {
        if !self.instant {
            let time = random_duration(latency, self.random_bits(path, nth, "wait"));
            self.bus.clock().sleep(time).await;
        }
    }

    /// The scenario of the run.
    pub(crate) fn scenario(&self) -> &Scenario {
        self.questions.scenario()
    }

    /// The run's log.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Appends an event.
    pub fn publish(&self, span: SpanId, kind: impl Into<EventKind>) -> Seq {
        self.bus.publish(span, kind)
    }

    /// Opens a span with the event that opens it, and returns its id.
    pub fn open_span(&self, kind: impl Into<EventKind>) -> SpanId {
        self.bus.open(kind)
    }

    /// Sets the duration of the run, where its own clock does not measure it: a watched program has another clock.
    pub fn set_elapsed(&self, elapsed: Duration) {
        let _ = self.elapsed.set(elapsed);
    }

    /// The duration that [`set_elapsed`](Self::set_elapsed) has set.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.elapsed.get().copied()
    }

    /// Sets the phase of the run in the source document's words (`round_2:risk_analyst`). If the
    /// run stops from now on, the outcome reports this phase.
    pub fn set_phase(&self, phase: impl Into<Phase>) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Some(phase.into());
    }

    /// The current phase.
    pub fn phase(&self) -> Option<String> {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        phase.as_ref().map(Phase::to_string)
    }

    /// Number of attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.control.in_flight().load(Ordering::Acquire)
    }

    /// Whether the model's replies depend on conditions (a script with `when`).
    pub fn reads_conditions(&self) -> bool {
        self.models.default_model().reads_conditions()
    }

    /// Carries out the decision about an attempt in doubt: asks the operator whether it is made again, or
    /// stops the run and never returns. `Some`: its result, if the operator knows it.
    pub(crate) async fn settle_doubt(
        &self,
        (parent, attempt): (SpanId, SpanId),
        tool: ToolName,
        args: Value,
        decision: InDoubt,
    ) -> Option<Arc<Value>> {
        if decision != InDoubt::Stop {
            let question = Question {
                span: attempt,
                inside: parent,
                by: None,
                why: None,
                subject: Subject::InDoubt { tool: tool.clone(), args: Arc::new(args) },
                asking: self.asking(&PersonName::from(OPERATOR), Otherwise::Stop),
                rule: None,
            };
            if let Ok(ended) = self.questions.ask(question).await {
                match &ended.answered.answer {
                    Answer::Result { result } => return Some(Arc::clone(result)),
                    Answer::Choose { choice, .. } if **choice == *AGAIN => return None,
                    _ => {}
                }
            }
        }
        self.control.stop(StopReason::InDoubt(tool));
        std::future::pending().await
    }

    /// Asks the questions of a recorded attempt again, while its recorded result is waited for. Never
    /// completes. `None`: nothing was asked in it.
    fn repeat_questions(&self, (parent, attempt): (SpanId, SpanId)) -> Option<BoxFuture<'_, ()>> {
        let asked = self.bus.replay()?.recording().questions_in(attempt);
        (!asked.is_empty()).then(|| {
            async move {
                let _inside = self.control.enclose(attempt, parent);
                for question in &asked {
                    self.questions.ask_again(attempt, question).await;
                }
                std::future::pending().await
            }
            .boxed()
        })
    }

    /// Counts an attempt that starts (`true`) or has ended (`false`).
    pub(crate) fn count_in_flight(&self, out: bool) {
        let counter = self.control.in_flight();
        if out {
            counter.fetch_add(1, Ordering::AcqRel);
        } else {
            counter.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Name of the model at the gateway.
pub const LLM: &str = "llm";

/// The model behind its guard, by the clock of the run.
pub fn model_tool(
    name: ToolName,
    policy: Arc<CallPolicy>,
    timeout: Duration,
    faults: Vec<InjectedFault>,
    clock: &Clock,
) -> Arc<GuardedTool> {
    let setup = ToolSetup {
        name,
        tool: None,
        kind: "model",
        has_effects: false,
        contract: ResultContract::default(),
        policy,
        timeout,
        faults,
        shared: false,
        fingerprint: String::new(),
    };
    GuardedTool::new(setup, clock.clone())
}

/// The phase of a run. The text is made only when it is needed: most runs are never stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Any other phase, as its text.
    Text(String),
    Round(u32),
    /// At a seat of a round: `round_2:risk_analyst`.
    Seat {
        /// Number of the round, from 1.
        round: u32,
        /// The role of the seat.
        role: RoleName,
    },
    /// Before the answer is composed: `finalize`.
    Finalize,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Round(round) => write!(f, "round_{round}"),
            Self::Seat { round, role } => write!(f, "round_{round}:{role}"),
            Self::Finalize => f.write_str("finalize"),
        }
    }
}

impl From<String> for Phase {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What the operator may change in a pattern while it runs. The registry of patterns makes it before
/// the run starts.
pub trait LiveControl: Send + Sync {
    /// Takes a command; returns one that is not its own.
    fn take(&self, command: Command) -> Option<Command>;

    /// The run has ended: nothing changes any more.
    fn end(&self);
}

/// Several futures that run concurrently inside one task, each with its number. They make progress
/// while the task waits for something else, they finish in any order, and their results are taken by
/// number. Dropping the set cancels all of them, so nothing outlives the run.
pub struct OrderedJoinSet<'a, T> {
    running: FuturesUnordered<BoxFuture<'a, (usize, T)>>,
    done: BTreeMap<usize, T>,
}

impl<T> Default for OrderedJoinSet<'_, T> {
    fn default() -> Self {
        Self { running: FuturesUnordered::new(), done: BTreeMap::new() }
    }
}

impl<'a, T: Send + 'a> OrderedJoinSet<'a, T> {
    /// Adds a future. It is first polled when the set next waits; the caller first publishes the
    /// events that must be in the log before that.
    pub fn spawn(&mut self, place: usize, member: impl Future<Output = T> + Send + 'a) {
        self.running.push(member.map(move |result| (place, result)).boxed());
    }

    /// Waits for another future while these make progress.
    pub async fn run_while<U>(&mut self, wait: impl Future<Output = U>) -> U {
        let mut wait = pin!(wait);
        loop {
            if self.running.is_empty() {
                return wait.await;
            }
            tokio::select! {
                biased;
                waited = &mut wait => return waited,
                Some((place, result)) = self.running.next() => {
                    self.done.insert(place, result);
                }
            }
        }
    }

    /// The result of the future with this number, if it has finished.
    pub fn try_take(&mut self, place: usize) -> Option<T> {
        self.done.remove(&place)
    }

    /// Waits for the result of any future, with its number, as long as they are `wanted`; `None`: they
    /// no longer are, or there are none.
    pub async fn take_any(&mut self, wanted: impl Fn() -> bool) -> Option<(usize, T)> {
        if let Some(done) = self.done.pop_first() {
            return Some(done);
        }
        poll_fn(|cx| match self.running.poll_next_unpin(cx) {
            Poll::Pending if !wanted() => Poll::Ready(None),
            polled => polled,
        })
        .await
    }

    /// Waits for the result of the future with this number; `None` if no such future was started.
    pub async fn take(&mut self, place: usize) -> Option<T> {
        loop {
            if let Some(result) = self.done.remove(&place) {
                return Some(result);
            }
            let (finished, result) = self.running.next().await?;
            self.done.insert(finished, result);
        }
    }
}
