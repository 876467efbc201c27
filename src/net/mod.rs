//! The HTTP client and its helpers: size limits, errors by cause, server-sent events, redaction.
//!
//! This module knows nothing of models, runs or events. It has no retries and no timeouts: those
//! are up to the caller. Dropping a future cancels its request.

pub mod body;
mod decoding;
mod encodings;
pub mod error;
pub mod http;
pub mod proxy;
pub mod reach;
pub mod redact;
pub mod retry_after;
pub mod secret;
pub mod sse;

pub use error::NetError;
pub use http::{Http, HttpResponse, RequestTarget};
pub use proxy::ProxyMode;
pub use reach::Reach;
pub use redact::Redactor;
pub use secret::Secret;
