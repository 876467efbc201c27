//! The line of an event: what all patterns share here, the rest in the words of its pattern.

use std::borrow::Cow;

use super::attribution::{round_and_purpose, subject_name};
use super::command_words::command_words;
use super::event_line::{EventLine, actor, cut_reply, failure_name, model_text, took_ms};
use super::event_line_tool::fill_line;
use super::format;
use super::pattern_words::Narrate;
use super::patterns::words;
use super::readable::top_text;
use super::style_role::StyleRole;
use super::verdict::{place_after, run_lead};
use crate::agents::words::event_line::calls_text;
use crate::event::kind::{AttemptFailed, RunClosed, RunStarted, StepSize};
use crate::event::world::{RunFold, World};
use crate::event::{Event, EventKind, StopReason};
use crate::scenario::spec::repair::Repair;

/// The line of an event; `world` supplies what the event itself does not contain.
pub fn event_line<'a>(event: &'a Event, world: &'a World) -> EventLine<'a> {
    line_of(event, world, words(world))
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
        | EventKind::FaultRemoved { .. } => fill_line(&event.kind, &mut line),
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
