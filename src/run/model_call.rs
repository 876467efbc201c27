//! One model call of a run: its request, what it may spend, how it passes the gateway, and what its
//! failure means for the run.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::host::{LastProgress, RunHost};
use super::questions::Question;
use super::spending::{NotReserved, Reserved, Spending};
use super::{RunContext, spending};
use crate::base::name::{PersonName, ToolName};
use crate::base::seeded_random::random_u64;
use crate::gateway::{
    Attempt, AttemptHost, CallFailed, CallScope, CallSuccess, Callee, GatewayCall, GuardedTool,
    attempt,
};
use crate::log::bus::{Bus, LiveSlot};
use crate::log::event::question::EXTEND;
use crate::log::event::stop::LlmError;
use crate::log::event::{
    Answer, AttemptFailed, BudgetReached, CallStarted, ChatMessage, EventKind, FailureClass,
    MessageRole, ModelLabel, Prompt, Purpose, Reply, SpanId, StopReason, Subject, Usage,
};
use crate::model::{ChatRequest, Conversation, Listener, ReplyForm};
use crate::scenario::cel::CelBindings;
use crate::scenario::people::{OPERATOR, Otherwise};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolOffer;
use crate::scenario::spec::{InDoubt, OnLimit};

/// The most times that a model which pauses is asked to continue one reply.
const MAX_PAUSES: u32 = 8;

/// One model call of a run, as the gateway sees it.
struct ModelCallScope<'a> {
    cx: &'a RunContext,
    path: &'a str,
    ask: &'a ModelRequest,
    /// Tokens that its failed attempts have used.
    failed_usage: Mutex<Usage>,
    /// The guard of the agent of another program that answers; `None`: a model answers.
    outside: Option<&'a Arc<GuardedTool>>,
    last: LastProgress,
    /// How often the run has made a call for the same purpose, this time included.
    nth: u32,
}

impl ModelCallScope<'_> {
    fn failed_usage(&self) -> Usage {
        *self.failed_usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallScope for ModelCallScope<'_> {
    fn bus(&self) -> &Bus {
        &self.cx.bus
    }

    fn remaining(&self) -> Duration {
        self.cx.control.remaining()
    }

    fn random_bits(&self, attempt: u32, what: &str) -> u64 {
        self.cx.random_bits(self.path, attempt, what)
    }

    fn in_flight(&self, out: bool) {
        self.cx.count_in_flight(out);
    }

    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        match (failure.class, self.ask.purpose.script_step(), self.outside) {
            (FailureClass::ScriptMissing, Some(step), _) => StopReason::ScriptMissing(step.into()),
            (FailureClass::ScriptMissing | FailureClass::Cancelled, ..) | (.., None) => {
                stop_reason(failure)
            }
            (class, _, Some(outside)) => StopReason::ToolError(outside.guard.name().clone(), class),
        }
    }

    fn keeps_reason(&self) -> bool {
        true
    }

    fn estimate_usage(&self, failed: &mut AttemptFailed) {
        // A script costs nothing.
        let counts = self.cx.is_live() && self.outside.is_none();
        let Some(partial) = failed.partial.as_ref().filter(|_| counts) else { return };
        let (messages, tools) = (&self.ask.messages, &self.ask.tools);
        let estimate = || spending::estimate_usage(messages, tools, partial.len());
        let usage = *failed.usage.get_or_insert_with(estimate);
        self.failed_usage.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
    }

    fn in_doubt(&self) -> InDoubt {
        self.cx.in_doubt
    }

    fn settle_doubt(
        &self,
        attempt: SpanId,
        tool: ToolName,
        decision: InDoubt,
    ) -> BoxFuture<'_, Option<Arc<Value>>> {
        let place = (self.ask.parent, attempt);
        Box::pin(self.cx.settle_doubt(place, tool, Value::Null, decision))
    }

    fn usage_in_doubt(&self) -> Option<Usage> {
        // Nobody here knows what an agent sends to its model.
        if !self.cx.is_live() || self.outside.is_some() {
            return None;
        }
        let usage = spending::estimate_usage(&self.ask.messages, &self.ask.tools, 0);
        self.failed_usage.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
        Some(usage)
    }

    fn on_adapted(&self, call: SpanId, failed: &AttemptFailed) {
        let ModelLabel::Live { name: model, .. } =
            self.cx.models.model_for(&self.ask.purpose).label()
        else {
            return;
        };
        for parameter in failed.adapted.iter().flatten() {
            let pair = (model.clone(), parameter.clone());
            let mut adapted = self.cx.adapted.lock().unwrap_or_else(PoisonError::into_inner);
            if adapted.insert(pair) {
                let (model, parameter) = (model.clone(), parameter.clone());
                self.cx.publish(call, EventKind::RequestAdapted { model, parameter });
            }
        }
    }

    fn has_effects(&self) -> bool {
        self.cx.is_live()
    }

    fn admit(&self, _: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        // The run only waits for the attempts that were in flight when its end was decided.
        let late = self.cx.control.only_finishes();
        late.then(|| std::future::ready(Err(StopReason::Cancelled)).boxed())
    }

    fn timeout_clock(&self, limit: Duration, span: SpanId) -> Option<BoxFuture<'_, ()>> {
        // Only an agent says how far it is, and asks for permission.
        self.outside?;
        Some(self.last.wait(&self.cx.control, limit, span).boxed())
    }

    fn repeat_questions(&self, attempt: SpanId) -> Option<BoxFuture<'_, ()>> {
        self.cx.repeat_questions((self.ask.parent, attempt))
    }

    fn callee_host(&self) -> Option<String> {
        match self.cx.models.model_for(&self.ask.purpose).label() {
            ModelLabel::Live { host, .. } => Some(host),
            ModelLabel::Scripted | ModelLabel::Observed { .. } => None,
        }
    }
}

