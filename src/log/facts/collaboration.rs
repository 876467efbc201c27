//! The facts of a collaboration (rounds, seats, contributions, conflicts, decisions), its setup in
//! the head of a log, and the faults of a contribution in the words of its source document. People
//! read words in place of identifiers; JSON keeps the identifiers.

use crate::base::worded;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fact, FactAbout, PatternPlan, Plan, facts};
use crate::base::name::{FlagName, InputName, RoleName};
use crate::base::time::millis;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::id::SpanId;
use crate::log::event::stop::{ReasonPart, StopReason};
use crate::log::event::{Purpose, SpanKind, SpanState};
use crate::scenario::patterns::collaboration::{CollaborationBudget, Decision, Share};
use crate::scenario::spec::script::ReplyEnd;

facts! {
    /// A fact of a collaboration.
    pub enum CollaborationFact in Collaboration {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The row of the scenario with this number, from 1.
    Row(u32),
    /// The block of this role, which has a veto.
    Veto(RoleName),
}

/// A seat at the start of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeatPlan {
    /// The role of the seat.
    pub role: RoleName,
    /// Whether it will be asked.
    pub status: SeatStatus,
}

/// Whether a seat is asked in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
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

/// The vote of a role.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// Start.
    Go,
    /// Start with care.
    Caution,
    /// Do not start.
    Block,
}

worded! { Stance + ALL + Display { Go = "go", Caution = "caution", Block = "block" } }

/// An accepted contribution: trimmed, rounded, with at most three actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Contribution {
    /// The role that gave it.
    pub agent: RoleName,
    /// The vote.
    pub stance: Stance,
    /// The reason for the vote, in the role's own words.
    pub summary: Arc<str>,
    /// From 0 to 1, rounded to three decimals, ties by the exact binary value.
    pub confidence: f64,
    /// Actions that the role requests, one to three.
    pub actions: Vec<Arc<str>>,
    /// How the reply ended that it is from; absent: it is whole. The writer of the brief reads it too.
    #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
    pub end: ReplyEnd,
}

/// A disagreement within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// No seat gave a contribution.
    NoContributions,
    /// Some say go, some caution, none block.
    GoVsCaution,
    /// Some say block, some do not.
    BlockingVsNonBlock,
    /// All three stances occur.
    HighDivergence,
}

worded! { Conflict + phrase + Display {
    NoContributions = "no_contributions" | "no contributions",
    GoVsCaution = "go_vs_caution" | "go and caution",
    // Without the others' stance: they may all say caution.
    BlockingVsNonBlock = "blocking_vs_non_block" | "some block",
    HighDivergence = "high_divergence" | "all three stances",
} }

/// Setup of a collaboration: the seats, and the limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CollaborationPlan {
    /// The role of each seat, in the order of their turns.
    pub sequence: Vec<RoleName>,
    /// The roles that depend on a flag.
    pub role_flags: BTreeMap<RoleName, RoleFlagHead>,
    /// Whether all seats of a round are asked at once (`parallel`) or in order (`sequential`).
    pub parallel: bool,
    /// The limits.
    #[serde(flatten)]
    pub budget: CollaborationBudget,
    /// Inputs that `team_summary` repeats.
    pub summary_inputs: Vec<InputName>,
    /// What a seat reads of what the others said; in logs of earlier versions their stances.
    #[serde(default, skip_serializing_if = "Share::is_stances")]
    pub share: Share,
    /// Whether the rules of a live run hold: a contribution without `agent` counts as that of the
    /// seat that was asked, the other seats finish their replies when one stops the run, and a run
    /// without a decision gets its brief.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live_rules: bool,
    /// The rows that decide a round; none: those of the source document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decide: Vec<DecideRowHead>,
    /// The weights of the roles that have another one than 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<RoleName, f64>,
    /// The roles whose block is `no_go`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub vetoes: BTreeSet<RoleName>,
}

/// A row that may decide a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecideRowHead {
    /// Its condition.
    pub when: String,
    /// The decision if the condition holds.
    pub decision: Decision,
}

/// The flag that a role depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoleFlagHead {
    /// Name of the flag.
    pub flag: FlagName,
    /// Whether the run stops at the role's turn if the flag is off; else the seat is skipped.
    pub deny: bool,
}

