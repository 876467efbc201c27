//! Describes failures and what to do about them, without the key and with no more of an address
//! than its host. [`Failure::with_advice`] limits the length.

use std::sync::Arc;

use super::Client;
use super::fields::{BadAnswer, MAX_CALLS, NAME_CAP, ToolCallFault};
use super::stream::event_place;
use crate::base::visible::{visible_within, without_byte_order_mark};
use crate::log::event::FailureClass;
use crate::model::Failure;
use crate::model::adaptation::OptionalParts;
use crate::net::NetError;
use crate::net::sse::SseError;

/// The most characters of the endpoint's own text in a failure.
pub(crate) const QUOTED_CHARS: usize = 140;

/// The advice if the address is right, but the answer is not.
pub(super) const OTHER_MODEL_ADVICE: &str = "Try again, or use another model.";

impl Client {
    /// A failure: what happened, then what to do. Foreign text in `what` has been through
    /// [`Client::said`]; the whole text is redacted again anyway.
    pub(super) fn advised_failure(
        &self,
        class: FailureClass,
        what: &str,
        advice: &str,
    ) -> Box<Failure> {
        Failure::with_advice(class, &self.redactor.redact(what), advice)
    }

    /// Foreign text, prepared for messages. It is redacted as a whole before it is cut, because
    /// half a key would not be found.
    pub(super) fn quotable(&self, text: &str) -> String {
        let text = self.redactor.redact(text.trim());
        visible_within(text.trim_end_matches(['.', ' ']), QUOTED_CHARS)
    }

    /// The request could not be serialized.
    pub(crate) fn unsendable(&self, error: &serde_json::Error) -> Box<Failure> {
        let what = format!("the request cannot be serialized: {error}");
        self.advised_failure(FailureClass::BadResponse, &what, "This is a bug in roundtable.")
    }

    /// There was no answer.
    pub(crate) fn unanswered(&self, error: &NetError) -> Box<Failure> {
        let url = self.endpoint.base_url().origin;
        let advice = match error {
            NetError::Resolve { .. } => {
                format!("Check the host in the base URL (from {url}) and the network.")
            }
            NetError::Connect { .. } => {
                format!("Is the server running? Check the base URL (from {url}).")
            }
            NetError::Proxy { .. } => {
                "Is the proxy running, and may it connect to this host? Check --proxy.".to_owned()
            }
            NetError::UnusableProxy { .. } => {
                "Change the variable, or omit --proxy env.".to_owned()
            }
            NetError::Tls { .. } => format!(
                "Check the base URL (from {url}): does the server use https with a valid certificate?"
            ),
            NetError::Client { .. } => {
                "Install the system's CA certificates, or set SSL_CERT_FILE to a file with them."
                    .to_owned()
            }
            NetError::NotHttp { .. } | NetError::OutOfReach { .. } => {
                format!("Check the base URL (from {url}).")
            }
            NetError::Broken { .. } => "Try again.".to_owned(),
            NetError::Encoding { .. } => {
                format!("Turn compression off in the server or proxy at the base URL (from {url}).")
            }
            NetError::TooLarge { .. } => "Is it a chat model?".to_owned(),
        };
        let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
        self.advised_failure(class, &error.to_string(), &advice)
    }

    /// The answer's body was incomplete.
    pub(crate) fn incomplete_answer(
        &self,
        error: &NetError,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let mut failed = match error {
            NetError::Broken { .. } => {
                let what =
                    format!("{error} (in the middle of the answer{})", received_so_far(&partial));
                self.advised_failure(FailureClass::Reset, &what, "Try again.")
            }
            _ => self.unanswered(error),
        };
        failed.partial = partial;
        failed
    }

    /// The stream ended normally, but before the end of the reply.
    pub(crate) fn cut_off(&self, partial: Option<Arc<str>>) -> Box<Failure> {
        let host = self.endpoint.host();
        let what = format!(
            "{host} ended the stream in the middle of the reply{}",
            received_so_far(&partial)
        );
        let mut failed = self.advised_failure(FailureClass::Reset, &what, "Try again.");
        failed.partial = partial;
        failed
    }

    /// The stream ended normally, but the reply has neither text nor a call nor a reason why it ends.
    pub(crate) fn ended_empty(&self) -> Box<Failure> {
        let host = self.endpoint.host();
        let what = format!("{host} ended the stream without text, a call or a finish reason");
        let mut failed = self.advised_failure(FailureClass::BadResponse, &what, OTHER_MODEL_ADVICE);
        // Unlike with other invalid answers, trying again helps.
        failed.should_retry = Some(true);
        failed
    }

    /// The stream ended normally, but a required part of the reply is missing.
    pub(crate) fn ended_without(&self, what: &str) -> Box<Failure> {
        let host = self.endpoint.host();
        self.wrong_address(&format!("{host} ended the stream without {what}"))
    }

