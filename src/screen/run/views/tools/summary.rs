//! The details of a tool besides its breaker, as text: its policy, its fallbacks, its injected
//! faults.

use std::time::Duration;

use crate::base::time;
use crate::log::event::tool::percent_text;
use crate::log::event::{BreakerStage, Elapsed, ToolHead, WindowCounts};
use crate::log::world::RunProgress;
use crate::log::world::alerts::{Alert, AlertKind};
use crate::log::world::tool_row::{ToolRow, ToolTally};
use crate::scenario::spec::policy::{BreakerCounts, BreakerMode, Rate, WindowLimits};
use crate::screen::run::data::RunData;
use crate::words::format;
use crate::words::format::percent;
use crate::words::tool_sentence::{fault_text, window_size};

fn ms(ms: u64) -> String {
    time::duration_text(Duration::from_millis(ms))
}

/// The limits of a tool, each as a name and a text.
pub fn policy_fields(tool: &ToolHead) -> Vec<(&'static str, String)> {
    if tool.is_observed() {
        return vec![("limits", "not known".to_owned())];
    }
    let limits = &tool.limits;
    let mut attempts = format!("max {}, timeout {}", limits.max_attempts, ms(limits.timeout_ms));
    if limits.max_attempts > 1 {
        // Jitter draws part of a wait at random, so its length is approximate.
        let about = if limits.jitter { "~" } else { "" };
        let waits: Vec<String> =
            limits.backoff_ms.iter().map(|wait| format!("{about}{}", ms(*wait))).collect();
        match waits.is_empty() || limits.backoff_ms.iter().all(|wait| *wait == 0) {
            true => attempts.push_str(", no backoff"),
            false => attempts.push_str(&format!(", backoff {}", waits.join(" "))),
        }
    }
    let mut lines = vec![("attempts", attempts)];
    lines.push(match limits.breaker {
        Some(breaker) => {
            let counted = match breaker.counts {
                BreakerCounts::Attempts => "failure",
                BreakerCounts::Calls => "failed call",
            };
            let opens = match breaker.window {
                None => format::count_noun(breaker.fail_threshold.into(), counted),
                Some(window) => window_rule(&window),
            };
            let opens = format!("{opens}, {} open", time::duration_text(breaker.open_for));
            let then = match breaker.mode {
                BreakerMode::HalfOpen => format::count_noun(breaker.probe_permits.into(), "probe"),
                BreakerMode::TwoState => "then closes without a probe".to_owned(),
            };
            ("breaker", format!("{opens}, {then}"))
        }
        None => ("breaker", "none".to_owned()),
    });
    lines.push(match limits.bulkhead {
        Some(bulkhead) => {
            let wait = match bulkhead.max_wait {
                Some(Duration::ZERO) => "no queue".to_owned(),
                Some(wait) => format!("queue {}", time::duration_text(wait)),
                None => "queue unlimited".to_owned(),
            };
            ("bulkhead", format!("{} concurrent, {wait}", bulkhead.max_in_flight))
        }
        None => ("bulkhead", "none".to_owned()),
    });
    if let Some(budget) = limits.retry_budget {
        let text = format!("{} % of attempts, at least {}", budget.ratio_percent, budget.min);
        lines.push(("retries", text));
    }
    if let Some(safe) = limits.safe_mode {
        let mut ways = Vec::new();
        if let Some(ttl) = safe.cache_ttl_ms {
            ways.push(format!("cache {}", ms(ttl)));
        }
        if safe.fallback {
            ways.push("default".to_owned());
        }
        let end = if safe.allow_partial { "leave out" } else { "stop the run" };
        ways.push(end.to_owned());
        lines.push(("safe mode", ways.join(", ")));
    }
    lines
}

