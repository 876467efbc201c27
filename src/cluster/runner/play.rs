//! Plays one run: reads its log, claims it, starts or continues it, and stores it until it ends, is
//! lost to another owner, or returns to the queue. Live text is sent to dashboards at most twenty
//! times a second.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::course::{RemoteCourse, row_after, row_before};
use super::hand_over::{FormerOwner, RunWatch, watch_run};
use super::prepared::{NotPlayed, PlayedLog, PreparedPlay, next_session, prepare_play};
use super::{Runner, RunnerNews};
use crate::base::refused::Refused;
use crate::base::time::now_ms;
use crate::cluster::messages::SentCommand;
use crate::cluster::queue::QueuedRun;
use crate::cluster::request::{Claim, Claimed, Release, RunRequest};
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::cluster::{Cluster, ClusterLog};
use crate::engine::{RunHandle, RunKeeper};
use crate::log::bus::{LiveTextReader, LogReader};
use crate::log::event::head::LaunchRecord;
use crate::log::event::{Command, Initiator, RunId, Seq, StopReason};
use crate::log::world::RunFold;
use crate::run::questions::StoredAnswers;
use crate::store::recorder::{RecordError, record};
use crate::store::{AppendError, RunLog as _};

/// Time before a run that this runner does not play is offered again.
const REFUSED_FOR: Duration = Duration::from_secs(3);

/// What the list of runs says of a run that was given up.
const GIVEN_UP: &str = "log_broken";

/// How long it may take to learn whether the last append is stored: longer than a server may take to answer.
const SETTLE: Duration = Duration::from_secs(20);

/// How long what is left of a run may take to end.
const END: Duration = Duration::from_secs(10);

/// What became of a run here.
enum PlayEnd {
    /// It has ended, and its end is stored.
    Ended(String),
    /// It does not exist.
    Unknown,
    /// Another runner owns it.
    Lost,
    /// It was returned to the queue: another runner continues it.
    HandedBack,
    /// Every branch waits for people: an answer queues it again.
    Released(Release),
    /// This runner does not play it.
    Refused(Refused),
    /// Its log cannot be continued; this version may be the reason.
    Broken(Refused),
    /// It cannot be said: the item comes again.
    Unsure(String),
}

/// Plays a run of the queue.
pub(crate) async fn play(runner: &Arc<Runner>, item: QueuedRun, owner: String) {
    let run = item.run.clone();
    let end = play_run(runner, &item, owner).await;
    let after = match end {
        PlayEnd::Broken(_) => runner.settings.broken_for,
        _ => REFUSED_FOR,
    };
    match end {
        PlayEnd::Ended(reason) => {
            item.done().await;
            runner.tell(RunnerNews::Ended(run, reason));
        }
        PlayEnd::Unknown => item.done().await,
        PlayEnd::Released(release) => {
            item.done().await;
            runner.tell(RunnerNews::Released(run.clone()));
            runner.watch_released(run, release);
        }
        // Its owner removes the item.
        PlayEnd::Lost => runner.tell(RunnerNews::Lost(run)),
        PlayEnd::HandedBack => runner.tell(RunnerNews::HandedBack(run)),
        PlayEnd::Broken(why) if !runner.tries_again(&run) => give_up(runner, item, &why).await,
        PlayEnd::Refused(why) | PlayEnd::Broken(why) => {
            item.hand_back(after).await;
            let why = format!("{why:#}");
            runner.cluster.note(&run, &format!("{}: {why}", runner.settings.name)).await;
            runner.tell(RunnerNews::Refused(run, why));
        }
        PlayEnd::Unsure(why) => runner.tell(RunnerNews::Trouble(format!("{run}: {why}"))),
    }
}