    /// The stream cannot be parsed any further.
    pub(super) fn unparsed(&self, error: SseError, partial: Option<Arc<str>>) -> Box<Failure> {
        let class = match error {
            SseError::TooLarge { .. } => FailureClass::TooLarge,
            SseError::NotUtf8(_) => FailureClass::BadResponse,
        };
        let what = format!("{error}{}", received_so_far(&partial));
        let advice = match partial {
            Some(_) => OTHER_MODEL_ADVICE.to_owned(),
            None => format!("Is it an endpoint for {}s?", self.api.reply),
        };
        let mut failed = self.advised_failure(class, &what, &advice);
        failed.partial = partial;
        failed
    }

    /// A successful answer that is not what was expected.
    pub(crate) fn unreadable(
        &self,
        status: u16,
        body: &[u8],
        expected: &str,
        why: &str,
    ) -> Box<Failure> {
        let host = self.endpoint.host();
        let text = String::from_utf8_lossy(without_byte_order_mark(body));
        let begins = text.trim_start();
        let what = if begins.is_empty() {
            format!("{host} answered {status} with an empty body instead of a {expected}")
        } else if begins.starts_with('<') {
            format!("{host} answered {status} with {} instead of JSON", self.describe_page(begins))
        } else {
            let begins: String = begins.chars().take(4 * QUOTED_CHARS).collect();
            let begins = visible_within(&self.quotable(&begins), QUOTED_CHARS / 2);
            let why = self.quotable(why);
            format!("{host} answered {status}, but not with a {expected} ({why}): {begins}")
        };
        if self.is_of_api(&text) {
            return self.advised_failure(FailureClass::BadResponse, &what, OTHER_MODEL_ADVICE);
        }
        self.wrong_address(&what)
    }

    /// Whether an invalid answer plainly comes from the right address.
    fn is_of_api(&self, json: &str) -> bool {
        json.trim_start().starts_with('{') && self.api.marks.iter().any(|mark| json.contains(mark))
    }

    /// The failure of a body that gives no reply.
    pub(crate) fn bad_answer(
        &self,
        bad: BadAnswer,
        sent: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Box<Failure> {
        match bad {
            BadAnswer::Reported(error) => {
                let place = format!("instead of a {}", self.api.reply);
                self.reported_failure(&error, &place, sent, None)
            }
            BadAnswer::Unreadable(why) => self.unreadable(status, body, self.api.reply, &why),
        }
    }

    /// Event number `nth` (from 1) of a stream is not part of a chat completion.
    pub(crate) fn unreadable_event(
        &self,
        nth: usize,
        data: &str,
        why: &str,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let is_ours = self.is_of_api(data);
        let data: String = data.chars().take(4 * QUOTED_CHARS).collect();
        let (why, data) =
            (self.quotable(why), visible_within(&self.quotable(&data), QUOTED_CHARS / 2));
        let (host, reply, place) = (self.endpoint.host(), self.api.reply, event_place(nth));
        let what = format!("{host} sent an invalid {reply} {place} ({why}): {data}");
        // After valid events, the address must be right.
        let mut failed = if is_ours || nth > 1 {
            self.advised_failure(FailureClass::BadResponse, &what, OTHER_MODEL_ADVICE)
        } else {
            self.wrong_address(&what)
        };
        failed.partial = partial;
        failed
    }

    pub(super) fn wrong_address(&self, what: &str) -> Box<Failure> {
        let url = self.endpoint.base_url().origin;
        let advice = format!("Check the base URL (from {url}); most end in /v1.");
        self.advised_failure(FailureClass::BadResponse, what, &advice)
    }

    pub(crate) fn bad_tool_calls(
        &self,
        why: ToolCallFault,
        partial: Option<Arc<str>>,
    ) -> Box<Failure> {
        let host = self.endpoint.host();
        let what = match why {
            ToolCallFault::TooMany => {
                format!("{host} sent more than {MAX_CALLS} tool calls in one reply")
            }
            ToolCallFault::Nameless => format!("{host} sent a tool call without a tool name"),
            ToolCallFault::LongName => {
                format!("{host} sent a tool call with a name of more than {NAME_CAP} bytes")
            }
        };
        let advice = "Try again, or use a model that can call tools.";
        let mut failed = self.advised_failure(FailureClass::BadResponse, &what, advice);
        failed.partial = partial;
        failed
    }
}

/// How much of the reply had arrived, as part of a sentence.
fn received_so_far(partial: &Option<Arc<str>>) -> String {
    match partial {
        Some(text) => format!(", after {} characters", text.chars().count()),
        None => String::new(),
    }
}