/// When a breaker with a window opens: `50 % failed or 60 % above 700ms, of the last 20 calls (min 10)`.
fn window_rule(window: &WindowLimits) -> String {
    let slow = window
        .slow_call_ms
        .map(|slow| format!(" or {} above {}", percent_text(window.slow_rate.share()), ms(slow)));
    format!(
        "{} failed{}, of the last {} (min {})",
        percent_text(window.failure_rate.share()),
        slow.unwrap_or_default(),
        window_size(window.kind, window.size),
        window.min_calls,
    )
}

/// The time that present figures are of.
pub const PRESENT: Duration = Duration::from_secs(2);

/// Whether a tool is in trouble at this moment: its breaker keeps calls away or probes, or an attempt
/// failed just now. What failed before that is history.
pub fn fails_now(tool: &ToolRow, run: &RunData, now: Elapsed) -> bool {
    let stage = tool.breaker;
    if matches!(stage, BreakerStage::Open | BreakerStage::Held | BreakerStage::HalfOpen) {
        return true;
    }
    let time = Elapsed::from_duration(run.shown().progress.run_time(now));
    let present = tool.timeline.between(present_from(time), time, time);
    present.error_rate().is_some_and(|rate| rate > 0.0)
}

/// Whether the bulkhead of a tool refuses or queues further attempts now.
pub fn is_full(tool: &ToolRow) -> bool {
    tool.head.limits.bulkhead.is_some_and(|limits| tool.in_flight >= limits.max_in_flight)
}

/// When the present began.
pub fn present_from(now: Elapsed) -> Elapsed {
    let before = u64::try_from(PRESENT.as_micros()).unwrap_or(0);
    Elapsed(now.0.saturating_sub(before))
}

/// The rate of a breaker's window that is closest to its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFigure {
    /// All calls in the window; while the breaker is not closed, when they opened it.
    pub counts: WindowCounts,
    /// Whether it is the rate of slow calls.
    pub is_slow: bool,
    /// The calls that it counts.
    pub part: u32,
    /// The share that opens the breaker.
    pub limit: Rate,
}

/// That rate for a tool; `None`: its breaker has no window, or something else opened it.
pub fn window_figure(tool: &ToolRow, now: Elapsed) -> Option<WindowFigure> {
    let (limits, window) = (tool.head.limits.breaker?.window?, tool.window.as_ref()?);
    let counts = match tool.breaker {
        BreakerStage::Closed => window.counts(now),
        _ => tool.history.iter().rev().find(|it| it.why.is_failure())?.counted?,
    };
    let failed = counts.failure_share() / limits.failure_rate.share();
    let slow = counts.slow_share() / limits.slow_rate.share();
    let is_slow = limits.slow_call_ms.is_some() && slow > failed;
    let (part, limit) = match is_slow {
        true => (counts.slow, limits.slow_rate),
        false => (counts.failures, limits.failure_rate),
    };
    Some(WindowFigure { counts, is_slow, part, limit })
}

/// The state of the window of a tool's breaker; while the breaker is not closed, what opened it, or how
/// its probes went. `None`: it has no window.
pub fn window_state(tool: &ToolRow, now: Elapsed) -> Option<String> {
    let breaker = tool.head.limits.breaker?;
    let (limits, window) = (breaker.window?, tool.window.as_ref()?);
    match tool.breaker {
        BreakerStage::HalfOpen => {
            let needed = format::count_noun(breaker.probe_permits.into(), "probe");
            return Some(format!("{} of {needed} succeeded", window.good_probes()));
        }
        BreakerStage::Open => {
            let opened = tool.history.iter().rev().find(|it| it.why.is_failure())?;
            return Some(format!("opened: {}", opened.why.description(opened.counted)));
        }
        BreakerStage::Held | BreakerStage::Disabled => return None,
        BreakerStage::Closed => {}
    }
    let counts = window.counts(now);
    if counts.calls < limits.min_calls {
        return Some(format!("{} of the {} calls to decide", counts.calls, limits.min_calls));
    }
    let failed = percent_text(counts.failure_share());
    let calls = format::count_noun(counts.calls.into(), "call");
    let slow = limits.slow_call_ms.map(|_| format!(", {} slow", percent_text(counts.slow_share())));
    Some(format!("{failed} of {calls} failed{}", slow.unwrap_or_default()))
}

