//! An HTTP request as a tool, to the host that the scenario names. Only public addresses, unless
//! the scenario allows private ones.

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::address::Address;
use super::result_json;
use super::settings::{Environment, NotReady, ToolSettings};
use crate::event::id::millis;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::gateway::interface::{Tool, ToolRequest};
use crate::net::body::read_prefix;
use crate::net::{Http, HttpResponse, NetError, Redactor, RequestTarget};
use crate::scenario::spec::http::{HttpMethod, HttpSpec};

/// Most bytes that are read of the body of an error response.
const REFUSAL_BYTES: usize = 16 << 10;

/// Host of a tool's URL template; `None` if the template is invalid.
pub fn host(url: &str) -> Option<String> {
    Address::parse(url).ok().map(|address| address.host().to_owned())
}

/// A tool that sends one request per attempt.
#[derive(Debug)]
pub struct HttpTool {
    spec: Arc<HttpSpec>,
    http: Http,
    address: Address,
    headers: HeaderMap,
    redactor: Redactor,
}

impl HttpTool {
    /// The tool of this table, its variables looked up in `env`. The caller limits what `http` may
    /// reach, by [`HttpSpec::allow_private`].
    ///
    /// # Errors
    /// Everything that keeps the request from being sent.
    pub fn new(
        spec: Arc<HttpSpec>,
        http: Http,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let mut wrong = Vec::new();
        let address = Address::parse(&spec.url).map_err(|why| wrong.push(why)).ok();
        let settings =
            ToolSettings::look_up(&spec.headers, env).map_err(|more| wrong.extend(more)).ok();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if spec.send_args {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in settings.iter().flat_map(|settings| &settings.values) {
            let unsendable = |part| NotReady::Header { name: name.clone(), part };
            match (HeaderName::try_from(name), HeaderValue::try_from(value.expose())) {
                (Ok(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(name, value);
                }
                (Err(_), _) => wrong.push(unsendable("name")),
                (_, Err(_)) => wrong.push(unsendable("value")),
            }
        }
        match (address, settings) {
            (Some(address), Some(settings)) if wrong.is_empty() => {
                Ok(Self { spec, http, address, headers, redactor: settings.redactor })
            }
            _ => Err(wrong),
        }
    }

    async fn request(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let url = self.address.fill(request.args).map_err(|what| {
            self.trouble(FailureClass::Denied, &what, "Correct the arguments of the call.")
        })?;
        let body =
            self.spec.send_args.then(|| serde_json::to_vec(request.args).unwrap_or_default());
        let target = self.headers.iter().fold(RequestTarget::new(url), |target, (name, value)| {
            target.header(name.clone(), value.clone())
        });
        let answer = self.http.send(method(self.spec.method), &target, body).await;
        let answer = answer.map_err(|error| self.unanswered(&error))?;
        if !(200..300).contains(&answer.status()) {
            return Err(self.refused(answer).await);
        }
        let cap = usize::try_from(self.spec.max_bytes).unwrap_or(usize::MAX);
        let body = answer.collect(cap).await.map_err(|error| self.unanswered(&error))?;
        let from = format!("the reply of {}", self.address.host());
        let whole = result_json::parse_json(&body, &from, &self.redactor)?;
        result_json::check_integers(&body, self.pointed_at(whole)?, &from, &self.redactor)
    }

    /// The part of the result that the scenario's `pointer` selects.
    fn pointed_at(&self, whole: Arc<Value>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let pointer = &self.spec.pointer;
        if pointer.is_empty() {
            return Ok(whole);
        }
        let part = whole.pointer(pointer).cloned().map(Arc::new);
        part.ok_or_else(|| {
            let what = format!("the reply of {} has nothing at {pointer}", self.address.host());
            self.trouble(FailureClass::BadResponse, &what, "Check the tool's pointer.")
        })
    }

    /// The failure of a request without a complete response.
    fn unanswered(&self, error: &NetError) -> Box<AttemptFailed> {
        let advice = match error {
            NetError::Resolve { .. } => "Check the host in the tool's url and the network.",
            NetError::Connect { .. } => "Is the server running? Check the tool's url.",
            NetError::Proxy { .. } | NetError::UnusableProxy { .. } => "Check the proxy.",
            NetError::OutOfReach { .. } => "If you mean this host, set allow_private = true.",
            NetError::Tls { .. } => "Does the server use https, and is its certificate valid?",
            NetError::Client { .. } => "Install the system's CA certificates.",
            NetError::Broken { .. } => "Try again.",
            NetError::NotHttp { .. } => "Check the tool's url.",
            NetError::Encoding { .. } => "Turn compression off in the server.",
            NetError::TooLarge { .. } => "Ask for less, or raise max_bytes.",
        };
        let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
        self.trouble(class, &error.to_string(), advice)
    }

    /// The failure of a response whose status is not a success.
    async fn refused(&self, answer: HttpResponse) -> Box<AttemptFailed> {
        let status = answer.status();
        let (wait, should_retry) = (answer.retry_after(), answer.should_retry());
        let to = answer.header("location").map(|to| result_json::quoted_text(to, &self.redactor));
        let (body, _) = read_prefix(answer, REFUSAL_BYTES).await;
        let text = String::from_utf8_lossy(&body);
        let (said, advice) = match (status, to) {
            (300..=399, to) => {
                (to.unwrap_or_default(), "Redirects are not followed: set url to where it leads.")
            }
            (401 | 403, _) => (self.said(&text), "Check the header with the credentials."),
            (429, _) => (self.said(&text), "Wait, or call it less often."),
            (500..=599, _) => (self.said(&text), "Try again later."),
            _ => (self.said(&text), "Check the tool's url and its arguments."),
        };
        let colon = if said.is_empty() { "" } else { ": " };
        let what = format!("{} returned HTTP {status}{colon}{said}", self.address.host());
        let mut failed = AttemptFailed::from_status(status, "");
        failed.text = self.trouble(failed.class, &what, advice).text;
        failed.retry_after_ms = wait.map(millis);
        failed.should_retry = should_retry;
        failed
    }

    fn said(&self, body: &str) -> String {
        if body.trim_start().starts_with('<') {
            return "an HTML page".to_owned();
        }
        result_json::quoted_text(body, &self.redactor)
    }

    /// Host of the tool, with the port if it is not the scheme's default.
    pub(super) fn host(&self) -> &str {
        self.address.host()
    }

    /// A failure of this tool, its secrets redacted.
    pub(super) fn trouble(
        &self,
        class: FailureClass,
        what: &str,
        advice: &str,
    ) -> Box<AttemptFailed> {
        AttemptFailed::with_advice(class, &self.redactor.redact(what), advice)
    }
}

impl Tool for HttpTool {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.request(request))
    }
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Delete => Method::DELETE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_wire_has_its_class() {
        let (host, why) = (|| "a.example".to_owned(), || "so".to_owned());
        for (error, class) in [
            (NetError::Resolve { host: host() }, FailureClass::Resolve),
            (NetError::Connect { host: host(), why: why() }, FailureClass::Connect),
            (NetError::Proxy { host: host(), proxy: host(), why: why() }, FailureClass::Connect),
            (NetError::UnusableProxy { why: why() }, FailureClass::Denied),
            (NetError::OutOfReach { host: host(), why: why() }, FailureClass::Denied),
            (NetError::Tls { host: host(), why: why() }, FailureClass::Tls),
            (NetError::Client { why: why() }, FailureClass::Tls),
            (NetError::Broken { host: host(), why: why() }, FailureClass::Reset),
            (NetError::NotHttp { host: host(), why: why() }, FailureClass::BadResponse),
            (NetError::TooLarge { cap: 1 }, FailureClass::TooLarge),
        ] {
            assert_eq!(FailureClass::from_word(error.word()), Some(class));
        }
    }
}
