//! The facts of a collaboration: rounds, seats, contributions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::name::RoleName;
use crate::event::contribution::{Conflict, Contribution, Decision};
use crate::event::fact::{Fact, FactAbout};
use crate::event::fact_enum::facts;
use crate::event::id::SpanId;
use crate::event::kind::Purpose;
use crate::event::patterns::PatternPlan;
use crate::event::redact::TextRedactor;
use crate::event::span::{SpanKind, SpanState};
use crate::event::stop::StopReason;
use crate::event::weight::{json_weight, texts};

facts! {
    /// A fact of a collaboration.
    pub enum CollaborationFact in Collaboration read as CollaborationFactFields of "CollaborationFact" {
        /// Opens a round's span.
        "round.started" RoundStarted {
            /// The span it belongs to.
            parent: SpanId,
            /// Number of the round, from 1.
            round: u32,
            /// Every seat of the sequence, also those that are not asked.
            seats: Vec<SeatPlan>,
        },
        /// Closes a round's span: every seat has answered and the policy has decided.
        "round.closed" RoundClosed {
            /// Number of the round, from 1.
            round: u32,
            /// Result of `detect_conflicts`.
            conflicts: Vec<Conflict>,
            /// Result of `decide_round_outcome`; `None`: no decision.
            decision: Option<Decision>,
            /// What decided, where it was not the rule of the source document.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            decided_by: Option<DecidedBy>,
        },
        /// A contribution was accepted.
        "contribution.accepted" ContributionAccepted {
            /// Number of the round, from 1.
            round: u32,
            /// Index of the seat in the sequence, from 0.
            seat: u16,
            /// The contribution as it counts.
            contribution: Arc<Contribution>,
            /// Number of keys outside the contract, which were dropped.
            extra_keys: u32,
            /// Number of actions after the third, which were dropped.
            extra_actions: u32,
            /// Messages that the run has used, this one included.
            messages: u32,
        },
        /// A seat or its contribution was refused; the run stops.
        "contribution.refused" ContributionRefused {
            /// Number of the round, from 1.
            round: u32,
            /// Index of the seat in the sequence, from 0.
            seat: u16,
            /// The role of the seat.
            role: RoleName,
            /// The stop reason.
            reason: StopReason,
            /// The refused reply; `None` if the model was not called.
            raw: Option<Arc<Value>>,
        },
        /// A valid contribution that came after another seat had stopped the run: it does not count.
        "contribution.unused" ContributionUnused {
            /// Number of the round, from 1.
            round: u32,
            /// Index of the seat in the sequence, from 0.
            seat: u16,
            /// The contribution.
            contribution: Arc<Contribution>,
        },
    }
}

impl Fact for CollaborationFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn weight(&self) -> usize {
        match self {
            Self::RoundStarted { seats, .. } => seats.len() * 32,
            Self::RoundClosed { .. } => 0,
            Self::ContributionAccepted { contribution, .. }
            | Self::ContributionUnused { contribution, .. } => {
                contribution.summary.len() + texts(contribution.actions.iter().map(|it| &**it))
            }
            Self::ContributionRefused { raw, reason: why, .. } => {
                raw.as_deref().map_or(0, json_weight) + why.weight()
            }
        }
    }

    fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::RoundStarted { parent, round, .. } => Some((*parent, SpanKind::Round(*round))),
            _ => None,
        }
    }

    fn closes(&self) -> Option<SpanState> {
        matches!(self, Self::RoundClosed { .. }).then_some(SpanState::Done)
    }

    fn result(&self, _plan: &PatternPlan) -> Option<String> {
        match self {
            Self::RoundClosed { decision, .. } => decision.map(|it| it.word().to_owned()),
            _ => None,
        }
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::RoundStarted { parent: _, round: _, seats: _ }
            | Self::RoundClosed { round: _, conflicts: _, decision: _, decided_by: _ } => {}
            Self::ContributionUnused { round: _, seat: _, contribution }
            | Self::ContributionAccepted {
                round: _,
                seat: _,
                contribution,
                extra_keys: _,
                extra_actions: _,
                messages: _,
            } => {
                let Contribution { agent: _, stance: _, summary, confidence: _, actions, end: _ } =
                    Arc::make_mut(contribution);
                by.text(summary);
                actions.iter_mut().for_each(|action| by.text(action));
            }
            Self::ContributionRefused { round: _, seat: _, role: _, reason, raw } => {
                reason.redact(by);
                by.some_value(raw);
            }
        }
    }

    fn about(&self) -> FactAbout<'_> {
        match self {
            Self::ContributionAccepted { contribution, .. }
            | Self::ContributionUnused { contribution, .. } => {
                FactAbout { role: Some(contribution.agent.as_str()), ..FactAbout::default() }
            }
            Self::ContributionRefused { role, reason, .. } => FactAbout {
                role: Some(role.as_str()),
                reason: Some(reason.to_string()),
                ..FactAbout::default()
            },
            Self::RoundStarted { .. } | Self::RoundClosed { .. } => FactAbout::default(),
        }
    }

    fn is_verdict_on(&self, call: &Purpose) -> bool {
        match (self, call) {
            (
                Self::ContributionAccepted { round, seat, .. }
                | Self::ContributionRefused { round, seat, .. }
                | Self::ContributionUnused { round, seat, .. },
                Purpose::Contribution { round: of, seat: at, .. },
            ) => round == of && seat == at,
            _ => false,
        }
    }

    fn shows_reply(&self) -> bool {
        matches!(
            self,
            Self::ContributionAccepted { .. }
                | Self::ContributionRefused { .. }
                | Self::ContributionUnused { .. }
        )
    }
}

/// What decided a round, where it was not the rule of the source document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum DecidedBy {
    /// The row of the scenario with this number, from 1.
    Row(u32),
    /// The block of this role, which has a veto.
    Veto(RoleName),
}

/// A seat at the start of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SeatPlan {
    /// The role of the seat.
    pub role: RoleName,
    /// Whether it will be asked.
    pub status: SeatStatus,
}

/// Whether a seat is asked in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum SeatStatus {
    /// It is asked.
    Asked,
    /// Its flag is off, and the seat is skipped.
    Skipped,
    /// Its flag is off, and the run stops at its turn (`agent_denied`).
    Denied,
    /// The message budget is used up before its turn, and the run stops there (`max_messages`).
    OverBudget,
    /// The run will stop before its turn.
    NotReached,
}