/// When the breaker of a tool opens, or what comes next where it is not closed.
pub fn breaker_rule(tool: &ToolRow, now: Elapsed) -> String {
    let Some(limits) = tool.head.limits.breaker else {
        let rule = if tool.head.is_observed() { "limits not known" } else { "no breaker" };
        return rule.to_owned();
    };
    let closes = limits.mode == BreakerMode::TwoState;
    match tool.breaker {
        BreakerStage::Closed => {
            if let Some(window) = limits.window {
                let failed = percent_text(window.failure_rate.share());
                let slow = window.slow_call_ms.map(|_| window.slow_rate.share());
                let slow = slow.map(|rate| format!(", {} slow", percent_text(rate)));
                let size = window_size(window.kind, window.size);
                return format!("opens at {failed} failed{} of {size}", slow.unwrap_or_default());
            }
            let (counted, now) = match limits.counts {
                BreakerCounts::Attempts => ("failure", format!(", now {}", tool.failures)),
                BreakerCounts::Calls => ("failed call", String::new()),
            };
            let counted = format::count_noun(limits.fail_threshold.into(), counted);
            format!("opens at {counted} in a row{now}")
        }
        BreakerStage::Open => {
            let next = if closes { "closes" } else { "probe" };
            match tool.retry_in(now) {
                Some(left) if left.is_zero() => format!("next: {next} with the next call"),
                Some(left) => format!("next: {next} in {}", time::duration_text(left)),
                None => "open".to_owned(),
            }
        }
        BreakerStage::HalfOpen if limits.window.is_some() && limits.probe_permits > 1 => {
            format!("next: closes if {} probes succeed", limits.probe_permits)
        }
        BreakerStage::HalfOpen => "next: closes if the probe succeeds".to_owned(),
        BreakerStage::Held => "held open until it is reset".to_owned(),
        BreakerStage::Disabled => "switched off".to_owned(),
    }
}

/// Attempts that policies refused, and fallbacks that replaced results, as texts; `None` if there
/// were none.
pub fn refused_and_fallbacks(tally: &ToolTally) -> (Option<String>, Option<String>) {
    let refused = (tally.refused() > 0)
        .then(|| format!("{} by breaker, {} by bulkhead", tally.circuit_open, tally.bulkhead_full));
    let stood = (tally.degraded() > 0).then(|| {
        let ways =
            [(tally.cached, "cached"), (tally.fallback, "default"), (tally.omitted, "omitted")];
        let had = ways.iter().filter(|(count, _)| *count > 0);
        had.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    });
    (refused, stood)
}

/// The faults injected into a tool at present, in one line.
pub fn faults_text(tool: &ToolRow) -> Option<String> {
    let faults: Vec<_> = tool.faults.iter().map(fault_text).collect();
    (!faults.is_empty()).then(|| faults.join(", "))
}

/// An alert in one line, with its time on the run's own clock.
pub fn alert_text(alert: &Alert, run: &RunProgress) -> String {
    // The figures are those of the moment in the line, so the line stays true later.
    let what = match alert.what {
        AlertKind::BreakerOpens(times) => {
            let why = alert.opened_by_window().map(|why| format!("; last: {why}"));
            let times = format::count_noun(times.into(), "time");
            format!("opened {times} in a minute{}", why.unwrap_or_default())
        }
        AlertKind::ErrorRate(rate) => format!("{} errors in the last minute", percent(rate)),
        AlertKind::P95(took) => format!("p95 {}", time::duration_text(took)),
        AlertKind::TokensUsed(share) => {
            format!("{} of budget.max_total_tokens used", percent(share))
        }
        AlertKind::CostUsed(share) => format!("{} of budget.max_cost_usd used", percent(share)),
    };
    format!("{} {}: {what}", format::time_in_run(run.run_time(alert.at)), alert.tool)
}