/// The stop reason of a run whose model call failed (docs/rules/patterns.md, *All patterns*).
pub fn stop_reason(failure: &AttemptFailed) -> StopReason {
    let error = match failure.class {
        FailureClass::Timeout => return StopReason::LlmTimeout,
        FailureClass::Panic => return StopReason::InternalError,
        FailureClass::Cancelled => return StopReason::Cancelled,
        FailureClass::Auth => LlmError::Auth,
        FailureClass::RateLimited => LlmError::RateLimited,
        FailureClass::Resolve | FailureClass::Connect | FailureClass::Tls | FailureClass::Reset => {
            LlmError::Connection
        }
        FailureClass::Status => failure.status.map_or(LlmError::BadResponse, LlmError::Http),
        FailureClass::BadResponse
        | FailureClass::Tool
        | FailureClass::TooLarge
        | FailureClass::Limit
        | FailureClass::ScriptMissing
        | FailureClass::Denied
        | FailureClass::Rejected => LlmError::BadResponse,
    };
    StopReason::LlmError(error)
}

/// The failure of an attempt whose reply says at its end that the provider failed. Trying again
/// helps, unlike with other invalid answers.
fn failed_by_provider(reply: &Reply, host: Option<String>) -> Box<AttemptFailed> {
    let by = host.as_deref().unwrap_or("the script");
    let word = reply.finish.as_deref().unwrap_or(reply.end.word());
    let came = reply.text.chars().count();
    let what = format!("{by} ended the reply with \"{word}\", after {came} characters");
    let failed = AttemptFailed::with_advice(
        FailureClass::BadResponse,
        &what,
        "Try again, or use another model.",
    );
    Box::new(AttemptFailed {
        should_retry: Some(true),
        partial: Some(Arc::clone(&reply.text)),
        usage: reply.usage,
        ..*failed
    })
}

/// Estimates the tokens that the endpoint did not count. A prompt has some, and so has a reply that is
/// not empty: a count of 0 is then none.
fn estimate_missing_counts(request: &ChatRequest, reply: &mut Reply) {
    let came = spending::reply_bytes(reply);
    let mut usage = reply.usage.unwrap_or_default();
    let (no_prompt, no_reply) =
        (usage.prompt_tokens == 0, usage.completion_tokens == 0 && came > 0);
    if no_prompt || no_reply {
        let estimate = spending::estimate_usage(&request.messages, &request.tools, came);
        if no_prompt {
            usage.prompt_tokens = estimate.prompt_tokens;
        }
        if no_reply {
            usage.completion_tokens = estimate.completion_tokens;
        }
        reply.usage = Some(usage);
        reply.estimated = true;
    }
}

/// The blocks of a reply and of its continuation, as one reply of the model that sent the continuation.
fn joined_blocks(before: Option<&Value>, more: Option<&Value>) -> Option<Arc<Value>> {
    let content = |blocks: &Value| blocks.get("content")?.as_array().cloned();
    let mut joined = more?.clone();
    let all = content(before?)?.into_iter().chain(content(&joined)?).collect();
    *joined.get_mut("content")? = all;
    Some(Arc::new(joined))
}

