//! `roundtable run --times N --on`: hands many runs over to the runners of a cluster, and shows how they
//! ended as a table.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use tokio::time::{Instant, sleep};

use super::batch_table::{BatchRun, as_value, table};
use super::connect::connect;
use super::follow::{NOTE_CHARS, PATIENCE, broken, interrupts};
use super::request::request_of;
use crate::base::visible::visible_within;
use crate::cli::args::{RunArgs, RunFormat, Vary};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::output::RunWriter;
use crate::cli::run::messages;
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::cluster::Cluster;
use crate::cluster::entry::LogPart;
use crate::cluster::follow::LogNews;
use crate::cluster::request::POOL;
use crate::event::id::millis;
use crate::event::world::Projection;
use crate::event::{Command, RunId, Seq, World};
use crate::host::machine;
use crate::scenario::Scenario;
use crate::ui::theme::Theme;

/// How long cancelled runs may take to end: one that no runner has taken does not end.
const CANCELLED: Duration = Duration::from_secs(5);

/// Runs that are handed over or followed at a time, where `--jobs` says nothing.
const JOBS: usize = 64;

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
                        return broken(&why);
                    }
                }
                match session.ended {
                    Some(run) => ended.push(run),
                    None => skipped += 1,
                }
            }
            Some(Err(why)) => {
                failed = true;
                print_message(&why);
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
        RunFormat::Json => stdout::print(&format!("{:#}\n", as_value(&ended)), exit),
        _ => stdout::print(&table(&ended, url), exit),
    }
}

/// Writes each outcome as it comes, as `--format jsonl` of one run ends.
fn lines_of_outcomes() -> RunWriter<stdout::Stdout> {
    let paint = StreamStyle::of_stdout(Theme::default(), false);
    RunWriter::new(RunFormat::Jsonl, paint, stdout::data())
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
    /// The runs that have ended.
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
        let by = machine::user_name();
        if let Err(why) = self.cluster.send_command(run, &Command::Cancel, &by).await {
            print_message(&format!("{run} was not cancelled: {why}"));
        }
    }

    /// Hands the runs of one session over, one after the other, and waits for their ends.
    async fn play_session(&self, seed: u64) -> Result<PlayedSession, String> {
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
    async fn follow(&self, run: &RunId) -> Result<World, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{run}: {error}");
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
            let LogNews::Entry(entry) = news.map_err(|error| failed(&error))? else { continue };
            match entry.part {
                LogPart::Claimed(_) => self.lock().is_claimed = true,
                LogPart::Events(group) => {
                    let events = group.events(Seq(0)).map_err(|error| failed(&error))?;
                    events.iter().for_each(|event| world.apply(event));
                    world.forget_old(events.len());
                }
                LogPart::Requested(_) | LogPart::Elsewhere(..) => {}
            }
        }
    }
}

/// How a run ended that was followed to its end.
fn ended(run: &RunId, seed: u64, world: &World) -> Result<BatchRun, String> {
    let closed = world.progress.closed.as_ref().ok_or_else(|| format!("{run} has no end"))?;
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
