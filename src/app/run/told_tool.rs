//! The lines of the events of policies, of tasks and of tools.

use std::borrow::Cow;
use std::time::Duration;

use super::told::{Told, Tone, by, took_ms};
use crate::app::format;
use crate::event::EventKind;
use crate::event::kind::{BreakerStage, BreakerWhy, LimitChange, StandIn};
use crate::scenario::resilience::BreakerMode;
use crate::scenario::tool::Fault;

/// Fills the line of such an event; leaves other events alone.
pub(super) fn tell<'a>(kind: &'a EventKind, told: &mut Told<'a>) {
    match kind {
        EventKind::PlanAccepted { tasks } => {
            let names: Vec<String> =
                tasks.iter().map(|task| format!("{} {}", task.id, task.worker)).collect();
            let count = format::things(tasks.len() as u64, "task");
            told.what = format!("{count}: {}", names.join(", ")).into();
            told.tone = Tone::Done;
        }
        EventKind::PlanRefused { reason, .. } => {
            told.what = reason.to_string().into();
            told.tone = Tone::Refused;
        }
        EventKind::TaskStarted { task, worker, args_hash, .. } => {
            told.who = task.as_str().into();
            told.what = format!("{worker}, args {args_hash}").into();
        }
        EventKind::TaskDone { attempts } => {
            told.what = format::things(u64::from(*attempts), "attempt").into();
            told.tone = Tone::Done;
        }
        EventKind::TaskFailed { attempts, reason } => {
            let attempts = format::things(u64::from(*attempts), "attempt");
            told.what = format!("{reason} after {attempts}").into();
            told.tone = Tone::Failed;
        }
        EventKind::ParallelChanged { max_parallel, by: who } => {
            told.what = format!("concurrency limit {max_parallel}, {}", by(*who)).into();
            told.tone = Tone::Flag;
        }
        EventKind::ResultsAggregated { aggregate, overwritten } => {
            told.what = serde_json::to_string(aggregate).unwrap_or_default().into();
            if !overwritten.is_empty() {
                let tasks: Vec<&str> = overwritten.iter().map(|task| task.as_str()).collect();
                let what = format!("{} replaced by a later task; {}", tasks.join(", "), told.what);
                told.what = what.into();
            }
            told.tone = Tone::Done;
        }
        EventKind::CallQueued => told.what = "queued for a call slot".into(),
        EventKind::CallAdmitted { waited_ms } => {
            told.what = format!("got a call slot after {}", took_ms(*waited_ms)).into();
        }
        EventKind::CallDegraded { attempts, reason, by, .. } => {
            told.what = degraded(*attempts, &reason.to_string(), *by).into();
            told.tone = Tone::Alert;
        }
        EventKind::AttemptRefused { attempt, reason, retry_in_ms } => {
            let again = match retry_in_ms {
                Some(ms) => format!(", retry possible in {}", took_ms(*ms)),
                None => String::new(),
            };
            told.what = format!("attempt {attempt} not made: {reason}{again}").into();
            told.tone = Tone::Refused;
        }
        EventKind::AttemptQueued { attempt } => {
            told.what = format!("attempt {attempt} queued at the bulkhead").into();
        }
        EventKind::ClientRetried { request, after } => {
            told.what =
                format!("{}: the tool's client sends request {request}", after.word()).into();
            told.tone = Tone::Retry;
        }
        EventKind::BreakerChanged { tool, to, why, open_for_ms, by: who } => {
            told.who = tool.as_str().into();
            let mut what = format!("{}: {}", stage(*to), cause(*why));
            if let Some(ms) = open_for_ms {
                what.push_str(&format!(", for {}", took_ms(*ms)));
            }
            if let Some(who) = who {
                what.push_str(&format!(", {}", by(*who)));
            }
            told.what = what.into();
            told.tone = match to {
                BreakerStage::Open | BreakerStage::Held => Tone::Refused,
                BreakerStage::Closed => Tone::Done,
                BreakerStage::HalfOpen | BreakerStage::Disabled => Tone::Alert,
            };
        }
        EventKind::ResultStale { tool, ok } => {
            told.who = tool.as_str().into();
            let what = if *ok { "a result" } else { "a failure" };
            told.what = format!("{what} arrived too late and was ignored").into();
        }
        EventKind::LimitsChanged { tool, change, by: who, .. } => {
            told.who = tool.as_str().into();
            told.what = format!("{}, {}", limit(*change), by(*who)).into();
            told.tone = Tone::Flag;
        }
        EventKind::FaultInjected { tool, fault, by: who } => {
            told.who = tool.as_str().into();
            told.what = format!("{}, {}", injected(fault), by(*who)).into();
            told.tone = Tone::Alert;
        }
        EventKind::FaultHealed { tool, fault, by: who } => {
            told.who = tool.as_str().into();
            told.what = format!("{} fault removed, {}", fault.word(), by(*who)).into();
            told.tone = Tone::Done;
        }
        _ => {}
    }
}

