//! What failed, was refused or waits for another attempt: the cause behind a stop such as
//! `llm_error:bad_response`, which the stop reason alone does not name, and the advice for it. Also
//! the replies that are used though they are not whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::run::RunFold;
use super::spans::{SpanKind, Spans};
use crate::base::name::{TaskId, ToolName};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::stop::{LlmError, StopClass};
use crate::log::event::{
    Asks, BreakerStage, BudgetReached, Event, EventKind, FailureClass, Purpose, ReplyRefused,
    RetryLimit, Seq, SpanId, StopReason, ToolLimits, format_millis,
};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::tools::mcp::split_name;

/// Most cut replies to keep.
const MAX_CUT: usize = 1_000;

/// The tool of a call, and the arguments.
type CalledTool = (ToolName, Option<Arc<Value>>);

/// What failed, was refused or waits for another attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    pub last_errors: LastErrors,
    pub refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    pub budget_reached: Option<BudgetReached>,
    pub back_off: BackOff,
    /// The replies of models that are used though they are not whole.
    pub cut: Vec<CutReply>,
}

/// A reply of a model that was used though it is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CutReply {
    /// The role, agent or step that replied.
    pub who: Box<str>,
    /// How it ended.
    pub end: ReplyEnd,
    /// The call.
    #[serde(skip)]
    pub(crate) call: SpanId,
}

impl Failures {
    /// Keeps the replies that are used though they are not whole, after the span tree.
    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans) {
        let span = event.span;
        match &event.kind {
            EventKind::AttemptAnswered(reply)
                if !reply.end.is_whole() && self.cut.len() < MAX_CUT =>
            {
                let call = spans.get(span).and_then(|attempt| spans.get(attempt.parent));
                let Some((call, SpanKind::Call(purpose))) = call.map(|it| (it.id, &it.kind)) else {
                    return;
                };
                if purpose.asks() == Asks::Model {
                    let who = purpose.script_step().unwrap_or_default().into();
                    self.cut.push(CutReply { who, end: reply.end, call });
                }
            }
            _ if self.cut.is_empty() => {}
            EventKind::ReplyRefused(_) => self.cut.retain(|cut| cut.call != span),
            // The model continues its paused reply.
            EventKind::CallStarted(started) if started.prompt.after.is_some() => {
                let after = started.prompt.after;
                self.cut.retain(|cut| cut.end != ReplyEnd::Paused || Some(cut.call) != after);
            }
            // What an agent said in a failed attempt is not used.
            EventKind::AttemptFailed(_) => {
                self.cut.retain(|cut| !spans.is_within(cut.call, span));
            }
            _ => {}
        }
    }
}

/// Calls in backoff, by their span. Each counts once, no matter how its wait ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff(BTreeSet<SpanId>);

impl BackOff {
    /// Processes an event, after the span tree.
    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::CallRetried { .. }
                if spans.get(event.span).is_some_and(|call| call.closed.is_none()) =>
            {
                self.0.insert(event.span);
            }
            EventKind::AttemptStarted { parent, .. } => {
                self.0.remove(parent);
            }
            EventKind::AttemptRefused { .. }
            | EventKind::CallAnswered { .. }
            | EventKind::CallDegraded { .. }
            | EventKind::CallFailed { .. } => {
                self.0.remove(&event.span);
            }
            EventKind::RunClosed(_) => self.0.clear(),
            _ => {}
        }
    }

    /// Number of calls in backoff.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The refused replies of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// For each stop reason, the refusal that counts.
    stops: Vec<StopRefusal>,
}

/// A refused reply that may stop a run.
#[derive(Clone, Debug)]
pub struct StopRefusal {
    /// Round and seat, if seats are asked in parallel: the first seat of the sequence stops the
    /// run.
    seat: Option<(u32, u16)>,
    /// What the reply was for; `None`: the log does not say it.
    pub purpose: Option<Purpose>,
    pub refused: Arc<ReplyRefused>,
}

/// Most reasons to keep: reasons that quote a model's own words may be many.
const MAX_REASONS: usize = 64;

