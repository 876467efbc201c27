//! How a pattern calls a tool: through the gateway, with the pattern's own policy before each
//! attempt.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::RunContext;
use super::host::{LastProgress, RunHost};
use super::questions::{CallOfTool, Ended, Question};
use crate::base::name::ToolName;
use crate::gateway::{
    Attempt, CallFailed, CallScope, CallSuccess, Callee, Denial, GatewayCall, GuardedTool, MCP,
    Tool, ToolRequest, attempt,
};
use crate::log::bus::Bus;
use crate::log::event::{
    Answer, AttemptFailed, CallStarted, EventKind, FailureClass, Prompt, Purpose, Reply, SpanId,
    StopReason, Subject,
};
use crate::scenario::people::{Asking, CallDecision, Effects};
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::tool::{REQUEST_ID, ToolSpec};

/// A tool that the scenario does not declare: a program has it.
#[derive(Clone, Copy)]
pub struct ProgramTool<'a> {
    pub spec: &'a ToolSpec,
    pub tool: &'a dyn Tool,
    /// What the program says of its implementation, for the digest of its definition.
    pub pin: &'a str,
}

/// A request to a tool.
pub struct ToolCallRequest<'a> {
    /// The span that the call belongs to.
    pub parent: SpanId,
    /// The tool's name at the gateway.
    pub tool: &'a ToolName,
    /// The tool of a program; `None`: the scenario declares it.
    pub of_program: Option<ProgramTool<'a>>,
    pub purpose: Purpose,
    /// Name of the call within the run, the same in every run: random numbers are derived from it.
    pub path: String,
    /// The arguments of the tool.
    pub args: Arc<Map<String, Value>>,
    /// Id of the call, the same in each of its attempts. A tool that wants it gets it as
    /// `request_id` next to the arguments (orchestrator source document).
    pub request_id: Option<String>,
    /// The pattern's own policy.
    pub caller: &'a dyn CallerPolicy,
    /// What the model said with the call, which a person who has to approve it reads.
    pub why: Option<Arc<str>>,
    /// How often the tool's own client retries, unseen by the gateway's policies: 0 except in a
    /// naive run (cascading failures source document).
    pub client_retries: u32,
}

/// The pattern that makes the call: its policy before each attempt, and its stop reason for a
/// failure.
pub trait CallerPolicy: Send + Sync {
    /// Awaited before each attempt.
    fn before_attempt(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        let _ = attempt;
        None
    }
    /// The stop reason if this failed attempt was the last one.
    fn stop_reason(&self, tool: &ToolName, failure: &AttemptFailed) -> StopReason {
        StopReason::ToolError(tool.clone(), failure.class)
    }
    /// The call slots that the call shares with others.
    fn call_slots(&self) -> Option<&Semaphore> {
        None
    }
    /// The call waits for a person from now on: what it holds is free for others.
    fn wait_begins(&self) {}
    /// Awaited when the person has answered: takes back what the call held. An error: the call may no
    /// longer be made.
    fn wait_ends(&self) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        None
    }
}

impl RunContext {
    /// Whether the run needs this tool to continue: safe mode is on and allows no partial results.
    pub fn requires(&self, tool: &ToolName) -> bool {
        self.tools().get(tool).is_some_and(|tool| {
            let (policy, _) = tool.guard.policy();
            policy.safe_mode.enabled && !policy.safe_mode.allow_partial
        })
    }

    /// Calls a tool through the gateway. A tool without an implementation fails each attempt.
    ///
    /// # Errors
    /// [`CallFailed`] after the last attempt, if there is no fallback.
    pub async fn call_tool(
        &self,
        ask: ToolCallRequest<'_>,
    ) -> Result<CallSuccess, Box<CallFailed>> {
        let Some(guarded) = self.tools().get(ask.tool) else {
            let reason = StopReason::ToolError(ask.tool.clone(), FailureClass::Tool);
            let (span, attempts) = (ask.parent, 0);
            return Err(Box::new(CallFailed {
                span,
                attempts,
                reason,
                last: None,
                unavailable: true,
                denied: None,
            }));
        };
        let safe = guarded.guard.policy().0.safe_mode.enabled;
        let call = GatewayCall {
            started: Box::new(CallStarted {
                parent: ask.parent,
                tool: ask.tool.clone(),
                purpose: ask.purpose.clone(),
                prompt: Prompt::default(),
                args: Some(Arc::new(Value::Object((*ask.args).clone()))),
                model: None,
                repeat: 0,
            }),
            safe_key: safe.then(|| canonical_text(&ask.args)),
        };
        let (approved, last) = (Mutex::default(), LastProgress::default());
        let counts = self.questions.scenario().tool(ask.tool).and_then(|spec| spec.fixture());
        let counts = counts.is_some_and(|fixture| fixture.counts_calls());
        let nth =
            if counts { self.count_equal_call(ask.tool, canonical_text(&ask.args)) } else { 1 };
        let scope = ToolCallScope { cx: self, ask: &ask, approved, last, nth };
        let asked = ToolCallee { scope: &scope, guarded: &guarded, sent: OnceLock::new() };
        let mut made = call.make(&scope, &guarded.guard, &asked).await?;
        made.changed = scope.approved().as_ref().and_then(|(_, ended)| ended.changed_text());
        Ok(made)
    }
}

