//! How the runs of a batch ended, as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::base::visible::visible;
use crate::event::RunId;
use crate::narrate::format;

/// How one run ended.
pub(super) struct BatchRun {
    pub run: RunId,
    pub seed: u64,
    pub reason: String,
    pub decision: Option<&'static str>,
    pub elapsed_ms: u64,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}

impl BatchRun {
    /// This session with its next run: the times and costs of both, and the end of the later one. An end
    /// without success stays.
    pub fn then(self, next: Self) -> Self {
        let cost = self.cost_usd.zip(next.cost_usd).map(|(before, now)| before + now);
        let elapsed_ms = self.elapsed_ms + next.elapsed_ms;
        let tokens = self.tokens + next.tokens;
        let last = if self.reason == "success" { next } else { self };
        Self { elapsed_ms, tokens, cost_usd: cost, ..last }
    }
}

/// The value below which this share of the sorted figures lies.
fn percentile(sorted: &[u64], share: usize) -> u64 {
    let at = (sorted.len() * share).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// How often each end occurs: the stop reason, and the decision where there is one.
fn ends(runs: &[BatchRun]) -> Vec<((String, Option<&'static str>), usize)> {
    let mut ends = BTreeMap::new();
    for run in runs {
        *ends.entry((run.reason.clone(), run.decision)).or_insert(0) += 1;
    }
    let mut ends: Vec<_> = ends.into_iter().collect();
    ends.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ends
}

fn times_of(runs: &[BatchRun]) -> Vec<u64> {
    let mut times: Vec<u64> = runs.iter().map(|run| run.elapsed_ms).collect();
    times.sort_unstable();
    times
}

fn cost_of(runs: &[BatchRun]) -> Option<f64> {
    runs.iter().map(|run| run.cost_usd).sum()
}

/// The table as JSON.
pub(super) fn as_value(runs: &[BatchRun]) -> Value {
    let times = times_of(runs);
    let ends: Vec<Value> = ends(runs)
        .into_iter()
        .map(|((reason, decision), count)| {
            json!({ "stop_reason": reason, "decision": decision, "runs": count })
        })
        .collect();
    let each: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({
                "run_id": run.run, "seed": run.seed, "stop_reason": run.reason,
                "decision": run.decision, "elapsed_ms": run.elapsed_ms, "tokens": run.tokens,
                "cost_usd": run.cost_usd,
            })
        })
        .collect();
    json!({
        "ends": ends,
        "elapsed_ms": {
            "p50": percentile(&times, 50), "p95": percentile(&times, 95), "max": times.last(),
        },
        "tokens": runs.iter().map(|run| run.tokens).sum::<u64>(),
        "cost_usd": cost_of(runs),
        "runs": each,
    })
}

/// The table as text. `url`: the cluster, where the command line names it.
pub(super) fn table(runs: &[BatchRun], url: Option<&str>) -> String {
    let mut text = String::new();
    for ((reason, decision), count) in ends(runs) {
        let share = 100.0 * count as f64 / runs.len().max(1) as f64;
        let decision = decision.unwrap_or("");
        let line = format!("{count:>6}  {share:>5.1} %  {:<28} {decision}", visible(&reason));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let times = times_of(runs);
    let time = |share| format::duration_text(Duration::from_millis(percentile(&times, share)));
    let _ = writeln!(text, "\ntime   half {}, 95 % {}, all {}", time(50), time(95), time(100));
    let tokens = runs.iter().map(|run| run.tokens).sum::<u64>();
    let _ = writeln!(text, "tokens {}", format::exact(tokens));
    if let Some(cost) = cost_of(runs).filter(|cost| *cost > 0.0) {
        let _ = writeln!(text, "cost   {}", format::usd(cost));
    }
    let failed: Vec<&BatchRun> = runs.iter().filter(|run| run.reason != "success").collect();
    if let [first, ..] = failed[..] {
        // An address may have a password in it.
        let on = url.filter(|url| !url.contains('@')).map(|url| format!(" --on {url}"));
        let _ = writeln!(
            text,
            "\nthe first that did not succeed: {} (seed {}): roundtable attach {}{}",
            first.run,
            first.seed,
            first.run,
            on.unwrap_or_default()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, reason: &str, decision: Option<&'static str>) -> BatchRun {
        BatchRun {
            run: RunId::new(format!("r-{seed}")),
            seed,
            reason: reason.to_owned(),
            decision,
            elapsed_ms: seed * 1_000,
            tokens: 10,
            cost_usd: Some(0.25),
        }
    }

    #[test]
    fn a_batch_is_shown_as_counts_percentiles_and_the_first_failure() {
        let mut runs: Vec<BatchRun> = (1..=19).map(|it| run(it, "success", Some("go"))).collect();
        runs.push(run(20, "max_rounds_reached", None));
        let text = table(&runs, Some("nats://here:4222"));
        for part in [
            "19   95.0 %  success",
            "go",
            "1    5.0 %  max_rounds_reached",
            "r-20 (seed 20)",
            "--on nats://here",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        let value = as_value(&runs);
        assert_eq!(value["elapsed_ms"], json!({ "p50": 10_000, "p95": 19_000, "max": 20_000 }));
        assert_eq!((&value["cost_usd"], &value["tokens"]), (&json!(5.0), &json!(200)));
        assert_eq!(value["ends"][0]["runs"], 19);
    }
}
