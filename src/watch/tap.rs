//! The lines of the tap: what starts and ends in frameworks of Python that have no protocol of their own, and the
//! starts of OpenTelemetry, whose exporters send a span only at its end.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::otlp::about_of;
use super::{Protocol, SpanMessage, TraceMessage, texts};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
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
    error: Option<String>,
    tokens_in: Option<u64>,
    tokens_cached: Option<u64>,
    tokens_out: Option<u64>,
    at: Option<f64>,
    started_at: Option<f64>,
    #[serde(default)]
    attributes: Map<String, Value>,
    #[serde(default)]
    scope: String,
    count: Option<u64>,
}

/// The messages of a body, and how many lines cannot be read or were dropped by their sender.
pub(super) fn read(body: &[u8]) -> (Vec<TraceMessage>, u64) {
    let (mut messages, mut lost) = (Vec::new(), 0);
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Line>(line) {
            Ok(line) if line.event == "dropped" => {
                lost = line.count.unwrap_or(1).saturating_add(lost)
            }
            Ok(line) if !line.id.is_empty() && !line.trace.is_empty() => {
                messages.push(line.message())
            }
            _ => lost = lost.saturating_add(1),
        }
    }
    (messages, lost)
}

impl Line {
    fn message(self) -> TraceMessage {
        let us = |at: Option<f64>| at.filter(|at| *at >= 0.0).map(|at| (at * 1e6) as u64);
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
            tokens_out: self.tokens_out,
            cost_usd: None,
            from_us: started_us.or(at_us.filter(|_| !is_end)),
            until_us: at_us.filter(|_| is_end),
        };
        let about = match is_otel {
            false => known,
            true => {
                let mut about = about_of(&self.name, &Attributes::of_json(&self.attributes));
                about.add(&known);
                about
            }
        };
        let parent: Arc<str> = texts::name(self.parent.as_deref().unwrap_or_default());
        let what = match is_end {
            false => SpanMessage::Opened { parent, about },
            true => {
                let failed = about.error.is_some();
                let end = if failed { SpanEnd::Failed } else { SpanEnd::Done };
                SpanMessage::Closed { parent, end, about }
            }
        };
        TraceMessage { protocol, framework, trace: texts::name(&self.trace), what }
    }
}
