//! Handles errors inside an answer that reports success: they fail like the HTTP status that they
//! correspond to.

use std::sync::Arc;

use serde_json::Value;

use super::Client;
use super::failures::OTHER_MODEL_ADVICE;
use super::refusal::{RefusalCause, Requested, error_text, status_meaning};
use crate::event::kind::FailureClass;
use crate::llm::Failure;
use crate::llm::adaptation::OptionalParts;

impl Client {
    /// The failure for an error inside an answer that reports success. `sent`: the optional
    /// parts of the request; none if part of the reply had arrived, because then the request
    /// was valid.
    pub(in crate::llm) fn reported_failure(
        &self,
        error: &Value,
        place: &str,
        sent: &OptionalParts,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let error = innermost(error);
        let said = error_text(error).unwrap_or_else(|| error.to_string());
        let (host, said_here) = (self.endpoint.host(), self.quotable(&said));
        let Some(status) = status_of(error) else {
            let what = format!("{host} sent an error {place}: {said_here}");
            let mut failed = if partial.is_none() && self.is_wrong_path(&said) {
                self.wrong_address(&what)
            } else {
                self.advised_failure(FailureClass::BadResponse, &what, OTHER_MODEL_ADVICE)
            };
            failed.partial = partial;
            return failed;
        };
        let quota = words(error).any(|word| word == "insufficient_quota");
        let (class, meaning) = status_meaning(status, quota);
        let what = format!("{host} {meaning} (error {status} {place}): {said_here}");
        let adapted = match status {
            400 | 422 => self.adapt(sent, Some(error), &said),
            _ => OptionalParts::default(),
        };
        let advice = match adapted.is_empty() {
            true => {
                let cause = RefusalCause::of(&error.to_string());
                self.advice(status, quota, None, Requested::Reply(sent), cause)
            }
            false => adapted.remedies(),
        };
        let mut failed = self.advised_failure(class, &what, &advice);
        failed.status = Some(status);
        // A used-up quota does not return within a second.
        failed.should_retry = quota.then_some(false);
        failed.adapted = (!adapted.is_empty()).then(|| adapted.names());
        failed.partial = partial;
        failed
    }
}

impl Client {
    /// Whether an error without a status probably means that nothing is at the path of the request: LM Studio
    /// answers 200 then.
    fn is_wrong_path(&self, said: &str) -> bool {
        let said = said.to_ascii_lowercase();
        let names_path = ["endpoint", "route", "not found", "no such path", "unknown path"];
        let path = self.endpoint.base_url().value.path().trim_end_matches('/');
        path.is_empty() || names_path.iter().any(|words| said.contains(words))
    }
}

/// The error object itself, which some servers wrap in a list or in another `error`.
fn innermost(error: &Value) -> &Value {
    let error = error.get(0).unwrap_or(error);
    error.get("error").filter(|inner| inner.is_object()).unwrap_or(error)
}

/// The HTTP status of an error: a number in its fields, else derived from its code or type.
fn status_of(error: &Value) -> Option<u16> {
    let numbers = ["code", "status", "status_code"].into_iter().filter_map(|name| {
        let value = error.get(name)?;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    });
    numbers.into_iter().next().or_else(|| words(error).find_map(status_of_name))
}

/// The names in an error's `code` and `type`.
fn words(error: &Value) -> impl Iterator<Item = &str> {
    ["code", "type"].into_iter().filter_map(|name| error.get(name)?.as_str())
}

/// The status for an error name, as OpenAI, Anthropic, llama.cpp and compatible servers use it.
fn status_of_name(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "api_error" | "server_error" | "internal_server_error" => 500,
        "unavailable_error" | "service_unavailable" => 503,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_that_an_error_stands_for() {
        for (error, status) in [
            (json!({ "code": 500, "type": "server_error", "message": "m" }), Some(500)),
            (json!({ "code": 429 }), Some(429)),
            (json!({ "code": "429" }), Some(429)),
            (json!({ "code": " 503 " }), Some(503)),
            (json!({ "status": 401 }), Some(401)),
            (json!({ "status": "UNAVAILABLE", "code": 503 }), Some(503)),
            (json!({ "type": "invalid_request_error", "status_code": 422 }), Some(422)),
            // A number that is not an error status is ignored, and the name counts.
            (json!({ "code": "3505", "type": "rate_limit_error" }), Some(429)),
            (json!({ "code": 200, "status": 529 }), Some(529)),
            (json!({ "code": 600 }), None),
            (json!({ "code": 399 }), None),
            (json!({ "code": -500 }), None),
            (json!({ "code": 500.5 }), None),
            // The code is more specific than the type.
            (json!({ "code": "rate_limit_exceeded", "type": "tokens" }), Some(429)),
            (json!({ "code": "invalid_api_key", "type": "invalid_request_error" }), Some(401)),
            (json!({ "code": null, "type": "server_error" }), Some(500)),
            (json!({ "type": "overloaded_error" }), Some(529)),
            (json!({ "type": "generation", "message": "m" }), None),
            (json!({ "message": "code 500" }), None),
            (json!("code 500"), None),
        ] {
            assert_eq!(status_of(&error), status, "{error}");
        }
    }

    #[test]
    fn the_error_within_its_wrapping() {
        let error = json!({ "code": 503, "message": "m" });
        for wrapped in
            [error.clone(), json!([error]), json!({ "error": error }), json!([{ "error": error }])]
        {
            assert_eq!(innermost(&wrapped), &error, "{wrapped}");
        }
        assert_eq!(innermost(&json!({ "error": "m" })), &json!({ "error": "m" }));
    }
}
