//! What happens in a run: ids, events ([`EventKind`]), stop reasons, commands as data, and
//! [`World`], the only fold of a log.
//!
//! This layer has no engine, no clock and no input or output. Events are written by
//! [`Event::to_line`] and read by [`Event::from_line`].

pub mod call;
pub(crate) mod call_window;
pub mod command;
mod complete_json;
pub mod contribution;
mod cost;
pub(crate) mod fact;
pub(crate) mod fact_enum;
pub(crate) mod failure;
pub(crate) mod failure_class;
pub mod head;
pub mod id;
pub(crate) mod initiator;
pub mod kind;
mod kind_enum;
mod kind_properties;
pub(crate) mod launch;
mod llm_error;
mod model_price;
mod notable;
pub mod patterns;
pub(crate) mod phrase;
pub mod plan;
pub(crate) mod plan_fault;
pub(crate) mod purpose;
pub(crate) mod reason_part;
pub mod redact;
pub mod result_text;
pub(crate) mod run_row;
pub mod safe_json;
pub(crate) mod said_part;
#[cfg(feature = "tui")]
pub mod schema;
pub(crate) mod span;
pub mod stop;
mod stop_table;
pub mod tool;
mod v1;
pub(crate) mod weight;
mod wire;
mod wire_fast;
pub mod world;

pub use command::Command;
pub use id::{Boundary, BoundaryId, Elapsed, RunId, Seq, SpanId};
pub use kind::EventKind;
pub use stop::{StopClass, StopReason};
pub(crate) use weight::json_weight;
pub use wire::LineError;
pub use world::World;

/// One event of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Sequence number in the log.
    pub seq: Seq,
    /// Time since the start of the run.
    pub at: Elapsed,
    /// The span it belongs to. An event that opens a span has the id of that span.
    pub span: SpanId,
    /// What happened.
    pub kind: EventKind,
}