async fn play_run(runner: &Arc<Runner>, item: &QueuedRun, owner: String) -> PlayEnd {
    let (cluster, run) = (&runner.cluster, &item.run);
    let entries = match cluster.entries(run).await {
        Ok(entries) if entries.is_empty() => return PlayEnd::Unknown,
        Ok(entries) => entries,
        Err(error) => return PlayEnd::Unsure(error.to_string()),
    };
    let log = match PlayedLog::new(run, entries) {
        Ok(log) => log,
        Err(why) => return PlayEnd::Broken(why),
    };
    if let Some(reason) = log.reason() {
        // Its owner may have died before it wrote the row.
        let course = RunFold::course_of(log.events.iter().map(|event| &**event));
        if let Err(why) = answer_queued(runner, &log.request, &course).await {
            return not_listed(why);
        }
        let row = row_after(row_before(&log), &log.events);
        return match RunRows(cluster).put(&row).await {
            Ok(()) => PlayEnd::Ended(reason),
            Err(why) => not_listed(why),
        };
    }
    let session = match next_session(cluster, &log).await {
        Ok(session) => session,
        Err(why) => return PlayEnd::Refused(why),
    };
    let prepared = match prepare_play(runner, &log, session) {
        Ok(prepared) => prepared,
        Err(NotPlayed::Broken(why)) => return PlayEnd::Broken(why),
        Err(NotPlayed::Refused(why)) => return PlayEnd::Refused(why),
    };
    let claim = Claim {
        runner: runner.settings.name.clone(),
        owner: owner.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        next: log.next(),
    };
    // Before the claim: what a later owner writes has a later revision.
    let listed = RunRows(cluster).read(run, log.request.wall_ms).await.ok().map(|row| row.0);
    let epoch = match cluster.claim_run(run, &claim, log.place).await {
        Ok(Claimed::Yes(epoch)) => epoch,
        Ok(Claimed::No) => return PlayEnd::Lost,
        Err(error) => return PlayEnd::Unsure(error.to_string()),
    };
    runner.tell(RunnerNews::Plays(run.clone(), log.next().0));
    let claimed_ms = match (log.events.is_empty(), runner.clock.is_set()) {
        (true, true) => None,
        _ => cluster.last_entry(run).await.ok().flatten().map(|last| last.stored_ms),
    };
    if let Some(claimed_ms) = claimed_ms {
        runner.clock.set(claimed_ms);
    }
    let former = (!log.events.is_empty()).then(|| {
        // If the time of the claim is not known, the whole timeout is waited for.
        let claimed_ms = claimed_ms.unwrap_or(log.stored_ms);
        Arc::new(FormerOwner::new(cluster, run, &log, claimed_ms))
    });
    let commands = RunCommands::new(&runner.cluster, run, log.last_command());
    let mut starting = runner.keeper.expect(run, former, Arc::clone(&commands));
    let (handle, is_continued) = match prepared {
        PreparedPlay::New(launch) => (runner.engine.start_as(run.clone(), launch), false),
        PreparedPlay::Continued(launch, resumption) => {
            match runner.engine.resume(launch, resumption) {
                Ok(handle) => (handle, true),
                Err(error) => {
                    return PlayEnd::Broken(Refused::new("it cannot be continued").because(error));
                }
            }
        }
    };
    let Ok(started) = starting.try_recv() else {
        return PlayEnd::Unsure("the run was not started; this is a bug in roundtable".to_owned());
    };
    let of_session = handle.clone();
    let stored = ClusterLog::new(cluster.clone(), owner, epoch, log.next())
        .leaving(move || serde_json::to_vec(&of_session.left_session()?).ok());
    let watched = watch_run(handle.bus(), started.reader.clone());
    let helpers = Helpers(vec![
        tokio::spawn(send_live_text(cluster.clone(), handle.clone())),
        tokio::spawn(steer(Arc::clone(&commands), handle.clone())),
    ]);
    let row = row_of(&log, &runner.settings.name);
    let mut course = RemoteCourse::new(runner, &handle, row, listed);
    let end = {
        let mark = handle.bus().stored_mark();
        let recorded = record(&stored, run, started.reader, started.stored, &mark, &mut course);
        attend(runner, item, (&stored, &handle, &watched, &commands), recorded).await
    };
    drop(helpers);
    commands.set_run(None);
    match end {
        PlayEnd::Ended(_) => {
            let written = match answer_queued(runner, &log.request, course.course()).await {
                Ok(()) => course.write_row().await,
                Err(why) => Err(why),
            };
            match (course.reason(), is_continued) {
                // The queue offers the item again until the row says it.
                (Some(reason), _) => written.map_or_else(not_listed, |()| PlayEnd::Ended(reason)),
                (None, true) => {
                    let why = match handle.wait_until_live().await {
                        Err(error) => Refused::new("it cannot be continued").because(error),
                        Ok(()) => Refused::new("it has no end"),
                    };
                    PlayEnd::Broken(why)
                }
                (None, false) => PlayEnd::Unsure("it has no end".to_owned()),
            }
        }
        PlayEnd::Lost => {
            runner.loses(run);
            // Paid calls end within their timeout, and their answers are left for the new owner.
            watched.leave_answers(cluster, run, handle.bus().stored_mark().next()).await;
            end_here(&handle).await;
            PlayEnd::Lost
        }
        PlayEnd::Released(release) => {
            end_here(&handle).await;
            if let Err(why) = course.write_released().await {
                tracing::debug!(%run, "the row of the run was not written: {why:#}");
            }
            PlayEnd::Released(release)
        }
        PlayEnd::HandedBack => {
            // The next owner may wait for the answer to a call that took longer than the drain.
            item.hand_back(Duration::ZERO).await;
            watched.leave_answers(cluster, run, handle.bus().stored_mark().next()).await;
            end_here(&handle).await;
            PlayEnd::HandedBack
        }
        other => {
            end_here(&handle).await;
            other
        }
    }
}

