//! A call through the gateway without a run around it: a scope with a deadline, and a tool that
//! behaves as told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::gateway::{
    Attempt, CallFailed, CallGuard, CallScope, CallSuccess, Callee, GatewayCall, Tool, ToolRequest,
};
use roundtable::log::bus::Bus;
use roundtable::log::event::{
    AttemptFailed, CallStarted, Event, EventKind, FailureClass, Prompt, Purpose, Reply, Seq,
    SpanId, StopReason,
};
use roundtable::scenario::spec::policy::{CallPolicy, SafeMode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// What one attempt does, by its number.
pub type Behaviour =
    dyn Fn(u32) -> BoxFuture<'static, Result<Value, Box<AttemptFailed>>> + Send + Sync;

/// A tool that behaves as told and knows how often it was asked, and when.
pub struct Odd {
    pub asked: AtomicU32,
    pub given_up: Arc<AtomicU32>,
    behave: Box<Behaviour>,
}

impl Odd {
    pub fn new(
        behave: impl Fn(u32) -> BoxFuture<'static, Result<Value, Box<AttemptFailed>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { asked: AtomicU32::new(0), given_up: Arc::default(), behave: Box::new(behave) }
    }

    /// Answers each attempt with what `class` makes of it; `None`: well.
    pub fn failing(
        class: impl Fn(u32) -> Option<Box<AttemptFailed>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |number| {
            let failed = class(number);
            async move { failed.map_or(Ok(json!({ "good": true })), Err) }.boxed()
        })
    }

    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Counts an attempt that is dropped before its end.
pub struct Unfinished(Arc<AtomicU32>, bool);

impl Unfinished {
    /// An attempt that begins.
    pub fn new(dropped: &Arc<AtomicU32>) -> Self {
        Self(Arc::clone(dropped), false)
    }

    /// The attempt has come to its end.
    pub fn end(mut self) {
        self.1 = true;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Callee for Odd {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        async move {
            let unfinished = Unfinished::new(&self.given_up);
            let answered = (self.behave)(attempt.number).await;
            unfinished.end();
            Ok(Reply::from_tool_result(Arc::new(answered?)))
        }
        .boxed()
    }
}

/// A real tool behind the gateway.
pub struct Behind<'a>(pub &'a dyn Tool);

impl Callee for Behind<'_> {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        async move {
            let args = Map::new();
            let request = ToolRequest { attempt: attempt.number, ..ToolRequest::bare(&args) };
            self.0.ask(request).await.map(Reply::from_tool_result)
        }
        .boxed()
    }
}

/// A run as the gateway sees it.
pub struct Scope {
    pub bus: Bus,
    pub until: Instant,
    pub out: AtomicU32,
}

impl Scope {
    /// With so much time left.
    pub fn with(left: Duration) -> Self {
        Self { bus: Bus::new(), until: Instant::now() + left, out: AtomicU32::new(0) }
    }

    pub fn new() -> Self {
        Self::with(Duration::from_secs(3_600))
    }

    /// Every fact so far.
    pub async fn facts(&self) -> Vec<Arc<Event>> {
        let mut facts = Vec::new();
        let mut reader = self.bus.reader(Seq(0));
        while (facts.len() as u64) < self.bus.len() {
            reader.next_batch(&mut facts, 1_024).await;
        }
        facts
    }

    /// The names of the facts so far.
    pub async fn kinds(&self) -> Vec<String> {
        self.facts().await.iter().map(|fact| fact.kind.name().to_owned()).collect()
    }

    /// The waits before further attempts, in milliseconds.
    pub async fn waits(&self) -> Vec<u64> {
        let waits = self.facts().await.into_iter().filter_map(|fact| match fact.kind {
            EventKind::CallRetried { wait_ms, .. } => Some(wait_ms),
            _ => None,
        });
        waits.collect()
    }
}

impl CallScope for Scope {
    fn bus(&self) -> &Bus {
        &self.bus
    }
    fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
    fn random_bits(&self, _: u32, _: &str) -> u64 {
        0
    }
    fn in_flight(&self, out: bool) {
        if out {
            self.out.fetch_add(1, Ordering::SeqCst);
        } else {
            self.out.fetch_sub(1, Ordering::SeqCst);
        }
    }
    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        StopReason::ToolError("vendor".into(), failure.class)
    }
}

/// Section 5's defaults without jitter, and safe mode off.
pub fn policy() -> CallPolicy {
    CallPolicy { jitter: false, safe_mode: SafeMode::OFF, ..CallPolicy::default() }
}

/// A guard at rest before the tool `vendor`, told to this log.
pub fn guard(policy: CallPolicy, scope: &Scope) -> CallGuard {
    let guard = CallGuard::new("vendor".into(), policy, Duration::from_secs(10), &[]);
    guard.watch(&scope.bus);
    guard
}

/// One call of the tool.
pub async fn call(
    scope: &Scope,
    guard: &CallGuard,
    tool: &dyn Callee,
) -> Result<CallSuccess, Box<CallFailed>> {
    let started = CallStarted {
        parent: SpanId::RUN,
        tool: "vendor".into(),
        purpose: Purpose::AgentStep { agent: 1, turn: 1, step: 0, repeat: 0 },
        prompt: Prompt::default(),
        args: Some(Arc::new(json!({ "q": 1 }))),
        model: None,
        repeat: 0,
    };
    let started = Box::new(started);
    GatewayCall { started, safe_key: Some("{\"q\":1}".to_owned()) }.make(scope, guard, tool).await
}

/// A failure of this class.
pub fn fails(class: FailureClass) -> Option<Box<AttemptFailed>> {
    Some(AttemptFailed::new(class, "as told"))
}

/// An HTTP status.
pub fn status(status: u16) -> Option<Box<AttemptFailed>> {
    Some(AttemptFailed::from_status(status, "as told"))
}

/// 429 with a `Retry-After` of so many milliseconds.
pub fn limited(retry_after_ms: u64) -> Option<Box<AttemptFailed>> {
    let failed = *AttemptFailed::from_status(429, "as told");
    Some(Box::new(AttemptFailed { retry_after_ms: Some(retry_after_ms), ..failed }))
}
