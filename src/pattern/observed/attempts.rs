//! One attempt of a guarded program: what has to hold before its request is sent, and how it ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::guarded::{
    AttemptEnd, AttemptReporter, AttemptResult, BegunAttempt, Decision, EndedAttempt,
    GuardedRequest, MadeReply, RequestAbout, RequestRefusal,
};
use super::limits::{GuardAccount, ReachedLimit};
use crate::base::name::{PersonName, ToolName};
use crate::base::seeded_random::{happens_with, random_u64};
use crate::base::time::millis;
use crate::gateway::attempt::CallTurn;
use crate::gateway::breaker::AttemptVerdict;
use crate::gateway::{GuardRefusal, GuardedTool};
use crate::log::event::{
    Answer, AttemptFailed, Boundary, BoundaryId, BudgetReached, Command, EventKind, FailureClass,
    Initiator, Reply, SpanId, StopReason, Subject, Usage,
};
use crate::log::facts::observed::ObservedFact;
use crate::run::RunContext;
use crate::run::questions::Question;
use crate::run::spending::{NotReserved, Reserved};
use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::observed::PAUSE_NAMES;
use crate::scenario::people::{Effects, OPERATOR, Otherwise};
use crate::scenario::spec::OnLimit;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// How long a call waits for the room that others have reserved.
const RESERVED: Duration = Duration::from_secs(30);

/// Decides about a request and, if it is sent, waits for its end.
pub(super) async fn make_attempt(
    cx: &RunContext,
    begun: BegunAttempt,
    request: GuardedRequest,
) -> EndedAttempt {
    let (span, price) = (begun.span, begun.price);
    let how = match (&begun.tool, begun.call) {
        (Some(tool), Some(call)) => attempt_call(cx, &begun, (tool, call), request).await,
        _ => attempt_unread(&begun.account, request).await,
    };
    EndedAttempt { span, price, how }
}

async fn attempt_unread(account: &GuardAccount, request: GuardedRequest) -> AttemptEnd {
    if account.limits.refuses_unread && account.counts() && !request.about.is_free {
        let why = "what this request costs cannot be counted, so it is refused under a limit (--unread pass sends it)";
        let _ = request.decided.send(Decision::Refuse(RequestRefusal::without_retry(402, why)));
        return AttemptEnd::Unread { status: 402, bytes: 0 };
    }
    let (ended, end) = oneshot::channel();
    let reporter = AttemptReporter { live: None, body: None, fault: None, ended };
    let _ = request.decided.send(Decision::Send(reporter));
    match end.await {
        Ok(AttemptResult::Unread { status, bytes }) => AttemptEnd::Unread { status, bytes },
        Ok(AttemptResult::Model(Err(failed), _)) => AttemptEnd::Failed(failed),
        Ok(AttemptResult::Model(Ok(_), _)) | Err(_) => AttemptEnd::Failed(gone()),
    }
}

fn gone() -> Box<AttemptFailed> {
    AttemptFailed::new(FailureClass::Cancelled, "the client closed the connection")
}

