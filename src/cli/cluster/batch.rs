//! `roundtable run --times N --on`: hands many runs over to the runners of a cluster, and shows
//! their ends as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::connect;
use super::run::{NOTE_CHARS, PATIENCE, interrupts, request_of, write_error_exit};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time;
use crate::base::time::millis;
use crate::base::visible::{visible, visible_within};
use crate::cli::args::RunFormat;
use crate::cli::exit::Exit;
use crate::cli::launch::messages;
use crate::cli::output::RunWriter;
use crate::cli::run::RunArgs;
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::cli::test::Vary;
use crate::cluster::entry::LogPart;
use crate::cluster::follow::LogNews;
use crate::cluster::request::POOL;
use crate::cluster::{Cluster, names};
use crate::log::event::{Command, RunId, Seq, World};
use crate::log::world::Projection;
use crate::scenario::Scenario;
use crate::screen::theme::Theme;
use crate::words::format;

/// How long cancelled runs may take to end: one that no runner has taken does not end.
const CANCELLED: Duration = Duration::from_secs(5);

/// Runs that are handed over or followed at a time, where `--jobs` says nothing.
const JOBS: usize = 64;

/// Hands the runs over and waits for all of them.
pub(super) async fn run_batch(args: &RunArgs, scenario: &Arc<Scenario>, times: u32) -> Exit {
    let format = args.format.unwrap_or(RunFormat::Text);
    if !matches!(format, RunFormat::Text | RunFormat::Json | RunFormat::Jsonl) {
        let why = Refused::new("--times with --on prints a table");
        return refuse(&why.help("use --format text, json or jsonl"), Exit::Usage);
    }
    if !args.repeat.report.is_empty() || args.repeat.min_pass.is_some() || args.detach.detach {
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
    let batch = RunBatch {
        cluster: &cluster,
        scenario,
        args,
        messages: messages(scenario, args),
        progress: Mutex::default(),
    };
    let mut sessions =
        stream::iter(seeds).map(|seed| batch.play_session(seed)).buffer_unordered(jobs);
    let mut interrupted = interrupts();
    let (impatient, give_up) = (sleep(PATIENCE), sleep(Duration::MAX));
    tokio::pin!(impatient, give_up);
    let (mut ended, mut outcomes) = (Vec::new(), lines_of_outcomes());
    let (mut failed, mut is_cancelled, mut has_waited, mut skipped) = (false, false, false, 0_u64);
    loop {
        let session = tokio::select! {
            session = sessions.next() => session,
            Some(()) = interrupted.recv(), if !is_cancelled => {
                is_cancelled = true;
                batch.cancel().await;
                give_up.as_mut().reset(Instant::now() + CANCELLED);
                continue;
            }
            () = &mut impatient, if !has_waited => {
                has_waited = true;
                if !batch.lock().is_claimed {
                    let pool = args.remote.pool.as_deref().unwrap_or(POOL);
                    print_message(&format!("no runner of pool {pool} has taken a run yet"));
                }
                continue;
            }
            () = &mut give_up, if is_cancelled => break,
        };
        match session {
            None => break,
            Some(Ok(session)) => {
                for world in session.worlds {
                    if format == RunFormat::Jsonl
                        && let Some(outcome) = world.outcome()
                        && let Err(why) = outcomes.outcome(&outcome, &world)
                    {
                        return write_error_exit(&why);
                    }
                }
                match session.ended {
                    Some(run) => ended.push(run),
                    None => skipped += 1,
                }
            }
            Some(Err(why)) => {
                failed = true;
                refuse(&why, Exit::Stopped);
            }
        }
    }
    if skipped > 0 {
        failed = true;
        print_message(&format!("not handed over completely: {skipped} of {times}"));
    }
    let open: Vec<String> = batch.lock().open.iter().map(ToString::to_string).collect();
    if !open.is_empty() {
        print_message(&format!("not ended: {}", open.join(", ")));
    }
    ended.sort_by_key(|run| run.seed.wrapping_sub(first));
    let exit = match ended.iter().all(|run| run.reason == "success") && !failed {
        _ if is_cancelled => Exit::Cancelled,
        true => Exit::Ok,
        false => Exit::Stopped,
    };
    match format {
        RunFormat::Jsonl => exit,
        RunFormat::Json => streams::print(&format!("{:#}\n", batch_json(&ended)), exit),
        _ => streams::print(&batch_table(&ended, url), exit),
    }
}

/// Writes each outcome as it comes, as `--format jsonl` of one run ends.
fn lines_of_outcomes() -> RunWriter<streams::Stdout> {
    let paint = StreamStyle::of_stdout(Theme::default(), false);
    RunWriter::new(RunFormat::Jsonl, paint, streams::stdout_data())
}

/// The runs of one command.
struct RunBatch<'a> {
    cluster: &'a Cluster,
    scenario: &'a Arc<Scenario>,
    args: &'a RunArgs,
    /// The messages of each session, one run each.
    messages: Vec<Arc<str>>,
    progress: Mutex<BatchProgress>,
}

#[derive(Default)]
struct BatchProgress {
    /// The runs that were handed over and have not ended.
    open: BTreeSet<RunId>,
    /// Whether a runner has taken one.
    is_claimed: bool,
    /// Nothing more is handed over.
    is_stopped: bool,
    /// The operator has cancelled what is open.
    is_cancelled: bool,
    /// What runners have said, each sentence once.
    said: BTreeSet<String>,
}

