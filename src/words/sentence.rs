//! An event as one line: its round, its subject, what happened. What all patterns share is here,
//! the rest in the words of the pattern. The list of events shows the line, and filters match
//! against it. Also commands in words: "ann pauses the run".

use std::borrow::Cow;

use super::format;
use super::patterns::agents::calls_text;
use super::patterns::{Narrate, words_of};
use super::readable::top_text;
use super::styled::StyleRole;
use super::tool_sentence::fill_tool_line;
use super::verdict::{place_after, run_lead};
use crate::base::time;
use crate::log::event::command::BreakerOverride;
use crate::log::event::kind::{
    Asks, AttemptFailed, FailureClass, Initiator, ModelLabel, Purpose, RunClosed, RunStarted,
    StepSize,
};
use crate::log::event::{Command, Event, EventKind, SpanId, StopReason};
use crate::log::facts::collaboration::Stance;
use crate::log::world::{RunFold, SpanKind, World};
use crate::scenario::spec::Repair;
use crate::scenario::spec::script::ReplyEnd;

/// The parts of the line of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine<'a> {
    /// The round that it belongs to, if any.
    pub round: Option<u32>,
    /// The kind of the event, as in the log.
    pub kind: &'a str,
    /// Its subject: a seat, agent, task, source or flag; empty for the run as a whole.
    pub subject: Cow<'a, str>,
    /// The stance and confidence that it states, if any.
    pub stance: Option<(Stance, f64)>,
    /// What happened.
    pub text: Cow<'a, str>,
    /// How its kind is painted.
    pub tone: StyleRole,
}

impl EventLine<'_> {
    /// The line as text, for copying and for filters by words.
    pub fn line(&self) -> String {
        let mut line = match self.round {
            Some(round) => format!("R{round}"),
            None => "--".to_owned(),
        };
        for part in [self.kind, &self.subject] {
            if !part.is_empty() {
                line.push_str("  ");
                line.push_str(part);
            }
        }
        if let Some((stance, confidence)) = self.stance {
            line.push_str(&format!("  {stance} {}", format::confidence(confidence)));
        }
        if !self.text.is_empty() {
            line.push_str("  ");
            line.push_str(&self.text);
        }
        line
    }
}

/// Who or what caused an event, for the screen.
pub fn actor(by: Initiator) -> &'static str {
    match by {
        Initiator::You => "by you",
        Initiator::Schedule => "by schedule",
        Initiator::Breakpoint => "by a breakpoint",
        Initiator::Suspend => "by suspending",
        Initiator::Store => "by the store",
        Initiator::Remote => "from another machine",
        Initiator::Runner => "by the runner",
    }
}

/// The shortest name of a failure: its HTTP status, else its class.
pub fn failure_name(class: FailureClass, status: Option<u16>) -> Cow<'static, str> {
    match status {
        Some(status) => Cow::Owned(status.to_string()),
        None => Cow::Borrowed(class.phrase()),
    }
}

/// Where a run's model replies come from, for the screen.
pub fn model_text(label: &ModelLabel) -> String {
    match label {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {name} @ {host}"),
    }
}

/// A duration in milliseconds as it is shown: `1.5s`.
pub fn took_ms(millis: u64) -> String {
    time::duration_text(std::time::Duration::from_millis(millis))
}

/// What happened to a reply that is not whole, and to its calls: `cut at its token limit, its 2 calls
/// are not made`. Empty for a whole one.
pub fn cut_reply(end: ReplyEnd, calls: usize) -> String {
    let Some(mark) = end.mark() else { return String::new() };
    match calls {
        0 => mark.to_owned(),
        1 => format!("{mark}, its call is not made"),
        calls => format!("{mark}, its {calls} calls are not made"),
    }
}

/// The line of an event; `world` supplies what the event itself does not contain.
pub fn event_line<'a>(event: &'a Event, world: &'a World) -> EventLine<'a> {
    line_of(event, world, words_of(world))
}

