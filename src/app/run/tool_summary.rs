//! The details of a tool besides its breaker, as text: its policy, its fallbacks, its injected
//! faults.

use std::time::Duration;

use crate::event::Elapsed;
use crate::event::kind::{BreakerStage, ToolLimits};
use crate::event::world::RunProgress;
use crate::event::world::alerts::{Alert, AlertKind};
use crate::event::world::tool_row::{ToolRow, ToolTally};
use crate::narrate::event_line_tool::fault_text;
use crate::narrate::format::{self, percent};
use crate::scenario::spec::limits::{BreakerCounts, BreakerMode};

fn ms(ms: u64) -> String {
    format::duration_text(Duration::from_millis(ms))
}

/// The limits of a tool, each as a name and a text.
pub fn policy_fields(limits: &ToolLimits) -> Vec<(&'static str, String)> {
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
            let opens = format!(
                "{}, {} open",
                format::count_noun(breaker.fail_threshold.into(), counted),
                ms(breaker.open_for_ms)
            );
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
            let wait = match bulkhead.max_wait_ms {
                Some(0) => "no queue".to_owned(),
                Some(wait) => format!("queue {}", ms(wait)),
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

/// When the breaker of a tool opens, or what comes next where it is not closed.
pub fn breaker_rule(tool: &ToolRow, now: Elapsed) -> String {
    let Some(limits) = tool.head.limits.breaker else { return "no breaker".to_owned() };
    let closes = limits.mode == BreakerMode::TwoState;
    match tool.breaker {
        BreakerStage::Closed => {
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
                Some(left) => format!("next: {next} in {}", format::duration_text(left)),
                None => "open".to_owned(),
            }
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
            format!("opened {} in a minute", format::count_noun(times.into(), "time"))
        }
        AlertKind::ErrorRate(rate) => format!("{} errors in the last minute", percent(rate)),
        AlertKind::P95(took) => format!("p95 {}", format::duration_text(took)),
        AlertKind::TokensUsed(share) => {
            format!("{} of budget.max_total_tokens used", percent(share))
        }
        AlertKind::CostUsed(share) => format!("{} of budget.max_cost_usd used", percent(share)),
    };
    format!("{} {}: {what}", format::time_in_run(run.run_time(alert.at)), alert.tool)
}
