//! Plays the runs of a cluster: a loop takes a run for each free slot, claims it, continues it
//! where its former owner stopped, and stores it until its end. What a runner may do is decided
//! here; `cluster/` says how logs, commands and late answers are stored.
//!
//! What runners tidy up now and then: forgotten runs are queued again, and the logs of runs that ended
//! some time ago go into the archive. Any runner may do it, and several at a time.

mod course;
pub mod grants;
mod hand_over;
mod play;
mod prepared;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::course::{row_after, row_before};
use self::grants::Grant;
use self::play::ClusterKeeper;
use self::prepared::PlayedLog;
use super::Cluster;
use super::archive::RunArchive;
use super::entry::{LogEntry, LogPart};
use super::request::Release;
use super::rows::{ASKING, ClusterRow, RunRows, RunnerRow};
use super::stream::BEHIND;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::seeded_random::random_u64;
use crate::base::time::{millis, now_ms, unix_ms};
use crate::base::visible::visible;
use crate::engine::{Engine, EngineSettings};
use crate::host::models::LiveModels;
use crate::log::bus::LogLimits;
use crate::log::event::RunId;

/// Bytes of events that a run may be ahead of its log.
const MAX_AHEAD: u64 = 16 << 20;

/// Most refusals that are remembered.
const MAX_REFUSED: usize = 1_000;

/// How a runner plays.
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    /// Its name, which people see.
    pub name: String,
    /// Its pool: it plays only runs of this pool.
    pub pool: String,
    /// How many runs it plays at a time.
    pub slots: u32,
    /// What it allows scenarios to do.
    pub allow: BTreeSet<Grant>,
    /// After this time without a sign of life another runner may take a run.
    pub ack_wait: Duration,
    /// How long a run may take to come to its next boundary when the runner stops.
    pub drain: Duration,
    /// How long after its end the log of a run goes into the archive.
    pub archive_after: Duration,
    /// Wait before a run that cannot be continued returns to the queue: another version may continue it.
    pub broken_for: Duration,
}

impl RunnerSettings {
    /// The usual value of [`broken_for`](Self::broken_for).
    pub const BROKEN_FOR: Duration = Duration::from_secs(60);
}

/// Maximum number of attempts to continue a run.
const MAX_BROKEN: u32 = 10;

/// What a runner reports to the command that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerNews {
    /// It plays a run; the number of events that a former owner had stored.
    Plays(RunId, u64),
    /// A run has ended, with this stop reason.
    Ended(RunId, String),
    /// It has lost a run to another owner.
    Lost(RunId),
    /// It has released a run in which everybody waits for people.
    Released(RunId),
    /// It has returned a run to the queue, so that another runner continues it.
    HandedBack(RunId),
    /// It does not play a run, and why.
    Refused(RunId, String),
    /// Something went wrong, and it continues.
    Trouble(String),
}

/// The clock of the servers, by which deadlines go: they store the answers. Unset, it is that of this
/// machine.
#[derive(Default)]
pub(crate) struct ServerClock(Mutex<Option<(u64, Instant)>>);

impl ServerClock {
    /// A server has stored something just now, at this Unix time in milliseconds.
    pub(crate) fn set(&self, stored_ms: u64) {
        *self.lock() = Some((stored_ms, Instant::now()));
    }

    /// Whether it was set not long ago.
    pub(crate) fn is_set(&self) -> bool {
        self.lock().is_some_and(|(_, at)| at.elapsed() < SWEEP_EVERY)
    }

    fn now(&self) -> SystemTime {
        match *self.lock() {
            Some((ms, at)) => UNIX_EPOCH + Duration::from_millis(ms) + at.elapsed(),
            None => SystemTime::now(),
        }
    }

    fn now_ms(&self) -> u64 {
        unix_ms(self.now())
    }

