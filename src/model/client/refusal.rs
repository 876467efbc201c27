//! Describes responses with an error status: what the server says, and what to do about it. An
//! error inside an answer that reports success fails like the HTTP status that it corresponds to.

use std::sync::Arc;

use serde_json::Value;

use super::Client;
use super::failures::{OTHER_MODEL_ADVICE, QUOTED_CHARS};
use crate::base::time::millis;
use crate::base::visible::visible_within;
use crate::log::event::{FailureClass, format_millis};
use crate::model::Failure;
use crate::model::adaptation::OptionalParts;
use crate::net::{HttpResponse, read_prefix};

/// The most bytes that are read of the body of a refusal.
const REFUSAL_BYTES: usize = 16 << 10;

/// The request that an endpoint refused; the advice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested<'a> {
    /// A reply, with these optional parts.
    Reply(&'a OptionalParts),
    /// The list of its models.
    Models,
}

/// The body of a refusal.
pub(crate) struct RefusalBody {
    /// The original text.
    raw: String,
    /// The parsed body, if it is JSON.
    json: Option<Value>,
    /// The error text, without the key and shortened; empty if there is none.
    pub(crate) text: String,
}

impl Client {
    /// The failure of a response with an error status.
    pub(crate) async fn refusal(
        &self,
        answer: HttpResponse,
        requested: Requested<'_>,
    ) -> Box<Failure> {
        let status = answer.status();
        let (wait, should_retry) = (answer.retry_after(), answer.should_retry());
        let to = answer.header("location").map(|to| self.quotable(to));
        let RefusalBody { raw, json, text: said } = self.read_refusal(answer).await;
        let quota = json
            .as_ref()
            .and_then(|json| json.pointer("/error/code"))
            .is_some_and(|code| code == "insufficient_quota");
        let cause = RefusalCause::of(&raw);
        let (class, meaning) = status_meaning(status, quota);
        let host = self.endpoint.host();
        let mut what = format!("{host} {meaning} (HTTP {status})");
        if let (Some(to), 300..=399) = (to, status) {
            what = format!("{what}: {to}");
        } else if !said.is_empty() {
            what = format!("{what}: {said}");
        }
        let adapted = match (requested, status) {
            (Requested::Reply(sent), 400 | 422) => self.adapt(sent, json.as_ref(), &raw),
            _ => OptionalParts::default(),
        };
        let wait = wait.map(millis);
        let advice = if adapted.is_empty() {
            self.advice(status, quota, wait, requested, cause)
        } else {
            adapted.remedies()
        };
        let mut failed = self.advised_failure(class, &what, &advice);
        failed.status = Some(status);
        failed.retry_after_ms = wait;
        // A used-up quota does not return within a second.
        failed.should_retry = should_retry.or(quota.then_some(false));
        failed.adapted = (!adapted.is_empty()).then(|| adapted.names());
        failed
    }

    pub(super) async fn read_refusal(&self, answer: HttpResponse) -> RefusalBody {
        let (body, _) = read_prefix(answer, REFUSAL_BYTES).await;
        let raw = String::from_utf8_lossy(&body).into_owned();
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let text = match &json {
            Some(json) => error_text(json).map(|text| self.quotable(&text)).unwrap_or_default(),
            None if raw.trim_start().starts_with('<') => self.describe_page(&raw),
            None => self.quotable(&raw),
        };
        RefusalBody { raw, json, text }
    }

    /// Remembers the sent parts that a refusal names: requests omit them from now on. A request
    /// that was sent before another one's refusal arrived is refused for the same parts, and changes
    /// nothing more.
    fn adapt(&self, sent: &OptionalParts, json: Option<&Value>, text: &str) -> OptionalParts {
        let error = json.map(|json| json.get("error").unwrap_or(json));
        let param = error.and_then(|error| error.get("param")).and_then(Value::as_str);
        let said = json.and_then(error_text);
        let named = sent.named_in(param, said.as_deref().unwrap_or(text));
        self.refused.add(&named);
        named
    }

