//! Agents behind the gateway: a member that is consulted, a member of a swarm that is in control.
//! Its attempts are bounded by the run's own clock, since it can rest at boundaries in the middle of
//! one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::bus::Bus;
use crate::event::kind::{AttemptFailed, CallStarted, FailureClass, Reply};
use crate::event::{SpanId, StopReason};
use crate::run::RunContext;
use crate::scenario::name::{AgentName, ToolName};
use crate::tool::{Answered, Attempt, Call, CallFailed, CallScope, Callee, faults};

/// Why an agent came to no answer.
#[derive(Clone, Debug)]
pub(super) struct Halt {
    pub reason: StopReason,
    /// The best text that there was, and whose.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// Nobody is told: the whole run stops.
    pub fatal: bool,
}

impl Halt {
    pub fn of(reason: StopReason) -> Box<Self> {
        Box::new(Self { reason, partial: None, fatal: false })
    }

    /// For the one who asked.
    pub fn text(&self) -> String {
        match &self.partial {
            Some((text, by)) => format!("{}; {by} had said: {text}", self.reason),
            None => self.reason.to_string(),
        }
    }
}

/// One call of an agent through the gateway.
pub(super) struct Behind<'a, F> {
    pub cx: &'a RunContext,
    pub agent: &'a AgentName,
    /// Where in the run: what random numbers hang on.
    pub path: String,
    /// One run of the agent within the span of an attempt.
    pub attempt: F,
    /// What the last attempt failed of.
    pub halted: Mutex<Option<Box<Halt>>>,
}

impl<'a, F> Behind<'a, F>
where
    F: Fn(SpanId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    pub fn new(cx: &'a RunContext, agent: &'a AgentName, path: String, attempt: F) -> Self {
        Self { cx, agent, path, attempt, halted: Mutex::default() }
    }

    /// Makes the call. An agent that the gateway does not know is one that nobody guards.
    pub async fn make(&self, started: CallStarted) -> Result<Answered, Box<CallFailed>> {
        let name = ToolName::from(self.agent.as_str());
        let Some(guarded) = self.cx.belt().get(&name).map(Arc::clone) else {
            let (span, reason) = (started.parent, StopReason::ToolError(name, FailureClass::Tool));
            let (attempts, last, unavailable) = (0, None, true);
            return Err(Box::new(CallFailed { span, attempts, reason, last, unavailable }));
        };
        let safe = guarded.guard.policy().0.safe_mode.enabled;
        let said = || started.args.as_deref().map(Value::to_string).unwrap_or_default();
        let call = Call { safe_key: safe.then(said), started };
        let callee = Through { behind: self, guard: &guarded.guard, safe };
        call.make(self, &guarded.guard, &callee).await
    }

    /// What the last attempt failed of; to be asked once.
    pub fn halted(&self) -> Option<Box<Halt>> {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn halt(&self, halt: Option<Box<Halt>>) {
        *self.halted.lock().unwrap_or_else(PoisonError::into_inner) = halt;
    }
}

impl<'a, F> CallScope for Behind<'a, F>
where
    F: Fn(SpanId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    fn bus(&self) -> &Bus {
        self.cx.bus()
    }

    fn remaining(&self) -> Duration {
        self.cx.gate().remaining()
    }

    fn draw(&self, attempt: u32, what: &str) -> u64 {
        self.cx.draw(&self.path, attempt, what)
    }

    fn in_flight(&self, out: bool) {
        self.cx.count_in_flight(out);
    }

    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        let halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        match &*halted {
            Some(halt) => halt.reason.clone(),
            None => StopReason::ToolError(ToolName::from(self.agent.as_str()), failure.class),
        }
    }

    fn time_up(&self, limit: Duration) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(self.cx.gate().has_gone_on(limit)))
    }
}

struct Through<'b, 'a, F> {
    behind: &'b Behind<'a, F>,
    guard: &'b crate::tool::Guard,
    safe: bool,
}

impl<'a, F> Callee for Through<'_, 'a, F>
where
    F: Fn(SpanId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    fn attempt<'t>(
        &'t self,
        attempt: Attempt<'t>,
    ) -> BoxFuture<'t, Result<Reply, Box<AttemptFailed>>> {
        Box::pin(async move {
            self.behind.halt(None);
            let run = async {
                let mut reply = (self.behind.attempt)(attempt.span).await.map_err(|halt| {
                    let class = match halt.reason {
                        StopReason::NodeTimeout(_) => FailureClass::Timeout,
                        _ => FailureClass::Tool,
                    };
                    let failed = AttemptFailed::of(class, halt.text());
                    self.behind.halt(Some(halt));
                    failed
                })?;
                if self.safe && reply.finish.is_none() {
                    reply.result = Some(Arc::new(Value::from(&*reply.text)));
                }
                Ok(reply)
            };
            let injected = self.guard.faults();
            if injected.is_empty() {
                return run.await;
            }
            let draw = self.behind.draw(attempt.number, "fault");
            faults::through(&injected, draw, run).await
        })
    }
}

/// The text of an agent's reply, or of what stands in for it.
pub(super) fn text_of(answered: &Answered) -> Arc<str> {
    match (&answered.stand_in, answered.reply.result.as_deref()) {
        (Some(_), Some(Value::String(text))) => text.as_str().into(),
        (Some(_), Some(value)) => value.to_string().into(),
        _ => Arc::clone(&answered.reply.text),
    }
}
