//! Properties of an event's kind: its name, and the span it opens or closes.

use super::id::SpanId;
use super::kind::EventKind;
use super::patterns::PatternFact;
use super::span::{SpanKind, SpanState};

impl From<PatternFact> for EventKind {
    fn from(fact: PatternFact) -> Self {
        Self::Pattern(fact)
    }
}

impl EventKind {
    /// The dotted name, as in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::Pattern(fact) => fact.get().name(),
            Self::Unknown { kind, .. } => kind,
            shared => shared.shared_name().unwrap_or_default(),
        }
    }

    /// The fact of a pattern, if the event is one.
    pub fn pattern(&self) -> Option<&PatternFact> {
        match self {
            Self::Pattern(fact) => Some(fact),
            _ => None,
        }
    }

    /// The parent and the kind of the span that this event opens; `None` if it opens none.
    pub fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::RunStarted(_) => Some((SpanId::RUN, SpanKind::Run)),
            Self::CallStarted(call) => Some((call.parent, SpanKind::Call(call.purpose.clone()))),
            Self::AttemptStarted { parent, attempt, .. } => {
                Some((*parent, SpanKind::Attempt(*attempt)))
            }
            Self::Pattern(fact) => fact.opens(),
            _ => None,
        }
    }

    /// The state in which this event closes its span; `None` if it closes none.
    pub fn closes(&self) -> Option<SpanState> {
        match self {
            Self::CallAnswered { .. } | Self::AttemptAnswered(_) => Some(SpanState::Done),
            Self::CallFailed { .. } | Self::CallDegraded { .. } => Some(SpanState::Failed(None)),
            Self::AttemptFailed(failed) => Some(SpanState::Failed(Some(failed.class))),
            Self::RunClosed(closed) if closed.reason.is_success() => Some(SpanState::Done),
            Self::RunClosed(_) => Some(SpanState::Failed(None)),
            Self::Pattern(fact) => fact.closes(),
            _ => None,
        }
    }
}
