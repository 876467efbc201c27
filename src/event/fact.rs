//! What is asked of a fact of one pattern.

use super::command::Command;
use super::id::SpanId;
use super::patterns::PatternPlan;
use super::purpose::Purpose;
use super::redact::TextRedactor;
use super::span::{SpanKind, SpanState};

/// A fact of one pattern: what the rest of the program asks it.
pub trait Fact {
    /// The dotted name, as in JSON.
    fn name(&self) -> &'static str;

    /// Approximate bytes that it refers to, besides its own size.
    fn weight(&self) -> usize {
        0
    }

    /// Replaces its texts.
    fn redact(&mut self, by: &mut TextRedactor);

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

    /// Whether it ends a part of the work because that was cancelled.
    fn is_cancellation(&self) -> bool {
        false
    }

    /// Whether it says what became of the reply to a call of this purpose.
    fn is_verdict_on(&self, _call: &Purpose) -> bool {
        false
    }

    /// Whether the inspector shows the reply first.
    fn shows_reply(&self) -> bool {
        false
    }
}

/// What a fact is about, as far as its fields say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactAbout<'f> {
    /// The role of a seat.
    pub role: Option<&'f str>,
    /// The agent.
    pub agent: Option<&'f str>,
    /// Number of attempts.
    pub attempt: Option<u32>,
    /// Word for the reason.
    pub reason: Option<String>,
}
