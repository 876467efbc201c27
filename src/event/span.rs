//! The kinds and states of spans.

use super::failure_class::FailureClass;
use super::purpose::Purpose;
use crate::event::id::SourceNo;

/// The kind of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The run.
    Run,
    /// A round; its number, from 1.
    Round(u32),
    /// A task of a plan.
    Task {
        /// Index of the task, from 0.
        index: u32,
    },
    /// A source of research.
    Source(SourceNo),
    /// A call.
    Call(Purpose),
    /// An attempt of a call; its number, from 1.
    Attempt(u32),
}

/// State of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanState {
    /// Not closed yet.
    Open,
    /// Closed with success.
    Done,
    /// Closed with a failure.
    Failed(Option<FailureClass>),
}
