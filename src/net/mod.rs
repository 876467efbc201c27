//! The one HTTP client and what belongs to the wire: caps, errors by their cause, server-sent
//! events, redaction.
//!
//! Nothing here knows what a model, a run or an event is, nothing retries, and nothing bounds time:
//! who calls does. Dropping a future of this room cancels its request.

pub mod body;
pub mod error;
pub mod http;
pub mod reach;
pub mod redact;
pub mod retry_after;
pub mod secret;
mod spelling;
pub mod sse;

pub use error::NetError;
pub use http::{Answer, Http, Target, Via};
pub use reach::Reach;
pub use redact::Redactor;
pub use secret::Secret;
