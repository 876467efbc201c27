//! Programs of others, watched while they run: the spans that they report over HTTP become the observations of a
//! run ([`Observation`](crate::pattern::observed::Observation)). Three protocols are received: that of LangSmith's
//! tracer ([`langsmith`]), OpenTelemetry's ([`otlp`]), and that of a file for Python that reports starts ([`tap`]). Nothing is sent anywhere, and nothing that is received is executed.

pub mod callers;
pub mod child;
mod hook;
pub mod hub;
mod langsmith;
mod lines;
mod messages;
mod otlp;
pub mod port;
pub mod proxy;
mod server;
mod tap;
mod terminal;
mod texts;

use std::sync::Arc;

use crate::log::facts::observed::{SpanAbout, SpanEnd};
use crate::pattern::observed::ReportedCall;

pub use self::server::{ReceiverAddress, TOKEN_HEADER, serve};

/// A message about a span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMessage {
    pub protocol: Protocol,
    /// The framework that it is about, as the tap names it; empty: not known.
    pub framework: &'static str,
    pub trace: Arc<str>,
    pub what: SpanMessage,
}

/// What a message reports of a span.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanMessage {
    Opened {
        /// Id of the span around it; empty: it is an outermost one.
        parent: Arc<str>,
        about: SpanAbout,
        call: Option<Box<ReportedCall>>,
    },
    Closed {
        parent: Arc<str>,
        end: SpanEnd,
        about: SpanAbout,
        call: Option<Box<ReportedCall>>,
        /// What happened in it.
        notes: Vec<Arc<str>>,
    },
    /// A log record.
    Text { span: Arc<str>, text: Arc<str> },
    /// The part of a model's reply that the program has received so far.
    Partial { span: Arc<str>, text: Arc<str> },
}

/// A test, or a cell of a notebook, begins or has ended. Traces that begin in between belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct PartMessage {
    pub name: Arc<str>,
    /// When, as Unix time in microseconds.
    pub at_us: u64,
    /// `None`: it begins; else it has ended, with an error if it failed.
    pub end: Option<Option<Arc<str>>>,
}

/// How a message came. The first one here that reports a framework counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    LangSmith,
    Tap,
    Otlp,
}

impl Protocol {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LangSmith => "LangSmith's tracer",
            Self::Tap => "the tap",
            Self::Otlp => "OTLP",
        }
    }
}

/// The frameworks that more than one protocol reports, by a part of the name of an instrumentation.
const FRAMEWORKS: [(&str, &str); 5] = [
    // With LANGSMITH_OTEL_ENABLED its tracer also sends the same spans by OpenTelemetry.
    ("langsmith", "langchain"),
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
