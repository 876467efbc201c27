//! Calls of agents through the gateway: a consulted member, or the member of a swarm that is in
//! control. Timeouts of an attempt use the run's active time, because an agent can be paused at a
//! boundary inside an attempt.
//!
//! A coordinator consults a member. The member's run is a call through the gateway; each attempt is
//! a new run of the member.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;

use super::tool_calls::{Consultation, ToolCallResult, call_index};
use super::{AgentAnswer, AgentPosition, AgentRun, AgentRunner, ModelReply};
use crate::base::name::{AgentName, ToolName};
use crate::base::visible::visible_within;
use crate::gateway::{
    Attempt, CallFailed, CallGuard, CallScope, CallSuccess, Callee, GatewayCall, QueueMarker,
    attempt,
};
use crate::log::bus::Bus;
use crate::log::event::{
    AttemptFailed, CallStarted, ChatMessage, FailureClass, Prompt, Purpose, Reply, SpanId,
    StopReason, result_text,
};
use crate::log::facts::agents::MemberOutput;
use crate::run::control::Enclosing;
use crate::run::{LLM, RunContext};
use crate::scenario::patterns::agents::{AgentSpec, HistoryScope, InnerText, MemberTools};

/// Why an agent gave no answer.
#[derive(Clone, Debug)]
pub(crate) struct Halt {
    pub reason: StopReason,
    /// The failure class for the gateway of the agent; for a failed model call, the class of that
    /// failure.
    class: FailureClass,
    status: Option<u16>,
    /// The best partial text, and the agent that said it.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// Stops the whole run instead of being reported to the caller.
    pub fatal: bool,
}

impl Halt {
    /// A halt by the agent's own limits.
    pub fn by_limit(reason: StopReason) -> Box<Self> {
        let class = match reason {
            StopReason::NodeTimeout(_) => FailureClass::Timeout,
            StopReason::LlmEmpty => FailureClass::BadResponse,
            _ => FailureClass::Limit,
        };
        Box::new(Self { reason, class, status: None, partial: None, fatal: false })
    }

    /// A halt because a required call failed. If the model is unavailable (breaker open or bulkhead
    /// full), the whole run stops.
    pub fn by_failed_call(failed: &CallFailed) -> Box<Self> {
        let (class, status) = match &failed.last {
            Some(last) => (last.class, last.status),
            None => (FailureClass::Limit, None),
        };
        let fatal = match &failed.reason {
            StopReason::CircuitOpen(tool)
            | StopReason::BulkheadFull(tool)
            | StopReason::RateReached(tool) => tool.as_str() == LLM,
            _ => false,
        };
        Box::new(Self { class, status, fatal, ..*Self::by_limit(failed.reason.clone()) })
    }

    /// Makes the halt stop the whole run.
    pub fn fatal(mut self: Box<Self>) -> Box<Self> {
        self.fatal = true;
        self
    }

    /// The failure of the agent's attempt. A failure that ends the run, or a node timeout, is not
    /// retried and has no fallback.
    fn to_attempt_failure(&self) -> Box<AttemptFailed> {
        let last = self.fatal || matches!(self.reason, StopReason::NodeTimeout(_));
        let class = if last { FailureClass::Limit } else { self.class };
        let text = match &self.partial {
            Some((text, by)) => format!("{}; {by} had said: {text}", self.reason),
            None => self.reason.to_string(),
        };
        let text = visible_within(&text, FAILURE_CHARS);
        Box::new(AttemptFailed { status: self.status, ..*AttemptFailed::new(class, text) })
    }
}

/// The most characters of an agent's failure text.
const FAILURE_CHARS: usize = 300;

/// One attempt of a call: one run of the agent.
#[derive(Clone, Copy)]
pub(crate) struct AttemptId {
    pub span: SpanId,
    pub number: u32,
}

impl AttemptId {
    /// The seed path for the random numbers of this attempt; it differs from the first attempt's.
    pub fn attempt_seed_path(self, path: &str) -> String {
        match self.number {
            1 => path.to_owned(),
            number => format!("{path}~{number}"),
        }
    }
}

/// One call of an agent through the gateway.
pub(crate) struct AgentCall<'a, F> {
    cx: &'a RunContext,
    agent: &'a AgentName,
    /// Path in the run; part of the seed of its random numbers.
    path: String,
    /// Runs the agent once.
    attempt: F,
    /// Limit for all attempts together, from the start of the first one, without the waits between
    /// them (`node_timeout_s`).
    bound: Option<Duration>,
    /// When the first attempt began, in active run time.
    began: OnceLock<Duration>,
    parent: OnceLock<SpanId>,
    /// The call, whose time limit does not count waits for people inside it.
    enclosing: OnceLock<Enclosing>,
    /// Why the last attempt failed.
    halted: Mutex<Option<Box<Halt>>>,
}

