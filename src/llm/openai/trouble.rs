//! What went wrong and what to do about it, in words that hold no key, no more of an address than
//! its host, and at most [`TEXT_CHARS`] characters.

use std::sync::Arc;

use serde_json::Value;

use super::calls::{MOST, Miscalled, NAME_CAP};
use super::{OpenAi, wire};
use crate::event::id::millis;
use crate::event::kind::{FailureClass, seconds};
use crate::event::visible::visible_within;
use crate::llm::Failure;
use crate::net::body::beginning;
use crate::net::sse::SseError;
use crate::net::{Answer, NetError};

/// The most characters of it that are the endpoint's own.
const SAID_CHARS: usize = 140;
/// The most bytes that are read of the body of a refusal.
const REFUSAL_BYTES: usize = 16 << 10;

/// What an endpoint was asked for when it refused: what to do depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    /// A chat completion.
    Reply,
    /// The list of its models.
    Models,
}

impl OpenAi {
    /// A failure: what happened, then what to do. Foreign text in `what` has been through
    /// [`OpenAi::said`]; the whole of it is redacted once more all the same.
    fn trouble(&self, class: FailureClass, what: &str, advice: &str) -> Box<Failure> {
        Failure::advising(class, &self.redactor.redact(what), advice)
    }

    /// Foreign text as it may be repeated. It is redacted whole and only then cut: half a key is
    /// not found any more.
    fn said(&self, text: &str) -> String {
        let text = self.redactor.redact(text.trim());
        visible_within(text.trim_end_matches(['.', ' ']), SAID_CHARS)
    }

    /// The request could not be written.
    pub(super) fn unsendable(&self, error: &serde_json::Error) -> Box<Failure> {
        let what = format!("the request cannot be written: {error}");
        self.trouble(FailureClass::BadResponse, &what, "This is a fault of roundtable.")
    }

    /// No answer came.
    pub(super) fn unanswered(&self, error: &NetError) -> Box<Failure> {
        let url = self.endpoint.base_url().origin;
        let advice = match error {
            NetError::Resolve { .. } => {
                format!("Check the host in the base URL (from {url}) and the network.")
            }
            NetError::Connect { .. } => {
                format!("Is the server running? Check the base URL (from {url}).")
            }
            NetError::Tls { .. } => format!(
                "Check the base URL (from {url}): does the server speak https, is its certificate good?"
            ),
            NetError::Client { .. } => {
                "Install the system's CA certificates, or name a file of them in SSL_CERT_FILE."
                    .to_owned()
            }
            NetError::NotHttp { .. } | NetError::OutOfReach { .. } => {
                format!("Check the base URL (from {url}).")
            }
            NetError::Broken { .. } => "Try again.".to_owned(),
            NetError::TooLarge { .. } => "Is it a chat model?".to_owned(),
        };
        let class = FailureClass::of(error.word()).unwrap_or(FailureClass::Connect);
        self.trouble(class, &error.to_string(), &advice)
    }

    /// The answer's body did not come whole.
    pub(super) fn broke_off(&self, error: &NetError, partial: Option<Arc<str>>) -> Box<Failure> {
        let mut failed = match error {
            NetError::Broken { .. } => {
                let what = format!("{error} (in the middle of the answer{})", so_far(&partial));
                self.trouble(FailureClass::Reset, &what, "Try again.")
            }
            _ => self.unanswered(error),
        };
        failed.partial = partial;
        failed
    }

    /// The stream ended in good order, but not the reply.
    pub(super) fn cut_off(&self, partial: Option<Arc<str>>) -> Box<Failure> {
        let host = self.endpoint.host();
        let what =
            format!("{host} ended the stream in the middle of the reply{}", so_far(&partial));
        let mut failed = self.trouble(FailureClass::Reset, &what, "Try again.");
        failed.partial = partial;
        failed
    }

    /// The stream ended in good order, and no event of it had a choice.
    pub(super) fn without_choice(&self) -> Box<Failure> {
        let host = self.endpoint.host();
        self.misplaced(&format!("{host} ended the stream without a single choice"))
    }

    /// The stream cannot be read on.
    pub(super) fn unparsed(&self, error: SseError, partial: Option<Arc<str>>) -> Box<Failure> {
        let class = match error {
            SseError::TooLarge { .. } => FailureClass::TooLarge,
            SseError::NotUtf8(_) => FailureClass::BadResponse,
        };
        let what = format!("{error}{}", so_far(&partial));
        let mut failed = self.trouble(class, &what, "Is it an endpoint for chat completions?");
        failed.partial = partial;
        failed
    }

    /// An answer that reports success and is no chat completion.
    pub(super) fn unreadable(&self, status: u16, body: &[u8], why: &str) -> Box<Failure> {
        let host = self.endpoint.host();
        let text = String::from_utf8_lossy(body);
        let begins = text.trim_start();
        let what = if begins.is_empty() {
            format!("{host} answered {status} with an empty body instead of a chat completion")
        } else if begins.starts_with('<') {
            format!("{host} answered {status} with {} instead of JSON", self.page(begins))
        } else {
            let begins: String = begins.chars().take(4 * SAID_CHARS).collect();
            let begins = visible_within(&self.said(&begins), SAID_CHARS / 2);
            let why = self.said(why);
            format!("{host} answered {status}, but no chat completion ({why}): {begins}")
        };
        self.misplaced(&what)
    }

