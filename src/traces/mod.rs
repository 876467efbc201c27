//! Traces of OpenTelemetry: the messages of OTLP ([`messages`]) and the names that the conventions have for what is
//! known of a span ([`conventions`]), both for what is received and for what is sent; the spans of a run
//! ([`spans`]); and what sends them ([`sender`]). Nothing is sent unless the operator asks for it.

mod attributes;
pub mod conventions;
pub mod messages;
pub mod sender;
pub mod spans;
