//! Faults of a contribution, in the words of the collaboration source document.

use std::borrow::Cow;
use std::fmt;

use crate::base::name::RoleName;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::event::reason_part::ReasonPart;
use crate::event::redact::TextRedactor;

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

    fn weight(&self) -> usize {
        match self {
            Self::AgentNotAllowed(name) => name.len(),
            Self::AgentMismatch(role) => role.as_str().len(),
            _ => 0,
        }
    }

    fn redact(&mut self, by: &TextRedactor) {
        match self {
            Self::AgentNotAllowed(name) => by.name(name),
            Self::AgentMismatch(role) => by.name(role),
            _ => {}
        }
    }
}
