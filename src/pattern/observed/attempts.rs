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
    GuardedRequest, RequestAbout, RequestRefusal,
};
use crate::base::name::{PersonName, ToolName};
use crate::base::seeded_random::{happens_with, random_u64};
use crate::base::time::millis;
use crate::gateway::attempt::CallTurn;
use crate::gateway::breaker::AttemptVerdict;
use crate::gateway::{GuardRefusal, GuardedTool};
use crate::log::event::{
    Answer, AttemptFailed, Boundary, BudgetReached, EventKind, FailureClass, Reply, SpanId,
    StopReason, Subject, Usage,
};
use crate::run::RunContext;
use crate::run::questions::Question;
use crate::run::spending::Reserved;
use crate::scenario::people::{Effects, OPERATOR, Otherwise};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::scenario::spec::{OnLimit, Price};

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
        _ => attempt_unread(request).await,
    };
    EndedAttempt { span, price, how }
}

async fn attempt_unread(request: GuardedRequest) -> AttemptEnd {
    let (ended, end) = oneshot::channel();
    let reporter = AttemptReporter { live: None, body: None, fault: None, ended };
    let _ = request.decided.send(Decision::Send(reporter));
    match end.await {
        Ok(AttemptResult::Unread { status, bytes }) => AttemptEnd::Unread { status, bytes },
        Ok(AttemptResult::Model(Err(failed))) => AttemptEnd::Failed(failed),
        Ok(AttemptResult::Model(Ok(_))) | Err(_) => AttemptEnd::Failed(gone()),
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
    let body = tokio::select! {
        biased;
        held = pass_or_ask(cx, begun, (tool, call), &for_people) => match held {
            HeldCall::Sent(body) => body,
            HeldCall::Refused(why) => {
                let _ = decided.send(Decision::Refuse(RequestRefusal::final_one(402, &why)));
                return refuse(StopReason::ApprovalDenied(guard.name().clone()), None);
            }
            HeldCall::Stopped => return not_sent(cx, call, number),
        },
        () = decided.closed() => return not_sent(cx, call, number),
    };
    // It keeps the bytes of the request.
    drop(for_people);
    if let Some((reason, text)) = &begun.reached {
        let _ = decided.send(Decision::Refuse(RequestRefusal::final_one(402, text)));
        return refuse(reason.clone(), None);
    }
    let reserved = tokio::select! {
        biased;
        reserved = reserve(cx, call, &about, begun.price) => reserved,
        () = decided.closed() => return not_sent(cx, call, number),
    };
    let reserved = match reserved {
        Ok(reserved) => reserved,
        Err((reason, text)) => {
            let _ = decided.send(Decision::Refuse(RequestRefusal::final_one(402, &text)));
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
            let why = RequestRefusal::final_one(503, &refusal_text(guard.name(), refusal));
            let _ = decided.send(Decision::Refuse(RequestRefusal { retry_after, ..why }));
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
    let faults = guard.faults();
    let draw = random_u64(cx.seed, &format!("guard {}", call.0), number, "fault");
    let ended = match before_sending(&faults, draw, &mut decided).await {
        Ok(fault) => {
            let (ended, end) = oneshot::channel();
            let live = Some(cx.bus().live(attempt));
            let _ = decided.send(Decision::Send(AttemptReporter { live, body, fault, ended }));
            match end.await {
                Ok(AttemptResult::Model(result)) => result.map(|reply| *reply),
                // The vendor has the request: its prompt counts.
                Ok(AttemptResult::Unread { .. }) | Err(_) => {
                    let usage = Some(Usage::new(about.estimate.prompt_tokens, 0));
                    Err(Box::new(AttemptFailed { usage, ..*gone() }))
                }
            }
        }
        Err(failed) => {
            let status = failed.status.unwrap_or(503);
            // How the client copes is what the fault shows.
            let why = RequestRefusal::final_one(status, &failed.text);
            let _ = decided.send(Decision::Refuse(RequestRefusal { may_retry: true, ..why }));
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
    how
}

/// What happens to a call that was held.
enum HeldCall {
    /// It is sent, perhaps with another body.
    Sent(Option<Arc<Value>>),
    Refused(Arc<str>),
    /// The run has ended.
    Stopped,
}

/// Waits at the boundary of a call. While the run is paused there, people are asked about the call.
async fn pass_or_ask(
    cx: &RunContext,
    begun: &BegunAttempt,
    (tool, call): (&GuardedTool, SpanId),
    body: &(dyn Fn() -> Option<Value> + Send + Sync),
) -> HeldCall {
    let boundary = Boundary::Call(begun.nth);
    let mut passed = pin!(cx.control.pass(&boundary));
    if let Some(passed) = passed.as_mut().now_or_never() {
        return passed.map_or(HeldCall::Stopped, |()| HeldCall::Sent(None));
    }
    let shown = body().filter(|_| cx.questions().are_for_people() && cx.questions().has_room());
    let Some(shown) = shown.map(Arc::new) else {
        return passed.await.map_or(HeldCall::Stopped, |()| HeldCall::Sent(None));
    };
    // Any field of the request may be changed.
    let fields = shown.as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields.map(|(name, _)| (name.clone(), json!({}))).collect();
    let subject = Subject::ToolCall {
        tool: tool.guard.name().clone(),
        args: Arc::clone(&shown),
        definition: Arc::default(),
        parameters: Arc::new(json!({ "type": "object", "properties": fields })),
        effects: Effects::Write,
    };
    let question = Question {
        span: call,
        inside: call,
        by: None,
        why: Some(format!("call {} of the program is held", begun.nth).into()),
        subject,
        asking: cx.asking(&PersonName::from(OPERATOR), Otherwise::Deny),
        rule: None,
    };
    let ended = {
        // The boundary has counted this branch already.
        let _asks = cx.control.branch();
        tokio::select! {
            biased;
            passed = &mut passed => return passed.map_or(HeldCall::Stopped, |()| HeldCall::Sent(None)),
            ended = cx.questions().ask_once(question) => ended,
        }
    };
    let changed = match &ended.answered.answer {
        Answer::Approve { args } => args.clone().filter(|args| **args != *shown),
        Answer::Deny { text } if !text.is_empty() => {
            return HeldCall::Refused(format!("the operator refused this call: {text}").into());
        }
        _ => return HeldCall::Refused("the operator refused this call".into()),
    };
    cx.control.step_past(&boundary.id());
    passed.await.map_or(HeldCall::Stopped, |()| HeldCall::Sent(changed))
}

/// Reserves what a call may cost. If it does not fit, the operator is asked where the rules say so.
async fn reserve<'c>(
    cx: &'c RunContext,
    call: SpanId,
    about: &RequestAbout,
    price: Option<Price>,
) -> Result<Reserved<'c>, (StopReason, String)> {
    let mut asking = None;
    loop {
        let (reason, reached) =
            match timeout(RESERVED, cx.spending.reserve(about.estimate, price)).await {
                Ok(Ok(reserved)) => return Ok(reserved),
                Ok(Err(reached)) => reached,
                Err(_) => {
                    let text = "other calls have reserved what is left of the limit".to_owned();
                    return Err((StopReason::MaxTokensBudget, text));
                }
            };
        if cx.scenario().on_limit == OnLimit::Ask && cx.questions().are_for_people() {
            if asking.is_none() {
                // Another call may have asked meanwhile.
                let _waits = cx.control.mark_waiting();
                asking = Some(cx.spending.asking.lock().await);
                continue;
            }
            if cx.ask_to_extend(call, reached).await == Some(true) {
                continue;
            }
        }
        cx.publish(call, EventKind::BudgetReached(reached));
        let option = match reached {
            BudgetReached::Tokens { .. } => "--max-total-tokens",
            BudgetReached::Cost { .. } => "--max-cost-usd",
        };
        return Err((reason, format!("{} Raise {option}.", reached.sentence())));
    }
}

/// The client has gone before its request was sent.
fn not_sent(cx: &RunContext, call: SpanId, attempt: u32) -> AttemptEnd {
    let reason = StopReason::Cancelled;
    cx.publish(
        call,
        EventKind::AttemptRefused { attempt, reason: reason.clone(), retry_in_ms: None },
    );
    AttemptEnd::Refused(reason)
}

fn refusal_text(tool: &ToolName, refusal: GuardRefusal) -> String {
    match refusal {
        GuardRefusal::CircuitOpen { .. } => {
            format!("the breaker of {tool} is open, so no call is sent")
        }
        GuardRefusal::BulkheadFull => {
            format!("too many calls of {tool} are in flight, and the queue is full")
        }
    }
}

/// Carries out the faults that come before a request is sent. Returns the one that its response has.
async fn before_sending(
    faults: &[InjectedFault],
    draw: u64,
    decided: &mut oneshot::Sender<Decision>,
) -> Result<Option<FaultKind>, Box<AttemptFailed>> {
    let mut of_response = None;
    for fault in faults {
        match fault {
            InjectedFault::Latency { ms } => {
                if timeout(Duration::from_millis(*ms), decided.closed()).await.is_ok() {
                    return Err(gone());
                }
            }
            InjectedFault::Errors { percent, status }
                if happens_with(f64::from(*percent) / 100.0, draw) =>
            {
                let text = format!("HTTP {status} (injected)");
                return Err(AttemptFailed::from_status(*status, text));
            }
            InjectedFault::Hang => {
                decided.closed().await;
                return Err(gone());
            }
            InjectedFault::Malformed | InjectedFault::Reset => of_response = Some(fault.kind()),
            InjectedFault::Errors { .. } => {}
        }
    }
    Ok(of_response)
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