impl RunContext {
    /// Counts a call whose result depends on that; gives its number among those of the same tool with the
    /// same key, from 1. A run that is executed again counts the same calls in the same order.
    pub(super) fn count_equal_call(&self, tool: &ToolName, key: String) -> u32 {
        let key = (tool.clone(), key);
        let mut counts = self.equal_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key).or_default();
        *count += 1;
        *count
    }
}

/// Arguments as one text with sorted keys: the key that fallbacks are looked up by.
fn canonical_text(args: &Map<String, Value>) -> String {
    crate::base::json_text::to_canonical_json(&Value::Object(args.clone()))
}

/// One tool call of a run, as the gateway sees it.
struct ToolCallScope<'a> {
    cx: &'a RunContext,
    ask: &'a ToolCallRequest<'a>,
    /// The question after which the call was approved, and its answer.
    approved: Mutex<Option<(Question, Ended)>>,
    last: LastProgress,
    /// How often the run has made the same call, this time included.
    nth: u32,
}

impl ToolCallScope<'_> {
    fn spec(&self) -> Option<&ToolSpec> {
        match self.ask.of_program {
            Some(own) => Some(own.spec),
            None => self.cx.questions.scenario().tool(self.ask.tool),
        }
    }

    /// Asks whether the call may be made, if somebody has to be asked.
    async fn decide(&self, call: SpanId) -> Result<(), Denial> {
        let Self { cx, ask, .. } = self;
        let Some(spec) = self.spec() else { return Ok(()) };
        let agent = ask.purpose.agent().map(|agent| Arc::<str>::from(agent.as_str()));
        let of_server = cx.server_tool(spec.server_tool(ask.tool).as_str());
        let pin = of_server.map_or("", |tool| &*tool.pin);
        let pin = ask.of_program.map_or(pin, |own| own.pin);
        let definition: Arc<str> = spec.definition(pin).into();
        let parameters = match of_server {
            Some(tool) => &tool.offer.parameters,
            None => &spec.offer.parameters,
        };
        let about = CallOfTool {
            tool: ask.tool,
            spec,
            agent: agent.as_deref(),
            definition: &definition,
            parameters,
            allowed: of_server.and_then(|tool| tool.allowed.clone()),
        };
        let (decision, failed) = cx.questions.decide(about, &ask.args);
        for (place, text) in failed {
            cx.publish(call, EventKind::ConditionFailed { place, text });
        }
        let question = |asking, rule| Question {
            span: call,
            inside: ask.parent,
            by: agent.clone(),
            why: ask.why.clone(),
            subject: Subject::ToolCall {
                tool: ask.tool.clone(),
                args: Arc::new(Value::Object((*ask.args).clone())),
                definition: Arc::clone(&definition),
                parameters: Arc::clone(parameters),
                effects: spec.effects(),
            },
            asking,
            rule,
        };
        let denied = |text| {
            let reason = StopReason::ApprovalDenied(ask.tool.clone());
            Err(Denial { reason, text: Some(text) })
        };
        match decision {
            CallDecision::Unasked => Ok(()),
            CallDecision::Allowed(rule) => {
                let approve = Answer::Approve { args: None };
                cx.questions.decide_by_rule(question(Asking::nobody(), rule), approve);
                Ok(())
            }
            CallDecision::Denied(rule) => {
                let deny = Answer::Deny { text: Arc::default() };
                denied(cx.questions.decide_by_rule(question(Asking::nobody(), Some(rule)), deny))
            }
            CallDecision::Asked(asking, rule) => {
                ask.caller.wait_begins();
                let asked_for = question(asking, rule);
                let asked = cx.questions.ask(asked_for.clone()).await;
                let back = match ask.caller.wait_ends() {
                    Some(ends) => ends.await,
                    None => Ok(()),
                };
                let stopped = |reason| Denial { reason, text: None };
                let ended = asked.map_err(stopped)?;
                if matches!(ended.answered.answer, Answer::Approve { .. }) {
                    back.map_err(stopped)?;
                }
                match &ended.answered.answer {
                    Answer::Approve { .. } => {
                        *self.approved() = Some((asked_for, ended));
                        Ok(())
                    }
                    _ => denied(ended.denial_text()),
                }
            }
        }
    }

    fn approved(&self) -> MutexGuard<'_, Option<(Question, Ended)>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arguments that were approved, or those of the request.
    fn args(&self) -> Arc<Map<String, Value>> {
        match &*self.approved() {
            Some((_, Ended { answered, .. })) => match &answered.answer {
                Answer::Approve { args: Some(args) } => args
                    .as_object()
                    .map_or_else(|| Arc::clone(&self.ask.args), |it| Arc::new(it.clone())),
                _ => Arc::clone(&self.ask.args),
            },
            None => Arc::clone(&self.ask.args),
        }
    }
}