/// What became of one session.
struct PlayedSession {
    /// How it ended; `None`: not all of its messages were handed over.
    ended: Option<BatchRun>,
    worlds: Vec<World>,
}

impl RunBatch<'_> {
    fn lock(&self) -> MutexGuard<'_, BatchProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the runs that have not ended, and hands none over any more.
    async fn cancel(&self) {
        let open = {
            let mut progress = self.lock();
            (progress.is_stopped, progress.is_cancelled) = (true, true);
            progress.open.clone()
        };
        join_all(open.iter().map(|run| self.cancel_run(run))).await;
    }

    async fn cancel_run(&self, run: &RunId) {
        let by = names::user_name();
        if let Err(why) = self.cluster.send_command(run, &Command::Cancel, &by).await {
            let why = Refused::new(format!("{run} was not cancelled")).because(why);
            refuse(&why, Exit::Stopped);
        }
    }

    /// Hands the runs of one session over, one after the other, and waits for their ends.
    async fn play_session(&self, seed: u64) -> Result<PlayedSession, Refused> {
        let mut request = request_of(self.scenario, self.args);
        request.seed = Some(seed);
        let (mut played, mut worlds): (Option<BatchRun>, Vec<World>) = (None, Vec::new());
        for (place, text) in self.messages.iter().enumerate() {
            if self.lock().is_stopped {
                break;
            }
            if place > 0 || !self.args.messages.is_empty() {
                request.message = Some(text.to_string());
            }
            request = self.cluster.hand_over(request).await.inspect_err(|_| {
                // What refuses this one refuses the others too.
                self.lock().is_stopped = true;
            })?;
            let is_late = {
                let mut progress = self.lock();
                progress.open.insert(request.run.clone());
                progress.is_cancelled
            };
            if is_late {
                // It was being handed over when the others were cancelled.
                self.cancel_run(&request.run).await;
            }
            let world = self.follow(&request.run).await?;
            self.lock().open.remove(&request.run);
            let ended = ended(&request.run, seed, &world)?;
            let is_cancelled = ended.reason == "cancelled";
            played = Some(match played {
                Some(before) => before.then(ended),
                None => ended,
            });
            worlds.push(world);
            if is_cancelled {
                break;
            }
            request.after = Some(request.run.clone());
        }
        let is_whole = worlds.len() == self.messages.len();
        let ended = played.filter(|it| is_whole || it.reason == "cancelled");
        Ok(PlayedSession { ended, worlds })
    }

    /// Follows a run to its end.
    async fn follow(&self, run: &RunId) -> Result<World, Refused> {
        let unread = format!("the log of {run} cannot be read");
        let mut notes = self.cluster.notes(run).await?;
        let mut follower = self.cluster.follow(run);
        let mut world = World::new();
        loop {
            let news = tokio::select! {
                news = follower.news() => news,
                Some(note) = notes.next() => {
                    if self.lock().said.insert(note.clone()) {
                        print_message(&visible_within(&note, NOTE_CHARS));
                    }
                    continue;
                }
            };
            let Some(news) = news else { return Ok(world) };
            let LogNews::Entry(entry) = news.or_refuse(&unread)? else { continue };
            match entry.part {
                LogPart::Claimed(_) => self.lock().is_claimed = true,
                LogPart::Events(group) => {
                    let events = group.events(Seq(0)).or_refuse(&unread)?;
                    events.iter().for_each(|event| world.apply(event));
                    world.forget_old(events.len());
                }
                LogPart::Requested(_) | LogPart::Released(_) | LogPart::Elsewhere(..) => {}
            }
        }
    }
}

/// How a run ended that was followed to its end.
fn ended(run: &RunId, seed: u64, world: &World) -> Result<BatchRun, Refused> {
    let closed = world.progress.closed.as_ref().or_refuse(format_args!("{run} has no end"))?;
    Ok(BatchRun {
        seed,
        reason: closed.reason.to_string(),
        decision: world.projection().and_then(Projection::decision).map(|it| it.word()),
        elapsed_ms: millis(world.progress.active(world.progress.at)),
        tokens: world.tally.usage.total(),
        cost_usd: world.cost_usd(),
        run: run.clone(),
    })
}

/// How one run ended.
pub(crate) struct BatchRun {
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
fn batch_json(runs: &[BatchRun]) -> Value {
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
fn batch_table(runs: &[BatchRun], url: Option<&str>) -> String {
    let mut text = String::new();
    for ((reason, decision), count) in ends(runs) {
        let share = 100.0 * count as f64 / runs.len().max(1) as f64;
        let decision = decision.unwrap_or("");
        let line = format!("{count:>6}  {share:>5.1} %  {:<28} {decision}", visible(&reason));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let times = times_of(runs);
    let time = |share| time::duration_text(Duration::from_millis(percentile(&times, share)));
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
    fn batch_shows_counts_percentiles_first_failure() {
        let mut runs: Vec<BatchRun> = (1..=19).map(|it| run(it, "success", Some("go"))).collect();
        runs.push(run(20, "max_rounds_reached", None));
        let text = batch_table(&runs, Some("nats://here:4222"));
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
        let value = batch_json(&runs);
        assert_eq!(value["elapsed_ms"], json!({ "p50": 10_000, "p95": 19_000, "max": 20_000 }));
        assert_eq!((&value["cost_usd"], &value["tokens"]), (&json!(5.0), &json!(200)));
        assert_eq!(value["ends"][0]["runs"], 19);
    }
}
