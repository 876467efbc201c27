//! The facts of a router: what the classifier says, which route the request takes; its setup in the
//! head of a log, and the faults of a classifier's reply.

use crate::base::worded;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agents::{AgentHead, AgentsPlan};
use super::{Fact, FactAbout, PatternPlan, Plan, facts};
use crate::base::name::{AgentName, FlagName};
use crate::log::event::Purpose;
use crate::log::event::stop::ReasonPart;

facts! {
    /// A fact of a router.
    pub enum RouterFact in Router {
        /// The classifier's reply was accepted; belongs to the span of its call.
        "route.proposed" RouteProposed(Arc<Classification>),
        /// The request takes this route; belongs to the run.
        "route.chosen" RouteChosen {
            /// The route, which has the name of its agent.
            route: AgentName,
            /// Why it is the fallback and not the route of the classifier; `None` if it is the
            /// latter.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            fallback: Option<FallbackCause>,
        },
        /// No route can be taken, and the run stops; belongs to the run.
        "route.missing" RouteMissing {
            /// Why the classifier's route is not taken.
            cause: FallbackCause,
        },
    }
}

impl Fact for RouterFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn result(&self, _plan: &PatternPlan) -> Option<String> {
        match self {
            Self::RouteChosen { route, .. } => Some(route.to_string()),
            _ => None,
        }
    }

    fn about(&self) -> FactAbout<'_> {
        match self {
            Self::RouteProposed(proposed) => {
                FactAbout { agent: Some(proposed.route.as_str()), ..FactAbout::default() }
            }
            Self::RouteChosen { route, fallback } => FactAbout {
                agent: Some(route.as_str()),
                reason: fallback.map(|cause| cause.word().to_owned()),
                ..FactAbout::default()
            },
            Self::RouteMissing { cause } => {
                FactAbout { reason: Some(cause.word().to_owned()), ..FactAbout::default() }
            }
        }
    }

    fn is_verdict_on(&self, call: &Purpose) -> bool {
        matches!(self, Self::RouteProposed(_)) && *call == Purpose::Classify
    }

    fn shows_reply(&self) -> bool {
        matches!(self, Self::RouteProposed(_))
    }
}

/// An accepted reply of the classifier. Its figures are the model's claim and nothing more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Classification {
    /// The route that it proposes.
    pub route: AgentName,
    /// How sure it claims to be, from 0 to 1.
    pub confidence: f64,
    /// Why, in its words.
    pub reason: Arc<str>,
    /// The other routes that it considered, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<RouteScore>,
}

impl Classification {
    /// The confidence that it claims in a route; `None` if it does not name the route.
    pub fn confidence_in(&self, route: &AgentName) -> Option<f64> {
        if self.route == *route {
            return Some(self.confidence);
        }
        let named = self.alternatives.iter().find(|score| *score.route == *route.as_str());
        named.map(|score| score.confidence)
    }
}

/// A route that the classifier considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RouteScore {
    /// Its name as the model gave it, made visible and limited in length.
    pub route: Box<str>,
    /// How sure the classifier claims to be, from 0 to 1.
    pub confidence: f64,
}

/// Why the classifier's route is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FallbackCause {
    /// Its flag is off, so it is not on the execution list.
    RouteOff,
    /// The confidence is below `min_confidence`.
    LowConfidence,
}

worded! { FallbackCause { RouteOff = "route_off", LowConfidence = "low_confidence" } }

/// Setup of a router: its routes, and the agents behind them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RouterPlan {
    /// The request that is classified.
    pub request: Arc<str>,
    /// The routes, in the scenario's order: the policy list.
    pub routes: Vec<RouteHead>,
    /// The route where the classifier's cannot be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentName>,
    /// The confidence, from 0 to 1, that the classifier's route needs.
    pub min_confidence: f64,
    /// Every agent: each route before its members; agents in no `members` list last.
    pub agents: Arc<[AgentHead]>,
    /// Time limit of the run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl RouterPlan {
    /// Its agents: the router calls them itself.
    pub(crate) fn agents_plan(&self) -> AgentsPlan {
        AgentsPlan { root: None, agents: Arc::clone(&self.agents) }
    }

    pub(crate) fn route(&self, name: &AgentName) -> Option<&RouteHead> {
        self.routes.iter().find(|route| route.agent == *name)
    }
}

/// A route: the agent that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RouteHead {
    /// Name of the agent, which is the route's.
    pub agent: AgentName,
    /// The flag that takes the route off the execution list while it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for RouterPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }
}

/// What is wrong with a classifier's reply, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// `not_object`
    NotObject,
    /// `missing_keys`
    MissingKeys,
    /// `route`: not the name of a route, or empty
    Route,
    /// `confidence_type`
    ConfidenceType,
    /// `reason`
    Reason,
    /// `alternatives`: not a list
    Alternatives,
    /// `alternative`: an entry is not an object with a route and a number
    Alternative,
    /// `confidence_range`: the confidence, or one of an alternative, is not from 0 to 1
    ConfidenceRange,
}

impl RouteFault {
    /// Every fault with its word and its phrase.
    const ROWS: [(Self, &'static str, &'static str); 8] = [
        (Self::NotObject, "not_object", "not an object"),
        (Self::MissingKeys, "missing_keys", "keys missing"),
        (Self::Route, "route", "bad route"),
        (Self::ConfidenceType, "confidence_type", "confidence is not a number"),
        (Self::Reason, "reason", "bad reason"),
        (Self::Alternatives, "alternatives", "bad alternatives"),
        (Self::Alternative, "alternative", "bad alternative"),
        (Self::ConfidenceRange, "confidence_range", "confidence not from 0 to 1"),
    ];

    fn row(self) -> (&'static str, &'static str) {
        let row = Self::ROWS.iter().find(|(fault, ..)| *fault == self);
        row.map_or(("", ""), |(_, word, phrase)| (word, phrase))
    }
}

impl fmt::Display for RouteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

impl ReasonPart for RouteFault {
    fn from_text(text: &str) -> Option<Self> {
        Self::ROWS.into_iter().find(|(_, word, _)| *word == text).map(|row| row.0)
    }

    fn phrase(&self) -> Cow<'_, str> {
        self.row().1.into()
    }
}