impl Refusals {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        let EventKind::ReplyRefused(refused) = &event.kind else { return };
        if refused.repeat.is_some() {
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => Some(purpose.clone()),
            _ => None,
        };
        let seat = match purpose {
            Some(Purpose::Contribution { round, seat, .. }) => Some((round, seat)),
            _ => None,
        };
        let new = StopRefusal { seat, purpose, refused: Arc::new(ReplyRefused::clone(refused)) };
        let room = self.stops.len() < MAX_REASONS;
        match self.stops.iter_mut().find(|it| it.refused.reason == refused.reason) {
            Some(before) => {
                let earlier = matches!(
                    (before.seat, seat),
                    (Some((round, first)), Some((same, second))) if round == same && first < second
                );
                if !earlier {
                    *before = new;
                }
            }
            None if room => self.stops.push(new),
            None => {}
        }
    }

    /// The refused reply that stops a run with this reason, if there is one.
    pub fn for_reason(&self, stop: &StopReason) -> Option<&StopRefusal> {
        self.stops.iter().find(|it| it.refused.reason == *stop)
    }
}

/// Most characters of an error that another program reported.
const ERROR_CHARS: usize = 300;

/// The last errors of calls, and what else a stop reason names without saying it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastErrors {
    /// Of open calls, by their spans.
    open: BTreeMap<SpanId, LastError>,
    /// The tool of each open call, and its arguments.
    calls: BTreeMap<SpanId, CalledTool>,
    /// For each stop reason, the call that counts.
    failed: Vec<StopCandidate>,
    /// The critical tasks of the accepted plan, by index.
    critical: Vec<u32>,
    /// The first critical task of the plan that failed.
    task: Option<(u32, TaskId, LastError)>,
    /// How many pages could not be read, and the last error.
    pages: Option<(u64, LastError)>,
    of_tools: BTreeMap<ToolName, Arc<str>>,
    /// What opened the breaker of each tool.
    opened: BTreeMap<ToolName, (Seq, Arc<str>)>,
    /// The call in doubt.
    in_doubt: Option<(Seq, Arc<str>)>,
    /// The call that failed last, and its error.
    last_failed: Option<(SpanId, Arc<str>)>,
    /// The last error that another program reported.
    of_program: Option<(Seq, Arc<str>)>,
}

/// Error of the last attempt of a call, and what prevented another attempt.
#[derive(Clone, Debug)]
pub(crate) struct LastError {
    pub text: Arc<str>,
    at: Seq,
    /// The tool that was called.
    tool: ToolName,
    /// The limit that prevented a retry, if there was one.
    pub limit: Option<RetryLimit>,
    /// A later attempt that was refused: its number, and the reason.
    pub refused: Option<(u32, StopReason)>,
    /// Attempts of the call, refused ones included.
    pub attempts: u32,
    /// Attempts that only repeated a request without a parameter; they do not count as retries.
    pub adapted: u32,
    /// Longest wait in milliseconds that an earlier attempt was answered with (`Retry-After`). The
    /// text already has that of the last attempt.
    pub earlier_wait_ms: Option<u64>,
    own_wait_ms: Option<u64>,
}

#[derive(Clone, Debug)]
struct StopCandidate {
    reason: StopReason,
    call: SpanId,
    said: LastError,
}

