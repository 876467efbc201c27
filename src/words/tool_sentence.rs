//! The sentences for the events of policies and of tools.

use std::borrow::Cow;
use std::time::Duration;

use super::format;
use super::glyph::Glyph;
use super::measure::single_line;
use super::sentence::{Sentence, attempts_text, took_ms};
use super::styled::StyleRole;
use crate::base::time;
use crate::log::event::tool::percent_text;
use crate::log::event::{
    AgentStep, BreakerCause, BreakerStage, EventKind, FallbackKind, LimitChange, StepState,
    StopReason, ToolLimits, WindowCounts,
};
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::policy::{BreakerMode, WindowKind};
use crate::scenario::spec::tool::InjectedFault;

/// Fills the sentence for such an event; leaves other events alone.
pub(super) fn fill_tool_sentence<'a>(it: &mut Sentence<'a>, kind: &'a EventKind) {
    match kind {
        EventKind::PlanRefused { reason, .. } => {
            it.set(StyleRole::Refused, reason.phrase())
                .about("plan")
                .as_sign(Glyph::Refused, "refused");
        }
        EventKind::ConcurrencyChanged { max_parallel, by } => {
            it.set(StyleRole::Flag, format!("concurrency limit {max_parallel}, {}", by.phrase()))
                .as_run(None, "");
        }
        EventKind::CallQueued => it.text = "queued for a call slot".into(),
        EventKind::CallAdmitted { waited_ms } => {
            it.text = format!("got a call slot after {}", took_ms(*waited_ms)).into();
        }
        EventKind::CallDegraded { attempts, reason, by, .. } => {
            let (reason, attempts) = (reason_after(reason, &it.subject), attempts_text(*attempts));
            let text = format!("{reason} after {attempts}; fallback: {}", fallback_text(*by));
            it.set(StyleRole::Retry, text).as_sign(Glyph::Alert, "degraded");
        }
        EventKind::AttemptRefused { attempt, reason, retry_in_ms } => {
            let wait = retry_in_ms.map(|ms| format!(", retry possible in {}", took_ms(ms)));
            let (reason, wait) = (reason_after(reason, &it.subject), wait.unwrap_or_default());
            it.set(StyleRole::Refused, format!("attempt {attempt} not made: {reason}{wait}"));
        }
        EventKind::AttemptQueued { attempt } => {
            it.text = format!("attempt {attempt} queued at the bulkhead").into();
        }
        EventKind::CallInDoubt { tool, decision, .. } => {
            let follows = match decision {
                InDoubt::Retry => "it is called again",
                InDoubt::Ask => "the operator is asked whether it is called again",
                InDoubt::Stop => "the run stops",
            };
            let what = "was in flight when the run was interrupted, and may have been made or not";
            it.set(StyleRole::Retry, format!("{tool} {what}: {follows}"));
        }
        EventKind::ClientRetried { request, cause } => {
            let text = format!("{}: the tool's client sends request {request}", cause.phrase());
            it.set(StyleRole::Retry, text);
        }
        EventKind::AttemptProgressed { text, done, total } => {
            it.text = progress_text(text, *done, *total).into();
        }
        EventKind::AgentStep(step) => {
            let AgentStep { title, state, text, carried_out, .. } = &**step;
            let (role, text) = match (state, &**text) {
                (StepState::Started, text) if *carried_out && !text.is_empty() => {
                    (StyleRole::Text, format!("{title}: {text}"))
                }
                (StepState::Started, _) => (StyleRole::Text, title.to_string()),
                (StepState::Done, "") => (StyleRole::Done, format!("{title}: done")),
                (StepState::Done, text) => (StyleRole::Done, format!("{title}: {text}")),
                (StepState::Failed, "") => (StyleRole::Failed, format!("{title}: failed")),
                (StepState::Failed, text) => {
                    (StyleRole::Failed, format!("{title}: failed: {text}"))
                }
            };
            it.set(role, single_line(&text));
            if *carried_out {
                let (glyph, word) = match state {
                    StepState::Started => (Glyph::Running, "runs"),
                    StepState::Done => (Glyph::Done, "done"),
                    StepState::Failed => (Glyph::Failed, "failed"),
                };
                it.as_sign(glyph, word);
            }
        }
        EventKind::ToolsListed { tool, tools, left_out } => {
            let count = |count: usize| format!("{count} tool{}", if count == 1 { "" } else { "s" });
            let mut text = match tools.len() {
                0 => "no tools".to_owned(),
                many => format!("{} listed", count(many)),
            };
            if !left_out.is_empty() {
                text.push_str(&format!(", {} left out", left_out.len()));
            }
            it.set(StyleRole::Flag, text).about(tool.as_str()).as_sign(Glyph::Done, "tools");
        }
        EventKind::BreakerChanged { tool, to, cause, open_for_ms, by, counted } => {
            let mut text = format!("{}: {}", breaker_state(*to), cause.description(*counted));
            if let Some(ms) = open_for_ms {
                text.push_str(&format!(", for {}", took_ms(*ms)));
            }
            if let Some(by) = by {
                text.push_str(&format!(", {}", by.phrase()));
            }
            let (glyph, role) = match to {
                BreakerStage::Open | BreakerStage::Held => (Glyph::Refused, StyleRole::Refused),
                BreakerStage::Closed => (Glyph::Done, StyleRole::Done),
                BreakerStage::HalfOpen | BreakerStage::Disabled => (Glyph::Alert, StyleRole::Retry),
            };
            it.set(role, text).about(tool.as_str()).as_sign(glyph, "breaker");
        }
        EventKind::ToolAdded { tool, .. } => {
            it.about(tool.name.as_str()).text = "is called for the first time".into();
        }
        EventKind::ResultIgnored { tool, success } => {
            let what = if *success { "a result" } else { "a failure" };
            it.about(tool.as_str()).text =
                format!("{what} arrived too late and was ignored").into();
        }
        EventKind::LimitsChanged { tool, limits, change, by } => {
            let text = format!("{}, {}", limit_text(*change, limits), by.phrase());
            it.set(StyleRole::Flag, text).about(tool.as_str()).as_sign(Glyph::Alert, "limits");
        }
        EventKind::FaultInjected { tool, fault, by } => {
            it.set(StyleRole::Retry, format!("{}, {}", fault_text(fault), by.phrase()))
                .about(tool.as_str())
                .as_sign(Glyph::Alert, "fault");
        }
        EventKind::FaultRemoved { tool, fault, by } => {
            it.set(StyleRole::Done, format!("{} fault removed, {}", fault.word(), by.phrase()))
                .about(tool.as_str())
                .as_sign(Glyph::Done, "fault");
        }
        _ => {}
    }
}