/// The reason for a fallback, and which fallback was used.
fn degraded(attempts: u32, reason: &str, stand_in: StandIn) -> String {
    let attempts = format::things(u64::from(attempts), "attempt");
    format!("{reason} after {attempts}; fallback: {}", instead(stand_in))
}

/// The fallback that replaced a tool's result, for the screen.
pub fn instead(stand_in: StandIn) -> String {
    match stand_in {
        StandIn::Cached { age_ms } => {
            format!("last good value ({} old)", format::took(Duration::from_millis(age_ms)))
        }
        StandIn::Fallback => "default value".to_owned(),
        StandIn::LeftOut => "none (left out)".to_owned(),
    }
}

/// The state of a breaker, for the screen.
pub fn stage(stage: BreakerStage) -> &'static str {
    match stage {
        BreakerStage::Closed => "closed",
        BreakerStage::Open => "OPEN",
        BreakerStage::HalfOpen => "half-open",
        BreakerStage::Held => "held OPEN",
        BreakerStage::Disabled => "disabled",
    }
}

/// Why a breaker changed, for the screen.
pub fn cause(why: BreakerWhy) -> &'static str {
    match why {
        BreakerWhy::Failures => "too many failures in a row",
        BreakerWhy::Cooled => "cool-down over",
        BreakerWhy::ProbeAnswered => "a probe succeeded",
        BreakerWhy::ProbeFailed => "a probe failed",
        BreakerWhy::LateAnswer => "a late result arrived",
        BreakerWhy::LateFailure => "a late failure arrived",
        BreakerWhy::RetryAfter => "the tool sent Retry-After",
        BreakerWhy::ByHand => "manual",
    }
}

/// Why a breaker changed, in at most 12 columns.
pub fn short_cause(why: BreakerWhy) -> &'static str {
    match why {
        BreakerWhy::Failures => "failures",
        BreakerWhy::Cooled => "cooled down",
        BreakerWhy::ProbeAnswered => "probe ok",
        BreakerWhy::ProbeFailed => "probe failed",
        BreakerWhy::LateAnswer => "late result",
        BreakerWhy::LateFailure => "late failure",
        BreakerWhy::RetryAfter => "Retry-After",
        BreakerWhy::ByHand => "manual",
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A changed limit, for the screen.
pub fn limit(change: LimitChange) -> String {
    let things = |count: u32, noun| format::things(count.into(), noun);
    match change {
        LimitChange::TimeoutMs(ms) => format!("timeout {}", took_ms(ms)),
        LimitChange::MaxAttempts(most) => format!("max {}", things(most, "attempt")),
        LimitChange::FailThreshold(most) => format!("opens after {}", things(most, "failure")),
        LimitChange::OpenForMs(ms) => format!("open for {}", took_ms(ms)),
        LimitChange::ProbePermits(most) => things(most, "probe"),
        LimitChange::MaxInFlight(most) => format!("concurrency limit {most}"),
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
            BreakerMode::Source => "closed after the cool-down, without a probe".to_owned(),
        },
        LimitChange::SafeMode(on) => format!("safe mode {}", on_off(on)),
        LimitChange::AllowPartial(on) => format!("partial results {}", on_off(on)),
        LimitChange::CacheTtlMs(0) => "cache off".to_owned(),
        LimitChange::CacheTtlMs(ms) => format!("cache {}", took_ms(ms)),
    }
}

/// An injected fault, for the screen.
pub fn injected(fault: &Fault) -> Cow<'static, str> {
    match fault {
        Fault::Latency { ms } => format!("+{} latency", took_ms(*ms)).into(),
        Fault::Errors { percent, status } => format!("{percent} % {status}").into(),
        Fault::Hang => "hangs".into(),
        Fault::Malformed => "malformed results".into(),
        Fault::Reset => "reset mid-body".into(),
    }
}
