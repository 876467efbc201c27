//! Chat models over HTTP, and the scripted one.

mod adaptation;
mod answers;
mod anthropic_answers;
mod anthropic_streams;
mod anthropic_thinking;
mod flaky_endpoint;
mod http_answers;
mod http_calls;
mod http_connections;
mod http_streams;
mod http_ways;
mod live_model;
mod odd_replies;
mod refusing_endpoint;
mod reply_ends;
mod scripted_calls;
mod stream_errors;
mod streams;