/// Hands over the run that answers the messages that were queued in a run that has ended.
async fn answer_queued(
    runner: &Runner,
    request: &RunRequest,
    course: &RunFold,
) -> Result<(), Refused> {
    let reason = course.progress.closed.as_ref().map(|closed| &closed.reason);
    let was_cancelled = reason.is_none_or(|reason| *reason == StopReason::Cancelled);
    let takes_messages =
        course.head.as_ref().is_some_and(|head| head.plan.get().message().is_some());
    let queued = course.progress.next_message().filter(|_| takes_messages && !was_cancelled);
    let Some(message) = queued else { return Ok(()) };
    let launch = LaunchRecord { flags: Vec::new(), pauses: Vec::new(), ..request.launch.clone() };
    let next = RunRequest {
        launch,
        flags: course.settings.flag_positions(),
        message: Some(message),
        wall_ms: now_ms(),
        ..request.clone()
    };
    runner.cluster.hand_over_next(next, &request.run).await
}

/// Gives up a run that cannot be continued, whatever damaged it: it leaves the queue, and the list says that
/// it has ended and why. Its log stays as it is.
async fn give_up(runner: &Runner, item: QueuedRun, why: &Refused) {
    let (cluster, run) = (&runner.cluster, item.run.clone());
    // The damage may have taken the request with it, so the row is found by the run alone.
    let listed = match RunRows(cluster).all().await {
        Ok(rows) => rows.into_iter().find(|row| row.run == run.as_str()),
        Err(why) => {
            runner.tell(RunnerNews::Trouble(format!("{run}: {why:#}")));
            return;
        }
    };
    if let Some(row) = listed {
        let row =
            ClusterRow { status: "ended".to_owned(), reason: Some(GIVEN_UP.to_owned()), ..row };
        if let Err(why) = RunRows(cluster).put(&row).await {
            runner.tell(RunnerNews::Trouble(format!("{run}: {why:#}")));
            return;
        }
    }
    let said = format!("given up: {why:#}");
    item.done().await;
    cluster.note(&run, &format!("{}: {said}", runner.settings.name)).await;
    runner.tell(RunnerNews::Refused(run, said));
}

fn not_listed(why: Refused) -> PlayEnd {
    PlayEnd::Unsure(format!("it has ended, but the list of runs does not say so yet: {why:#}"))
}

/// Ends what is left of a run here: nothing of it is stored any more, and this runner may get it again.
async fn end_here(run: &RunHandle) {
    run.stop(StopReason::StoreFailed);
    run.send(Command::Cancel);
    if tokio::time::timeout(END, run.wait_until_finished()).await.is_err() {
        tracing::warn!(run = %run.id(), "what is left of the run has not ended in time");
    }
}

/// Tasks that end with the run.
struct Helpers(Vec<tokio::task::JoinHandle<()>>);

