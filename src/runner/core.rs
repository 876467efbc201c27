//! A runner: what it is started with, and what its tasks share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};

use super::grants::Grant;
use super::keeper::ClusterKeeper;
use crate::base::seeded_random::random_u64;
use crate::bus::LogLimits;
use crate::cluster::Cluster;
use crate::engine::{Engine, EngineSettings};
use crate::event::RunId;
use crate::event::id::millis;
use crate::host::models::LiveModels;

/// Bytes of events that a run may be ahead of its log.
const MAX_AHEAD: u64 = 16 << 20;

/// Most refusals that are remembered.
const MAX_REFUSED: usize = 1_000;

/// How a runner plays.
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    /// Its name, which people see.
    pub name: String,
    /// The pool whose runs it plays.
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
    /// Time before a run whose log cannot be continued is offered again: another version may be able to.
    pub broken_for: Duration,
}

impl RunnerSettings {
    /// The usual value of [`broken_for`](Self::broken_for).
    pub const BROKEN_FOR: Duration = Duration::from_secs(60);
}

/// How often a runner tries a run whose log cannot be continued before it gives the run up.
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
    /// It has returned a run to the queue, so that another runner continues it.
    HandedBack(RunId),
    /// It does not play a run, and why.
    Refused(RunId, String),
    /// Something went wrong, and it continues.
    Trouble(String),
}

/// A runner.
pub struct Runner {
    pub(super) cluster: Cluster,
    pub(super) settings: RunnerSettings,
    pub(super) models: LiveModels,
    pub(super) engine: Engine,
    pub(super) keeper: Arc<ClusterKeeper>,
    /// A number that no other process has.
    nonce: u64,
    /// The runs that are played now, and whether each belongs to another owner and is only ended here.
    pub(super) playing: Mutex<BTreeMap<RunId, bool>>,
    /// What was said of runs that it does not play: they are offered again and again.
    refused: Mutex<BTreeSet<(RunId, String)>>,
    /// How often each run was found that cannot be continued.
    broken: Mutex<BTreeMap<RunId, u32>>,
    /// A run has begun or ended here.
    pub(super) slots_changed: Notify,
    news: Box<dyn Fn(RunnerNews) + Send + Sync>,
    /// Whether it stops: it takes no more runs, and returns those that it plays.
    pub(super) draining: watch::Receiver<bool>,
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
        let engine = Engine::with_keeper(engine_settings, Some(Arc::clone(&keeper) as _));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let (playing, slots_changed, news) = (Mutex::default(), Notify::new(), Box::new(news));
        Arc::new(Self {
            cluster,
            settings,
            models,
            engine,
            keeper,
            nonce,
            playing,
            slots_changed,
            refused: Mutex::default(),
            broken: Mutex::default(),
            news,
            draining,
        })
    }

    pub(super) fn tell(&self, news: RunnerNews) {
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
    pub(super) fn owner(&self, taken: u32) -> String {
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

    pub(super) fn begins(&self, run: &RunId) -> bool {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !playing.contains_key(run);
        playing.entry(run.clone()).or_insert(false);
        self.slots_changed.notify_one();
        is_new
    }

    /// A run belongs to another owner: what is left of it here ends.
    pub(super) fn loses(&self, run: &RunId) {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        playing.insert(run.clone(), true);
    }

    /// Whether what is left of a run here ends.
    pub(super) fn has_lost(&self, run: &RunId) -> bool {
        let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        playing.get(run).copied().unwrap_or(false)
    }

    pub(super) fn ends(&self, run: &RunId) {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        self.slots_changed.notify_one();
    }

    pub(super) fn busy(&self) -> u32 {
        let busy = self.playing.lock().unwrap_or_else(PoisonError::into_inner).len();
        u32::try_from(busy).unwrap_or(u32::MAX)
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until the runner has to stop.
    pub(super) async fn until_draining(&self) {
        // The sender is gone only when the process ends.
        let _ = self.draining.clone().wait_for(|draining| *draining).await;
    }
}

/// The time of this machine, as Unix time in milliseconds.
pub(super) fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