    pub(crate) fn advice(
        &self,
        status: u16,
        quota: bool,
        wait_ms: Option<u64>,
        requested: Requested<'_>,
        cause: Option<RefusalCause>,
    ) -> String {
        let (url, variable) =
            (self.endpoint.base_url().origin, self.endpoint.provider().key_name());
        match (status, self.endpoint.key()) {
            (401 | 403, Some(key)) => {
                format!("Check {variable} (from {}) and its permissions.", key.origin)
            }
            (401 | 403, None) => format!("Set {variable} together with the base URL."),
            (400..=499, _) if cause == Some(RefusalCause::TooLong) => {
                "Shorten the prompt, start a new conversation, or use a model with a larger context window."
                    .to_owned()
            }
            (400..=499, _) if cause == Some(RefusalCause::Filtered) => {
                "The provider's filter refused the prompt: change it, or use another model."
                    .to_owned()
            }
            (402, _) => "Check the plan and its billing.".to_owned(),
            (413, _) => "Shorten the prompt, or start a new conversation.".to_owned(),
            (429, _) if quota => "Check the plan and its billing.".to_owned(),
            (429, _) => match wait_ms {
                Some(wait) => format!("The server asks to wait {}.", format_millis(wait)),
                None => "Wait, or raise tools.llm.retries.max_attempts.".to_owned(),
            },
            (405, _) => format!("Check the base URL (from {url}); most end in /v1."),
            (404, _) => {
                let model = self.endpoint.model();
                let name = visible_within(&model.value, 40);
                format!(
                    "Check the model {name} (from {}) and the base URL (from {url}).",
                    model.origin
                )
            }
            (300..=399, _) => {
                format!(
                    "Redirects are not followed: set the base URL (from {url}) to the new address."
                )
            }
            (500..=599, _) => "Try again later.".to_owned(),
            _ if requested == Requested::Models => {
                format!("Check the base URL (from {url}) and the key; most base URLs end in /v1.")
            }
            _ => "Check the model's name and what `[model]` sets.".to_owned(),
        }
    }

    /// Describes an HTML page by its title.
    pub(super) fn describe_page(&self, html: &str) -> String {
        let lower = html.to_ascii_lowercase();
        let title = lower.find("<title").and_then(|open| {
            let start = open + lower.get(open..)?.find('>')? + 1;
            let end = start + lower.get(start..)?.find('<')?;
            html.get(start..end)
        });
        match title.map(|title| self.quotable(title)).filter(|title| !title.is_empty()) {
            Some(title) => format!("an HTML page ({})", visible_within(&title, QUOTED_CHARS / 2)),
            None => "an HTML page".to_owned(),
        }
    }
}

/// Why a request was refused, where the status alone does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalCause {
    /// The conversation is longer than the model's context window.
    TooLong,
    /// A filter found something in the prompt.
    Filtered,
}

impl RefusalCause {
    /// The cause that a refusal names, in a code or in its text.
    pub(crate) fn of(said: &str) -> Option<Self> {
        const TOO_LONG: [&str; 9] = [
            "context_length",
            "context length",
            "context window",
            "context size",
            "maximum context",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "input token count",
        ];
        const FILTERED: [&str; 8] = [
            "content_filter",
            "content filter",
            "content management policy",
            "content_policy",
            "content policy",
            "responsibleai",
            "moderation",
            "safety system",
        ];
        let said = said.to_ascii_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if names(&TOO_LONG) {
            Some(Self::TooLong)
        } else {
            names(&FILTERED).then_some(Self::Filtered)
        }
    }
}

/// The class of a status, and its meaning in words. `quota`: the server says that the quota is used
/// up.
fn status_meaning(status: u16, quota: bool) -> (FailureClass, &'static str) {
    match status {
        401 => (FailureClass::Auth, "rejected the key"),
        403 => (FailureClass::Auth, "denied access to this key"),
        429 if quota => (FailureClass::RateLimited, "says that this key's quota is used up"),
        429 => (FailureClass::RateLimited, "limits the rate of calls"),
        402 => (FailureClass::Status, "reports a billing problem"),
        404 => (FailureClass::Status, "has no such address or model"),
        407 => (FailureClass::Status, "is behind a proxy that asks for a login"),
        413 => (FailureClass::Status, "rejected the request as too large"),
        300..=399 => (FailureClass::Status, "redirects"),
        529 => (FailureClass::Status, "is overloaded"),
        500..=599 => (FailureClass::Status, "failed"),
        _ => (FailureClass::Status, "refused the request"),
    }
}

/// The error text of a server, in the known forms: `{"error": {"message": …}}`, `{"error": …}`,
/// `{"message": …}`, `{"detail": …}`, one of these in a list, and the lists of field errors that
/// FastAPI sends with a 422.
pub(crate) fn error_text(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let message = error.get("message");
    let places = [Some(error), message, error.get("detail"), body.get("detail")];
    let text = places.iter().flatten().find_map(|place| place.as_str().map(str::to_owned));
    let within = message.and_then(|message| message.get("detail"));
    text.or_else(|| places.iter().flatten().copied().chain(within).find_map(fields))
}

/// `[{"loc": ["body", "temperature"], "msg": …}, …]` as text.
fn fields(detail: &Value) -> Option<String> {
    let one = |issue: &Value| {
        let said = issue.get("msg")?.as_str()?;
        let place = issue.get("loc").and_then(Value::as_array).into_iter().flatten();
        let place: Vec<&str> = place.filter_map(Value::as_str).collect();
        Some(format!("{}: {said}", place.join(".")))
    };
    let said: Vec<String> = detail.as_array()?.iter().filter_map(one).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

impl Client {
    /// The failure for an error inside an answer that reports success. `sent`: the optional
    /// parts of the request; none if part of the reply had arrived, because then the request
    /// was valid.
    pub(crate) fn reported_failure(
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
    fn maps_errors_to_status() {
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