impl LastErrors {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::CallStarted(call) if call.purpose.asks() != Asks::Agent => {
                self.calls.insert(event.span, (call.tool.clone(), call.args.clone()));
            }
            EventKind::AttemptFailed(failed) => {
                if let Some(attempt) = spans.get(event.span) {
                    let before = self.open.get(&attempt.parent);
                    let adapted = before.map_or(0, |said| said.adapted);
                    let tool = self.calls.get(&attempt.parent).map(|(tool, _)| tool.clone());
                    let said = LastError {
                        text: failed.text.as_str().into(),
                        at: event.seq,
                        tool: tool.unwrap_or_else(|| LLM.into()),
                        limit: None,
                        refused: None,
                        attempts: 1,
                        adapted: adapted + u32::from(failed.adapted.is_some()),
                        earlier_wait_ms: before
                            .and_then(|said| said.own_wait_ms.max(said.earlier_wait_ms)),
                        own_wait_ms: failed.retry_after_ms,
                    };
                    if failed.adapted.is_none() && failed.class != FailureClass::Cancelled {
                        self.note_tool(&said);
                    }
                    self.open.insert(attempt.parent, said);
                }
            }
            EventKind::RetryRefused { limit, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.limit = Some(*limit);
                }
            }
            EventKind::AttemptRefused { attempt, reason, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.refused = Some((*attempt, reason.clone()));
                }
            }
            EventKind::CallFailed { attempts, reason } => {
                let (call, said) = self.close(event.span);
                if let Some(span) =
                    spans.get(event.span).filter(|_| !matches!(reason, StopReason::Cancelled))
                {
                    self.note(event, (reason, *attempts), call, said, &span.kind);
                }
            }
            EventKind::CallDegraded { attempts, reason, .. } => {
                // A pattern may stop the run by it all the same, such as for the tools of a server or a search.
                if let (_, Some(said)) = self.close(event.span) {
                    let said = LastError { attempts: *attempts, ..said };
                    self.note_page(&said, spans.get(event.span).map(|span| &span.kind));
                    self.propose(reason, event.span, said, false);
                }
            }
            EventKind::CallAnswered { .. } => {
                self.close(event.span);
            }
            EventKind::BreakerChanged { tool, to, cause, by, counted, .. } => {
                let why = match (by, to, self.of_tools.get(tool)) {
                    (Some(_), ..) => "manual override.".to_owned(),
                    (None, BreakerStage::Open, Some(text)) => match counted {
                        Some(_) => format!("{}. Last failure: {text}", cause.description(*counted)),
                        None => text.to_string(),
                    },
                    _ => return,
                };
                self.opened.insert(tool.clone(), (event.seq, why.into()));
            }
            EventKind::CallInDoubt { tool, .. } => {
                let call = spans.get(event.span).and_then(|it| self.calls.get(&it.parent));
                let args = call.and_then(|(_, args)| args.as_deref());
                self.in_doubt = Some((event.seq, in_doubt_text(tool, args).into()));
            }
            EventKind::Pattern(fact) => {
                if let Some(critical) = fact.get().critical_tasks() {
                    self.critical = critical;
                }
                if let Some(error) = fact.get().error() {
                    self.of_program = Some((event.seq, visible_within(error, ERROR_CHARS).into()));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, call: SpanId) -> (Option<CalledTool>, Option<LastError>) {
        (self.calls.remove(&call), self.open.remove(&call))
    }

    /// Keeps the last error of a tool; of a tool of a server also for the server.
    fn note_tool(&mut self, said: &LastError) {
        let server = split_name(said.tool.as_str()).map(|(server, _)| ToolName::from(server));
        for tool in [Some(said.tool.clone()), server].into_iter().flatten() {
            self.of_tools.insert(tool, Arc::clone(&said.text));
        }
    }

    fn note(
        &mut self,
        event: &Event,
        (reason, attempts): (&StopReason, u32),
        call: Option<CalledTool>,
        said: Option<LastError>,
        what: &SpanKind,
    ) {
        let SpanKind::Call(purpose) = what else { return };
        // Of an agent its own calls have the cause already.
        if purpose.asks() == Asks::Agent {
            return;
        }
        let said = said.map(|said| LastError { attempts, ..said });
        if let Purpose::Task { task, index } = purpose
            && self.critical.contains(index)
            && self.task.as_ref().is_none_or(|(first, ..)| index < first)
        {
            // A call that was not made has no error but its reason.
            let said = said.clone().unwrap_or_else(|| LastError {
                text: reason.phrase().into(),
                at: event.seq,
                tool: call.map_or_else(|| LLM.into(), |(tool, _)| tool),
                limit: None,
                refused: None,
                attempts: 0,
                adapted: 0,
                earlier_wait_ms: None,
                own_wait_ms: None,
            });
            self.task = Some((*index, task.clone(), said));
        }
        let Some(said) = said else { return };
        self.last_failed = Some((event.span, Arc::clone(&said.text)));
        self.note_page(&said, Some(what));
        // Concurrent seats: the first one in the sequence stops the run, no matter which one failed
        // first.
        let first_counts = matches!(purpose, Purpose::Contribution { .. });
        self.propose(reason, event.span, said, first_counts);
    }

    /// Counts a page that could not be read, if the call was to read one.
    fn note_page(&mut self, said: &LastError, what: Option<&SpanKind>) {
        if let Some(SpanKind::Call(Purpose::Read { .. })) = what {
            let pages = self.pages.take().map_or(1, |(pages, _)| pages + 1);
            self.pages = Some((pages, said.clone()));
        }
    }

    /// Keeps the error of a call as that of a stop with this reason. The last one counts, or the first.
    fn propose(&mut self, reason: &StopReason, call: SpanId, said: LastError, first_counts: bool) {
        let room = self.failed.len() < MAX_REASONS;
        match self.failed.iter_mut().find(|failed| failed.reason == *reason) {
            Some(before) if first_counts && before.call < call => {}
            Some(before) => (before.call, before.said) = (call, said),
            None if room => self.failed.push(StopCandidate { reason: reason.clone(), call, said }),
            None => {}
        }
    }

    /// The last error of the call that stopped a run with this reason, if there is one.
    fn for_reason(&self, stop: &StopReason) -> Option<&LastError> {
        match stop {
            StopReason::CriticalTaskFailed => self.task.as_ref().map(|(.., said)| said),
            StopReason::NoReliableSources => self.pages.as_ref().map(|(_, said)| said),
            // What a budget or a person ends may have failed before.
            _ if !matches!(stop.class(), StopClass::Unreachable | StopClass::Stopped) => None,
            _ => self.failed.iter().find(|it| it.reason == *stop).map(|it| &it.said),
        }
    }
}