impl CallScope for ToolCallScope<'_> {
    fn bus(&self) -> &Bus {
        self.cx.bus()
    }

    fn remaining(&self) -> Duration {
        self.cx.control().remaining()
    }

    fn random_bits(&self, attempt: u32, what: &str) -> u64 {
        self.cx.random_bits(&self.ask.path, attempt, what)
    }

    fn in_flight(&self, out: bool) {
        self.cx.count_in_flight(out);
    }

    fn reason(&self, failure: &AttemptFailed) -> StopReason {
        self.ask.caller.stop_reason(self.ask.tool, failure)
    }

    fn in_doubt(&self) -> InDoubt {
        match self.ask.purpose {
            Purpose::ListTools => InDoubt::Retry,
            _ => self.cx.in_doubt,
        }
    }

    fn settle_doubt(
        &self,
        attempt: SpanId,
        tool: ToolName,
        decision: InDoubt,
    ) -> BoxFuture<'_, Option<Arc<Value>>> {
        let args = Value::Object(Map::clone(&self.args()));
        Box::pin(self.cx.settle_doubt((self.ask.parent, attempt), tool, args, decision))
    }

    fn asks_before(&self, call: SpanId) -> Option<BoxFuture<'_, Result<(), Denial>>> {
        let is_listing = self.ask.purpose == Purpose::ListTools;
        let may_ask = !is_listing && self.cx.questions.may_ask_about(self.spec());
        may_ask.then(|| self.decide(call).boxed())
    }

    fn changed_key(&self) -> Option<String> {
        let args = self.args();
        (!Arc::ptr_eq(&args, &self.ask.args)).then(|| canonical_text(&args))
    }

    fn withdraw_approval_if_changed(&self) -> bool {
        let questions = &self.cx.questions;
        let changed = |(question, ended): &mut (Question, Ended)| {
            questions.withdraw_if_changed(question, ended)
        };
        self.approved().take_if(changed).is_some()
    }

    fn admit(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        self.ask.caller.before_attempt(attempt)
    }

    fn has_effects(&self) -> bool {
        let is_listing = self.ask.purpose == Purpose::ListTools;
        let of_program = self.ask.of_program.map(|own| own.spec.effects() != Effects::Read);
        let declared = || self.cx.tools().get(self.ask.tool).is_some_and(|tool| tool.has_effects());
        !is_listing && of_program.unwrap_or_else(declared)
    }

    fn call_slots(&self) -> Option<&Semaphore> {
        self.ask.caller.call_slots()
    }

    fn called(&self) -> Option<&ToolName> {
        Some(self.ask.tool)
    }

    fn timeout(&self) -> Option<Duration> {
        let spec = self.cx.questions.scenario().tools.get(self.ask.tool)?;
        let server = &spec.kind.as_ref()?.mcp()?.server;
        (self.ask.purpose == Purpose::ListTools).then_some(server.start_timeout)
    }

    fn timeout_clock(&self, limit: Duration, span: SpanId) -> Option<BoxFuture<'_, ()>> {
        // Only a server says how far it is, and asks for input.
        let is_of_server = self.cx.tools().get(self.ask.tool)?.kind == MCP;
        is_of_server.then(|| self.last.wait(self.cx.control(), limit, span).boxed())
    }

    fn repeat_questions(&self, attempt: SpanId) -> Option<BoxFuture<'_, ()>> {
        self.cx.repeat_questions((self.ask.parent, attempt))
    }
}

