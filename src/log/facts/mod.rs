//! The registry of what a log has of each pattern: its setup (a plan, in the head) and its facts
//! (the pattern's own events), with the questions that the rest of the program asks them.

pub mod agents;
pub mod collaboration;
pub mod observed;
pub mod orchestrator;
pub mod plan_fault;
pub mod research;
pub mod router;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::agents::{AgentFact, SessionHead, TeamPlan};
use self::collaboration::{CollaborationFact, CollaborationPlan};
use self::observed::{ObservedFact, ObservedPlan};
use self::orchestrator::Task;
use self::orchestrator::{OrchestratorFact, OrchestratorPlan};
use self::research::{FoundSource, SourceOutcome};
use self::research::{ResearchFact, ResearchPlan};
use self::router::{RouterFact, RouterPlan};
use super::event::command::Command;
use super::event::id::SpanId;
use super::event::purpose::Purpose;
use super::event::{Asks, SpanKind, SpanState, StopReason, TextPart, Usage};
use crate::base::name::AgentName;
use crate::base::name::ToolName;

/// The pattern of a run, with its limits at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum PatternPlan {
    /// Seats vote in rounds (collaboration source document).
    Collaboration(Arc<CollaborationPlan>),
    /// A planner and its workers (orchestrator source document).
    Orchestrator(Arc<OrchestratorPlan>),
    /// A coordinator and its members (teams source document).
    Team(Arc<TeamPlan>),
    /// Agents that hand over to each other (teams source document).
    Swarm(Arc<TeamPlan>),
    /// Agents that put load on tools (cascading failures source document).
    Resilience(Arc<ResiliencePlan>),
    /// Search, read, take notes, verify, answer (research source document).
    Research(Arc<ResearchPlan>),
    /// Classify, choose a route, let its agent answer.
    Router(Arc<RouterPlan>),
    /// Another program, which is only watched.
    Observed(Arc<ObservedPlan>),
}

impl PatternPlan {
    /// Name of the pattern.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collaboration(_) => "collaboration",
            Self::Orchestrator(_) => "orchestrator",
            Self::Team(_) => "team",
            Self::Swarm(_) => "swarm",
            Self::Resilience(_) => "resilience",
            Self::Research(_) => "research",
            Self::Router(_) => "router",
            Self::Observed(_) => "observed",
        }
    }

    /// The setup.
    pub fn get(&self) -> &dyn Plan {
        match self {
            Self::Collaboration(plan) => &**plan,
            Self::Orchestrator(plan) => &**plan,
            Self::Team(plan) | Self::Swarm(plan) => &**plan,
            Self::Resilience(plan) => &**plan,
            Self::Research(plan) => &**plan,
            Self::Router(plan) => &**plan,
            Self::Observed(plan) => &**plan,
        }
    }

    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub fn max_ms(&self) -> u64 {
        self.get().max_ms()
    }
}

/// A fact of one pattern. In JSON it is the fact alone: its kind says which pattern it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PatternFact {
    /// Of a collaboration.
    Collaboration(CollaborationFact),
    /// Of an orchestrator.
    Orchestrator(OrchestratorFact),
    /// Of agents: a team, or a swarm.
    Agents(AgentFact),
    /// Of a research run.
    Research(ResearchFact),
    /// Of a router.
    Router(RouterFact),
    /// Of an observed run.
    Observed(ObservedFact),
}