impl CollaborationPlan {
    /// The row that decided; `None`: no row did.
    pub(crate) fn row_of(&self, by: &DecidedBy) -> Option<&DecideRowHead> {
        let DecidedBy::Row(number) = by else { return None };
        self.decide.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }
}

impl Plan for CollaborationPlan {
    fn max_ms(&self) -> u64 {
        millis(self.budget.max_seconds)
    }
}

/// What is wrong with a contribution (`validate_contribution` and `accept` in the collaboration
/// source document).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContributionFault {
    /// `not_object`
    NotObject,
    /// `missing_keys`
    MissingKeys,
    /// `agent`
    Agent,
    /// `agent_not_allowed:<name>`, the name made visible and limited in length
    AgentNotAllowed(Box<str>),
    /// `stance`
    Stance,
    /// `summary`
    Summary,
    /// `confidence_type`
    ConfidenceType,
    /// `confidence_range`
    ConfidenceRange,
    /// `actions`
    Actions,
    /// `action_item`
    ActionItem,
    /// `agent_mismatch:<expected role>`
    AgentMismatch(RoleName),
}

impl ContributionFault {
    /// `agent_not_allowed`, for a name that a model gave.
    pub fn agent_not_allowed(name: &str) -> Self {
        Self::AgentNotAllowed(visible_within(name, REASON_CHARS).into())
    }

    /// The faults without a name, each with its word and its phrase.
    const PLAIN: [(Self, &'static str, &'static str); 9] = [
        (Self::NotObject, "not_object", "not an object"),
        (Self::MissingKeys, "missing_keys", "keys missing"),
        (Self::Agent, "agent", "bad agent"),
        (Self::Stance, "stance", "bad stance"),
        (Self::Summary, "summary", "bad summary"),
        (Self::ConfidenceType, "confidence_type", "confidence is not a number"),
        (Self::ConfidenceRange, "confidence_range", "confidence out of range"),
        (Self::Actions, "actions", "bad actions"),
        (Self::ActionItem, "action_item", "bad action"),
    ];

    fn plain(&self) -> (&'static str, &'static str) {
        let row = Self::PLAIN.iter().find(|(fault, ..)| fault == self);
        row.map_or(("", ""), |(_, word, phrase)| (word, phrase))
    }
}

impl fmt::Display for ContributionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentNotAllowed(name) => write!(f, "agent_not_allowed:{name}"),
            Self::AgentMismatch(role) => write!(f, "agent_mismatch:{role}"),
            plain => f.write_str(plain.plain().0),
        }
    }
}

impl ReasonPart for ContributionFault {
    fn from_text(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("agent_not_allowed", name)) => Some(Self::AgentNotAllowed(name.into())),
            Some(("agent_mismatch", role)) => Some(Self::AgentMismatch(role.into())),
            Some(_) => None,
            None => Self::PLAIN.into_iter().find(|(_, word, _)| *word == text).map(|row| row.0),
        }
    }

    fn phrase(&self) -> Cow<'_, str> {
        match self {
            Self::AgentNotAllowed(name) => format!("unknown agent {name}").into(),
            Self::AgentMismatch(role) => format!("expected agent {role}").into(),
            plain => plain.plain().1.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::StopReason;
    use crate::log::event::failure::FailureClass;

    #[test]
    fn no_phrase_is_an_identifier() {
        let phrases = Decision::ALL.map(Decision::phrase).into_iter();
        for phrase in phrases.chain(FailureClass::ALL.map(FailureClass::phrase)) {
            assert!(!phrase.contains('_'), "{phrase}");
        }
    }

    #[test]
    fn phrase_keeps_spelling_of_names() {
        for (id, phrase) in [
            ("max_rounds_reached", "round limit"),
            ("agent_denied:legal_analyst", "legal_analyst denied"),
            ("llm_error:http_503", "model: HTTP 503"),
            ("tool_error:vendor_api:rate_limited", "vendor_api: rate limited"),
            ("tool_error:vendor_api:resolve", "vendor_api: name not found"),
            ("tool_error:vendor_api:connect", "vendor_api: no connection"),
            ("tool_error:vendor_api:timeout", "vendor_api: timed out"),
            (
                "invalid_contribution:agent_mismatch:risk_analyst",
                "invalid contribution: expected agent risk_analyst",
            ),
            ("from_a_later_version", "from_a_later_version"),
        ] {
            assert_eq!(StopReason::from(id).phrase(), phrase);
        }
    }
}
