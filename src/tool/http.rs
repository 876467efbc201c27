//! An HTTP request as a tool, to the host that the scenario names. Only public addresses, unless
//! the scenario allows private ones.
//!
//! URL template of an HTTP tool: `{name}` is replaced by the argument of that name. An argument can
//! change neither the host nor the rest of the path.

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value};

use super::{Environment, NotReady, ToolSettings};
use crate::base::time::millis;
use crate::base::visible::visible_within;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, HttpResponse, NetError, Redactor, RequestTarget, host_of, read_prefix};
use crate::scenario::tools::http::{HttpMethod, HttpSpec};
use crate::tool;

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
        match settings.as_ref().map(tool::sendable_headers) {
            Some(Ok(named)) => headers.extend(named),
            Some(Err(unsendable)) => wrong.extend(unsendable),
            None => {}
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
        let whole = tool::parse_json(&body, &from, &self.redactor)?;
        tool::check_integers(&body, self.pointed_at(whole)?, &from, &self.redactor)
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
        let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
        self.trouble(class, &error.to_string(), &tool::network_advice(error, "tool"))
    }

    /// The failure of a response whose status is not a success.
    async fn refused(&self, answer: HttpResponse) -> Box<AttemptFailed> {
        let status = answer.status();
        let (wait, should_retry) = (answer.retry_after(), answer.should_retry());
        let to = answer.header("location").map(|to| tool::quoted_text(to, &self.redactor));
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
        tool::quoted_text(body, &self.redactor)
    }

    /// Host of the tool, with the port if it is not the scheme's default.
    pub(crate) fn host(&self) -> &str {
        self.address.host()
    }

    /// A failure of this tool, its secrets redacted.
    pub(crate) fn trouble(
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

/// Most characters of an argument's name that a message quotes.
const NAME_CHARS: usize = 40;

/// A parsed URL template.
#[derive(Debug)]
pub(crate) struct Address {
    parts: Vec<UrlPart>,
    host: String,
    /// Literal parts of the URL's path, percent-encoded: before, between and after the arguments.
    path: Vec<String>,
}

#[derive(Debug, PartialEq)]
enum UrlPart {
    Text(String),
    Argument {
        name: String,
        /// Whether it is part of the path, not of the query.
        in_path: bool,
    },
}

impl Address {
    /// Parses a template.
    pub(crate) fn parse(template: &str) -> Result<Self, NotReady> {
        let wrong = |why: &str| NotReady::Address { why: why.to_owned() };
        let parts =
            split_template(template).ok_or_else(|| wrong("the url has a { without its }"))?;
        let (scheme, rest) =
            template.split_once("://").ok_or_else(|| wrong("the url has no scheme"))?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if scheme.contains('{') || authority.contains('{') {
            return Err(wrong("an argument cannot name the host"));
        }
        // Checks on one filled URL hold for all; the mark is found again in the path.
        let mark = unique_marker(template);
        let sample: String = parts
            .iter()
            .map(|part| match part {
                UrlPart::Text(text) => text.as_str(),
                UrlPart::Argument { .. } => &mark,
            })
            .collect();
        let url =
            Url::parse(&sample).map_err(|error| wrong(&format!("the url is invalid: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong("the url is neither http:// nor https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("the url holds a user name or password: put them into a header"));
        }
        let path: Vec<String> = url.path().split(&mark).map(str::to_owned).collect();
        let in_path =
            parts.iter().filter(|part| matches!(part, UrlPart::Argument { in_path: true, .. }));
        if path.len() != in_path.count() + 1 {
            return Err(wrong("a .. in the url removes an argument"));
        }
        Ok(Self { parts, host: host_of(&url), path })
    }

    /// Host of the template, with the port if it is not the scheme's default.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// URL with the arguments filled in.
    pub(crate) fn fill(&self, args: &Map<String, Value>) -> Result<Url, String> {
        let mut text = String::new();
        let mut pieces = self.path.iter();
        let mut path = pieces.next().cloned().unwrap_or_default();
        for part in &self.parts {
            match part {
                UrlPart::Text(plain) => text.push_str(plain),
                UrlPart::Argument { name, in_path } => {
                    let shown = visible_within(name, NAME_CHARS);
                    let value = match args.get(name) {
                        None => return Err(format!("the url needs the argument {shown}")),
                        Some(Value::String(value)) => value.clone(),
                        Some(Value::Number(value)) => value.to_string(),
                        Some(Value::Bool(value)) => value.to_string(),
                        Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
                            return Err(format!(
                                "the argument {shown} is not a string, number or bool"
                            ));
                        }
                    };
                    let value = encoded(&value);
                    if *in_path {
                        if matches!(value.as_str(), "" | "." | "..") {
                            return Err(format!(
                                "the argument {shown} would change the url's path"
                            ));
                        }
                        path.push_str(&value);
                        path.push_str(pieces.next().map_or("", String::as_str));
                    }
                    text.push_str(&value);
                }
            }
        }
        let url = Url::parse(&text).map_err(|error| format!("the url is invalid: {error}"))?;
        // Arguments may still form `.` or `..` together with the text next to them.
        if host_of(&url) != self.host || url.path() != path {
            return Err("the arguments would change the url's path".to_owned());
        }
        Ok(url)
    }
}

/// A marker that the template does not contain. It does not overlap itself, so it is found only
/// where it was put.
fn unique_marker(template: &str) -> String {
    let mut mark = "a0z".to_owned();
    while template.contains(&mark) {
        mark.insert(1, '0');
    }
    mark
}

fn split_template(template: &str) -> Option<Vec<UrlPart>> {
    let (mut parts, mut rest, mut in_path) = (Vec::new(), template, true);
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        in_path = in_path && !text.contains(['?', '#']);
        parts.push(UrlPart::Text(text.to_owned()));
        parts.push(UrlPart::Argument { name: name.to_owned(), in_path });
        rest = after;
    }
    parts.push(UrlPart::Text(rest.to_owned()));
    Some(parts)
}

/// Percent-encodes everything except the unreserved characters of RFC 3986.
fn encoded(value: &str) -> String {
    let mut into = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                into.push(char::from(byte));
            }
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
    into
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_wire_error_has_class() {
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

    fn fill(template: &str, args: Value) -> Result<String, String> {
        let Value::Object(args) = args else { panic!("a table") };
        Address::parse(template).expect(template).fill(&args).map(String::from)
    }

    #[test]
    fn argument_fills_only_its_place() {
        let template = "https://a.example/v1/{sku}/stock?region={region}";
        for (sku, region, url) in [
            (json!("x-1"), json!("EU"), "https://a.example/v1/x-1/stock?region=EU"),
            (json!(7), json!(true), "https://a.example/v1/7/stock?region=true"),
            (
                json!("../../admin?x=1#y"),
                json!("a&b=c +ü"),
                "https://a.example/v1/..%2F..%2Fadmin%3Fx%3D1%23y/stock?region=a%26b%3Dc%20%2B%C3%BC",
            ),
            (
                json!("{region}"),
                json!("%2e"),
                "https://a.example/v1/%7Bregion%7D/stock?region=%252e",
            ),
        ] {
            let filled = fill(template, json!({ "sku": sku, "region": region }));
            assert_eq!(filled.as_deref(), Ok(url));
        }
    }

    #[test]
    fn reports_argument_that_does_not_fit() {
        let template = "https://a.example/v1/{a}{b}/x";
        for (args, says) in [
            (json!({ "a": "1" }), "the url needs the argument b"),
            (json!({ "a": [1], "b": 1 }), "the argument a is not a string, number or bool"),
            (json!({ "a": null, "b": 1 }), "the argument a is not a string, number or bool"),
            (json!({ "a": "..", "b": 1 }), "the argument a would change the url's path"),
            (json!({ "a": "", "b": 1 }), "the argument a would change the url's path"),
        ] {
            assert_eq!(fill(template, args), Err(says.to_owned()));
        }
    }

    #[test]
    fn adjacent_arguments_never_form_parent_path() {
        let side_by_side = "https://a.example/{a}{b}";
        for (template, args) in [
            (side_by_side, json!({ "a": ".", "b": "." })),
            ("https://a.example/v1/{a}{b}", json!({ "a": ".", "b": "." })),
            ("https://a.example/v1/{a}{b}/x", json!({ "a": ".", "b": "." })),
            ("https://a.example/%2{a}", json!({ "a": "e" })),
            ("https://a.example/%2{a}%2{b}/x", json!({ "a": "e", "b": "E" })),
        ] {
            assert!(fill(template, args).is_err(), "{template}");
        }
        for (a, b, url) in [
            ("-", "-", "https://a.example/--"),
            ("...", "-", "https://a.example/...-"),
            ("%2e", "%2e", "https://a.example/%252e%252e"),
        ] {
            assert_eq!(fill(side_by_side, json!({ "a": a, "b": b })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn query_arguments_keep_path() {
        let template = "https://a.example/{sku}?q={q}&r={r}";
        for (q, r, url) in [
            ("", ".", "https://a.example/1?q=&r=."),
            ("..", "../x", "https://a.example/1?q=..&r=..%2Fx"),
        ] {
            assert_eq!(fill(template, json!({ "sku": 1, "q": q, "r": r })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn normalizes_path_of_template() {
        for (template, url) in [
            ("https://a.example/größe a0z/{x}", "https://a.example/gr%C3%B6%C3%9Fe%20a0z/7"),
            ("https://a.example/v1/../v2/./{x}", "https://a.example/v2/7"),
            ("https://a.example?x={x}", "https://a.example/?x=7"),
        ] {
            assert_eq!(fill(template, json!({ "x": 7 })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn reports_invalid_template() {
        for (template, why) in [
            ("a.example/v1", "the url has no scheme"),
            ("https://a.example/{x", "the url has a { without its }"),
            ("https://{host}/v1", "an argument cannot name the host"),
            ("{scheme}://a.example", "an argument cannot name the host"),
            ("https://a.example:{port}/", "an argument cannot name the host"),
            ("https://a.example/v1/{x}/../v2", "a .. in the url removes an argument"),
            ("ftp://a.example/", "the url is neither http:// nor https://"),
            (
                "https://u:p@a.example/",
                "the url holds a user name or password: put them into a header",
            ),
        ] {
            let error = Address::parse(template).expect_err(template);
            assert_eq!(error, NotReady::Address { why: why.to_owned() }, "{template}");
        }
    }
}
