//! The copy of a response that is read while it passes: the reply of the model, its tokens, its end.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hyper::body::Bytes;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::time::Instant;

use super::Secrets;
use super::formats::{self, Api, Assembled};
use crate::base::time::millis;
use crate::base::to_hex;
use crate::base::visible::visible_within;
use crate::log::bus::LiveSlot;
use crate::log::event::{AttemptFailed, FailureClass, Reply, Usage};
use crate::log::facts::observed::RecordedReply;
use crate::net::decoding::BodyDecoder;
use crate::net::error::{retry_after, retry_after_ms};
use crate::net::sse::SseParser;
use crate::watch::{messages, texts};

/// Longest response that is read, in bytes: the reply of a longer one is not known.
const MAX_REPLY: usize = 32 << 20;

/// Longest event of a stream, in bytes.
const MAX_EVENT: usize = 8 << 20;

/// How a body is read.
enum Framing {
    Whole,
    /// Server-sent events.
    Events(Box<SseParser>),
    /// A JSON object in each line.
    Lines,
}

/// A response while it passes.
pub(super) struct PassingReply {
    api: Option<Api>,
    status: u16,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    decoder: Option<BodyDecoder>,
    framing: Framing,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// The end of the text that is not shown yet, because it may be the beginning of a key.
    unshown: String,
    assembled: Assembled,
    /// Why it is not read any more.
    unread: Option<&'static str>,
    /// Whether an event or the body is not valid JSON, or too large.
    is_misread: bool,
    sent: Instant,
    first_token: Option<Duration>,
    bytes: u64,
    estimate: Usage,
    secrets: Arc<Secrets>,
    /// The body without its compression, and whether its end is missing.
    recorded: Vec<u8>,
    is_cut: bool,
    /// Whether the reply has a secret of its request.
    has_secret: bool,
    content_type: Arc<str>,
}

