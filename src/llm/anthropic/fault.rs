//! Errors inside an answer that reports success: the API names their type, which stands for the
//! status that they would have had.

use std::sync::Arc;

use serde_json::Value;

use crate::llm::Failure;
use crate::llm::client::Client;

/// The failure that an error object means.
pub(super) fn reported(
    client: &Client,
    error: &Value,
    place: &str,
    partial: Option<Arc<str>>,
) -> Box<Failure> {
    match error.get("type").and_then(Value::as_str).and_then(status_of) {
        Some(status) => client.reported(status, error, place, partial),
        None => client.complained(error, place, partial),
    }
}

/// The status of an error's type.
fn status_of(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}
