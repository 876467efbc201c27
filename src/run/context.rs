//! The context of one run: everything that a pattern may use besides its own logic.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::sleep;

use super::control::{RunControl, RunStopped};
use super::phase::Phase;
use super::session::Session;
use super::spending::{self, Reserved, Spending};
use crate::base::day::Day;
use crate::base::name::{FlagName, ToolName};
use crate::base::seeded_random::{Latency, random_duration, random_u64};
use crate::bus::{Bus, LiveSlot};
use crate::event::kind::{
    AttemptFailed, CallStarted, ChatMessage, FailureClass, MessageRole, ModelLabel, Prompt,
    Purpose, Reply, ToolOffer, Usage,
};
use crate::event::stop::LlmError;
use crate::event::{Boundary, EventKind, RunId, Seq, SpanId, StopReason};
use crate::gateway::{
    Attempt, CallFailed, CallScope, Callee, GatewayCall, GuardedTool, ToolRegistry, ToolSetup,
    faults,
};
use crate::llm::{ChatRequest, Conversation, Listener, Models, ReplyForm};
use crate::scenario::condition::CelBindings;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::spending_limits::SpendingLimits;
use crate::scenario::spec::tool::{InjectedFault, ResultContract};

/// Everything that a run's context is built from.
pub struct RunSettings {
    /// Id of the run.
    pub id: RunId,
    /// Log of the run.
    pub bus: Bus,
    /// Time limit of the whole run, pauses not counted.
    pub max: Duration,
    /// The flags and their positions at the start.
    pub flags: BTreeMap<FlagName, bool>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The models that answer its calls.
    pub models: Models,
    /// The tools behind the gateway; first the model's guard (`llm`).
    pub tools: Vec<Arc<GuardedTool>>,
    /// The message of a session that the run answers.
    pub session: Session,
    /// Whether the pauses that a scenario writes into its run are skipped.
    pub instant: bool,
    /// The day on which the run starts, in UTC, as in its head.
    pub today: Day,
    /// Limits of what the run may spend on its models.
    pub spending: SpendingLimits,
}

/// Everything that a pattern may use while it runs.
pub struct RunContext {
    id: RunId,
    bus: Bus,
    gate: Arc<RunControl>,
    seed: u64,
    models: Models,
    llm: Arc<GuardedTool>,
    belt: Arc<ToolRegistry>,
    session: Session,
    instant: bool,
    today: Day,
    spending: Spending,
    in_flight: Arc<AtomicU32>,
    phase: Mutex<Option<Phase>>,
    /// The pairs of model and parameter whose removal was published already (`request.adapted`).
    adapted: Mutex<BTreeSet<(String, String)>>,
    /// The empty bindings that calls share if their conditions may read nothing.
    empty_bindings: Arc<CelBindings>,
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
    /// The whole conversation.
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
        }
    }

    /// The same request after a refused reply: the conversation continues with that reply and with
    /// what is wrong with it.
    pub fn repeat_after_refusal(mut self, call: SpanId, reply: &Reply, wrong: String) -> Self {
        let wrong: Arc<[ChatMessage]> = [ChatMessage::new(MessageRole::User, wrong)].into();
        // Some providers refuse a conversation with an empty message.
        if !reply.text.trim().is_empty() {
            self.messages.push([ChatMessage::from_reply(reply)].into());
        }
        self.messages.push(Arc::clone(&wrong));
        self.prompt = Prompt { after: Some(call), messages: wrong, tools: None };
        self.again += 1;
        self
    }

    /// The path that random numbers are derived from: each request to repeat gets its own.
    fn random_path(&self) -> Cow<'_, str> {
        match self.again {
            0 => Cow::Borrowed(&self.path),
            again => Cow::Owned(format!("{}+{again}", self.path)),
        }
    }
}

impl RunContext {
    /// The context of a run that starts now.
    pub fn new(settings: RunSettings) -> Self {
        let RunSettings {
            id,
            bus,
            max,
            flags,
            seed,
            models,
            tools,
            session,
            instant,
            today,
            spending,
        } = settings;
        let gate = RunControl::new(bus.clone(), max, flags);
        let name = ToolName::from(LLM);
        let llm = tools.iter().find(|tool| *tool.guard.name() == name).cloned();
        let llm =
            llm.unwrap_or_else(|| model_tool(CallPolicy::default(), Duration::MAX, Vec::new()));
        Self {
            id,
            belt: Arc::new(ToolRegistry::new(tools)),
            bus,
            gate,
            seed,
            models,
            llm,
            session,
            instant,
            today,
            spending: Spending::new(spending),
            in_flight: Arc::default(),
            phase: Mutex::new(None),
            adapted: Mutex::default(),
            empty_bindings: Arc::default(),
        }
    }

    /// Id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The tools of this run.
    pub fn tools(&self) -> &Arc<ToolRegistry> {
        &self.belt
    }