/// How far an attempt is: `3 of 10, reads the index`.
pub fn progress_text(text: &str, done: f64, total: Option<f64>) -> String {
    let number = |number: f64| match number.fract() == 0.0 && number.abs() < 1e15 {
        true => format!("{number:.0}"),
        false => format!("{number:.2}"),
    };
    if done == 0.0 && total.is_none() && !text.trim().is_empty() {
        return text.trim().to_owned();
    }
    let share = match total {
        Some(total) => format!("{} of {}", number(done), number(total)),
        None => format!("{} done", number(done)),
    };
    match text.trim() {
        "" => share,
        text => format!("{share}: {text}"),
    }
}

/// A reason after its subject: the name of the tool is left out where the subject ends with it.
fn reason_after(reason: &StopReason, subject: &str) -> String {
    let phrase = reason.phrase();
    match phrase.split_once(": ") {
        Some((tool, rest)) if subject.split(' ').next_back() == Some(tool) => rest.to_owned(),
        _ => phrase.into_owned(),
    }
}

/// The fallback that replaced a tool's result, for the screen.
pub fn fallback_text(fallback: FallbackKind) -> String {
    match fallback {
        FallbackKind::Cached { age_ms } => {
            format!("last good value ({} old)", time::duration_text(Duration::from_millis(age_ms)))
        }
        FallbackKind::Default => "default value".to_owned(),
        FallbackKind::Omitted => "none (omitted)".to_owned(),
    }
}

/// The state of a breaker, for the screen.
pub fn breaker_state(stage: BreakerStage) -> &'static str {
    match stage {
        BreakerStage::Closed => "closed",
        BreakerStage::Open => "OPEN",
        BreakerStage::HalfOpen => "half-open",
        BreakerStage::Held => "held OPEN",
        BreakerStage::Disabled => "disabled",
    }
}

/// Why a breaker changed, in at most 12 columns.
pub fn short_breaker_cause(why: BreakerCause, counted: Option<WindowCounts>) -> Cow<'static, str> {
    let text = match (why, counted) {
        (BreakerCause::FailureRate, Some(window)) => {
            return format!("{} failed", whole_percent(window.failure_share())).into();
        }
        (BreakerCause::SlowCalls, Some(window)) => {
            return format!("{} slow", whole_percent(window.slow_share())).into();
        }
        (why, _) => short_cause(why),
    };
    text.into()
}

