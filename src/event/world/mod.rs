//! The only fold of a log: every screen, result and export shows its state. [`World::apply`] is
//! total: any event in any order, as a file may have them, changes something or nothing, and never
//! fails.
//!
//! [`RunFold`] has what all patterns share; each pattern has a projection in its own folder, and
//! [`PatternWorld`] lists them.

pub mod activity;
pub mod alerts;
mod back_off;
pub mod chunked;
mod course;
mod failures;
mod fold;
mod idle;
mod last_errors;
pub mod latency;
pub mod load;
mod marks;
pub mod models;
mod operator_settings;
pub(crate) mod outcome;
mod over_time;
mod patterns;
pub mod pauses;
mod progress;
mod projection;
pub mod refusals;
pub mod spans;
mod spending;
mod stop_cause;
mod tally;
pub mod tool_row;
pub mod tool_timeline;
pub mod tools;

pub use failures::CutReply;
pub use fold::RunFold;
pub use marks::MarkKind;
pub use operator_settings::FlagNow;
pub use outcome::{Outcome, OutcomeFields, OutcomeUsage, SessionOutcome};
pub use patterns::{PatternWorld, World};
pub use progress::{RunProgress, RunState};
pub use projection::{EventLog, Projection};
pub use spans::{Span, SpanKind, SpanState};
pub use spending::SpendingUsed;
pub use tally::Tally;
