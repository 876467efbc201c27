//! The only fold of a log: what every screen, result and export shows. [`World::apply`] is total:
//! any fact, in any order that a file may hold, changes something or nothing, and never fails.
//!
//! What all patterns share stands here; each pattern has a projection of its own in a file beside.

pub mod activity;
pub mod alerts;
mod back_off;
pub mod chunked;
pub mod collaboration;
mod last_words;
pub mod latency;
pub mod models;
pub mod orchestrator;
mod outcome;
mod refusals;
pub mod research;
pub mod resilience;
pub mod rests;
pub mod spans;
mod spending;
mod stop_cause;
pub mod team;
pub mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use activity::Activity;
pub use alerts::Alerts;
pub use collaboration::Collaboration;
pub use models::AskedModels;
pub use orchestrator::Orchestrator;
pub use outcome::{Outcome, SessionOutcome};
pub use research::Research;
pub use resilience::Resilience;
pub use rests::Rests;
pub use spans::{Span, SpanKind, SpanState, Spans};
pub use spending::SpendingUsed;
pub use team::Team;
pub use tools::Tools;

use last_words::LastWords;
use refusals::Refusals;
use spending::Spending;

use super::kind::{
    BreakerStage, BudgetReached, By, CallStarted, CollaborationPlan, OrchestratorPlan, PatternPlan,
    Purpose, ResearchPlan, ResiliencePlan, RunClosed, RunStarted, SourceCame, SourceNo, Step,
    TeamPlan, Usage,
};
use super::{BoundaryId, Elapsed, Event, EventKind, Seq, SpanId, StopReason};
use crate::scenario::name::{AgentName, FlagName, ToolName};
use crate::scenario::price::Price;

/// Marks kept for the scrubber; further ones are counted in [`World::marks_left_out`].
const MARKS: usize = 2048;

/// A run as its log tells it so far.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// What was asked; `None` before the first fact.
    pub head: Option<Arc<RunStarted>>,
    /// How the run stands.
    pub stage: Stage,
    /// The tree of spans.
    pub spans: Spans,
    /// Counts.
    pub tally: Tally,
    spending: Spending,
    /// The flags, in the scenario's order.
    pub flags: Vec<FlagNow>,
    /// Moments worth a mark on the scrubber, in order.
    pub marks: Vec<Mark>,
    /// Marks beyond the cap.
    pub marks_left_out: u64,
    /// Facts over time.
    pub activity: Activity,
    /// The tools behind the gateway.
    pub tools: Tools,
    /// What a person was alerted of.
    pub alerts: Alerts,
    /// The models of a run that asks more than one.
    pub models: AskedModels,
    last_words: LastWords,
    refusals: Refusals,
    /// The call that was not made because of what the run may spend.
    budget_reached: Option<BudgetReached>,
    /// The pattern's own projection.
    pub pattern: PatternWorld,
    /// The answer, once it is composed.
    pub answer: Option<Arc<str>>,
    /// Whether the run rests at the next round, as it was asked to while it stood.
    pub to_round: bool,
    /// Where the run will rest when it comes there.
    pub breakpoints: BTreeSet<BoundaryId>,
    /// How it ended, once it has.
    pub closed: Option<Arc<RunClosed>>,
    /// Time of the last fact.
    pub at: Elapsed,
    /// The place after the last fact.
    pub next: Seq,
    pauses: Duration,
    rests: Rests,
    back_off: back_off::BackOff,
}