/// A share from 0 to 1 in whole percent, rounded down.
fn whole_percent(share: f64) -> String {
    percent_text((share * 100.0 + 0.001).floor() / 100.0)
}

fn short_cause(why: BreakerCause) -> &'static str {
    match why {
        BreakerCause::Failures => "failures",
        BreakerCause::FailureRate => "failure rate",
        BreakerCause::SlowCalls => "slow calls",
        BreakerCause::ProbeSlow => "probe slow",
        BreakerCause::CooldownOver => "cooled",
        BreakerCause::ProbeAnswered => "probe ok",
        BreakerCause::ProbeFailed => "probe failed",
        BreakerCause::LateSuccess => "late result",
        BreakerCause::LateFailure => "late failure",
        BreakerCause::RetryAfter => "Retry-After",
        BreakerCause::Manual => "manual",
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The size of a breaker's window: `10 calls`, `60 s`.
pub fn window_size(kind: WindowKind, size: u32) -> String {
    match kind {
        WindowKind::Count => format::count_noun(size.into(), "call"),
        WindowKind::Time => format!("{size} s"),
    }
}

/// A changed limit of a tool with these limits, for the screen.
pub fn limit_text(change: LimitChange, limits: &ToolLimits) -> String {
    let things = |count: u32, noun| format::count_noun(count.into(), noun);
    match change {
        LimitChange::TimeoutMs(ms) => format!("timeout {}", took_ms(ms)),
        LimitChange::MaxAttempts(most) => format!("max {}", things(most, "attempt")),
        LimitChange::FailThreshold(most) => format!("opens after {}", things(most, "failure")),
        LimitChange::OpenForMs(ms) => format!("open for {}", took_ms(ms)),
        LimitChange::ProbePermits(most) => things(most, "probe"),
        LimitChange::MaxInFlight(most) => format!("concurrency limit {most}"),
        LimitChange::Rate(most) => format!("{} a minute", things(most, "attempt")),
        LimitChange::MaxWaitMs(ms) => format!("max {} in the queue", took_ms(ms)),
        LimitChange::WaitMs(ms) => format!("backoff {}", took_ms(ms)),
        LimitChange::Jitter(on) => format!("jitter {}", on_off(on)),
        LimitChange::Idempotent(on) => format!("idempotent {}", on_off(on)),
        LimitChange::RetryPercent(percent) => format!("retry budget {percent} % of attempts"),
        LimitChange::RetryMin(min) => format!(
            "retry budget of at least {}",
            if min == 1 { "1 retry".to_owned() } else { format!("{min} retries") }
        ),
        LimitChange::BreakerMode(mode) => match mode {
            BreakerMode::HalfOpen => "half-open after the cool-down".to_owned(),
            BreakerMode::TwoState => "closed after the cool-down, without a probe".to_owned(),
        },
        LimitChange::WindowSize(size) => {
            let window = limits.breaker.and_then(|breaker| breaker.window);
            let kind = window.map_or(WindowKind::Count, |window| window.kind);
            format!("judges the last {}", window_size(kind, size))
        }
        LimitChange::MinCalls(min) => format!("decides after {}", things(min, "call")),
        LimitChange::FailureRate(rate) => format!("opens at {} failed", percent_text(rate.share())),
        LimitChange::SlowCallMs(ms) => format!("slow above {}", took_ms(ms)),
        LimitChange::SlowRate(rate) => format!("opens at {} slow", percent_text(rate.share())),
        LimitChange::SafeMode(on) => format!("safe mode {}", on_off(on)),
        LimitChange::AllowPartial(on) => format!("partial results {}", on_off(on)),
        LimitChange::CacheTtlMs(0) => "cache off".to_owned(),
        LimitChange::CacheTtlMs(ms) => format!("cache {}", took_ms(ms)),
    }
}

/// An injected fault, for the screen.
pub fn fault_text(fault: &InjectedFault) -> Cow<'static, str> {
    match fault {
        InjectedFault::Latency { ms } => format!("+{} latency", took_ms(*ms)).into(),
        InjectedFault::Errors { percent: 100, status, times: Some(times) } => {
            format!("next {times} {status}").into()
        }
        InjectedFault::Errors { percent, status, times } => match times {
            Some(times) => format!("{percent} % {status}, {times} times").into(),
            None => format!("{percent} % {status}").into(),
        },
        InjectedFault::Hang => "hangs".into(),
        InjectedFault::Malformed => "malformed results".into(),
        InjectedFault::Reset => "reset mid-body".into(),
        InjectedFault::Empty => "empty replies".into(),
        InjectedFault::Refusal => "refusals".into(),
    }
}