async fn attempt_call(
    cx: &RunContext,
    begun: &BegunAttempt,
    (tool, call): (&GuardedTool, SpanId),
    request: GuardedRequest,
) -> AttemptEnd {
    let (guard, number) = (&tool.guard, begun.number);
    let GuardedRequest { about, body: for_people, mut decided } = request;
    let refuse = |reason: StopReason, retry_in: Option<Duration>| {
        let (attempt, retry_in_ms) = (number, retry_in.map(millis));
        let published = reason.clone();
        cx.publish(call, EventKind::AttemptRefused { attempt, reason: published, retry_in_ms });
        AttemptEnd::Refused(reason)
    };
    let _branch = cx.control.branch();
    pause_where_wanted(cx, begun, &about);
    let held = async {
        match pass_or_ask(cx, begun, (tool, call), (&for_people, about.has_reply)).await {
            HeldCall::Sent(body) => match &begun.reached {
                Some(reached) => {
                    let reached = (reached, about.has_reply);
                    ask_at_limit(cx, begun, (tool, call), (&for_people, body), reached).await
                }
                None => HeldCall::Sent(body),
            },
            held => held,
        }
    };
    let held = tokio::select! {
        biased;
        held = held => held,
        () = decided.closed() => HeldCall::Gone,
    };
    // It keeps the bytes of the request.
    drop(for_people);
    let body = match held {
        HeldCall::Sent(body) => body,
        HeldCall::Answered(made) => return answer(cx, (call, number), made, decided),
        HeldCall::Refused(reason, why) => {
            let _ = decided.send(Decision::Refuse(RequestRefusal::without_retry(402, &why)));
            let denied = || StopReason::ApprovalDenied(guard.name().clone());
            return refuse(reason.unwrap_or_else(denied), None);
        }
        HeldCall::Gone => return not_sent(cx, call, number),
    };
    let reserved = tokio::select! {
        biased;
        reserved = reserve(cx, begun, call, &about) => reserved,
        () = decided.closed() => return not_sent(cx, call, number),
    };
    let mut reserved = match reserved {
        Ok(reserved) => reserved,
        Err((reason, text)) => {
            let _ = decided.send(Decision::Refuse(RequestRefusal::without_retry(402, &text)));
            return refuse(reason, None);
        }
    };
    let queued = |_| {
        cx.publish(call, EventKind::AttemptQueued { attempt: number });
        None
    };
    let entering = guard.enter(|| RESERVED, CallTurn::default(), queued);
    let permit = tokio::select! {
        biased;
        entered = entering => entered,
        () = decided.closed() => return not_sent(cx, call, number),
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(refusal) => {
            let retry_after = refusal.retry_in();
            let may_retry = matches!(refusal, GuardRefusal::RateReached { .. });
            let status = if may_retry { 429 } else { 503 };
            let why = RequestRefusal::without_retry(status, &refusal_text(guard.name(), refusal));
            let why = RequestRefusal { retry_after, may_retry, ..why };
            let _ = decided.send(Decision::Refuse(why));
            return refuse(refusal.stop_reason(guard.name()), retry_after);
        }
    };
    let attempt = cx.open_span(EventKind::AttemptStarted {
        parent: call,
        attempt: number,
        timeout_ms: 0,
        waited_ms: millis(permit.waited),
        probe: permit.is_probe(),
    });
    cx.count_in_flight(true);
    let open = OpenAttempt { cx, span: attempt, is_open: true };
    let draw = || random_u64(cx.seed, &format!("guard {}", call.0), number, "fault");
    let (faults, draw) = guard.faults_of(draw).unwrap_or_default();
    let ended = match before_sending(&faults, draw, about.has_reply, &mut decided).await {
        BeforeSending::Sent(fault) => {
            reserved.sent();
            let (ended, end) = oneshot::channel();
            let live = Some(cx.bus().live(attempt));
            let _ = decided.send(Decision::Send(AttemptReporter { live, body, fault, ended }));
            match end.await {
                Ok(AttemptResult::Model(result, recorded)) => {
                    if let Some(reply) = recorded {
                        cx.publish(attempt, ObservedFact::Recorded { reply });
                    }
                    result.map(|reply| *reply)
                }
                // The vendor has the request: its prompt counts.
                Ok(AttemptResult::Unread { .. }) | Err(_) => {
                    let usage = Some(Usage::new(about.estimate.prompt_tokens, 0));
                    Err(Box::new(AttemptFailed { usage, ..*gone() }))
                }
            }
        }
        BeforeSending::Made(made) => {
            let reply = made.reply();
            let _ = decided.send(Decision::Answer(made));
            Ok(reply)
        }
        BeforeSending::Failed(failed) => {
            let status = failed.status.unwrap_or(503);
            // A fault tests the retries of the client.
            let why = RequestRefusal::without_retry(status, &failed.text);
            let retry_after = (status == 429).then_some(INJECTED_RETRY_AFTER);
            let refusal = RequestRefusal { may_retry: true, retry_after, ..why };
            let _ = decided.send(Decision::Refuse(refusal));
            Err(failed)
        }
    };
    let how = open.close(ended);
    let verdict = match &how {
        AttemptEnd::Failed(failed) if !failed.class.is_failure_of_tool(failed.status) => {
            AttemptVerdict::Neither
        }
        how => AttemptVerdict::of_result(matches!(how, AttemptEnd::Failed(_)), false),
    };
    permit.settle(verdict);
    let used = match &how {
        AttemptEnd::Answered(reply) => reply.usage,
        AttemptEnd::Failed(failed) => failed.usage,
        _ => None,
    };
    reserved.used(&used.unwrap_or_default(), None);
    if let AttemptEnd::Answered(reply) = &how {
        let called = reply.tool_calls.iter().map(|it| BoundaryId::new(format!("tool:{}", it.name)));
        cx.control.pause_if_breakpoint(&called.collect::<Vec<_>>());
    }
    how
}