impl<'a, F> AgentCall<'a, F>
where
    F: Fn(AttemptId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    pub fn new(
        cx: &'a RunContext,
        agent: &'a AgentName,
        path: String,
        bound: Option<Duration>,
        attempt: F,
    ) -> Self {
        let (began, parent, enclosing) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let halted = Mutex::default();
        Self { cx, agent, path, attempt, bound, began, parent, enclosing, halted }
    }

    /// Makes the call.
    ///
    /// # Errors
    /// Why the agent gave no answer, and no fallback was available.
    pub async fn make(
        &self,
        started: CallStarted,
    ) -> Result<CallSuccess, (Box<CallFailed>, Box<Halt>)> {
        let name = ToolName::from(self.agent.as_str());
        let Some(guarded) = self.cx.tools().get(&name) else {
            // The engine registers every agent, so this cannot happen.
            let (span, reason) = (started.parent, StopReason::InternalError);
            let halt = Halt::by_limit(reason.clone()).fatal();
            let (attempts, last, unavailable, denied) = (0, None, true, None);
            let failed = CallFailed { span, attempts, reason, last, unavailable, denied };
            return Err((Box::new(failed), halt));
        };
        // An agent's answer depends on everything that it sees, so no last good value is cached for
        // it; the only fallback is the scenario's default value.
        let safe = guarded.guard.policy().0.safe_mode.enabled;
        let _ = self.parent.set(started.parent);
        let started = Box::new(started);
        let call = GatewayCall { safe_key: safe.then(String::new), started };
        let callee = AgentCallee { agent_call_scope: self, guard: &guarded.guard };
        call.make(self, &guarded.guard, &callee).await.map_err(|failed| {
            let halted = self.last_halt().take().filter(|halt| halt.reason == failed.reason);
            let halt = halted.unwrap_or_else(|| Halt::by_failed_call(&failed));
            let needed = failed.unavailable && self.cx.requires(&name);
            (failed, if needed { halt.fatal() } else { halt })
        })
    }

    fn last_halt(&self) -> MutexGuard<'_, Option<Box<Halt>>> {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remaining time for all attempts of the call.
    fn time_left(&self, call: SpanId) -> Option<Duration> {
        let control = self.cx.control();
        let parent = self.parent.get().copied().unwrap_or_default();
        self.enclosing.get_or_init(|| control.enclose(call, parent));
        let now = control.active_in(call);
        let began = *self.began.get_or_init(|| now);
        Some(self.bound?.saturating_sub(now.saturating_sub(began)))
    }
}

impl<'a, F> CallScope for AgentCall<'a, F>
where
    F: Fn(AttemptId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    fn bus(&self) -> &Bus {
        self.cx.bus()
    }

    fn remaining(&self) -> Duration {
        self.cx.control().remaining()
    }

    fn random_bits(&self, attempt: u32, what: &str) -> u64 {
        self.cx.random_bits(&self.path, attempt, what)
    }

    fn in_flight(&self, out: bool) {
        self.cx.count_in_flight(out);
    }

    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        match &*self.last_halt() {
            Some(halt) => halt.reason.clone(),
            None => StopReason::ToolError(ToolName::from(self.agent.as_str()), failure.class),
        }
    }

    fn has_recorded_replies(&self) -> bool {
        false
    }

    fn timeout_clock(&self, limit: Duration, span: SpanId) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(self.cx.control().sleep_active_in(span, limit)))
    }

    fn person_is_asked(&self, attempt: SpanId) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(self.cx.control().wait_until_asked(attempt)))
    }

    /// The holder of the permit may be paused at a boundary, so a pause does not wait for a queued
    /// call.
    fn enter_queue(&self) -> Option<Box<dyn QueueMarker + '_>> {
        Some(Box::new(self.cx.control().mark_waiting()))
    }
}

struct AgentCallee<'b, 'a, F> {
    agent_call_scope: &'b AgentCall<'a, F>,
    guard: &'b CallGuard,
}

impl<'a, F> AgentCallee<'_, 'a, F>
where
    F: Fn(AttemptId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    fn halt(&self, halt: Box<Halt>) -> Box<AttemptFailed> {
        let failed = halt.to_attempt_failure();
        *self.agent_call_scope.last_halt() = Some(halt);
        failed
    }

    async fn run(&self, attempt: &Attempt<'_>) -> Result<Reply, Box<AttemptFailed>> {
        let (span, number) = (attempt.span, attempt.number);
        let run = async {
            (self.agent_call_scope.attempt)(AttemptId { span, number })
                .await
                .map_err(|halt| self.halt(halt))
        };
        let draw = || self.agent_call_scope.random_bits(number, "fault");
        let Some((injected, draw)) = self.guard.faults_of(draw) else { return run.await };
        attempt::with_faults(self.agent_call_scope.bus().clock(), &injected, draw, run).await
    }
}