impl Drop for Helpers {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Waits for the end of a run that is stored, says that it is in progress, and returns it when the
/// runner stops.
async fn attend(
    runner: &Runner,
    item: &QueuedRun,
    (log, handle, watched, commands): (&ClusterLog, &RunHandle, &RunWatch, &RunCommands),
    recorded: impl Future<Output = Result<(), RecordError>>,
) -> PlayEnd {
    let ack_wait = runner.settings.ack_wait;
    let mut ticks = interval(ack_wait / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut alive = Instant::now();
    let mut recorded = pin!(recorded);
    let mut handed = pin!(async {
        runner.until_draining().await;
        handle.send(Command::Pause { by: Initiator::Runner });
        let paused = tokio::time::timeout(runner.settings.drain, watched.until_paused());
        if paused.await.is_ok() {
            // What is not stored by then is left as answers.
            let stored = handle.bus().wait_until_stored();
            let _ = tokio::time::timeout(runner.settings.drain, stored).await;
        }
        // If the append in flight is stored, the next owner waits for answers to the calls that it starts.
        log.give_up();
        let _ = tokio::time::timeout(SETTLE, handle.bus().wait_until_stored()).await;
    });
    let mut released = pin!(release(item, (log, handle, watched, commands)));
    loop {
        tokio::select! {
            biased;
            ended = &mut recorded => return match ended {
                Ok(()) => PlayEnd::Ended(String::new()),
                Err(RecordError::Lost(AppendError::Gone)) => PlayEnd::Unknown,
                Err(RecordError::Lost(_)) => match log.next(handle.id()).await {
                    // This runner still owns the run: it gave up the log itself.
                    Ok(_) => PlayEnd::HandedBack,
                    Err(_) => PlayEnd::Lost,
                },
                Err(RecordError::GaveUp(why)) => PlayEnd::Unsure(why),
            },
            () = &mut handed => return PlayEnd::HandedBack,
            release = &mut released => return PlayEnd::Released(release),
            _ = ticks.tick() => {
                // A process that was stopped for longer may have lost the run.
                if alive.elapsed() > ack_wait
                    && log.next(handle.id()).await == Err(AppendError::Fenced)
                {
                    return PlayEnd::Lost;
                }
                alive = Instant::now();
                item.in_progress().await;
            }
        }
    }
}

/// How long everybody has waited for people when a run is released: an answer may come at once.
const RELEASE_AFTER: Duration = Duration::from_secs(1);

/// Releases a run in which every branch waits for people, once all of it is stored: the runner plays others
/// meanwhile.
async fn release(
    item: &QueuedRun,
    (log, handle, watched, commands): (&ClusterLog, &RunHandle, &RunWatch, &RunCommands),
) -> Release {
    loop {
        handle.until_everybody_waits(RELEASE_AFTER).await;
        handle.bus().wait_until_stored().await;
        // Those that cannot be read are in no event.
        let read = commands.read();
        let next = Seq(handle.bus().len());
        let taken = watched.last_command(next).await.max(read);
        let (pool, until_ms) = (item.pool.clone(), handle.next_deadline_ms());
        let release = Release { pool, next, taken, until_ms };
        if log.release(&item.run, release.clone()).await.is_some() {
            return release;
        }
        // An answer has come meanwhile.
        sleep(RELEASE_AFTER).await;
    }
}

/// The commands to a run, each of which it gets once.
pub(crate) struct RunCommands {
    cluster: Cluster,
    run: RunId,
    /// `None`: it does not play here yet, or any more. The run refers to this too.
    handle: Mutex<Option<RunHandle>>,
    /// The number of the last one that was read.
    read: Mutex<u64>,
}

impl RunCommands {
    /// The commands to a run after this number.
    fn new(cluster: &Cluster, run: &RunId, after: u64) -> Arc<Self> {
        let (cluster, run, read) = (cluster.clone(), run.clone(), Mutex::new(after));
        Arc::new(Self { cluster, run, handle: Mutex::default(), read })
    }

    /// Gives the commands to this run from now on; `None`: to nobody.
    fn set_run(&self, run: Option<RunHandle>) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    fn read(&self) -> u64 {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the run those that it does not have. Each counts from the time at which the server has stored
    /// it. `to`: the last one that was read.
    fn give(&self, sent: Vec<SentCommand>, to: u64) {
        let run = self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(run) = run else { return };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        for SentCommand { place, stored_ms, by, command } in sent {
            if place > *read {
                run.take(command, &by, place, stored_ms);
            }
        }
        *read = to.max(*read);
    }
}

impl StoredAnswers for RunCommands {
    /// While the servers do not answer, nothing is decided: nothing could be stored either.
    fn deliver(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                match self.cluster.stored_commands(&self.run, self.read()).await {
                    Ok(sent) => {
                        let to = sent.last().map_or(0, |last| last.place);
                        return self.give(sent, to);
                    }
                    Err(error) => {
                        tracing::debug!(run = %self.run, "answers cannot be read now: {error}");
                        sleep(REFUSED_FOR).await;
                    }
                }
            }
        })
    }
}

