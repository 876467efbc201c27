//! The lines of the tap: what starts and ends in frameworks of Python that have no protocol of their own, and the
//! starts of OpenTelemetry, whose exporters send a span only at its end.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::otlp::{about_of, notes_of, said_in_events};
use super::{PartMessage, Protocol, SpanMessage, TraceMessage, messages, texts};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
use crate::pattern::observed::ReportedCall;
use crate::traces::conventions::Attributes;

/// A line.
#[derive(Deserialize)]
struct Line {
    /// `otel`, or the framework that reports.
    #[serde(default)]
    framework: String,
    event: String,
    #[serde(default)]
    trace: String,
    #[serde(default)]
    id: String,
    parent: Option<String>,
    #[serde(default)]
    name: String,
    role: Option<SpanRole>,
    agent: Option<String>,
    model: Option<String>,
    to: Option<String>,
    input: Option<String>,
    output: Option<String>,
    /// Of a model: its prompt, the tools that were offered, and its reply. Each is a text with JSON.
    messages: Option<String>,
    tools: Option<String>,
    reply: Option<String>,
    error: Option<String>,
    tokens_in: Option<u64>,
    tokens_cached: Option<u64>,
    tokens_written: Option<u64>,
    tokens_out: Option<u64>,
    at: Option<f64>,
    started_at: Option<f64>,
    #[serde(default)]
    attributes: Map<String, Value>,
    /// The events of a span of OpenTelemetry.
    #[serde(default)]
    events: Vec<Event>,
    /// `tripped`: a guardrail refused the input or the output.
    state: Option<String>,
    #[serde(default)]
    scope: String,
    count: Option<u64>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    attributes: Map<String, Value>,
}

/// The content of a request of the tap.
#[derive(Default)]
pub(super) struct TapMessages {
    pub messages: Vec<TraceMessage>,
    pub parts: Vec<PartMessage>,
    /// Lines that cannot be read, or were dropped by their sender.
    pub lost: u64,
    /// What the operator should know.
    pub warnings: Vec<String>,
}

/// The messages of a body.
pub(super) fn read(body: &[u8]) -> TapMessages {
    let TapMessages { mut messages, mut parts, mut lost, mut warnings } = TapMessages::default();
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Line>(line) {
            Ok(line) if line.event == "dropped" => {
                lost = line.count.unwrap_or(1).saturating_add(lost)
            }
            Ok(line) if line.event == "unguarded" => {
                let host = texts::name(&line.name);
                warnings.push(format!(
                    "requests to {host} do not pass: the client has its own proxy, certificate or socket"
                ));
            }
            Ok(line) if line.event == "unhooked" => {
                let (framework, why) = (texts::name(&line.framework), texts::name(&line.name));
                warnings.push(format!(
                    "tools of {framework} are not asked about, because the hook does not fit: {why}"
                ));
            }
            Ok(line) if line.framework == "part" && !line.name.is_empty() => {
                let (at_us, error) = (us(line.at).unwrap_or_default(), line.error.as_deref());
                let end = (line.event == "end").then(|| error.map(texts::text));
                parts.push(PartMessage { name: texts::name(&line.name), at_us, end });
            }
            Ok(line) if !line.id.is_empty() && !line.trace.is_empty() => {
                messages.push(if line.event == "partial" { line.partial() } else { line.message() })
            }
            _ => lost = lost.saturating_add(1),
        }
    }
    TapMessages { messages, parts, lost, warnings }
}

/// A time of the tap, in microseconds.
fn us(at: Option<f64>) -> Option<u64> {
    at.filter(|at| *at >= 0.0).map(|at| (at * 1e6) as u64)
}

impl Line {
    fn partial(self) -> TraceMessage {
        let (span, text) = (texts::name(&self.id), texts::text(&self.output.unwrap_or_default()));
        let (framework, trace) = ("", texts::name(&self.trace));
        let what = SpanMessage::Partial { span, text };
        TraceMessage { protocol: Protocol::Tap, framework, trace, what }
    }

    fn message(mut self) -> TraceMessage {
        let (at_us, started_us) = (us(self.at), us(self.started_at));
        let is_end = self.event == "end";
        let framework = match &*self.framework {
            "openai-agents" => "openai-agents",
            "crewai" => "crewai",
            _ => super::framework_of(&self.scope),
        };
        // The conventions of OpenTelemetry tell what a span is, and its name.
        let is_otel = self.framework == "otel";
        // The starts of OpenTelemetry belong to the spans of OTLP.
        let protocol = if is_otel { Protocol::Otlp } else { Protocol::Tap };
        let optional = |text: &Option<String>| text.as_deref().map(texts::name);
        let known = SpanAbout {
            id: texts::name(&self.id),
            name: if is_otel { Arc::default() } else { texts::name(&self.name) },
            role: self.role.unwrap_or_default(),
            agent: optional(&self.agent),
            to: optional(&self.to),
            model: optional(&self.model),
            input: self.input.as_deref().and_then(texts::json_text),
            output: self.output.as_deref().and_then(texts::json_text),
            error: self.error.as_deref().map(texts::text),
            tokens_in: self.tokens_in,
            tokens_cached: self.tokens_cached,
            tokens_written: self.tokens_written,
            tokens_out: self.tokens_out,
            from_us: started_us.or(at_us.filter(|_| !is_end)),
            until_us: at_us.filter(|_| is_end),
            ..SpanAbout::default()
        };
        let (about, call, notes) = match is_otel {
            false => {
                let (mut known, call) = (known, self.call());
                let [given, replied] = messages::texts_of(call.as_deref());
                known.input = given.or(known.input);
                known.output = replied.or(known.output);
                (known, call, Vec::new())
            }
            true => {
                let mut attributes = Attributes::of_json(&self.attributes);
                let events = std::mem::take(&mut self.events).into_iter();
                let events = events.map(|it| (it.name, it.attributes));
                let (_, notes) = notes_of(said_in_events(events, &mut attributes));
                let (mut about, call) = about_of(&self.name, &attributes);
                about.add(&known);
                (about, call, notes)
            }
        };
        let parent: Arc<str> = texts::name(self.parent.as_deref().unwrap_or_default());
        let what = match is_end {
            false => SpanMessage::Opened { parent, about, call },
            true => {
                let end = match (&about.error, self.state.as_deref()) {
                    (_, Some("tripped")) => SpanEnd::Tripped,
                    (Some(_), _) => SpanEnd::Failed,
                    (None, _) => SpanEnd::Done,
                };
                SpanMessage::Closed { parent, end, about, call, notes }
            }
        };
        TraceMessage { protocol, framework, trace: texts::name(&self.trace), what }
    }

    /// The call of a model, if the line has a prompt or a reply.
    fn call(&self) -> Option<Box<ReportedCall>> {
        let value = |text: &Option<String>| {
            let text = text.as_deref()?;
            Some(texts::json(text).unwrap_or_else(|| text.into()))
        };
        let [prompt, tools, reply] = [&self.messages, &self.tools, &self.reply].map(value);
        let mut call = messages::call_of(prompt.as_ref(), reply.as_ref());
        call.tools = tools.as_ref().map(messages::tools).unwrap_or_default();
        (!call.is_empty()).then(|| Box::new(call))
    }
}