impl PatternFact {
    /// The dotted names of each pattern's facts, as in JSON.
    pub const NAMES: [&'static [&'static str]; 6] = [
        CollaborationFact::NAMES,
        OrchestratorFact::NAMES,
        AgentFact::NAMES,
        ResearchFact::NAMES,
        RouterFact::NAMES,
        ObservedFact::NAMES,
    ];

    /// Reads the fact of this name; `None` if no pattern has one.
    pub(crate) fn read(name: &str, line: &str) -> Option<serde_json::Result<Self>> {
        let agents = || AgentFact::read(name, line).map(|it| it.map(Self::Agents));
        let table = || CollaborationFact::read(name, line).map(|it| it.map(Self::Collaboration));
        let tasks = || OrchestratorFact::read(name, line).map(|it| it.map(Self::Orchestrator));
        let research = || ResearchFact::read(name, line).map(|it| it.map(Self::Research));
        let router = || RouterFact::read(name, line).map(|it| it.map(Self::Router));
        let observed = || ObservedFact::read(name, line).map(|it| it.map(Self::Observed));
        table().or_else(tasks).or_else(agents).or_else(research).or_else(router).or_else(observed)
    }

    /// The fact.
    pub fn get(&self) -> &dyn Fact {
        match self {
            Self::Collaboration(fact) => fact,
            Self::Orchestrator(fact) => fact,
            Self::Agents(fact) => fact,
            Self::Research(fact) => fact,
            Self::Router(fact) => fact,
            Self::Observed(fact) => fact,
        }
    }

    /// What another program reports, of an observed run.
    pub(crate) fn observed(&self) -> Option<&ObservedFact> {
        match self {
            Self::Observed(fact) => Some(fact),
            _ => None,
        }
    }

    /// What the spans of a run need of it, if anything.
    pub(crate) fn for_spans(&self) -> Option<ForSpans<'_>> {
        let failed = |word: &str, text: String, is_denied| {
            let word = word.split(':').next().unwrap_or_default().to_owned();
            Some(ForSpans::Failed { word, text, is_denied })
        };
        match self {
            Self::Collaboration(CollaborationFact::RoundClosed { decision, .. }) => {
                decision.map(|decision| ForSpans::Decision(decision.word()))
            }
            Self::Orchestrator(OrchestratorFact::PlanAccepted { tasks }) => {
                Some(ForSpans::Tasks(tasks))
            }
            Self::Orchestrator(OrchestratorFact::TaskFailed { reason, .. }) => {
                let text = reason.to_string();
                failed(&text.clone(), text, false)
            }
            Self::Agents(AgentFact::HandoffMade { to, message, .. }) => {
                Some(ForSpans::Handoff(to, message))
            }
            Self::Agents(AgentFact::AnswerPartial { text, .. }) => Some(ForSpans::Answer(text)),
            Self::Research(ResearchFact::SourcesFound(found)) => {
                Some(ForSpans::Sources(&found.sources))
            }
            Self::Research(ResearchFact::SourceClosed(outcome)) => match &**outcome {
                SourceOutcome::Denied { reason, location } => {
                    let at = location.as_ref().map(|url| format!(": {url}")).unwrap_or_default();
                    failed(reason.word(), format!("{}{at}", reason.phrase()), true)
                }
                SourceOutcome::Skipped { reason, text } => failed(reason, text.to_string(), false),
                SourceOutcome::Cancelled => failed("cancelled", "the run ended".to_owned(), false),
                SourceOutcome::Read { .. } => None,
            },
            _ => None,
        }
    }

    /// [`Fact::opens`] by a static match, because each fact of a log needs it.
    pub(crate) fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::Collaboration(fact) => fact.opens(),
            Self::Orchestrator(fact) => fact.opens(),
            Self::Agents(fact) => fact.opens(),
            Self::Research(fact) => fact.opens(),
            Self::Router(fact) => fact.opens(),
            Self::Observed(fact) => fact.opens(),
        }
    }

    /// [`Fact::closes`] by a static match.
    pub(crate) fn closes(&self) -> Option<SpanState> {
        match self {
            Self::Collaboration(fact) => fact.closes(),
            Self::Orchestrator(fact) => fact.closes(),
            Self::Agents(fact) => fact.closes(),
            Self::Research(fact) => fact.closes(),
            Self::Router(fact) => fact.closes(),
            Self::Observed(fact) => fact.closes(),
        }
    }
}

/// What the spans of a run need of a fact.
pub(crate) enum ForSpans<'f> {
    /// The tasks of a plan.
    Tasks(&'f Arc<[Task]>),
    /// The sources of a search.
    Sources(&'f Arc<[FoundSource]>),
    /// Who takes over, and with which message.
    Handoff(&'f AgentName, &'f Option<Arc<str>>),
    /// A text that is the answer unless another one is composed.
    Answer(&'f Arc<str>),
    /// The decision of a round that ends.
    Decision(&'static str),
    /// Why a task or a source failed.
    Failed {
        word: String,
        /// The same with what was said.
        text: String,
        /// Whether it was not allowed.
        is_denied: bool,
    },
}

/// A fact of one pattern: what the rest of the program asks it.
pub trait Fact {
    /// The dotted name, as in JSON.
    fn name(&self) -> &'static str;

    /// The parent and the kind of the span that it opens; `None` if it opens none.
    fn opens(&self) -> Option<(SpanId, SpanKind)> {
        None
    }

    /// The state in which it closes its span; `None` if it closes none.
    fn closes(&self) -> Option<SpanState> {
        None
    }

    /// The fields that the filter of events knows.
    fn about(&self) -> FactAbout<'_> {
        FactAbout::default()
    }

    /// The command that this fact says has taken effect; `None` if no command caused it.
    fn confirms(&self) -> Option<Command> {
        None
    }

    /// The result of the run that the fact states, in the words of the list of runs: a decision, a level, a
    /// route. `plan` is that of the run.
    fn result(&self, _plan: &PatternPlan) -> Option<String> {
        None
    }

    /// What one agent tells another with it.
    fn message(&self) -> Option<&str> {
        None
    }

    /// What was said with it.
    fn said(&self) -> Option<TextPart<'_>> {
        self.message().map(TextPart::Handoff)
    }

    /// The tasks whose failure stops the run, by index, if it is a plan of tasks.
    fn critical_tasks(&self) -> Option<Vec<u32>> {
        None
    }

    /// The error that another program reports with it.
    fn error(&self) -> Option<&str> {
        None
    }

    /// The call that ended with it, if the calls of the run are not those of the gateway.
    fn ended_call(&self) -> Option<EndedCall> {
        None
    }

    /// Whether it ends a part of the work because that was cancelled.
    fn is_cancellation(&self) -> bool {
        false
    }

    /// Whether it is the verdict on the reply to a call of this purpose.
    fn is_verdict_on(&self, _call: &Purpose) -> bool {
        false
    }

    /// Whether the inspector shows the reply first.
    fn shows_reply(&self) -> bool {
        false
    }

    /// Whether it is in the list of notable events.
    fn is_notable(&self) -> bool {
        true
    }
}

/// A call of another program, or tokens that it used.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedCall {
    /// What was called; `None`: the call is counted at another span, or only tokens are counted.
    pub asks: Option<Asks>,
    /// Why it has no result; `None`: it has one.
    pub failed: Option<StopReason>,
    /// The tokens, of a model that counts them.
    pub usage: Option<Usage>,
    /// What it cost, in US dollars.
    pub cost_usd: Option<f64>,
}