/// The `Retry-After` of an injected 429.
const INJECTED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Pauses the run before this call if a breakpoint or a rule says so.
fn pause_where_wanted(cx: &RunContext, begun: &BegunAttempt, about: &RequestAbout) {
    let named = |model: &str| BoundaryId::new(format!("model:{}/{model}", about.provider));
    cx.control.pause_if_breakpoint(&[named(&about.model), named("*")]);
    let pauses = &begun.account.limits.pauses;
    if pauses.is_empty() || !cx.questions().are_for_people() {
        return;
    }
    let last = about.call.messages.last().map(|message| &*message.content);
    let tools: Vec<&str> = about.call.tools.iter().map(|tool| &*tool.name).collect();
    let mut shown = CelBindings::default();
    for (name, value) in PAUSE_NAMES.iter().zip([
        json!(about.provider),
        json!(about.model),
        json!(begun.nth),
        json!(about.estimate.total()),
        json!(last.unwrap_or_default()),
        json!(tools),
    ]) {
        shown.bind(name, &value);
    }
    for condition in pauses {
        match condition.holds(&shown) {
            Ok(true) => cx.control.command(Command::Pause { by: Initiator::Breakpoint }),
            Ok(false) => {}
            Err(why) => {
                let place = format!("pause: {}", condition.text());
                cx.publish(
                    SpanId::RUN,
                    EventKind::ConditionFailed { place, text: why.to_string() },
                );
            }
        }
    }
}

/// The decision about a call that was held, or that has reached a limit.
enum HeldCall {
    /// It is sent, perhaps with another body.
    Sent(Option<Arc<Value>>),
    /// A person answers in place of the model.
    Answered(MadeReply),
    /// With the reason; `None`: a person has refused it.
    Refused(Option<StopReason>, Arc<str>),
    /// The run has ended, or the client has gone.
    Gone,
}

/// The field by which a person answers in place of the model.
const REPLY_FIELD: &str = "reply";

type BodyForPeople = dyn Fn() -> Option<Value> + Send + Sync;

/// Waits at the boundary of a call. While the run is paused there, people are asked about the call.
async fn pass_or_ask(
    cx: &RunContext,
    begun: &BegunAttempt,
    of: (&GuardedTool, SpanId),
    (body, has_reply): (&BodyForPeople, bool),
) -> HeldCall {
    let boundary = Boundary::Call(begun.nth);
    let mut passed = pin!(cx.control.pass(&boundary));
    let sent = |passed: Result<(), _>| passed.map_or(HeldCall::Gone, |()| HeldCall::Sent(None));
    if let Some(passed) = passed.as_mut().now_or_never() {
        return sent(passed);
    }
    let shown = body().filter(|_| cx.questions().are_for_people() && cx.questions().has_room());
    let Some(shown) = shown.map(Arc::new) else { return sent(passed.await) };
    let why = format!("call {} of the program is held", begun.nth);
    let held = {
        // The boundary has counted this branch already.
        let _asks = cx.control.branch();
        tokio::select! {
            biased;
            passed = &mut passed => return sent(passed),
            held = ask(cx, of, (&shown, has_reply), &why) => held,
        }
    };
    if let HeldCall::Sent(changed) = held {
        cx.control.step_past(&boundary.id());
        return passed.await.map_or(HeldCall::Gone, |()| HeldCall::Sent(changed));
    }
    held
}

/// A call has reached a limit: it is refused, or people are asked where the rules say so.
async fn ask_at_limit(
    cx: &RunContext,
    begun: &BegunAttempt,
    of: (&GuardedTool, SpanId),
    (for_people, body): (&BodyForPeople, Option<Arc<Value>>),
    (reached, has_reply): (&ReachedLimit, bool),
) -> HeldCall {
    let account = &begun.account;
    let mut reached = reached.clone();
    let refused =
        |reached: ReachedLimit| HeldCall::Refused(Some(reached.reason), reached.text.into());
    if account.limits.on_limit != OnLimit::Ask || !cx.questions().are_for_people() {
        return refused(reached);
    }
    let Some(mut shown) = body.clone().or_else(|| for_people().map(Arc::new)) else {
        return refused(reached);
    };
    let mut body = body;
    let _turn = {
        // Another call may ask, and lead to an extension.
        let _waits = cx.control.mark_waiting();
        account.spending.asking.lock().await
    };
    loop {
        if !account.is_reached(&reached) {
            match account.count_call() {
                None => return HeldCall::Sent(body),
                Some(next) => reached = next,
            }
        }
        if !reached.can_be_extended() {
            return refused(reached);
        }
        match ask(cx, of, (&shown, has_reply), &reached.text).await {
            HeldCall::Sent(changed) => {
                account.extend(&reached);
                if let Some(changed) = changed {
                    shown = Arc::clone(&changed);
                    body = Some(changed);
                }
            }
            held => return held,
        }
    }
}