/// That nobody knows whether a call was made.
fn in_doubt_text(tool: &ToolName, args: Option<&Value>) -> String {
    if tool.as_str() == LLM {
        return "A call of the model was in flight when the run was interrupted: it may have been made, and \
                paid, or not."
            .to_owned();
    }
    let args = args.map(|args| visible_within(&args.to_string(), REASON_CHARS));
    let args = args.map_or_else(String::new, |args| format!(" {args}"));
    format!(
        "The call {tool}{args} was in flight when the run was interrupted: it may have been made, or not."
    )
}

/// Name of the model at the gateway.
const LLM: &str = "llm";

impl RunFold {
    /// Why a run was stopped, if more is known than its stop reason says: the last error of the call that
    /// stopped it, and the limit that prevented a retry; what opened a breaker; which call is in doubt.
    pub fn stop_cause(&self) -> Option<Arc<str>> {
        let reason = &self.progress.closed.as_ref()?.reason;
        let errors = &self.failures.last_errors;
        let cause = |said: &LastError| said.cause(self.max_attempts_of(&said.tool));
        let text = match reason {
            StopReason::CircuitOpen(tool) => {
                let (_, by) = errors.opened.get(tool)?;
                format!("The breaker of {tool} was open, so it was not called. Opened by: {by}")
            }
            StopReason::BulkheadFull(tool) => self.full_bulkhead_text(tool)?,
            StopReason::MaxTokensBudget | StopReason::MaxCostBudget => {
                self.failures.budget_reached?.sentence()
            }
            StopReason::InDoubt(_) => return Some(Arc::clone(&errors.in_doubt.as_ref()?.1)),
            StopReason::ProgramFailed | StopReason::SpanFailed | StopReason::GuardrailTripped => {
                return Some(Arc::clone(&errors.of_program.as_ref()?.1));
            }
            StopReason::ApprovalDenied(tool) => self.questions.denial_of(tool)?,
            StopReason::CriticalTaskFailed => {
                let (_, task, said) = errors.task.as_ref()?;
                format!("{task} failed: {}", cause(said))
            }
            StopReason::NoReliableSources => {
                let (pages, said) = errors.pages.as_ref()?;
                let pages =
                    if *pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
                format!("{pages} could not be read. Last error: {}", cause(said))
            }
            _ => match (errors.for_reason(reason), reason) {
                (Some(said), _) => cause(said),
                // Its server has listed its tools, but they are not used.
                (None, StopReason::ToolError(tool, FailureClass::Denied)) => {
                    format!("The tools of {tool} have changed, and they were not accepted.")
                }
                (None, StopReason::ToolError(tool, FailureClass::BadResponse)) => {
                    format!("{tool} answered, but not with a list of its tools.")
                }
                (None, StopReason::ToolInvalidOutput(tool)) if self.stop_refusal().is_none() => {
                    format!("{tool} answered, but not with a list of results.")
                }
                _ => return None,
            },
        };
        Some(text.into())
    }

    /// The same for the outcome, which has the reason of a task that was not called already.
    pub(super) fn stop_error(&self) -> Option<Arc<str>> {
        let is_task = self.progress.closed.as_ref()?.reason == StopReason::CriticalTaskFailed;
        let task = self.failures.last_errors.task.as_ref().filter(|_| is_task);
        self.stop_cause().filter(|_| task.is_none_or(|(.., said)| said.attempts > 0))
    }

    /// The event that has the cause of the end of a run, as [`stop_cause`](Self::stop_cause) says it.
    pub(crate) fn stop_cause_event(&self) -> Option<Seq> {
        let reason = &self.progress.closed.as_ref()?.reason;
        let errors = &self.failures.last_errors;
        match reason {
            StopReason::CircuitOpen(tool) => errors.opened.get(tool).map(|(at, _)| *at),
            StopReason::InDoubt(_) => errors.in_doubt.as_ref().map(|(at, _)| *at),
            StopReason::ProgramFailed | StopReason::SpanFailed => {
                errors.of_program.as_ref().map(|(at, _)| *at)
            }
            _ => errors.for_reason(reason).map(|said| said.at),
        }
    }