/// The model behind the gateway, with the request.
struct ModelCallee<'a> {
    scope: &'a ModelCallScope<'a>,
    ask: &'a ModelRequest,
}

impl Callee for ModelCallee<'_> {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        let cx = self.scope.cx;
        let request = ChatRequest {
            messages: self.ask.messages.clone(),
            tools: Arc::clone(&self.ask.tools),
            form: self.ask.form.clone(),
            purpose: self.ask.purpose.clone(),
            message: cx.session.message,
            attempt: attempt.number,
            again: self.ask.again,
            nth: self.scope.nth,
            draw: random_u64(cx.seed, self.scope.path, attempt.number, "model"),
            shown: Arc::clone(self.ask.shown.as_ref().unwrap_or(&cx.empty_bindings)),
        };
        Box::pin(async move {
            let purpose = &self.ask.purpose;
            let by = purpose.agent().map(|agent| agent.as_str());
            let by = by.or_else(|| purpose.role().map(|role| role.as_str())).map(Arc::from);
            let host = RunHost::new(cx, attempt.span, by, &self.scope.last);
            let (bus, call, live) = (&cx.bus, attempt.call, attempt.live);
            let listener = LiveSlotWriter { bus, call, live, host };
            let outside = self.scope.outside;
            let _inside = outside.map(|_| cx.control.enclose(attempt.span, self.ask.parent));
            let model = cx.models.model_for(&self.ask.purpose);
            let said = async {
                let mut reply = model.chat(&request, &listener).await?;
                if cx.is_live() && outside.is_none() {
                    estimate_missing_counts(&request, &mut reply);
                }
                if reply.end == ReplyEnd::Failed {
                    return Err(failed_by_provider(&reply, self.scope.callee_host()));
                }
                Ok(reply)
            };
            let draw = || self.scope.random_bits(attempt.number, "fault");
            let guard = &outside.unwrap_or(&cx.llm).guard;
            let Some((injected, draw)) = guard.faults_of(draw) else { return said.await };
            // Rare: boxed, so that it does not make every other attempt larger.
            Box::pin(attempt::with_faults(cx.bus.clock(), &injected, draw, said)).await
        })
    }
}

/// Writes a reply to the live slot while it is received.
struct LiveSlotWriter<'a> {
    bus: &'a Bus,
    call: SpanId,
    live: &'a LiveSlot,
    host: RunHost<'a>,
}

impl Listener for LiveSlotWriter<'_> {
    fn piece(&self, text: &str) {
        self.live.push(text);
    }

    fn host(&self) -> &dyn AttemptHost {
        &self.host
    }

    fn condition_failed(&self, place: &str, text: &str) {
        let (place, text) = (place.to_owned(), text.to_owned());
        self.bus.publish(self.call, EventKind::ConditionFailed { place, text });
    }
}

impl RunContext {
    /// Calls the model through the gateway. The caller is an active branch of the run until the call has
    /// ended.
    ///
    /// # Errors
    /// [`CallFailed`] with the run's stop reason after the last attempt.
    pub async fn call_model(
        &self,
        ask: &ModelRequest,
    ) -> Result<(SpanId, Arc<Reply>), Box<CallFailed>> {
        let (call, reply) = self.call_model_once(ask).await?;
        if reply.end != ReplyEnd::Paused {
            return Ok((call, reply));
        }
        // Boxed because it is rare: otherwise the future of every call would be larger.
        Box::pin(self.continue_paused(ask.clone(), call, reply)).await
    }

    /// Asks a model that paused to continue, until its reply ends or it has paused too often. The
    /// texts of these replies form one reply, which ends as the last one does.
    async fn continue_paused(
        &self,
        mut ask: ModelRequest,
        mut call: SpanId,
        reply: Arc<Reply>,
    ) -> Result<(SpanId, Arc<Reply>), Box<CallFailed>> {
        let mut whole = Arc::unwrap_or_clone(reply);
        let mut part = whole.clone();
        while part.end == ReplyEnd::Paused && ask.pauses < MAX_PAUSES {
            ask = ask.continue_after_pause(call, &part);
            let (next, reply) = self.call_model_once(&ask).await?;
            (call, part) = (next, Arc::unwrap_or_clone(reply));
            let blocks = joined_blocks(whole.blocks.as_deref(), part.blocks.as_deref());
            let text = format!("{}{}", whole.text, part.text).into();
            whole = Reply { text, blocks, ..part.clone() };
        }
        Ok((call, Arc::new(whole)))
    }