/// Asks people about a call, with its whole request.
async fn ask(
    cx: &RunContext,
    (tool, call): (&GuardedTool, SpanId),
    (shown, has_reply): (&Arc<Value>, bool),
    why: &str,
) -> HeldCall {
    // Any field of the request may be changed.
    let fields = shown.as_object().into_iter().flatten();
    let mut fields: Map<String, Value> =
        fields.map(|(name, _)| (name.clone(), json!({}))).collect();
    let about = "a reply in place of the model's: nothing is sent to it";
    let reply = json!({ "type": "string", "description": about });
    let takes_reply = has_reply && !fields.contains_key(REPLY_FIELD);
    if takes_reply {
        fields.insert(REPLY_FIELD.to_owned(), reply);
    }
    let subject = Subject::ToolCall {
        tool: tool.guard.name().clone(),
        args: Arc::clone(shown),
        definition: Arc::default(),
        parameters: Arc::new(json!({ "type": "object", "properties": fields })),
        effects: Effects::Write,
    };
    let question = Question {
        span: call,
        inside: call,
        by: None,
        why: Some(why.into()),
        subject,
        asking: cx.asking(&PersonName::from(OPERATOR), Otherwise::Deny),
        rule: None,
    };
    match &cx.questions().ask_once(question).await.answered.answer {
        Answer::Approve { args } => {
            let reply = args.as_ref().and_then(|args| args.get(REPLY_FIELD)?.as_str());
            match reply.filter(|_| takes_reply) {
                Some(text) => {
                    HeldCall::Answered(MadeReply { text: text.into(), is_refusal: false })
                }
                None => HeldCall::Sent(args.clone().filter(|args| **args != **shown)),
            }
        }
        Answer::Deny { text } if !text.is_empty() => {
            HeldCall::Refused(None, format!("the operator refused this call: {text}").into())
        }
        _ => HeldCall::Refused(None, "the operator refused this call".into()),
    }
}

/// A person answers in place of the model: nothing is sent.
fn answer(
    cx: &RunContext,
    (call, number): (SpanId, u32),
    made: MadeReply,
    decided: oneshot::Sender<Decision>,
) -> AttemptEnd {
    let attempt = cx.open_span(EventKind::AttemptStarted {
        parent: call,
        attempt: number,
        timeout_ms: 0,
        waited_ms: 0,
        probe: false,
    });
    cx.count_in_flight(true);
    let open = OpenAttempt { cx, span: attempt, is_open: true };
    let reply = made.reply();
    let _ = decided.send(Decision::Answer(made));
    open.close(Ok(reply))
}

impl MadeReply {
    fn reply(&self) -> Reply {
        let end = if self.is_refusal { ReplyEnd::Refused } else { ReplyEnd::Stop };
        // It costs nothing.
        let usage = Some(Usage::default());
        Reply { end, usage, ..Reply::from_agent_text(Arc::clone(&self.text)) }
    }
}

/// Reserves what a call may cost. If it does not fit, the operator is asked where the rules say so.
async fn reserve<'c>(
    cx: &RunContext,
    begun: &'c BegunAttempt,
    call: SpanId,
    about: &RequestAbout,
) -> Result<Reserved<'c>, (StopReason, String)> {
    let (account, price) = (&begun.account, begun.price);
    let mut asking = None;
    loop {
        let reserved = account.spending.reserve(about.estimate, price, Some(RESERVED)).await;
        let reached = match reserved {
            Ok(reserved) => return Ok(reserved),
            Err(NotReserved::Reached(reached)) => reached,
            Err(NotReserved::Failed(why)) => return Err((StopReason::MaxCostBudget, why)),
        };
        let asks = account.limits.on_limit == OnLimit::Ask && !reached.is_of_day();
        if asks && cx.questions().are_for_people() {
            if asking.is_none() {
                // Another call may have asked meanwhile.
                let _waits = cx.control.mark_waiting();
                asking = Some(account.spending.asking.lock().await);
                continue;
            }
            if cx.ask_to_extend(&account.spending, call, reached).await == Some(true) {
                continue;
            }
        }
        cx.publish(call, EventKind::BudgetReached(reached));
        let option = match reached {
            _ if reached.is_of_day() => "it and start again",
            BudgetReached::Tokens { .. } => "--max-total-tokens",
            BudgetReached::Cost { .. } => "--max-cost-usd",
        };
        return Err((reached.reason(), format!("{} Raise {option}.", reached.sentence())));
    }
}