    /// An event of a stream that is no piece of a chat completion.
    pub(super) fn unreadable_event(
        &self,
        place: &str,
        data: &str,
        why: &str,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let (why, data) = (self.said(why), visible_within(&self.said(data), SAID_CHARS / 2));
        let host = self.endpoint.host();
        let mut failed =
            self.misplaced(&format!("{host} sent no chat completion {place} ({why}): {data}"));
        failed.partial = partial;
        failed
    }

    fn misplaced(&self, what: &str) -> Box<Failure> {
        let url = self.endpoint.base_url().origin;
        let advice = format!("Check the base URL (from {url}); most end in /v1.");
        self.trouble(FailureClass::BadResponse, what, &advice)
    }

    /// An error inside an answer that reports success.
    pub(super) fn complained(
        &self,
        error: &Value,
        place: &str,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let said = wire::complaint(error).unwrap_or_else(|| error.to_string());
        let what = format!("{} sent an error {place}: {}", self.endpoint.host(), self.said(&said));
        let mut failed =
            self.trouble(FailureClass::BadResponse, &what, "Try again, or ask another model.");
        failed.partial = partial;
        failed
    }

    /// Calls of tools that cannot be taken.
    pub(super) fn miscalled(&self, why: Miscalled, partial: Option<Arc<str>>) -> Box<Failure> {
        let host = self.endpoint.host();
        let what = match why {
            Miscalled::TooMany => format!("{host} sent more than {MOST} tool calls in one reply"),
            Miscalled::Nameless => format!("{host} sent a tool call that names no tool"),
            Miscalled::LongName => {
                format!("{host} sent a tool call with a name of more than {NAME_CAP} bytes")
            }
        };
        let advice = "Try again, or ask a model that can call tools.";
        let mut failed = self.trouble(FailureClass::BadResponse, &what, advice);
        failed.partial = partial;
        failed
    }

    /// An answer whose status is no success.
    pub(super) async fn refused(&self, answer: Answer, requested: Requested) -> Box<Failure> {
        let status = answer.status();
        let (wait, should_retry) = (answer.retry_after(), answer.should_retry());
        let to = answer.header("location").map(|to| self.said(to));
        let (body, _) = beginning(answer, REFUSAL_BYTES).await;
        let text = String::from_utf8_lossy(&body);
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let said = match &json {
            Some(json) => wire::complaint(json).map(|text| self.said(&text)).unwrap_or_default(),
            None if text.trim_start().starts_with('<') => self.page(&text),
            None => self.said(&text),
        };
        let quota = json
            .as_ref()
            .and_then(|json| json.pointer("/error/code"))
            .is_some_and(|code| code == "insufficient_quota");
        let (class, meaning) = match status {
            401 => (FailureClass::Auth, "did not take the key"),
            403 => (FailureClass::Auth, "does not let this key in"),
            429 if quota => (FailureClass::RateLimited, "has used up this key's quota"),
            429 => (FailureClass::RateLimited, "limits the rate of calls"),
            404 => (FailureClass::Status, "found no such address or model"),
            300..=399 => (FailureClass::Status, "points elsewhere"),
            500..=599 => (FailureClass::Status, "failed"),
            _ => (FailureClass::Status, "refused the request"),
        };
        let host = self.endpoint.host();
        let mut what = format!("{host} {meaning} (HTTP {status})");
        if let (Some(to), 300..=399) = (to, status) {
            what = format!("{what}: {to}");
        } else if !said.is_empty() {
            what = format!("{what}: {said}");
        }
        let wait = wait.map(millis);
        let advice = self.advice(status, quota, wait, requested);
        let mut failed = self.trouble(class, &what, &advice);
        failed.status = Some(status);
        failed.retry_after_ms = wait;
        failed.should_retry = should_retry;
        failed
    }

    fn advice(
        &self,
        status: u16,
        quota: bool,
        wait_ms: Option<u64>,
        requested: Requested,
    ) -> String {
        let url = self.endpoint.base_url().origin;
        match (status, self.endpoint.key()) {
            (401 | 403, Some(key)) => {
                format!("Check OPENAI_API_KEY (from {}) and what it may use.", key.origin)
            }
            (401 | 403, None) => "Set OPENAI_API_KEY beside the base URL.".to_owned(),
            (429, _) if quota => "Look at the plan and its billing.".to_owned(),
            (429, _) => match wait_ms {
                Some(wait) => format!("It asks for a wait of {}.", seconds(wait)),
                None => "Wait, or raise tools.llm.retries.max_attempts.".to_owned(),
            },
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
                    "Redirects are not followed: set the base URL (from {url}) to where it leads."
                )
            }
            (500..=599, _) => "Try again later.".to_owned(),
            _ if requested == Requested::Models => {
                format!("Check the base URL (from {url}) and the key; most base URLs end in /v1.")
            }
            _ => "Check the model's name, and whether it takes temperature 0 and JSON mode."
                .to_owned(),
        }
    }

    /// What a page of HTML is called.
    fn page(&self, html: &str) -> String {
        let lower = html.to_ascii_lowercase();
        let title = lower.find("<title").and_then(|open| {
            let start = open + lower.get(open..)?.find('>')? + 1;
            let end = start + lower.get(start..)?.find('<')?;
            html.get(start..end)
        });
        match title.map(|title| self.said(title)).filter(|title| !title.is_empty()) {
            Some(title) => format!("an HTML page ({})", visible_within(&title, SAID_CHARS / 2)),
            None => "an HTML page".to_owned(),
        }
    }
}

/// How much of a reply had come.
fn so_far(partial: &Option<Arc<str>>) -> String {
    match partial {
        Some(text) => format!(", after {} characters", text.chars().count()),
        None => String::new(),
    }
}