/// The projection of the run's pattern.
#[derive(Clone, Debug, Default)]
pub enum PatternWorld {
    /// No head yet.
    #[default]
    None,
    /// Source `000`.
    Collaboration(Collaboration),
    /// Source `001`.
    Orchestrator(Orchestrator),
    /// Source `002`.
    Team(Team),
    /// Source `003`.
    Resilience(Resilience),
    /// Source `004`.
    Research(Box<Research>),
}

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stage {
    /// No fact yet.
    #[default]
    Empty,
    /// On its way.
    Running,
    /// A pause was asked for; branches still on their way finish first.
    Pausing {
        /// Who asked.
        by: By,
    },
    /// Every branch stands at a boundary.
    Paused {
        /// Where, the first to go on first.
        at: Vec<BoundaryId>,
        /// Since when.
        since: Elapsed,
    },
    /// Ended; [`World::closed`] says how.
    Closed,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Facts.
    pub facts: u64,
    /// Calls asked for.
    pub calls: u64,
    /// Calls answered.
    pub answered: u64,
    /// Calls failed for good.
    pub failed: u64,
    /// Calls that something stood in for, or that were left out.
    pub degraded: u64,
    /// Calls that the run cancelled when it stopped.
    pub cancelled: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Attempts that repeated an earlier one.
    pub retries: u64,
    /// Attempts that policy refused before the tool was asked.
    pub refused: u64,
    /// Calls whose next attempt waits now.
    pub retrying: u64,
    /// Tokens of the replies, counted or estimated.
    pub usage: Usage,
    /// Replies whose endpoint counted no tokens: they are estimated.
    pub estimated: u64,
    /// Replies of which nothing is known; only logs of earlier versions have such.
    pub uncounted: u64,
    /// Facts of kinds that this version does not know.
    pub unknown: u64,
}

impl Tally {
    /// Calls open now.
    pub fn open(&self) -> u64 {
        let over = self.answered + self.failed + self.degraded + self.cancelled;
        self.calls.saturating_sub(over)
    }
}

/// A flag as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagNow {
    /// Which.
    pub name: FlagName,
    /// What it does, for people.
    pub label: String,
    /// Its position.
    pub on: bool,
    /// Its position at the start.
    pub at_start: bool,
    /// Its last change: when, where and by whom.
    pub changed: Option<(Elapsed, BoundaryId, By)>,
}

/// A moment worth a mark on the scrubber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Elapsed,
    /// The fact.
    pub seq: Seq,
    /// What.
    pub what: MarkKind,
}

/// What a mark stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A round was opened.
    Round(u32),
    /// The answer is being composed.
    Finalize,
    /// A flag was switched.
    Flag(FlagName, bool),
    /// Control of a swarm went over to an agent.
    Handoff(AgentName),
    /// The agent that the person talks to consults another.
    Consulted(AgentName),
    /// A source's page was read.
    Page(SourceNo),
    /// A call is tried again.
    Retry,
    /// A tool's breaker moved.
    Breaker(ToolName, BreakerStage),
    /// A fault was injected into a tool, or taken away.
    Fault(ToolName, bool),
    /// The run was paused.
    Paused,
    /// The limits of a swarm refused a hand-off, or an allowlist a source.
    Refused,
    /// A call or a contribution failed for good.
    Failed,
    /// The run ended.
    Closed,
}

impl World {
    /// A world before its first fact.
    pub fn new() -> Self {
        Self::default()
    }