    async fn call_model_once(
        &self,
        ask: &ModelRequest,
    ) -> Result<(SpanId, Arc<Reply>), Box<CallFailed>> {
        let outside = self.outside_guard(&ask.purpose);
        let guard = &outside.unwrap_or(&self.llm).guard;
        let path = &ask.random_path();
        let (failed_usage, last) = (Mutex::default(), LastProgress::default());
        let counts = self.questions.scenario().script.counts_calls();
        let nth = match counts {
            true => self.count_equal_call(guard.name(), format!("{} {:?}", ask.again, ask.purpose)),
            false => 1,
        };
        let scope = ModelCallScope { cx: self, path, ask, failed_usage, outside, last, nth };
        let call = GatewayCall {
            started: Box::new(CallStarted {
                parent: ask.parent,
                tool: guard.name().clone(),
                purpose: ask.purpose.clone(),
                prompt: ask.prompt.clone(),
                args: None,
                model: self.models.name_for(&ask.purpose),
                repeat: ask.again,
            }),
            safe_key: None,
        };
        let asked = ModelCallee { scope: &scope, ask };
        // Boxed because it is rare: otherwise the future of every call would be larger.
        let reserved = match self.spending.is_limited() {
            true => Some(Box::pin(self.reserve(ask)).await),
            false => None,
        };
        let answered = call.make(&scope, guard, &asked).await;
        if let Some(reserved) = reserved {
            let reply = answered.as_ref().ok().map(|it| &it.reply);
            let mut used = scope.failed_usage();
            used.add(reply.and_then(|it| it.usage).unwrap_or_default());
            reserved.used(&used, reply.and_then(|it| it.cost_usd));
        }
        let answered = answered?;
        if outside.is_some() && self.is_live() {
            self.require_cost(guard.name(), &answered).await;
        }
        Ok((answered.span, answered.reply))
    }

    /// Stops the run and never returns if its cost is limited, and an agent has not said what a turn cost.
    async fn require_cost(&self, agent: &ToolName, answered: &CallSuccess) {
        let Some(limit) = self.spending.cost_limit() else { return };
        if answered.reply.cost_usd.is_some() {
            return;
        }
        let text = format!(
            "{agent} did not say what its turn cost, so {limit} cannot hold: the run stops"
        );
        self.publish(answered.span, EventKind::Warning { text });
        self.control.stop(StopReason::MaxCostBudget);
        std::future::pending().await
    }

    /// Asks the operator whether to extend a limit, and extends it. `None`: the run is stopped meanwhile.
    pub(crate) async fn ask_to_extend(
        &self,
        spending: &Spending,
        span: SpanId,
        reached: BudgetReached,
    ) -> Option<bool> {
        let question = Question {
            span,
            inside: span,
            by: None,
            why: None,
            subject: Subject::Budget(reached),
            asking: self.asking(&PersonName::from(OPERATOR), Otherwise::Stop),
            rule: None,
        };
        let ended = self.questions.ask(question).await.ok()?;
        let extends =
            matches!(&ended.answered.answer, Answer::Choose { choice, .. } if **choice == *EXTEND);
        if extends {
            spending.extend(&reached);
        }
        Some(extends)
    }

    /// Reserves the estimated use of a call. If it does not fit into the limit of the run, the operator
    /// is asked to extend it, or the run is stopped and this never returns.
    async fn reserve(&self, ask: &ModelRequest) -> Reserved<'_> {
        let most = self.models.model_for(&ask.purpose).max_tokens();
        let estimate = spending::estimate(&ask.messages, &ask.tools, most);
        let price = self.models.price_for(&ask.purpose);
        let mut asking = None;
        loop {
            let reached = match self.spending.reserve(estimate, price, None).await {
                Ok(mut reserved) => {
                    reserved.sent();
                    return reserved;
                }
                Err(NotReserved::Reached(reached)) => reached,
                Err(NotReserved::Failed(why)) => {
                    let text = format!("{why}: no call is made");
                    self.publish(ask.parent, EventKind::Warning { text });
                    self.control.stop(StopReason::MaxCostBudget);
                    std::future::pending().await
                }
            };
            let asks = self.questions.scenario().on_limit == OnLimit::Ask;
            if asks && !reached.is_of_day() {
                if asking.is_none() {
                    // Only an answer to another call can end this wait.
                    let _waits = self.control.mark_waiting();
                    asking = Some(self.spending.asking.lock().await);
                    // Another call may have asked meanwhile.
                    continue;
                }
                match self.ask_to_extend(&self.spending, ask.parent, reached).await {
                    Some(true) => continue,
                    Some(false) => {}
                    // The run is stopped.
                    None => std::future::pending().await,
                }
            }
            self.publish(ask.parent, EventKind::BudgetReached(reached));
            self.control.stop(reached.reason());
            std::future::pending().await
        }
    }
}