    /// The error of this call, if it is the one that failed last.
    pub(crate) fn last_failed_call(&self, call: SpanId) -> Option<&str> {
        let (failed, error) = self.failures.last_errors.last_failed.as_ref()?;
        (*failed == call).then_some(&**error)
    }

    /// The refused reply that stopped the run, if one did.
    pub(crate) fn stop_refusal(&self) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(&self.progress.closed.as_ref()?.reason)
    }

    /// The refused reply with this stop reason, if there was one.
    pub(crate) fn refusal(&self, reason: &StopReason) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(reason)
    }

    /// What to do about the end of the run, in one sentence; `None` for a success.
    pub fn stop_advice(&self) -> Option<&'static str> {
        let reason = &self.progress.closed.as_ref()?.reason;
        let said = self.failures.last_errors.for_reason(reason);
        match (reason, said.and_then(|said| said.limit)) {
            // The error has its own advice.
            (StopReason::ToolError(..), _) if said.is_some() => None,
            (
                StopReason::LlmError(LlmError::RateLimited),
                Some(RetryLimit::Deadline { requested: true, .. }),
            ) => Some("Start the run again after that time, or raise budget.max_seconds."),
            // Retries do not help if the server is not there.
            (
                StopReason::LlmError(LlmError::Connection) | StopReason::LlmTimeout,
                Some(RetryLimit::RetryBudget { .. }),
            ) => reason.advice(),
            (StopReason::LlmError(_), Some(RetryLimit::RetryBudget { .. })) => {
                Some("Start the run again later, or raise tools.llm.retry_budget.min.")
            }
            _ if self.stop_refusal().is_some_and(|stop| stop.refused.repeats > 0) => Some(
                "Asking the model again did not help: fix the prompt, set model.repair, or use another model.",
            ),
            _ => reason.advice(),
        }
    }

    /// The limits of a tool; those of an agent of another program or of a server are in its own table.
    fn limits_of(&self, tool: &ToolName) -> Option<&ToolLimits> {
        let head = |name: &str| {
            let tools = &self.head.as_ref()?.tools;
            tools.iter().find(|it| it.name.as_str() == name).map(|it| &it.limits)
        };
        let of =
            |name: &str| self.tools.get(name).map(|row| &row.head.limits).or_else(|| head(name));
        of(tool.as_str()).or_else(|| of(split_name(tool.as_str())?.0))
    }

    fn max_attempts_of(&self, tool: &ToolName) -> Option<u32> {
        self.limits_of(tool).map(|limits| limits.max_attempts)
    }

    fn full_bulkhead_text(&self, tool: &ToolName) -> Option<String> {
        let limits = self.limits_of(tool)?.bulkhead?;
        let waited = match limits.max_wait {
            Some(Duration::ZERO) => "",
            _ => ", and none of them ended in time",
        };
        let calls = match limits.max_in_flight {
            1 => "1 call was".to_owned(),
            calls => format!("{calls} calls were"),
        };
        Some(format!(
            "The bulkhead of {tool} was full, so it was not called: {calls} in flight{waited}."
        ))
    }
}

impl LastError {
    /// The error, the wait that the endpoint requested, and what prevented another attempt; a call may have
    /// `most` attempts.
    fn cause(&self, most: Option<u32>) -> String {
        // The limits of an agent of another program are in the table of the agent.
        let table = split_name(self.tool.as_str()).map_or(self.tool.as_str(), |(agent, _)| agent);
        let mut text = self.text.to_string();
        // If the wait itself exceeded a limit, the text of that limit states it.
        let said = matches!(self.limit, Some(RetryLimit::Deadline { requested: true, .. }));
        if let Some(ms) = self.earlier_wait_ms.filter(|ms| *ms > 0 && !said) {
            text.push_str(&format!(" The endpoint asked to wait {}.", format_millis(ms)));
        }
        let made = self.attempts - self.adapted.min(self.attempts);
        match (&self.refused, &self.limit) {
            (Some((attempt, reason)), _) => {
                text.push_str(&format!(" Attempt {attempt} was not made: {reason}."));
            }
            (None, Some(limit)) => {
                text.push(' ');
                text.push_str(&limit.sentence(&ToolName::from(table)));
            }
            (None, None) if made > 1 && most == Some(made) => {
                text.push_str(&format!(" {made} attempts (tools.{table}.retries.max_attempts)."));
            }
            (None, None) if self.attempts > 1 => {
                text.push_str(&format!(" {} attempts.", self.attempts));
            }
            (None, None) => {}
        }
        text
    }
}
