//! Programs of others, watched while they run: what they say of their spans over HTTP becomes the observations
//! of a run ([`Observation`](crate::pattern::observed::Observation)). Three doors lead in:
//! LangSmith's tracer ([`langsmith`]), OpenTelemetry ([`otlp`]), and a file for Python that says when something
//! starts ([`tap`]). Nothing is sent anywhere, and nothing that is received is executed.

pub mod child;
pub mod hub;
mod langsmith;
mod otlp;
mod server;
mod tap;
mod texts;

use std::sync::Arc;

use crate::log::facts::observed::{SpanAbout, SpanEnd};

pub use self::server::{ReceiverAddress, serve};

/// What a door says of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub door: Door,
    /// The framework that it is about, by the word of the tap; empty: not known.
    pub framework: &'static str,
    /// The id of the trace.
    pub trace: Arc<str>,
    pub what: SpanSaid,
}

/// What is said of a span.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanSaid {
    Opened {
        /// Id of the span around it; empty: it is an outermost one.
        parent: Arc<str>,
        about: SpanAbout,
    },
    Closed {
        parent: Arc<str>,
        end: SpanEnd,
        about: SpanAbout,
    },
    /// A log record.
    Text {
        span: Arc<str>,
        text: Arc<str>,
    },
    Note {
        span: Arc<str>,
        text: Arc<str>,
    },
}

/// How something was said. The first one that speaks for a framework counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    LangSmith,
    Tap,
    Otlp,
}

impl Door {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LangSmith => "LangSmith's tracer",
            Self::Tap => "the tap",
            Self::Otlp => "OTLP",
        }
    }
}

/// The frameworks that more than one door speaks for, by a part of the name of an instrumentation.
const FRAMEWORKS: [(&str, &str); 4] = [
    ("langchain", "langchain"),
    ("langgraph", "langchain"),
    ("openai_agents", "openai-agents"),
    ("crewai", "crewai"),
];

/// The framework of an instrumentation with this name; empty: not known.
fn framework_of(scope: &str) -> &'static str {
    let scope = scope.to_ascii_lowercase().replace('-', "_");
    let known = FRAMEWORKS.iter().find(|(part, _)| scope.contains(part));
    known.map_or("", |(_, name)| name)
}