/// A request to the model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The span that the call belongs to.
    pub parent: SpanId,
    /// What the call is for.
    pub purpose: Purpose,
    /// Name of the call within the run, the same in every run: random numbers are derived from it.
    pub path: String,
    pub messages: Conversation,
    /// The part of the conversation that the log does not have yet.
    pub prompt: Prompt,
    /// The tools that the model may call.
    pub tools: Arc<[ToolOffer]>,
    /// The format that the reply must have.
    pub form: ReplyForm,
    /// The values that conditions of a script may read, if there are conditions.
    pub shown: Option<Arc<CelBindings>>,
    /// How many replies to this request were refused before: the model is asked again.
    pub again: u32,
    /// How often the model has paused before this call, and is asked to continue.
    pub pauses: u32,
}

impl ModelRequest {
    /// A single question without an earlier conversation.
    pub fn single(
        parent: SpanId,
        purpose: Purpose,
        path: String,
        messages: Arc<[ChatMessage]>,
        form: ReplyForm,
        shown: Option<CelBindings>,
    ) -> Self {
        Self {
            parent,
            purpose,
            path,
            messages: Conversation::from(Arc::clone(&messages)),
            prompt: Prompt::complete(messages),
            tools: Arc::default(),
            form,
            shown: shown.map(Arc::new),
            again: 0,
            pauses: 0,
        }
    }

    /// The same request after a refused reply: the conversation continues with that reply and with
    /// its fault.
    pub fn repeat_after_refusal(mut self, call: SpanId, reply: &Reply, wrong: String) -> Self {
        let wrong: Arc<[ChatMessage]> = [ChatMessage::new(MessageRole::User, wrong)].into();
        // Some providers refuse a conversation with an empty message.
        if !reply.text.trim().is_empty() {
            self.messages.push([ChatMessage::from_reply(reply)].into());
        }
        self.messages.push(Arc::clone(&wrong));
        self.prompt = Prompt { after: Some(call), messages: wrong, ..Prompt::default() };
        self.again += 1;
        self
    }

    /// The request with which a model continues after it paused: the conversation ends with what it
    /// had said so far.
    pub fn continue_after_pause(mut self, call: SpanId, reply: &Reply) -> Self {
        self.messages.push([ChatMessage::from_reply(reply)].into());
        self.prompt = Prompt { after: Some(call), ..Prompt::default() };
        self.pauses += 1;
        self
    }

    /// The path that random numbers are derived from: each request to repeat gets its own.
    fn random_path(&self) -> Cow<'_, str> {
        match (self.again, self.pauses) {
            (0, 0) => Cow::Borrowed(&self.path),
            (again, 0) => Cow::Owned(format!("{}+{again}", self.path)),
            (again, pauses) => Cow::Owned(format!("{}+{again}-{pauses}", self.path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure;

    #[test]
    fn failures_map_to_stop_reasons() {
        use FailureClass::*;
        let table = [
            (Timeout, None, "llm_timeout"),
            (Auth, Some(401), "llm_error:auth"),
            (Auth, Some(403), "llm_error:auth"),
            (RateLimited, Some(429), "llm_error:rate_limited"),
            (Status, Some(500), "llm_error:http_500"),
            (Status, Some(404), "llm_error:http_404"),
            (Resolve, None, "llm_error:connection"),
            (Connect, None, "llm_error:connection"),
            (Tls, None, "llm_error:connection"),
            (Reset, None, "llm_error:connection"),
            (BadResponse, Some(200), "llm_error:bad_response"),
            (TooLarge, Some(200), "llm_error:bad_response"),
            (Denied, None, "llm_error:bad_response"),
            (Panic, None, "internal_error"),
        ];
        for (class, status, expected) in table {
            let failed = AttemptFailed { status, ..*failure(class, "") };
            assert_eq!(stop_reason(&failed).to_string(), expected, "{class:?}");
        }
    }
}