    /// The session that the run belongs to, and its message.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether an endpoint answers the model calls, not a script.
    pub fn is_live(&self) -> bool {
        matches!(self.models.default_model().label(), ModelLabel::Live { .. })
    }

    /// The day on which the run started, in UTC. It comes from the head, so a replay gets the same
    /// day.
    pub fn today(&self) -> Day {
        self.today
    }

    /// 64 random bits: a hash of seed, path, attempt and use.
    pub fn random_bits(&self, path: &str, attempt: u32, what: &str) -> u64 {
        random_u64(self.seed, path, attempt, what)
    }

    /// The gate that commands are sent to.
    pub fn control(&self) -> &Arc<RunControl> {
        &self.gate
    }

    /// Every pattern awaits this before it acts.
    ///
    /// # Errors
    /// [`RunStopped`] if the run was cancelled or stopped, or its time is up.
    pub async fn boundary(&self, at: Boundary) -> Result<(), RunStopped> {
        self.gate.pass(&at).await
    }

    /// Whether a flag is on. Read it right after a boundary.
    pub fn flag(&self, flag: &FlagName) -> bool {
        self.gate.flag(flag)
    }

    /// Waits for the scenario's latency, drawn from the seed. Does not wait in an instant run.
    pub async fn wait(&self, latency: Latency, path: &str, nth: u32) {
        if !self.instant {
            sleep(random_duration(latency, self.random_bits(path, nth, "wait"))).await;
        }
    }

    /// The run's log.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Appends an event.
    pub fn publish(&self, span: SpanId, kind: impl Into<EventKind>) -> Seq {
        self.bus.publish(span, kind)
    }

    /// Opens a span with the event that opens it, and returns its id.
    pub fn open_span(&self, kind: impl Into<EventKind>) -> SpanId {
        let span = self.bus.next_span();
        self.bus.publish(span, kind);
        span
    }