    /// The world of these facts.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut world = Self::new();
        for event in events {
            world.apply(event);
        }
        world
    }

    /// Folds one fact.
    pub fn apply(&mut self, event: &Event) {
        self.tally.facts += 1;
        self.at = self.at.max(event.at);
        self.next = self.next.max(Seq(event.seq.0.saturating_add(1)));
        self.activity.count(event.at);
        self.spans.apply(event);
        self.back_off.apply(event, &self.spans);
        self.tally.retrying = self.back_off.len();
        match &event.kind {
            EventKind::RunStarted(head) => {
                if self.head.is_some() {
                    return;
                }
                if self.closed.is_none() {
                    self.stage = Stage::Running;
                }
                self.flags = head
                    .flags
                    .iter()
                    .map(|flag| FlagNow {
                        name: flag.name.clone(),
                        label: flag.label.clone(),
                        on: flag.on,
                        at_start: flag.on,
                        changed: None,
                    })
                    .collect();
                self.spending.begin(&head.model_prices);
                self.tools.begin(&head.tools);
                self.alerts.begin(head.alerts);
                self.pattern = match &head.plan {
                    PatternPlan::Collaboration(_) => {
                        PatternWorld::Collaboration(Collaboration::default())
                    }
                    PatternPlan::Orchestrator(plan) => {
                        PatternWorld::Orchestrator(Orchestrator::new(plan))
                    }
                    PatternPlan::Team(plan) | PatternPlan::Swarm(plan) => {
                        PatternWorld::Team(Team::new(plan))
                    }
                    PatternPlan::Resilience(plan) => {
                        PatternWorld::Resilience(Resilience::new(plan))
                    }
                    PatternPlan::Research(_) => PatternWorld::Research(Box::default()),
                };
                self.head = Some(Arc::clone(head));
            }
            EventKind::RunClosed(closed) => {
                if let Stage::Paused { since, .. } = self.stage {
                    self.rests.note(since, event.at);
                }
                self.stage = Stage::Closed;
                self.to_round = false;
                self.closed = Some(Arc::new((**closed).clone()));
                self.pauses = Duration::from_millis(closed.paused_ms);
                self.mark(event, MarkKind::Closed);
            }
            EventKind::Pausing { by } => self.set_stage(Stage::Pausing { by: *by }),
            EventKind::Paused { at } => {
                self.to_round = false;
                let since = match self.stage {
                    // One more branch came to stand: the clock stands since before.
                    Stage::Paused { since, .. } => since,
                    _ => {
                        self.mark(event, MarkKind::Paused);
                        event.at
                    }
                };
                self.set_stage(Stage::Paused { at: at.clone(), since });
            }
            EventKind::Resumed { paused_ms, .. } => {
                self.rested(event.at, *paused_ms);
                self.to_round = false;
                self.set_stage(Stage::Running);
            }
            EventKind::Stepped { paused_ms, step, .. } => {
                self.rested(event.at, *paused_ms);
                self.to_round = matches!(step, Step::Round);
                self.set_stage(match step {
                    Step::Boundary => Stage::Pausing { by: By::You },
                    Step::Round => Stage::Running,
                });
            }
            EventKind::FlagChanged { flag, on, by, boundary } => {
                if let Some(row) = self.flags.iter_mut().find(|row| row.name == *flag) {
                    row.on = *on;
                    row.changed = Some((event.at, boundary.clone(), *by));
                }
                self.mark(event, MarkKind::Flag(flag.clone(), *on));
            }
            EventKind::BreakpointChanged { at, set: true } => {
                self.breakpoints.insert(at.clone());
            }
            EventKind::BreakpointChanged { at, set: false } => {
                self.breakpoints.remove(at);
            }
            EventKind::RoundStarted { round, .. } => self.mark(event, MarkKind::Round(*round)),
            EventKind::ContributionRefused { .. } => self.mark(event, MarkKind::Failed),
            EventKind::HandoffMade { to, .. } => self.mark(event, MarkKind::Handoff(to.clone())),
            EventKind::PageRead(page) => self.mark(event, MarkKind::Page(page.source)),
            EventKind::SourceClosed(came) if matches!(**came, SourceCame::Denied { .. }) => {
                self.mark(event, MarkKind::Refused);
            }
            EventKind::SourceClosed(came) if matches!(**came, SourceCame::Skipped { .. }) => {
                self.mark(event, MarkKind::Failed);
            }
            EventKind::HandoffRefused { .. } => self.mark(event, MarkKind::Refused),
            EventKind::BudgetReached(reached) => {
                self.budget_reached = Some(*reached);
                self.mark(event, MarkKind::Failed);
            }
            EventKind::AnswerComposed { text, .. } => self.answer = Some(Arc::clone(text)),
            EventKind::CallStarted(call) => {
                self.tally.calls += 1;
                self.spending.asked(event.span, call.model.as_deref());
                self.models.asked(call);
                self.mark_call(event, call);
            }
            EventKind::CallAnswered { .. } => self.tally.answered += 1,
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.tally.cancelled += 1;
            }
            EventKind::CallFailed { .. } => {
                self.tally.failed += 1;
                self.mark(event, MarkKind::Failed);
            }
            EventKind::CallDegraded { .. } => self.tally.degraded += 1,
            EventKind::AttemptRefused { .. } => self.tally.refused += 1,
            EventKind::PlanRefused { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::NoteRefused(_)
            | EventKind::AnswerRefused(_) => {
                self.mark(event, MarkKind::Failed);
            }
            EventKind::BreakerChanged { tool, to, .. } => {
                self.mark(event, MarkKind::Breaker(tool.clone(), *to));
            }
            EventKind::FaultInjected { tool, .. } => {
                self.mark(event, MarkKind::Fault(tool.clone(), true));
            }
            EventKind::FaultHealed { tool, .. } => {
                self.mark(event, MarkKind::Fault(tool.clone(), false));
            }
            EventKind::CallRetried { .. } => {
                self.tally.retries += 1;
                self.mark(event, MarkKind::Retry);
            }
            EventKind::AttemptStarted { .. } => self.tally.attempts += 1,
            EventKind::AttemptAnswered(reply)
                if reply.result.is_some() || !self.is_of_model(event.span) => {}
            EventKind::AttemptAnswered(reply) => match reply.usage {
                Some(usage) => {
                    self.tally.usage.add(usage);
                    self.tally.estimated += u64::from(reply.estimated);
                    self.spending.used(self.spans.get(event.span).map(|it| it.parent), usage);
                }
                None => self.tally.uncounted += 1,
            },
            // Asked again in another way: nothing has failed.
            EventKind::AttemptFailed(failed) if failed.adapted.is_some() => {}
            EventKind::AttemptFailed(failed) => {
                self.tally.failed_attempts += 1;
                if let Some(usage) = failed.usage {
                    self.tally.usage.add(usage);
                    self.tally.estimated += 1;
                    self.spending.used(self.spans.get(event.span).map(|it| it.parent), usage);
                }
            }
            EventKind::Unknown { .. } => self.tally.unknown += 1,
            _ => {}
        }
        if event.kind.closes() {
            self.spending.ended(event.span);
        }
        self.tools.apply(event, &self.spans, &self.rests);
        self.alerts.apply(event, &self.tools, &self.spans);
        if let EventKind::AttemptAnswered(_) = &event.kind {
            for used in self.spending_used() {
                self.alerts.spent(event, used);
            }
        }
        self.last_words.apply(event, &self.spans);
        self.refusals.apply(event, &self.spans);
        match &mut self.pattern {
            PatternWorld::None => {}
            PatternWorld::Orchestrator(orchestrator) => orchestrator.apply(event, &self.spans),
            PatternWorld::Resilience(resilience) => resilience.apply(event),
            PatternWorld::Research(research) => research.apply(event, &self.spans),
            PatternWorld::Team(team) => team.apply(event, &self.spans, &self.rests),
            PatternWorld::Collaboration(collaboration) => {
                collaboration.apply(event, &self.spans);
            }
        }
    }

    /// Forgets the calls that ended before this fact and of which there is no end: what is left tells
    /// the same outcome. Whoever follows a run without end calls it now and then, with a fact that lies
    /// some way back: screens and lines look at calls that have just ended.
    pub fn forget_before(&mut self, fact: Seq) {
        self.spans.forget_before(fact);
    }

    /// How long the run has been going at `now`, pauses left out: what `max_seconds` bounds.
    pub fn active(&self, now: Elapsed) -> Duration {
        if let Some(closed) = &self.closed {
            return Duration::from_millis(closed.elapsed_ms);
        }
        let standing = match &self.stage {
            Stage::Paused { since, .. } => now.since(*since),
            _ => Duration::ZERO,
        };
        now.duration().saturating_sub(self.pauses).saturating_sub(standing)
    }

    /// From one moment to another, the rests between left out.
    pub fn took(&self, from: Elapsed, until: Elapsed) -> Duration {
        let standing = match &self.stage {
            Stage::Paused { since, .. } => until.since((*since).max(from)),
            _ => Duration::ZERO,
        };
        until.since(from).saturating_sub(self.rests.between(from, until)).saturating_sub(standing)
    }

    /// The run goes on after it stood for so long.
    fn rested(&mut self, until: Elapsed, paused_ms: u64) {
        self.pauses = self.pauses.saturating_add(Duration::from_millis(paused_ms));
        let from = until.0.saturating_sub(paused_ms.saturating_mul(1_000));
        self.rests.note(Elapsed(from), until);
    }

    /// What the run has used of each limit on its spending.
    pub fn spending_used(&self) -> Vec<SpendingUsed> {
        let limits = self.head.as_ref().map(|head| head.spending).unwrap_or_default();
        let tokens = limits
            .max_total_tokens
            .map(|limit| SpendingUsed::Tokens { used: self.tally.usage.total(), limit });
        let cost = limits
            .max_cost_usd
            .and_then(|limit| Some(SpendingUsed::Cost { used: self.cost_usd()?, limit }));
        tokens.into_iter().chain(cost).collect()
    }

    /// An estimate of what the run has cost so far, in US dollars: `None` where a model that it may ask
    /// has no price, or a reply did not count its tokens.
    pub fn cost_usd(&self) -> Option<f64> {
        let head = self.head.as_ref()?;
        if self.tally.uncounted > 0 {
            return None;
        }
        match head.prices {
            Some(prices) => Some(Price::from(prices).cost(&self.tally.usage)),
            None => self.spending.cost(),
        }
    }

    /// Whether the run is neither empty nor closed.
    pub fn is_live(&self) -> bool {
        !matches!(self.stage, Stage::Empty | Stage::Closed)
    }

    /// The collaboration's projection and plan, where the run is one.
    pub fn collaboration(&self) -> Option<(&Collaboration, &CollaborationPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Collaboration(world), Some(PatternPlan::Collaboration(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// The orchestrator's projection and plan, where the run is one.
    pub fn orchestrator(&self) -> Option<(&Orchestrator, &OrchestratorPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Orchestrator(world), Some(PatternPlan::Orchestrator(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// The projection and plan of a team or swarm, where the run is one.
    pub fn team(&self) -> Option<(&Team, &TeamPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (
                PatternWorld::Team(world),
                Some(PatternPlan::Team(plan) | PatternPlan::Swarm(plan)),
            ) => Some((world, plan)),
            _ => None,
        }
    }

    /// Whether an attempt was one of a model, whose tokens count: not one of a tool, nor of an
    /// agent, whose own calls are counted.
    fn is_of_model(&self, attempt: SpanId) -> bool {
        let call = self.spans.get(attempt).and_then(|span| self.spans.get(span.parent));
        !matches!(
            call.map(|span| &span.what),
            Some(SpanKind::Call(
                Purpose::Task { .. }
                    | Purpose::Step { .. }
                    | Purpose::Member { .. }
                    | Purpose::Hop { .. }
                    | Purpose::Tool { .. }
                    | Purpose::Search
                    | Purpose::Read { .. }
            ))
        )
    }

    /// The projection and plan of a resilience run, where the run is one.
    pub fn resilience(&self) -> Option<(&Resilience, &ResiliencePlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Resilience(world), Some(PatternPlan::Resilience(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// The projection and plan of a research run, where the run is one.
    pub fn research(&self) -> Option<(&Research, &ResearchPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Research(world), Some(PatternPlan::Research(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// Whether something was replaced by a fallback or left out.
    pub fn is_degraded(&self) -> bool {
        self.tally.degraded > 0
            || self.orchestrator().is_some_and(|(orchestrator, _)| orchestrator.is_degraded())
            || self.team().is_some_and(|(team, _)| team.incomplete)
    }

    /// A closed run stays closed, whatever a file says after it.
    fn set_stage(&mut self, stage: Stage) {
        if self.is_live() {
            self.stage = stage;
        }
    }

    fn mark(&mut self, event: &Event, what: MarkKind) {
        if self.marks.len() < MARKS {
            self.marks.push(Mark { at: event.at, seq: event.seq, what });
        } else {
            self.marks_left_out += 1;
        }
    }

    fn mark_call(&mut self, event: &Event, call: &CallStarted) {
        if matches!(call.purpose, Purpose::Finalize | Purpose::Synthesize) {
            self.mark(event, MarkKind::Finalize);
        }
        if let (Purpose::Member { agent, .. }, SpanId::RUN) = (&call.purpose, call.parent) {
            self.mark(event, MarkKind::Consulted(agent.clone()));
        }
    }
}