/// The client has gone before its request was sent. Its retry is the next attempt of the same call.
fn not_sent(cx: &RunContext, call: SpanId, attempt: u32) -> AttemptEnd {
    let reason = StopReason::Cancelled;
    cx.publish(call, EventKind::AttemptRefused { attempt, reason, retry_in_ms: None });
    AttemptEnd::Failed(gone())
}

fn refusal_text(tool: &ToolName, refusal: GuardRefusal) -> String {
    match refusal {
        GuardRefusal::CircuitOpen { .. } => {
            format!("the breaker of {tool} is open, so no call is sent")
        }
        GuardRefusal::BulkheadFull => {
            format!("too many calls of {tool} are in flight, and the queue is full")
        }
        GuardRefusal::RateReached { .. } => format!("too many calls of {tool} in a minute"),
    }
}

/// The effect of the faults that come before a request is sent.
enum BeforeSending {
    /// It is sent; its response may have a fault.
    Sent(Option<FaultKind>),
    /// It gets this reply.
    Made(MadeReply),
    Failed(Box<AttemptFailed>),
}

/// Carries out the faults that come before a request is sent.
async fn before_sending(
    faults: &[InjectedFault],
    draw: u64,
    has_reply: bool,
    decided: &mut oneshot::Sender<Decision>,
) -> BeforeSending {
    let mut before = BeforeSending::Sent(None);
    for fault in faults {
        match fault {
            InjectedFault::Latency { ms } => {
                if timeout(Duration::from_millis(*ms), decided.closed()).await.is_ok() {
                    return BeforeSending::Failed(gone());
                }
            }
            InjectedFault::Errors { percent, status, .. }
                if happens_with(f64::from(*percent) / 100.0, draw) =>
            {
                let text = format!("HTTP {status} (injected)");
                return BeforeSending::Failed(AttemptFailed::from_status(*status, text));
            }
            InjectedFault::Hang => {
                decided.closed().await;
                return BeforeSending::Failed(gone());
            }
            InjectedFault::Malformed | InjectedFault::Reset => {
                before = BeforeSending::Sent(Some(fault.kind()));
            }
            InjectedFault::Empty if has_reply => {
                before = BeforeSending::Made(MadeReply { text: "".into(), is_refusal: false });
            }
            InjectedFault::Refusal if has_reply => {
                let text = "I can't help with that. (injected)".into();
                before = BeforeSending::Made(MadeReply { text, is_refusal: true });
            }
            InjectedFault::Errors { .. } | InjectedFault::Empty | InjectedFault::Refusal => {}
        }
    }
    before
}

/// An attempt in flight; if this is dropped, the run has ended.
struct OpenAttempt<'a> {
    cx: &'a RunContext,
    span: SpanId,
    is_open: bool,
}

impl OpenAttempt<'_> {
    fn close(mut self, result: Result<Reply, Box<AttemptFailed>>) -> AttemptEnd {
        let (event, how) = match result {
            Ok(reply) => {
                let reply = Arc::new(reply);
                (EventKind::AttemptAnswered(Arc::clone(&reply)), AttemptEnd::Answered(reply))
            }
            Err(failed) => (EventKind::AttemptFailed(failed.clone()), AttemptEnd::Failed(failed)),
        };
        self.publish(event);
        how
    }

    fn publish(&mut self, event: EventKind) {
        self.is_open = false;
        self.cx.publish(self.span, event);
        self.cx.count_in_flight(false);
    }
}

impl Drop for OpenAttempt<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let failed = AttemptFailed::new(FailureClass::Cancelled, "the program has ended");
            self.publish(EventKind::AttemptFailed(failed));
        }
    }
}
