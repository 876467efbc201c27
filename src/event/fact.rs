//! What is asked of a fact of one pattern, and the macro that writes an enum of facts.

use super::command::Command;
use super::id::SpanId;
use super::purpose::Purpose;
use super::span::{SpanKind, SpanState};

/// A fact of one pattern: what the rest of the program asks it.
pub trait Fact {
    /// The dotted name, as in JSON.
    fn name(&self) -> &'static str;

    /// Approximate bytes that it refers to, besides its own size.
    fn weight(&self) -> usize {
        0
    }

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

/// Writes an enum of facts. Each variant follows its dotted name in JSON, so that the name is
/// written once.
///
/// `pub enum F in V` is an enum of the pattern whose variant of
/// [`PatternFact`](super::patterns::PatternFact) is `V`. `also` has variants that serde skips.
macro_rules! facts {
    (
        $(#[$meta:meta])*
        pub enum $name:ident in $pattern:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields)* })? $(( $($parts)* ))?
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
            pub fn of(kind: &$crate::event::EventKind) -> Option<&Self> {
                match kind {
                    $crate::event::EventKind::Pattern(
                        $crate::event::patterns::PatternFact::$pattern(fact),
                    ) => Some(fact),
                    _ => None,
                }
            }
        }

        impl From<$name> for $crate::event::EventKind {
            fn from(fact: $name) -> Self {
                Self::Pattern($crate::event::patterns::PatternFact::$pattern(fact))
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
        also { $($also:tt)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields)* })? $(( $($parts)* ))?,
            )*
            $($also)*
        }

        impl $name {
            /// The dotted names of the kinds that all patterns share, as in JSON.
            pub const NAMES: &'static [&'static str] = &[$($kind),*];

            /// The dotted name of a kind that all patterns share.
            pub(super) fn shared_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant { .. } => Some($kind),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use facts;