    fn lock(&self) -> MutexGuard<'_, Option<(u64, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A runner.
pub struct Runner {
    pub(crate) cluster: Cluster,
    pub(crate) settings: RunnerSettings,
    pub(crate) models: LiveModels,
    pub(crate) engine: Engine,
    pub(crate) keeper: Arc<ClusterKeeper>,
    pub(crate) clock: Arc<ServerClock>,
    /// A number that no other process has.
    nonce: u64,
    /// The runs that are played now, and whether each belongs to another owner and is only ended here.
    pub(crate) playing: Mutex<BTreeMap<RunId, bool>>,
    /// What was said of runs that it does not play: they are offered again and again.
    refused: Mutex<BTreeSet<(RunId, String)>>,
    /// How often each run was found that cannot be continued.
    broken: Mutex<BTreeMap<RunId, u32>>,
    /// A run has begun or ended here.
    slots_changed: Notify,
    news: Box<dyn Fn(RunnerNews) + Send + Sync>,
    /// Whether it stops: it takes no more runs, and returns those that it plays.
    pub(crate) draining: watch::Receiver<bool>,
}

impl Runner {
    /// A runner that stops when `draining` becomes true. `news` is called from its tasks.
    pub fn new(
        cluster: Cluster,
        settings: RunnerSettings,
        models: LiveModels,
        draining: watch::Receiver<bool>,
        news: impl Fn(RunnerNews) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let keeper = Arc::new(ClusterKeeper::default());
        let log = LogLimits { window: 0, ahead: MAX_AHEAD };
        let engine_settings = EngineSettings { log, finished_bytes: 0, stored_bytes: 0 };
        let kept = Some(Arc::clone(&keeper) as _);
        let kept = crate::host::traced_runs::traced(kept);
        let engine = Engine::with_keeper(engine_settings, kept);
        let clock = Arc::<ServerClock>::default();
        let wall = Arc::clone(&clock);
        engine.set_wall(Arc::new(move || wall.now()));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let (playing, slots_changed, news) = (Mutex::default(), Notify::new(), Box::new(news));
        Arc::new(Self {
            cluster,
            settings,
            models,
            engine,
            keeper,
            clock,
            nonce,
            playing,
            slots_changed,
            refused: Mutex::default(),
            broken: Mutex::default(),
            news,
            draining,
        })
    }

    pub(crate) fn tell(&self, news: RunnerNews) {
        if let RunnerNews::Refused(run, why) = &news {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() >= MAX_REFUSED {
                refused.clear();
            }
            if !refused.insert((run.clone(), why.clone())) {
                return;
            }
        }
        (self.news)(news);
    }

    /// An owner that no other claim has.
    pub(crate) fn owner(&self, taken: u32) -> String {
        let number = random_u64(self.nonce, "owner", taken, &self.settings.name);
        format!("{}.{number:016x}", self.settings.name)
    }

    /// Counts that a run cannot be continued; returns whether it is tried again.
    pub(super) fn tries_again(&self, run: &RunId) -> bool {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.len() >= MAX_REFUSED && !broken.contains_key(run) {
            broken.clear();
        }
        let times = broken.entry(run.clone()).or_default();
        *times += 1;
        let again = *times < MAX_BROKEN;
        if !again {
            broken.remove(run);
        }
        again
    }

    pub(crate) fn begins(&self, run: &RunId) -> bool {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !playing.contains_key(run);
        playing.entry(run.clone()).or_insert(false);
        self.slots_changed.notify_one();
        is_new
    }

    /// A run belongs to another owner: what is left of it here ends.
    pub(crate) fn loses(&self, run: &RunId) {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        playing.insert(run.clone(), true);
    }

    /// Whether what is left of a run here ends.
    pub(crate) fn has_lost(&self, run: &RunId) -> bool {
        let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        playing.get(run).copied().unwrap_or(false)
    }

    pub(crate) fn ends(&self, run: &RunId) {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        self.slots_changed.notify_one();
    }

    pub(crate) fn busy(&self) -> u32 {
        let busy = self.playing.lock().unwrap_or_else(PoisonError::into_inner).len();
        u32::try_from(busy).unwrap_or(u32::MAX)
    }

    fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until the runner has to stop.
    pub(super) async fn until_draining(&self) {
        // The sender is gone only when the process ends.
        let _ = self.draining.clone().wait_for(|draining| *draining).await;
    }
}

/// How long one request for a run waits.
const TAKE: Duration = Duration::from_secs(5);

/// Time before a run that this runner has just lost is offered again.
const AGAIN: Duration = Duration::from_millis(500);

/// How often a runner says that it is alive.
const ALIVE: Duration = Duration::from_secs(8);

/// How long the last messages of a runner may take.
const LAST: Duration = Duration::from_secs(5);

/// Least time between two changes of its row.
const MIN_LIST_PAUSE: Duration = Duration::from_millis(200);

impl Runner {
    /// Plays runs until it has to stop, and every run has ended or was returned to the queue.
    ///
    /// # Errors
    /// The cluster has no queue, or other runners of the pool have another takeover time.
    pub async fn serve(self: &Arc<Self>) -> Result<(), Refused> {
        self.check_takeover_time().await?;
        let queue = self.cluster.queue(&self.settings.pool, self.settings.ack_wait).await?;
        let alive = tokio::spawn(Arc::clone(self).stay_listed());
        let sweep = tokio::spawn(Arc::clone(self).sweep());
        let mut draining = self.draining.clone();
        let mut plays = JoinSet::new();
        let mut taken: u32 = 0;
        while !*draining.borrow_and_update() {
            while plays.try_join_next().is_some() {}
            if plays.len() >= self.settings.slots.max(1) as usize {
                tokio::select! {
                    _ = plays.join_next() => {}
                    _ = draining.changed() => {}
                }
                continue;
            }
            let item = tokio::select! {
                item = queue.take(TAKE) => item,
                _ = draining.changed() => break,
            };
            match item {
                // Its owner has died too, and the run has not ended here yet: another runner may be quicker.
                Ok(Some(item)) if self.has_lost(&item.run) => item.hand_back(AGAIN).await,
                Ok(Some(item)) if !self.begins(&item.run) => {
                    // This process plays it: the item was given out again.
                    item.in_progress().await;
                }
                Ok(Some(item)) => {
                    taken += 1;
                    let (runner, owner) = (Arc::clone(self), self.owner(taken));
                    plays.spawn(async move {
                        let run = item.run.clone();
                        play::play(&runner, item, owner).await;
                        runner.ends(&run);
                    });
                }
                Ok(None) => {}
                Err(why) => {
                    tracing::debug!("no run from the queue: {why:#}");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
        while plays.join_next().await.is_some() {}
        alive.abort();
        sweep.abort();
        let last = async {
            self.cluster.remove_runner(&self.settings.name).await;
            self.cluster.flush().await;
        };
        if timeout(LAST, last).await.is_err() {
            tracing::warn!("the cluster did not take the last messages in time");
        }
        Ok(())
    }

    /// The row of this runner.
    fn row(&self, since_ms: u64) -> RunnerRow {
        let settings = &self.settings;
        RunnerRow {
            name: settings.name.clone(),
            pool: settings.pool.clone(),
            slots: settings.slots,
            busy: self.busy(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allows: settings.allow.iter().map(|grant| grant.word().to_owned()).collect(),
            draining: self.is_draining(),
            since_ms,
            takeover_ms: millis(settings.ack_wait),
        }
    }

    /// Checks that the runners of its pool that are alive have its takeover time.
    async fn check_takeover_time(&self) -> Result<(), Refused> {
        let (own, others) = (self.row(0), self.cluster.runners().await.unwrap_or_default());
        let Some(other) = others.iter().find(|other| other.disagrees(&own)) else { return Ok(()) };
        let seconds = Duration::from_millis(other.takeover_ms).as_secs_f64();
        let (name, pool) = (visible(&other.name), own.pool);
        let what = format!("runner {name} of pool {pool} takes runs over after {seconds} s");
        Err(Refused::new(what).help(format!(
            "use --takeover-after {seconds}s here too, or stop that runner first (a killed runner is \
             listed for 30 s)"
        )))
    }

    /// Writes the row of this runner now and then.
    async fn stay_listed(self: Arc<Self>) {
        let mut ticks = interval(ALIVE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let since_ms = now_ms();
        let mut draining = self.draining.clone();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.slots_changed.notified() => {
                    // A runner of many short runs is not listed again for each.
                    sleep(MIN_LIST_PAUSE).await;
                }
                changed = draining.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            let row = self.row(since_ms);
            if let Err(why) = self.cluster.put_runner(&row).await {
                tracing::debug!("the runner is not listed: {why:#}");
            }
        }
    }
}

/// Time between two rounds of tidying up.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

impl Runner {
    /// Tidies up until it is dropped.
    pub(super) async fn sweep(self: Arc<Self>) {
        let mut forgotten = BTreeSet::new();
        loop {
            sleep(SWEEP_EVERY).await;
            match self.sweep_once(&forgotten).await {
                Ok(found) => forgotten = found,
                Err(why) => tracing::debug!("nothing was tidied up: {why:#}"),
            }
        }
    }

    /// One round. A run is queued again, or listed again, if it had no item or no row in the round before
    /// either: one that is handed over just now has none for a moment. Returns those.
    pub(super) async fn sweep_once(
        &self,
        before: &BTreeSet<RunId>,
    ) -> Result<BTreeSet<RunId>, Refused> {
        let queued = self.cluster.queued_runs().await?;
        let mut forgotten = BTreeSet::new();
        let mut listed = BTreeSet::new();
        for row in RunRows(&self.cluster).all().await? {
            let run = RunId::new(row.run.as_str());
            listed.insert(run.clone());
            if row.reason.is_some() {
                if let Err(why) = self.archive(row, &run).await {
                    tracing::debug!(%run, "the log was not archived: {why:#}");
                }
            } else if queued.contains(&run) {
                continue;
            } else if row.status != ASKING || !self.still_asks(&run).await {
                forgotten.insert(run);
            }
        }
        match RunRows(&self.cluster).logged().await {
            Ok(logged) => forgotten.extend(logged.into_iter().filter(|run| !listed.contains(run))),
            Err(why) => tracing::debug!("runs without a row are not looked for: {why:#}"),
        }
        for run in forgotten.intersection(before) {
            let recalled = self.recall(run, !queued.contains(run), !listed.contains(run));
            if let Err(why) = recalled.await {
                tracing::debug!(%run, "the run was not put back: {why:#}");
            }
        }
        Ok(forgotten)
    }

    /// Whether a run was released, and neither a command nor a deadline has come since.
    async fn still_asks(&self, run: &RunId) -> bool {
        let Ok(Some(LogEntry { part: LogPart::Released(release), .. })) =
            self.cluster.last_entry(run).await
        else {
            return false;
        };
        let is_due = release.until_ms.is_some_and(|until| until <= self.clock.now_ms());
        !is_due && !self.cluster.has_command(run, release.taken).await.unwrap_or(false)
    }

    /// Queues a run that this runner has released if a command has come meanwhile, and at its next deadline.
    /// The sender of a later command queues it.
    pub(super) fn watch_released(self: &Arc<Self>, run: RunId, release: Release) {
        let runner = Arc::clone(self);
        tokio::spawn(async move {
            // A server may be behind with a command that was sent at the same time.
            sleep(BEHIND).await;
            if !runner.still_asks(&run).await {
                runner.cluster.wake(&run).await;
            } else if let Some(until) = release.until_ms {
                let left = until.saturating_sub(runner.clock.now_ms());
                sleep(Duration::from_millis(left)).await;
                runner.cluster.wake(&run).await;
            }
        });
    }

    /// Puts a run that has not ended back into the queue and into the list; completes the row of one that
    /// has.
    async fn recall(&self, run: &RunId, queue: bool, list: bool) -> Result<(), Refused> {
        let entries = self.cluster.entries(run).await.or_refuse("its log cannot be read")?;
        let Some((first, last)) = entries.first().zip(entries.last()) else { return Ok(()) };
        let LogPart::Requested(request) = &first.part else { return Ok(()) };
        let (waiting, place) = (ClusterRow::waiting(request), last.place);
        let row = match PlayedLog::new(run, entries) {
            Ok(log) if log.reason().is_some() => {
                let row = row_after(row_before(&log), &log.events);
                return RunRows(&self.cluster).put(&row).await;
            }
            Ok(log) => row_after(row_before(&log), &log.events),
            // A log that cannot be read is offered too: a runner says what is wrong with it.
            Err(_) => waiting,
        };
        if list {
            RunRows(&self.cluster).put(&row).await?;
        }
        if queue {
            self.tell(RunnerNews::Trouble(format!("{run} was forgotten: it is queued again")));
            self.cluster.enqueue(&row.pool, run, Some(place)).await?;
        }
        Ok(())
    }

    async fn archive(&self, row: ClusterRow, run: &RunId) -> Result<(), Refused> {
        let least_ms = row.started_ms.saturating_add(row.elapsed_ms);
        if row.archived || !self.is_old(least_ms) {
            return Ok(());
        }
        // It may have waited or paused for long: its end counts.
        let last = self.cluster.last_entry(run).await.or_refuse("its log cannot be read")?;
        if last.is_some_and(|last| !self.is_old(last.stored_ms)) {
            return Ok(());
        }
        RunArchive(&self.cluster).add(run).await?;
        RunRows(&self.cluster).put(&ClusterRow { archived: true, ..row }).await
    }

    /// Whether a run that ended then goes into the archive now.
    fn is_old(&self, ended_ms: u64) -> bool {
        let age = Duration::from_millis(now_ms().saturating_sub(ended_ms));
        age >= self.settings.archive_after
    }
}