/// The line of an event in the words of this pattern.
pub fn line_of<'a>(
    event: &'a Event,
    run: &'a RunFold,
    words: Option<&'a dyn Narrate>,
) -> EventLine<'a> {
    let (round, purpose) = round_and_purpose(event.span, run);
    let span = run.spans.get(event.span).map(|span| &span.kind);
    let mut line = EventLine {
        round,
        kind: event.kind.name(),
        subject: words
            .zip(span)
            .and_then(|(words, span)| words.span_name(span))
            .unwrap_or_else(|| subject_name(purpose, words)),
        stance: None,
        text: Cow::Borrowed(""),
        tone: StyleRole::Text,
    };
    match &event.kind {
        EventKind::RunStarted(head) => line.text = run_started_text(head, words).into(),
        EventKind::RunClosed(closed) => {
            line.text = run_closed_text(run, closed, words).into();
            line.tone =
                if closed.reason.is_success() { StyleRole::Done } else { StyleRole::Failed };
        }
        EventKind::Pausing { by: who, .. } => {
            line.text = actor(*who).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::Paused { at } => {
            let at: Vec<_> = at.iter().map(|at| at.display_name()).collect();
            line.text = format!("before {}", at.join(", ")).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::Resumed { by: who, paused_ms } => {
            line.text = format!("{}, paused for {}", actor(*who), took_ms(*paused_ms)).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::RunResumed { by: who, downtime_ms, events } => {
            line.text = format!(
                "{}, from {events} stored events, stopped for {}",
                actor(*who),
                took_ms(*downtime_ms)
            )
            .into();
            line.tone = StyleRole::Paused;
        }
        EventKind::CommandTaken { command, by: who, .. } => {
            line.text = format!("{who} {}", command_words(command)).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::RunForked { by: who, parent, at, .. } => {
            line.text =
                format!("{}, from {parent} before {}", actor(*who), at.display_name()).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::Stepped { step, boundary, paused_ms } => {
            let far = match step {
                StepSize::Boundary => "to the next boundary",
                StepSize::Round => "to the next round",
            };
            line.text = format!(
                "past {}, {far}, paused for {}",
                boundary.display_name(),
                took_ms(*paused_ms)
            )
            .into();
            line.tone = StyleRole::Paused;
        }
        EventKind::BreakpointChanged { at, set } => {
            let what = if *set { "set before" } else { "removed before" };
            line.text = format!("{what} {}", at.display_name()).into();
            line.tone = StyleRole::Paused;
        }
        EventKind::FlagChanged { flag, on, by: who, boundary } => {
            line.subject = flag.as_str().into();
            let position = if *on { "off to on" } else { "on to off" };
            line.text =
                format!("{position}, {}, from {}", actor(*who), boundary.display_name()).into();
            line.tone = StyleRole::Flag;
        }
        EventKind::CallStarted(call) => {
            let size: usize = call.prompt.messages.iter().map(|said| said.content.len()).sum();
            line.subject = subject_name(Some(&call.purpose), words);
            line.text = match &call.args {
                Some(args) => format!("calls {} with {}", call.tool, top_text(args)).into(),
                None => format!(
                    "calls {}: {}, {}",
                    call.model.as_deref().unwrap_or(call.tool.as_str()),
                    format::count_noun(call.prompt.messages.len() as u64, "message"),
                    format::bytes(size as u64)
                )
                .into(),
            };
        }
        EventKind::CallAnswered { attempts } => {
            line.text = format::count_noun(u64::from(*attempts), "attempt").into();
        }
        EventKind::CallFailed { attempts, reason } => {
            line.text = failed_text(reason, *attempts).into();
            line.tone = StyleRole::Failed;
        }
        EventKind::CallRetried { attempt, wait_ms, cause: after, status } => {
            let failed = failure_name(*after, *status);
            line.text = format!("{failed}, attempt {attempt} in {}", took_ms(*wait_ms)).into();
            line.tone = StyleRole::Retry;
        }
        EventKind::RetryRefused { attempt, limit } => {
            line.text = format!("attempt {attempt} not made: {}", limit.description()).into();
            line.tone = StyleRole::Failed;
        }
        EventKind::AttemptStarted { attempt, timeout_ms, .. } => {
            line.text = format!("attempt {attempt} (timeout {})", took_ms(*timeout_ms)).into();
        }
        EventKind::AttemptAnswered(reply) if reply.result.is_some() => {
            line.text = reply.result.as_deref().map(top_text).unwrap_or_default().into();
        }
        EventKind::AttemptAnswered(reply) => {
            let mut what = format::bytes(reply.text.len() as u64);
            what.push_str(&calls_text(reply));
            if let Some(usage) = reply.usage {
                what.push_str(&format!(
                    ", {} tokens in, {} out",
                    usage.prompt_tokens, usage.completion_tokens
                ));
            }
            if let Some(first) = reply.first_token_ms {
                what.push_str(&format!(", first token {}", took_ms(first)));
            }
            if !reply.end.is_whole() {
                let made = cut_reply(reply.end, reply.tool_calls.len());
                what = format!("{made}; {what}");
                line.tone = StyleRole::Retry;
            }
            line.text = what.into();
        }
        EventKind::AttemptFailed(failed) => {
            line.text = attempt_failed_text(failed).into();
            line.tone = StyleRole::Failed;
        }
        EventKind::RequestAdapted { model, parameter } => {
            line.text =
                format!("{model} does not accept {parameter}; sent again without it").into();
            line.tone = StyleRole::Retry;
        }
        EventKind::ReplyRepaired { repair, changed } => {
            line.text = match (Repair::phrase(repair), changed.as_str()) {
                (repair, "") => repair.into(),
                (repair, what) => format!("{repair}: {what}").into(),
            };
            line.tone = StyleRole::Retry;
        }
        EventKind::ReplyRefused(refused) => {
            line.text = match refused.repeat {
                Some(nth) => format!("{}; asked again ({nth})", refused.detail).into(),
                None => refused.detail.as_ref().into(),
            };
            line.tone =
                if refused.repeat.is_some() { StyleRole::Retry } else { StyleRole::Refused };
        }
        EventKind::BudgetReached(reached) => {
            line.text = reached.sentence().into();
            line.tone = StyleRole::Failed;
        }
        EventKind::ConditionFailed { place, text } => {
            line.text = format!("{place}: {text}").into();
            line.tone = StyleRole::Retry;
        }
        EventKind::Warning { text } => {
            line.text = text.as_str().into();
            line.tone = StyleRole::Retry;
        }
        EventKind::SessionRunStarted { run, scenario } => {
            line.subject = run.as_str().into();
            line.text = scenario.as_str().into();
        }
        EventKind::SessionRunClosed { run, reason } => {
            line.subject = run.as_str().into();
            line.text = reason.phrase();
        }
        EventKind::SessionRunDropped { run, events: facts } => {
            line.subject = run.as_str().into();
            line.text = format::count_noun(*facts, "event").into();
        }
        EventKind::EventsDropped { events: facts } => {
            line.text = format!("{} to bound memory", format::count_noun(*facts, "event")).into();
            line.tone = StyleRole::Retry;
        }
        EventKind::PlanRefused { .. }
        | EventKind::ConcurrencyChanged { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::AttemptRefused { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ClientRetried { .. }
        | EventKind::CallInDoubt { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::ResultIgnored { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultRemoved { .. } => fill_tool_line(&event.kind, &mut line),
        EventKind::AnswerComposed { text, by, end } => {
            line.subject = by.as_ref().map_or("finalize", |by| by.as_str()).into();
            line.text = match end.mark() {
                None => text.as_ref().into(),
                Some(mark) => format!("{mark}: {text}").into(),
            };
            line.tone = if end.is_whole() { StyleRole::Done } else { StyleRole::Retry };
        }
        EventKind::Unknown { fields, .. } => {
            line.text = serde_json::to_string(&**fields).unwrap_or_default().into();
            line.tone = StyleRole::Retry;
        }
        // Told by the pattern, below.
        EventKind::Pattern(_) => {}
    }
    if let Some(words) = words {
        words.tell(event, run, &mut line);
    }
    line
}

/// The reason of a failure, and after how many attempts.
fn failed_text(reason: &StopReason, attempts: u32) -> String {
    let attempts = format::count_noun(u64::from(attempts), "attempt");
    format!("{} after {attempts}", reason.phrase())
}

fn run_started_text(head: &RunStarted, words: Option<&dyn Narrate>) -> String {
    let setup = format!("{}, {}", head.title, model_text(&head.model));
    match words.map(|words| words.started()) {
        Some((size, limit)) => format!("{setup}: {size}, {limit}"),
        None => setup,
    }
}

fn run_closed_text(run: &RunFold, closed: &RunClosed, words: Option<&dyn Narrate>) -> String {
    let own = words.and_then(|words| words.stop_detail(closed));
    let mut what = own.unwrap_or_else(|| run_lead(run, closed));
    what.push_str(&place_after(&what, closed));
    what.push_str(&format!(" after {}", took_ms(closed.elapsed_ms)));
    if closed.paused_ms > 0 {
        what.push_str(&format!(", paused for {}", took_ms(closed.paused_ms)));
    }
    what
}

fn attempt_failed_text(failed: &AttemptFailed) -> String {
    let short = failure_name(failed.class, failed.status);
    if failed.text.is_empty() { short.into_owned() } else { format!("{short}: {}", failed.text) }
}

/// The round and the call that a span belongs to.
pub fn round_and_purpose(span: SpanId, run: &RunFold) -> (Option<u32>, Option<&Purpose>) {
    let mut at = run.spans.get(span);
    // Attempt, call, round, run: our spans nest no deeper, but those of a log from a file may.
    for _ in 0..4 {
        match at.map(|span| (&span.kind, span.parent)) {
            Some((SpanKind::Call(purpose), _)) => {
                return (purpose.round(), Some(purpose));
            }
            Some((SpanKind::Round(round), _)) => return (Some(*round), None),
            Some((SpanKind::Attempt(_) | SpanKind::Task { .. } | SpanKind::Source(_), parent)) => {
                at = run.spans.get(parent)
            }
            Some((SpanKind::Run, _)) | None => break,
        }
    }
    (None, None)
}

/// The seat, agent, task or step that a call is made for, for the screen.
pub fn purpose_name<'a>(purpose: Option<&'a Purpose>) -> Cow<'a, str> {
    purpose.map_or(Cow::Borrowed(""), Purpose::label)
}

/// The tool of a call with this purpose.
pub fn tool_of_purpose<'a>(purpose: &'a Purpose, world: &'a World) -> Option<&'a str> {
    tool_of_call(purpose, words_of(world))
}

fn tool_of_call<'a>(purpose: &'a Purpose, words: Option<&'a dyn Narrate>) -> Option<&'a str> {
    let own = match purpose {
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        _ => purpose.called_agent().map(|agent| agent.as_str()),
    };
    match purpose.asks() {
        Asks::Model => Some("llm"),
        Asks::Tool | Asks::Agent => own.or_else(|| words?.tool_of(purpose)),
    }
}

/// The subject of an event of a call; if many agents call many tools, with the tool.
pub(super) fn subject_name<'a>(
    purpose: Option<&'a Purpose>,
    words: Option<&dyn Narrate>,
) -> Cow<'a, str> {
    match purpose {
        Some(step @ Purpose::AgentStep { .. }) => match tool_of_call(step, words) {
            Some(tool) => Cow::Owned(format!("{} {tool}", purpose_name(purpose))),
            None => purpose_name(purpose),
        },
        purpose => purpose_name(purpose),
    }
}

/// The task of this span, if it is the span of a task.
pub(crate) fn task_of_span(span: SpanId, world: &World) -> Option<Cow<'_, str>> {
    match &world.spans.get(span)?.kind {
        kind @ SpanKind::Task { .. } => words_of(world)?.span_name(kind),
        _ => None,
    }
}

/// What somebody does who sends this command.
pub fn command_words(command: &Command) -> String {
    match command {
        Command::Pause { .. } => "pauses the run".to_owned(),
        Command::Resume { .. } => "resumes the run".to_owned(),
        Command::Step => "steps to the next boundary".to_owned(),
        Command::StepRound => "steps to the next round".to_owned(),
        Command::SetFlag { flag, on, .. } => {
            format!("switches {flag} {}", if *on { "on" } else { "off" })
        }
        Command::Break { at, set: true } => format!("sets a breakpoint at {}", at.display_name()),
        Command::Break { at, set: false } => {
            format!("removes the breakpoint at {}", at.display_name())
        }
        Command::SetParallel { max_parallel, .. } => {
            format!("limits the run to {max_parallel} tasks at a time")
        }
        Command::SetLimit { tool, .. } => format!("changes a limit of {tool}"),
        Command::Breaker { tool, action, .. } => {
            let does = match action {
                BreakerOverride::Trip => "opens",
                BreakerOverride::Hold => "holds open",
                BreakerOverride::Disable => "disables",
                BreakerOverride::Reset => "resets",
            };
            format!("{does} the breaker of {tool}")
        }
        Command::Inject { tool, fault, .. } => {
            format!("injects {} into {tool}", fault.kind().word())
        }
        Command::RemoveFault { tool, kind, .. } => {
            format!("removes {} from {tool}", kind.word())
        }
        Command::Roster(roster) => roster.in_words(),
        Command::Cancel => "cancels the run".to_owned(),
    }
}