impl ToolCallScope<'_> {
    /// The arguments that an MCP server has declared for this tool; `None`: it is no tool of a server.
    fn declared_by_server(&self) -> Option<&Map<String, Value>> {
        let spec = self.cx.questions.scenario().tool(self.ask.tool)?;
        let tool = self.cx.server_tool(spec.server_tool(self.ask.tool).as_str())?;
        tool.offer.parameters.get("properties")?.as_object()
    }
}

/// Spreads similar random numbers far apart.
fn spread(draw: u64) -> u64 {
    crate::base::seeded_random::random_u64(draw, "", 0, "fault")
}

/// The tool behind the gateway, with the request.
struct ToolCallee<'a> {
    scope: &'a ToolCallScope<'a>,
    guarded: &'a GuardedTool,
    /// The arguments as the tool gets them.
    sent: OnceLock<Arc<Map<String, Value>>>,
}

impl ToolCallee<'_> {
    /// The arguments that were approved, or those of the request; with the id of the request.
    fn sent(&self) -> &Map<String, Value> {
        self.sent.get_or_init(|| {
            let ask = self.scope.ask;
            let mut sent = self.scope.args();
            if let Some(id) = &ask.request_id {
                Arc::make_mut(&mut sent).insert(REQUEST_ID.to_owned(), Value::from(id.as_str()));
            }
            if let Some(declared) = self.scope.declared_by_server() {
                // What the pattern adds: a server may refuse what it has not declared.
                let is_added = |name: &str| match ask.purpose {
                    Purpose::Tool { .. } => false,
                    Purpose::Task { .. } => name == REQUEST_ID,
                    _ => true,
                };
                Arc::make_mut(&mut sent)
                    .retain(|name, _| declared.contains_key(name) || !is_added(name));
            }
            sent
        })
    }

    async fn ask(&self, attempt: Attempt<'_>) -> Result<Reply, Box<AttemptFailed>> {
        let ask = self.scope.ask;
        let own = ask.of_program.map(|own| own.tool);
        let Some(tool) = own.or(self.guarded.tool.as_deref()) else {
            let text = format!("the tool {} has no implementation", ask.tool);
            return Err(AttemptFailed::new(FailureClass::Tool, text));
        };
        let by = ask.purpose.agent().map(|agent| agent.as_str().into());
        let host = RunHost::new(self.scope.cx, attempt.span, by, &self.scope.last);
        let control = self.scope.cx.control();
        let is_of_server = self.guarded.kind == MCP;
        let _inside = is_of_server.then(|| control.enclose(attempt.span, ask.parent));
        let mut request = 1;
        loop {
            let what = if request == 1 { "tool" } else { "client" };
            let draw = |what| {
                self.scope.random_bits(attempt.number, what).wrapping_add(u64::from(request))
            };
            let asked = ToolRequest {
                tool: ask.tool.as_str(),
                host: &host,
                args: self.sent(),
                attempt: attempt.number,
                nth: self.scope.nth,
                draw: draw(what),
                active: self.scope.cx.control().active(),
            };
            // Injected faults apply before the tool, so its own client sees them too.
            let answered = match self.guarded.guard.faults_of(|| spread(draw("fault"))) {
                None => tool.ask(asked).await,
                Some((injected, draw)) => {
                    let clock = self.scope.bus().clock();
                    attempt::with_faults(clock, &injected, draw, tool.ask(asked)).await
                }
            };
            let failed = match answered {
                Ok(result) if ask.purpose == Purpose::ListTools => {
                    return Ok(self.scope.cx.listing_reply(Reply::from_tool_result(result)));
                }
                Ok(result) => match self.guarded.contract.check(&result) {
                    Ok(()) => return Ok(Reply::from_tool_result(result)),
                    Err(wrong) => AttemptFailed::new(FailureClass::BadResponse, wrong),
                },
                Err(failed) => failed,
            };
            // An approval is for one request.
            if request > ask.client_retries || self.scope.approved().is_some() {
                return Err(failed);
            }
            request += 1;
            let after = failed.class;
            self.scope.cx.publish(attempt.span, EventKind::ClientRetried { request, cause: after });
        }
    }
}

impl Callee for ToolCallee<'_> {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        Box::pin(self.ask(attempt))
    }
}