impl PassingReply {
    pub(super) fn new(
        api: Option<Api>,
        response: &Response,
        sent: Instant,
        (estimate, secrets): (Usage, Arc<Secrets>),
    ) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|it| it.to_str().ok());
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
        let framing = match () {
            () if kind.contains("event-stream") => {
                Framing::Events(Box::new(SseParser::new(MAX_EVENT)))
            }
            () if kind.contains("ndjson") || kind.contains("jsonl") => Framing::Lines,
            () => Framing::Whole,
        };
        let millis = header("retry-after-ms").and_then(retry_after_ms);
        Self {
            api,
            status: response.status().as_u16(),
            retry_after: millis.or_else(|| retry_after(header("retry-after"), header("date"))),
            should_retry: header("x-should-retry").and_then(|it| it.trim().parse().ok()),
            decoder: BodyDecoder::of(response.headers()),
            framing,
            rest: Vec::new(),
            unshown: String::new(),
            assembled: Assembled::default(),
            unread: None,
            is_misread: false,
            sent,
            first_token: None,
            bytes: 0,
            estimate,
            secrets,
            recorded: Vec::new(),
            is_cut: false,
            has_secret: false,
            content_type: texts::name(&kind),
        }
    }

    /// The bytes that have passed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads what passes.
    pub(super) fn add(&mut self, chunk: &Bytes, live: Option<&LiveSlot>) {
        self.bytes += chunk.len() as u64;
        if self.api.is_none() || self.unread.is_some() {
            return;
        }
        let Some(mut decoder) = self.decoder.take() else { return self.read(chunk, live) };
        decoder.push(chunk.clone());
        loop {
            match decoder.next() {
                Ok(Some(bytes)) => self.read(&bytes, live),
                Ok(None) => break,
                Err(_) => {
                    self.unread = Some("its compression cannot be read");
                    break;
                }
            }
        }
        self.decoder = Some(decoder);
    }

    fn read(&mut self, bytes: &[u8], live: Option<&LiveSlot>) {
        let Some(api) = self.api else { return };
        if self.recorded.len() + bytes.len() > MAX_REPLY {
            self.unread = Some("it is longer than 32 MiB");
            (self.rest, self.assembled) = (Vec::new(), Assembled::default());
            return;
        }
        self.recorded.extend_from_slice(bytes);
        let mut framing = std::mem::replace(&mut self.framing, Framing::Whole);
        match &mut framing {
            // It is read at its end.
            Framing::Whole => {}
            Framing::Lines => {
                let mut lines = bytes.split(|byte| *byte == b'\n');
                let last = lines.next_back().unwrap_or_default();
                for line in lines {
                    let begun = std::mem::take(&mut self.rest);
                    self.add_event(api, &[&begun, line].concat(), live);
                }
                self.rest.extend_from_slice(last);
            }
            Framing::Events(parser) => {
                let mut input = bytes;
                loop {
                    match parser.next(&mut input) {
                        Ok(Some(event)) => {
                            let data = event.data.to_owned();
                            self.add_event(api, data.as_bytes(), live);
                        }
                        Ok(None) => break,
                        Err(_) => {
                            self.unread = Some("an event of the stream is too large");
                            break;
                        }
                    }
                }
            }
        }
        self.framing = framing;
    }

    fn add_event(&mut self, api: Api, data: &[u8], live: Option<&LiveSlot>) {
        let event = match read_json(data) {
            Some(event) => event,
            None => {
                let is_nothing = matches!(data.trim_ascii(), b"" | b"[DONE]");
                self.is_misread |= !is_nothing;
                return;
            }
        };
        let text = self.assembled.add(api, &event);
        if text.is_empty() {
            return;
        }
        self.first_token.get_or_insert_with(|| self.sent.elapsed());
        if let Some(live) = live {
            self.unshown.push_str(&text);
            let shown = self.secrets.redact_whole(&self.unshown);
            let (shown, begun) = self.secrets.split_begun(&shown);
            live.push(shown);
            self.unshown = begun.to_owned();
        }
    }

    /// The response that has passed, for the log. `request`: the digest of its request.
    pub(super) fn recorded(&mut self, request: &[u8; 32]) -> Option<Arc<RecordedReply>> {
        self.api?;
        let bytes = std::mem::take(&mut self.recorded);
        // A secret of a stream may be split over its events, and bytes without an encoding cannot be searched.
        let text = std::str::from_utf8(&bytes).ok();
        let redacted = match text {
            Some(text) if self.has_secret || self.is_misread || self.unread.is_some() => {
                Some(self.secrets.redact(text)).filter(|redacted| redacted != text)
            }
            _ => None,
        };
        let is_left_out = text.is_none() || self.has_secret && redacted.is_none();
        let body = match &redacted {
            _ if is_left_out => &[],
            Some(redacted) => redacted.as_bytes(),
            None => &*bytes,
        };
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        let body = packed.write_all(body).and_then(|()| packed.finish()).ok()?;
        Some(Arc::new(RecordedReply {
            request: to_hex(request).into(),
            status: self.status,
            content_type: Arc::clone(&self.content_type),
            bytes: bytes.len() as u64,
            body: BASE64.encode(body).into(),
            redacted: self.has_secret || redacted.is_some(),
            cut: self.is_cut || self.unread.is_some() || is_left_out,
        }))
    }

    /// What the attempt has come to. `failed`: how the connection ended before the response did.
    pub(super) fn finish(
        &mut self,
        failed: Option<Box<AttemptFailed>>,
    ) -> Result<Reply, Box<AttemptFailed>> {
        let Some(api) = self.api else { return Ok(Reply::from_agent_text("".into())) };
        self.is_cut |= failed.is_some();
        let is_streamed = !matches!(self.framing, Framing::Whole);
        if matches!(self.framing, Framing::Lines) && !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.add_event(api, &rest, None);
        }
        let assembled = std::mem::take(&mut self.assembled);
        let (came, error) = (assembled.bytes(), assembled.error.clone());
        let has_ended = assembled.has_ended();
        let body = match is_streamed {
            true => assembled.finish(api),
            false => self.whole_body(api),
        };
        let body = self.redacted(body);
        let reply = self.reply(api, &body, came);
        let error = error.or_else(|| formats::error_of(&body));
        if let Some(failed) = failed {
            let partial = (!reply.text.is_empty()).then(|| Arc::clone(&reply.text));
            let usage = reply.usage.filter(|_| self.status < 400);
            return Err(Box::new(AttemptFailed { partial, usage, ..*failed }));
        }
        if self.status >= 400 {
            return Err(self.failed(error));
        }
        if let Some(error) = error {
            let text = visible_within(&self.secrets.redact(&error), 200);
            let text = format!("the reply ends with an error: {text}");
            let failed = AttemptFailed::new(FailureClass::BadResponse, text);
            let partial = (came > 0).then(|| Arc::clone(&reply.text));
            return Err(Box::new(AttemptFailed { partial, usage: reply.usage, ..*failed }));
        }
        if is_streamed && !has_ended && self.unread.is_none() && came > 0 {
            // The bytes are those of the upstream; what is missing is the sign of the end.
            return Ok(Reply { end: formats::end_of(Some("length")), ..reply });
        }
        Ok(reply)
    }

    /// The body without the secrets of the request, before its texts are cut.
    fn redacted(&mut self, body: Value) -> Value {
        let text = body.to_string();
        let redacted = self.secrets.redact_whole(&text);
        if redacted == text {
            return body;
        }
        self.has_secret = true;
        serde_json::from_str(&redacted).unwrap_or_default()
    }

    /// A body that came as a whole, or a list of the parts of one.
    fn whole_body(&mut self, api: Api) -> Value {
        let body = read_json(&self.recorded).unwrap_or(Value::Null);
        self.is_misread |= body.is_null();
        match body {
            // Google streams a list where no events are requested.
            Value::Array(parts) if api == Api::Contents => {
                let mut assembled = Assembled::default();
                for part in &parts {
                    assembled.add(api, part);
                }
                assembled.finish(api)
            }
            body => body,
        }
    }

    fn reply(&self, api: Api, body: &Value, came: usize) -> Reply {
        let mut message = match api {
            Api::Embeddings => None,
            _ => messages::reply(body),
        };
        message.iter_mut().for_each(|it| self.secrets.redact_calls(&mut it.tool_calls));
        let text = message.as_ref().map(|it| self.secrets.redact(&it.content)).unwrap_or_default();
        let counted = formats::usage(body);
        let came = came.max(text.len()) as u64;
        // An unread reply can be as long as the request allows.
        let estimate = || match self.unread.is_some() || self.is_misread {
            true => self.estimate,
            false => Usage::new(self.estimate.prompt_tokens, came.div_ceil(4)),
        };
        let finish = formats::finish(body);
        Reply {
            tool_calls: message.map(|it| it.tool_calls).unwrap_or_default(),
            usage: Some(counted.unwrap_or_else(estimate)),
            estimated: counted.is_none(),
            first_token_ms: self.first_token.map(millis),
            model: model_of(body).map(texts::name),
            finish: finish.map(texts::name),
            end: formats::end_of(finish),
            ignored: self.unread.map(Into::into),
            ..Reply::from_agent_text(text.into())
        }
    }

    fn failed(&self, error: Option<String>) -> Box<AttemptFailed> {
        let status = self.status;
        let text = match error {
            Some(error) => {
                let error = self.secrets.redact(&error);
                format!("HTTP {status}: {}", visible_within(&texts::text(&error), 240))
            }
            None => format!("HTTP {status}"),
        };
        let retry_after_ms = self.retry_after.map(millis);
        let should_retry = self.should_retry;
        Box::new(AttemptFailed {
            retry_after_ms,
            should_retry,
            ..*AttemptFailed::from_status(status, text)
        })
    }
}

/// Maximum number of values in a JSON body. Each takes about 100 bytes of memory.
const MAX_VALUES: usize = 4_000_000;

/// Reads JSON; `None`: it is none, or has too many values.
pub(super) fn read_json(bytes: &[u8]) -> Option<Value> {
    let begins = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if begins > MAX_VALUES {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

fn model_of(body: &Value) -> Option<&str> {
    ["model", "modelVersion"].iter().find_map(|name| body.get(*name)?.as_str())
}
