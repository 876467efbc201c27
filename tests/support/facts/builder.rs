//! The one builder of logs: span ids, places and times are its own.
#![allow(dead_code, reason = "a bench uses a part of it")]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use roundtable::bench::{CallStarted, Prompt};
use roundtable::{Elapsed, Event, EventKind, Purpose, RunClosed, Seq, SpanId, StopReason};
use serde_json::Value;

/// A log that is being written, with what a pattern's story knows of itself.
pub struct LogBuilder<S> {
    pub log: Vec<Arc<Event>>,
    now: Duration,
    spans: u32,
    story: S,
}

impl<S> LogBuilder<S> {
    /// An empty log.
    pub fn new(story: S) -> Self {
        Self { log: Vec::new(), now: Duration::ZERO, spans: 0, story }
    }

    /// Adds any fact.
    pub fn add(&mut self, span: SpanId, kind: EventKind) -> &mut Self {
        let seq = Seq(self.log.len() as u64);
        self.log.push(Arc::new(Event { seq, at: Elapsed::from_duration(self.now), span, kind }));
        self
    }

    /// Lets time pass.
    pub fn after(&mut self, millis: u64) -> &mut Self {
        self.now += Duration::from_millis(millis);
        self
    }

    /// The next span.
    pub fn open(&mut self) -> SpanId {
        self.spans += 1;
        SpanId(self.spans)
    }

    /// A call starts; returns its span.
    pub fn call_starts(
        &mut self,
        parent: SpanId,
        tool: &str,
        purpose: Purpose,
        prompt: Prompt,
        args: Option<Value>,
    ) -> SpanId {
        let call = self.open();
        let started = CallStarted {
            parent,
            tool: tool.into(),
            purpose,
            prompt,
            args: args.map(Arc::new),
            model: None,
            repeat: 0,
        };
        self.add(call, EventKind::CallStarted(Box::new(started)));
        call
    }

    /// The run ends, in this phase.
    pub fn ends(&mut self, reason: &str, phase: Option<&str>) -> &mut Self {
        let closed = RunClosed {
            reason: StopReason::from(reason),
            phase: phase.map(str::to_owned),
            boundary: None,
            elapsed_ms: self.now.as_millis() as u64,
            paused_ms: 0,
            in_flight: 0,
        };
        self.add(SpanId::RUN, EventKind::RunClosed(Box::new(closed)))
    }
}

impl<S> Deref for LogBuilder<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.story
    }
}

impl<S> DerefMut for LogBuilder<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.story
    }
}