impl<'a, F> Callee for AgentCallee<'_, 'a, F>
where
    F: Fn(AttemptId) -> BoxFuture<'a, Result<Reply, Box<Halt>>> + Send + Sync,
{
    fn attempt<'t>(
        &'t self,
        attempt: Attempt<'t>,
    ) -> BoxFuture<'t, Result<Reply, Box<AttemptFailed>>> {
        Box::pin(async move {
            *self.agent_call_scope.last_halt() = None;
            let control = self.agent_call_scope.cx.control();
            let left = self.agent_call_scope.time_left(attempt.call);
            let _enclosing = control.enclose(attempt.span, attempt.call);
            let Some(left) = left else { return self.run(&attempt).await };
            tokio::select! {
                biased;
                ended = self.run(&attempt) => ended,
                () = control.sleep_active_in(attempt.call, left) => {
                    let reason = StopReason::NodeTimeout(self.agent_call_scope.agent.clone());
                    Err(self.halt(Halt::by_limit(reason)))
                }
            }
        })
    }
}

/// A request to an agent: who asks, and with what.
pub(crate) struct AgentRequest<'a> {
    /// The agent that asks; its span, its path and the path of its random numbers.
    pub by: &'a AgentName,
    pub parent: SpanId,
    pub path: &'a str,
    pub seed_path: &'a str,
    /// Number of this turn of the agent that is asked, from 1.
    pub turn: u32,
    /// The model call that requested it, and the index among its tool calls.
    pub requested_by: SpanId,
    pub index: usize,
    pub request: &'a Arc<str>,
    /// The messages that the agent sees before its request.
    pub inherited: Arc<[ChatMessage]>,
    /// How much of its output is shown while it works.
    pub output: MemberOutput,
}

impl AgentRunner<'_> {
    /// Calls an agent through the gateway: each attempt is one run of it. With the reply comes the
    /// agent that wrote it, unless it is a fallback.
    pub(crate) async fn call_agent(
        &self,
        agent: &AgentSpec,
        asked: AgentRequest<'_>,
    ) -> Result<(CallSuccess, Option<AgentName>), (Box<CallFailed>, Box<Halt>)> {
        let AgentRequest { turn, request, inherited, .. } = asked;
        let path = format!("{}/{}.{turn}", asked.path, agent.name);
        let draws = format!("{}/{}.{turn}", asked.seed_path, agent.name);
        let written_by = Mutex::new(None);
        let attempt = |it: AttemptId| {
            let (path, inherited, written_by) = (&path, Arc::clone(&inherited), &written_by);
            let draws = it.attempt_seed_path(&draws);
            let attempt = async move {
                let place = AgentPosition { span: it.span, path, seed_path: &draws, outer: false };
                let by = Some(asked.by);
                let AgentAnswer { text, by, end } =
                    self.run_consulted(agent, place, request, by, turn, inherited).await?;
                *written_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(by);
                Ok(Reply { end, ..Reply::from_agent_text(text) })
            };
            Box::pin(attempt) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let behind = AgentCall::new(self.cx, &agent.name, format!("member:{draws}"), None, attempt);
        let started = CallStarted {
            parent: asked.parent,
            tool: ToolName::from(agent.name.as_str()),
            purpose: Purpose::Member {
                agent: agent.name.clone(),
                turn,
                by: asked.by.clone(),
                requested_by: asked.requested_by,
                index: call_index(asked.index),
                member_output: asked.output,
            },
            prompt: Prompt::default(),
            args: Some(Arc::new(json!({ "request": &**request }))),
            model: None,
            repeat: 0,
        };
        let answered = behind.make(started).await?;
        drop(behind);
        let written_by = written_by.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((answered, written_by))
    }

    /// Consults a member for a coordinator.
    pub(super) async fn consult(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        index: usize,
        asked: &Consultation<'_>,
    ) -> Result<ToolCallResult, Box<Halt>> {
        let Consultation { team, member, request, turn } = asked;
        let tools = team.member_tools;
        let asked = AgentRequest {
            by: run.name,
            parent: run.place.span,
            path: run.place.path,
            seed_path: run.place.seed_path,
            turn: *turn,
            requested_by: said.call,
            index,
            request,
            inherited: match tools.history_scope {
                HistoryScope::ParentBranch => run.team_history.inheritable(),
                HistoryScope::Isolated => [].into(),
            },
            output: inner_visibility(tools),
        };
        match self.call_agent(member, asked).await {
            Ok((answered, _)) => Ok(ToolCallResult {
                text: result_text::reply_text(&answered.reply),
                ok: true,
                member: true,
                end: answered.reply.end,
            }),
            Err((_, halt)) if halt.fatal => Err(halt),
            Err((failed, _)) => {
                self.failed_call_result(&ToolName::from(member.name.as_str()), &failed)
            }
        }
    }
}

/// How much of a member's own output is shown.
fn inner_visibility(tools: MemberTools) -> MemberOutput {
    match (tools.stream_inner, tools.inner_text) {
        (false, _) => MemberOutput::Hidden,
        (true, InnerText::Exclude) => MemberOutput::Progress,
        (true, InnerText::Include) => MemberOutput::Text,
    }
}
