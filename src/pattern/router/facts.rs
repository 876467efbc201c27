//! The facts of a router: what the classifier says, and which route the request takes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::name::AgentName;
use crate::event::fact::{Fact, FactAbout};
use crate::event::fact_enum::facts;
use crate::event::kind::Purpose;
use crate::event::patterns::PatternPlan;
use crate::event::redact::TextRedactor;

facts! {
    /// A fact of a router.
    pub enum RouterFact in Router read as RouterFactFields of "RouterFact" {
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

    fn weight(&self) -> usize {
        match self {
            Self::RouteProposed(proposed) => {
                let scores = proposed.alternatives.iter();
                let scores = scores.map(|score| size_of_val(score) + score.route.len());
                size_of::<Classification>() + proposed.reason.len() + scores.sum::<usize>()
            }
            Self::RouteChosen { .. } | Self::RouteMissing { .. } => 0,
        }
    }

    fn result(&self, _plan: &PatternPlan) -> Option<String> {
        match self {
            Self::RouteChosen { route, .. } => Some(route.to_string()),
            _ => None,
        }
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::RouteProposed(proposed) => {
                let Classification { route: _, confidence: _, reason, alternatives } =
                    Arc::make_mut(proposed);
                by.text(reason);
                for RouteScore { route, confidence: _ } in alternatives {
                    by.name(route);
                }
            }
            Self::RouteChosen { route: _, fallback: _ } | Self::RouteMissing { cause: _ } => {}
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RouteScore {
    /// Its name as the model gave it, made visible and limited in length.
    pub route: Box<str>,
    /// How sure the classifier claims to be, from 0 to 1.
    pub confidence: f64,
}

/// Why the classifier's route is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum FallbackCause {
    /// Its flag is off, so it is not on the execution list.
    RouteOff,
    /// The confidence is below `min_confidence`.
    LowConfidence,
}

impl FallbackCause {
    /// The word for it in events.
    pub fn word(self) -> &'static str {
        match self {
            Self::RouteOff => "route_off",
            Self::LowConfidence => "low_confidence",
        }
    }
}