    /// Sets the phase of the run in the source document's words (`round_2:risk_analyst`). If the
    /// run stops from now on, the outcome reports this phase.
    pub fn set_phase(&self, phase: impl Into<Phase>) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Some(phase.into());
    }

    /// The current phase.
    pub fn phase(&self) -> Option<String> {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        phase.as_ref().map(Phase::to_string)
    }

    /// Counter of the attempts in flight.
    pub fn in_flight_counter(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.in_flight)
    }

    /// Number of attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Whether the model's replies depend on conditions (a script with `when`).
    pub fn reads_conditions(&self) -> bool {
        self.models.default_model().reads_conditions()
    }

    /// Calls the model through the gateway. The call counts as an active branch from this moment,
    /// not from its first poll, so a pause waits for it.
    ///
    /// # Errors
    /// [`CallFailed`] with the run's stop reason after the last attempt.
    pub fn call_model(
        &self,
        ask: ModelRequest,
    ) -> impl Future<Output = Result<(SpanId, Reply), Box<CallFailed>>> + Send + '_ {
        let branch = self.gate.branch();
        async move {
            let _branch = branch;
            self.call_model_on_branch(ask).await
        }
    }

    /// Like [`RunContext::call_model`], for a caller that holds an active branch until the call has
    /// ended.
    ///
    /// # Errors
    /// As [`RunContext::call_model`].
    pub(crate) async fn call_model_on_branch(
        &self,
        ask: ModelRequest,
    ) -> Result<(SpanId, Reply), Box<CallFailed>> {
        let lost = Mutex::default();
        let scope =
            ModelCallScope { cx: self, path: &ask.random_path(), ask: &ask, failed_usage: lost };
        let call = GatewayCall {
            started: CallStarted {
                parent: ask.parent,
                tool: self.llm.guard.name().clone(),
                purpose: ask.purpose.clone(),
                prompt: ask.prompt.clone(),
                args: None,
                model: self.models.name_for(&ask.purpose),
                repeat: ask.again,
            },
            safe_key: None,
        };
        let asked = ModelCallee { scope: &scope, ask: &ask };
        let reserved = self.reserve(&ask).await;
        let answered = call.make(&scope, &self.llm.guard, &asked).await;
        if let Some(reserved) = reserved {
            let mut used = scope.failed_usage();
            used.add(answered.as_ref().ok().and_then(|it| it.reply.usage).unwrap_or_default());
            reserved.used(&used);
        }
        let answered = answered?;
        Ok((answered.span, answered.reply))
    }

    /// Reserves what a call is estimated to use, if the run has a limit. If it does not fit, the
    /// run is stopped and this never returns.
    async fn reserve(&self, ask: &ModelRequest) -> Option<Reserved<'_>> {
        if !self.spending.is_limited() {
            return None;
        }
        let most = self.models.model_for(&ask.purpose).max_tokens();
        let estimate = spending::estimate(&ask.messages, &ask.tools, most);
        let price = self.models.price_for(&ask.purpose);
        match self.spending.reserve(estimate, price).await {
            Ok(reserved) => Some(reserved),
            Err((reason, reached)) => {
                self.publish(ask.parent, EventKind::BudgetReached(reached));
                self.gate.stop(reason);
                std::future::pending().await
            }
        }
    }

    /// Counts an attempt that starts (`true`) or has ended (`false`).
    pub(crate) fn count_in_flight(&self, out: bool) {
        if out {
            self.in_flight.fetch_add(1, Ordering::AcqRel);
        } else {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Name of the model at the gateway.
pub const LLM: &str = "llm";

/// The model behind its guard.
pub fn model_tool(
    policy: CallPolicy,
    timeout: Duration,
    faults: Vec<InjectedFault>,
) -> Arc<GuardedTool> {
    GuardedTool::new(ToolSetup {
        name: ToolName::from(LLM),
        tool: None,
        kind: "model",
        contract: ResultContract::default(),
        policy,
        timeout,
        faults,
        shared: false,
        fingerprint: String::new(),
    })
}

/// One model call of a run, as the gateway sees it.
struct ModelCallScope<'a> {
    cx: &'a RunContext,
    path: &'a str,
    ask: &'a ModelRequest,
    /// Tokens that its failed attempts have used.
    failed_usage: Mutex<Usage>,
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
        self.cx.gate.remaining()
    }

    fn random_bits(&self, attempt: u32, what: &str) -> u64 {
        self.cx.random_bits(self.path, attempt, what)
    }

    fn in_flight(&self, out: bool) {
        self.cx.count_in_flight(out);
    }

    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        match (failure.class, self.ask.purpose.script_step()) {
            (FailureClass::ScriptMissing, Some(step)) => StopReason::ScriptMissing(step.into()),
            _ => stop_reason(failure),
        }
    }

    fn keeps_reason(&self) -> bool {
        true
    }

    fn estimate_usage(&self, failed: &mut AttemptFailed) {
        // A script costs nothing.
        let Some(partial) = failed.partial.as_ref().filter(|_| self.cx.is_live()) else { return };
        let usage = spending::estimate_usage(&self.ask.messages, &self.ask.tools, partial.len());
        failed.usage = Some(usage);
        self.failed_usage.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
    }

    fn on_adapted(&self, call: SpanId, failed: &AttemptFailed) {
        let ModelLabel::Live { name: model, .. } =
            self.cx.models.model_for(&self.ask.purpose).label()
        else {
            return;
        };
        for parameter in failed.adapted.iter().flatten() {
            let told = (model.clone(), parameter.clone());
            let mut adapted = self.cx.adapted.lock().unwrap_or_else(PoisonError::into_inner);
            if adapted.insert(told) {
                let (model, parameter) = (model.clone(), parameter.clone());
                self.cx.publish(call, EventKind::RequestAdapted { model, parameter });
            }
        }
    }

    fn callee_host(&self) -> Option<String> {
        match self.cx.models.model_for(&self.ask.purpose).label() {
            ModelLabel::Live { host, .. } => Some(host),
            ModelLabel::Scripted => None,
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
        | FailureClass::Denied => LlmError::BadResponse,
    };
    StopReason::LlmError(error)
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
            draw: random_u64(cx.seed, self.scope.path, attempt.number, "model"),
            shown: Arc::clone(self.ask.shown.as_ref().unwrap_or(&cx.empty_bindings)),
        };
        Box::pin(async move {
            let listener = LiveSlotWriter { bus: &cx.bus, call: attempt.call, live: attempt.live };
            let model = cx.models.model_for(&self.ask.purpose);
            let said = async {
                let mut reply = model.chat(&request, &listener).await?;
                if reply.usage.is_none() {
                    let (messages, tools) = (&request.messages, &request.tools);
                    let came = spending::reply_bytes(&reply);
                    reply.usage = Some(spending::estimate_usage(messages, tools, came));
                    reply.estimated = true;
                }
                Ok(reply)
            };
            let injected = cx.llm.guard.faults();
            if injected.is_empty() {
                return said.await;
            }
            // Rare: boxed, so that it does not make every other attempt larger.
            let draw = self.scope.random_bits(attempt.number, "fault");
            Box::pin(faults::with_faults(&injected, draw, said)).await
        })
    }
}

/// Writes a reply to the live slot while it is received.
struct LiveSlotWriter<'a> {
    bus: &'a Bus,
    call: SpanId,
    live: &'a LiveSlot,
}

impl Listener for LiveSlotWriter<'_> {
    fn piece(&self, text: &str) {
        self.live.push(text);
    }

    fn condition_failed(&self, place: &str, text: &str) {
        let (place, text) = (place.to_owned(), text.to_owned());
        self.bus.publish(self.call, EventKind::ConditionFailed { place, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::failure;

    #[test]
    fn failures_give_the_reasons_of_the_spec() {
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