/// What a fact is about, taken from its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactAbout<'f> {
    /// The role of a seat.
    pub role: Option<&'f str>,
    pub agent: Option<&'f str>,
    pub attempt: Option<u32>,
    pub reason: Option<String>,
}

/// The setup of a pattern with its limits at the start, as the head of a log has it.
pub trait Plan {
    /// Time limit of the whole run in milliseconds, pauses not counted.
    fn max_ms(&self) -> u64;

    /// The place of the run in its session, if the pattern takes messages.
    fn session(&self) -> Option<&SessionHead> {
        None
    }

    /// The operator's message that the run answers, besides its goal.
    fn message(&self) -> Option<&str> {
        self.session().map(|session| &*session.text)
    }
}

/// Writes an enum of facts. Each variant follows its dotted name in JSON, so that the name is
/// written once.
///
/// `pub enum F in V` is an enum of the pattern whose variant of
/// [`PatternFact`](self::PatternFact) is `V`.
macro_rules! facts {
    (
        $(#[$meta:meta])*
        pub enum $name:ident in $pattern:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields_of:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?
            ),*
        }

        impl $name {
            /// The dotted names, as in JSON.
            pub const NAMES: &'static [&'static str] = &[$($kind),*];

            /// The dotted name, as in JSON.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $kind),*
                }
            }

            /// The fact of this pattern, if the event is one.
            pub fn of(kind: &$crate::log::event::EventKind) -> Option<&Self> {
                match kind {
                    $crate::log::event::EventKind::Pattern(
                        $crate::log::facts::PatternFact::$pattern(fact),
                    ) => Some(fact),
                    _ => None,
                }
            }
        }

        const _: () = {
            type Kinds = $name;

            /// The same variants, each read straight from a line whose kind is known.
            #[derive(::serde::Deserialize)]
            #[serde(remote = "Kinds")]
            #[allow(clippy::enum_variant_names, reason = "they are the names of the kinds")]
            enum Fields {
                $(
                    #[serde(rename = $kind)]
                    $variant $({ $($fields_of)* })? $(( $($parts)* ))?,
                )*
            }

            impl $name {
                /// Reads the fields of a kind from the line of its event; `None` if it has another name.
                pub(crate) fn read(kind: &str, line: &str) -> Option<::serde_json::Result<Self>> {
                    let is_known = Self::NAMES.contains(&kind);
                    is_known.then(|| Fields::deserialize($crate::log::event::named::Named { kind, line }))
                }
            }
        };

        impl From<$name> for $crate::log::event::EventKind {
            fn from(fact: $name) -> Self {
                Self::Pattern($crate::log::facts::PatternFact::$pattern(fact))
            }
        }
    };
}

pub(crate) use facts;

/// Setup of a resilience run: who calls which tools how often, and through what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResiliencePlan {
    /// Number of agents, which run concurrently.
    pub agents: u32,
    /// Turns of each agent.
    pub turns: u32,
    /// The tools that an agent calls in each turn, in order.
    pub steps: Vec<ToolName>,
    /// Call slots that all agents share.
    pub pool: u32,
    /// Whether calls go through the tools' policies.
    pub guarded: bool,
    /// Max attempts of one step if they do not: client x tool x agent.
    pub naive_attempts: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl Plan for ResiliencePlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }
}
