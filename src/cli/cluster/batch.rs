//! `roundtable run --times N --on`: hands many runs over to the runners of a cluster, and shows how they
//! ended as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use serde_json::{Value, json};

use super::connect::{connect, trouble};
use super::follow::broken;
use super::request::request_of;
use crate::base::visible::visible;
use crate::cli::args::{RunArgs, RunFormat, Vary};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::cluster::Cluster;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::event::id::millis;
use crate::event::world::Projection;
use crate::event::{RunId, Seq, World};
use crate::narrate::format;
use crate::scenario::Scenario;
use crate::ui::theme::Theme;

/// Runs that are handed over or followed at a time, where `--jobs` says nothing.
const JOBS: usize = 64;

/// How one run ended.
struct BatchRun {
    run: RunId,
    seed: u64,
    reason: String,
    decision: Option<&'static str>,
    elapsed_ms: u64,
    tokens: u64,
    cost_usd: Option<f64>,
}

/// Hands the runs over and waits for all of them.
pub(super) async fn run_batch(args: &RunArgs, scenario: &Arc<Scenario>, times: u32) -> Exit {
    let format = args.format.unwrap_or(RunFormat::Text);
    if !matches!(format, RunFormat::Text | RunFormat::Json | RunFormat::Jsonl) {
        print_message("--times with --on prints a table: use --format text, json or jsonl");
        return Exit::Usage;
    }
    if !args.repeat.report.is_empty() || args.repeat.min_pass.is_some() || args.remote.detach {
        print_message("--times with --on takes --vary, --jobs and --format alone");
        return Exit::Usage;
    }
    let url = args.remote.on.as_ref().and_then(|on| on.as_deref());
    let cluster = match connect(url).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    let first = args.seed.unwrap_or(scenario.seed);
    let seeds = (0..u64::from(times)).map(|nth| match args.repeat.vary {
        Some(Vary::Seed) => first.wrapping_add(nth),
        None => first,
    });
    let jobs = args.repeat.jobs.map_or(JOBS, usize::from);
    let mut runs = stream::iter(seeds)
        .map(|seed| play_one(&cluster, scenario, args, seed))
        .buffer_unordered(jobs);
    let (mut ended, mut outcomes) = (Vec::new(), lines_of_outcomes());
    while let Some(run) = runs.next().await {
        match run {
            Ok((run, world)) => {
                if format == RunFormat::Jsonl
                    && let Some(outcome) = world.outcome()
                    && let Err(why) = outcomes.outcome(&outcome, &world)
                {
                    return broken(&why);
                }
                ended.push(run);
            }
            Err(why) => return trouble(&why),
        }
    }
    ended.sort_by_key(|run| run.seed.wrapping_sub(first));
    let exit = match ended.iter().all(|run| run.reason == "success") {
        true => Exit::Ok,
        false => Exit::Stopped,
    };
    match format {
        RunFormat::Jsonl => exit,
        RunFormat::Json => stdout::print(&format!("{:#}\n", as_value(&ended)), exit),
        _ => stdout::print(&table(&ended), exit),
    }
}

/// Writes each outcome as it comes, as `--format jsonl` of one run ends.
fn lines_of_outcomes() -> RunWriter<io::Stdout> {
    let stdout = io::stdout();
    let paint = StreamStyle::on(&stdout, Theme::default(), false);
    RunWriter::new(RunFormat::Jsonl, paint, stdout)
}

async fn play_one(
    cluster: &Cluster,
    scenario: &Arc<Scenario>,
    args: &RunArgs,
    seed: u64,
) -> Result<(BatchRun, World), String> {
    let mut request = request_of(scenario, args);
    request.seed = Some(seed);
    let run = cluster.hand_over(request).await?.run;
    let mut follower = cluster.follow(&run);
    let mut world = World::new();
    while let Some(news) = follower.news().await {
        let news = news.map_err(|error| format!("{run}: {error}"))?;
        if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) = news {
            let events = group.events(Seq(0)).map_err(|error| format!("{run}: {error}"))?;
            events.iter().for_each(|event| world.apply(event));
            world.forget_old(events.len());
        }
    }
    let closed = world.progress.closed.as_ref().ok_or_else(|| format!("{run} has no end"))?;
    let ended = BatchRun {
        seed,
        reason: closed.reason.to_string(),
        decision: world.projection().and_then(Projection::decision).map(|it| it.word()),
        elapsed_ms: millis(world.progress.active(world.progress.at)),
        tokens: world.tally.usage.total(),
        cost_usd: world.cost_usd(),
        run,
    };
    Ok((ended, world))
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

fn as_value(runs: &[BatchRun]) -> Value {
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

fn table(runs: &[BatchRun]) -> String {
    let mut text = String::new();
    for ((reason, decision), count) in ends(runs) {
        let share = 100.0 * count as f64 / runs.len().max(1) as f64;
        let decision = decision.unwrap_or("");
        let _ = writeln!(text, "{count:>6}  {share:>5.1} %  {:<28} {decision}", visible(&reason));
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
        let _ = writeln!(
            text,
            "\nthe first that did not succeed: {} (seed {}): roundtable attach {}",
            first.run, first.seed, first.run
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
        let text = table(&runs);
        for part in
            ["19   95.0 %  success", "go", "1    5.0 %  max_rounds_reached", "r-20 (seed 20)"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let value = as_value(&runs);
        assert_eq!(value["elapsed_ms"], json!({ "p50": 10_000, "p95": 19_000, "max": 20_000 }));
        assert_eq!((&value["cost_usd"], &value["tokens"]), (&json!(5.0), &json!(200)));
        assert_eq!(value["ends"][0]["runs"], 19);
    }
}