/// Gives a run the commands as they come, once it is live.
async fn steer(commands: Arc<RunCommands>, run: RunHandle) {
    if run.wait_until_live().await.is_err() {
        return;
    }
    let mut follower = match commands.cluster.commands(run.id(), commands.read()).await {
        Ok(follower) => follower,
        Err(error) => {
            tracing::warn!(run = %run.id(), "the run gets no commands: {error}");
            return;
        }
    };
    loop {
        let sent = follower.next().await;
        commands.give(sent, follower.after);
    }
}

fn row_of(log: &PlayedLog, runner: &str) -> ClusterRow {
    ClusterRow {
        status: "running".to_owned(),
        runner: Some(runner.to_owned()),
        takeovers: log.claims,
        ..ClusterRow::waiting(&log.request)
    }
}

/// A run that the engine has started.
pub(crate) struct KeptStart {
    /// A reader before its first event.
    pub reader: LogReader,
    /// The events before this one are stored already.
    pub stored: Seq,
}

/// A run that is about to start.
struct ExpectedStart {
    started: oneshot::Sender<KeptStart>,
    /// The runner that it was taken over from.
    former: Option<Arc<FormerOwner>>,
    commands: Arc<RunCommands>,
}

/// The runs that are about to start.
#[derive(Default)]
pub(crate) struct ClusterKeeper {
    starting: Mutex<HashMap<RunId, ExpectedStart>>,
}

impl ClusterKeeper {
    /// The start of the run with this id, once the engine starts it; `former`: the runner that it was
    /// taken over from.
    pub fn expect(
        &self,
        run: &RunId,
        former: Option<Arc<FormerOwner>>,
        commands: Arc<RunCommands>,
    ) -> oneshot::Receiver<KeptStart> {
        let (started, receive) = oneshot::channel();
        let expected = ExpectedStart { started, former, commands };
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), expected);
        receive
    }
}

impl RunKeeper for ClusterKeeper {
    fn reserve(&self, _: &RunId) -> Result<bool, Refused> {
        // The id was taken when the run was handed over.
        Ok(true)
    }

    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq) {
        // Paid calls wait from the first one on.
        let _ = run.bus().stored_mark();
        let starting =
            self.starting.lock().unwrap_or_else(PoisonError::into_inner).remove(run.id());
        if let Some(starting) = starting {
            // Before the run's task begins: it may ask for late answers at once, or come to a deadline.
            starting.commands.set_run(Some(run.clone()));
            run.set_stored_answers(starting.commands);
            if let Some(former) = starting.former {
                former.set_run(run.clone());
                let _ = run.bus().late_answers().set(former);
            }
            let _ = starting.started.send(KeptStart { reader, stored });
        }
    }
}

/// Least time between two messages of a span.
const MIN_GAP: Duration = Duration::from_millis(50);

/// Sends the live text of a run, until it is dropped.
async fn send_live_text(cluster: Cluster, run: RunHandle) {
    let mut texts = LiveTextReader::new(run.bus());
    loop {
        for (span, text) in texts.changes().await {
            cluster.speak(run.id(), span, text.as_deref()).await;
        }
        sleep(MIN_GAP).await;
    }
}
