//! Starts, resumes and forks runs, keeps their handles and gives them commands. Each run is one
//! task and owns everything that belongs to it, so nothing is left when the task ends. Its pattern,
//! its tools and its models are behind traits.
//!
//! Logs of finished runs are kept up to a limit; the oldest finished one is dropped first, and
//! [`Engine::log`] says so. A [`RunKeeper`] stores logs beyond the process; the engine does not
//! know where.

pub mod expectations;
mod handle;
mod launch;
pub(crate) mod observed_facts;
mod start;
mod toolbox;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use self::launch::Replayed;
use crate::base::refused::Refused;
use crate::base::seeded_random::random_u64;
use crate::base::time::{WallClock, millis};
use crate::gateway::GuardedTool;
use crate::log::bus::{Bus, LogLimits, LogReader};
use crate::log::clock::Clock;
use crate::log::event::head::ForkOrigin;
use crate::log::event::{Command, EventKind, RunId, Seq, SpanId, StopReason};
use crate::run::spending::DayAccount;
use crate::scenario::Scenario;

pub use self::handle::RunHandle;
pub use self::launch::{ForkStart, Launch, ModelChoice, ResumeError, Resumption, Schedule};
pub use self::toolbox::{ToolNotReady, Toolbox};

/// Limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Approximate bytes of finished runs' logs to keep. The runs that finished first are dropped
    /// first.
    pub finished_bytes: u64,
    /// The same for logs that a keeper has stored: they can be read there. Runs that another message can
    /// follow stay up to `finished_bytes`, because their session is only here.
    pub stored_bytes: u64,
    /// Limits for the log of a running run. Runs at the same time share the window.
    pub log: LogLimits,
}

/// Smallest window of one run, in bytes, no matter how many runs share it.
const MIN_WINDOW: u64 = 4 << 20;

/// Bytes of the engine's own log that are kept: some thousand runs.
const SESSION_BYTES: u64 = 1 << 20;

impl Default for EngineSettings {
    fn default() -> Self {
        let finished_bytes = 256 << 20;
        Self { finished_bytes, stored_bytes: finished_bytes, log: LogLimits::default() }
    }
}

/// The engine of one process. Cheap to clone; clones share its runs.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<EngineShared>,
}

struct EngineShared {
    settings: EngineSettings,
    keeper: Option<Arc<dyn RunKeeper>>,
    log: Bus,
    /// Whether the end of the program does not end the runs.
    leaves_runs: AtomicBool,
    /// The clock by which the deadlines of questions go; unset: that of this machine.
    wall: OnceLock<WallClock>,
    /// The account of the day that live calls count for.
    day: OnceLock<Arc<dyn DayAccount>>,
    nonce: u64,
    runs: Mutex<Runs>,
    /// Tools that runs share, by the hash of the scenario file and the tool's fingerprint (its
    /// whole definition). A run with another policy gets its own tool.
    tools: Mutex<BTreeMap<(String, String), Arc<GuardedTool>>>,
}

#[derive(Default)]
struct Runs {
    started: u32,
    /// Ids of runs that are about to be in `by_id`.
    starting: HashSet<RunId>,
    by_id: HashMap<RunId, RunHandle>,
    finished: VecDeque<(RunId, u64)>,
    finished_bytes: u64,
}

impl EngineShared {
    pub(crate) fn wall(&self) -> WallClock {
        self.wall.get().cloned().unwrap_or_else(|| Arc::new(SystemTime::now))
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools of the run with this log. A shared tool is created once and then reused; a run that
    /// is resumed has a tool of its own, because its guard goes by recorded time.
    fn build_tools(
        &self,
        scenario: &Scenario,
        toolbox: Toolbox,
        bus: &Bus,
    ) -> Vec<Arc<GuardedTool>> {
        let mut shared = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let made = toolbox.into_setups().into_iter().map(|setup| {
            if !setup.shared || bus.replay().is_some() {
                return GuardedTool::new(setup, bus.clock().clone());
            }
            let key = (scenario.hash.clone(), setup.fingerprint.clone());
            Arc::clone(shared.entry(key).or_insert_with(|| {
                let tool = GuardedTool::new(setup, Clock::real());
                let _ = tool.guard.watch(&self.log);
                tool
            }))
        });
        made.collect()
    }

    /// Divides the window among the live runs. `ended` no longer counts as one.
    fn divide_window(&self, runs: &Runs, ended: Option<&RunId>) {
        let LogLimits { window, ahead } = self.settings.log;
        if window == 0 || window == u64::MAX {
            return;
        }
        let live = runs.by_id.values().filter(|run| !run.is_over() && Some(&run.id) != ended);
        let live: Vec<&RunHandle> = live.collect();
        let each = window / (live.len() as u64).max(1);
        let window = each.max(MIN_WINDOW.min(window));
        for run in live {
            run.bus.set_limits(LogLimits { window, ahead });
        }
    }

    /// Forgets a run that could not be resumed, or is resumed here again.
    fn forget(&self, run: &RunId) {
        let mut runs = self.runs();
        let forgotten = runs.by_id.remove(run);
        if let Some(at) = runs.finished.iter().position(|(finished, _)| finished == run)
            && let Some((_, bytes)) = runs.finished.remove(at)
        {
            runs.finished_bytes -= bytes;
        }
        self.divide_window(&runs, None);
        drop(runs);
        drop(forgotten);
    }

    /// Keeps the log of a finished run, and drops the oldest finished runs above the limit.
    fn keep_finished(&self, run: &RunId, bus: &Bus, reason: StopReason) {
        self.log.publish(SpanId::RUN, EventKind::SessionRunClosed { run: run.clone(), reason });
        // Freeing a log walks through cold memory: do it after the lock is released, so others who
        // start a run need not wait.
        let mut forgotten = Vec::new();
        let mut runs = self.runs();
        self.divide_window(&runs, Some(run));
        // A smaller share of the window may have dropped a part of the log.
        let weight = bus.weight();
        runs.finished_bytes += weight;
        runs.finished.push_back((run.clone(), weight));
        while runs.finished_bytes > self.settings.finished_bytes && runs.finished.len() > 1 {
            forgotten.extend(self.drop_finished(&mut runs, 0));
        }
        let mut at = 0;
        while runs.finished_bytes > self.settings.stored_bytes && at + 1 < runs.finished.len() {
            let (oldest, _) = &runs.finished[at];
            match runs.by_id.get(oldest).is_none_or(RunHandle::is_only_a_log) {
                true => forgotten.extend(self.drop_finished(&mut runs, at)),
                false => at += 1,
            }
        }
        drop(runs);
    }

    /// Drops the finished run at this place.
    fn drop_finished(&self, runs: &mut Runs, at: usize) -> Option<RunHandle> {
        let (run, bytes) = runs.finished.remove(at)?;
        runs.finished_bytes -= bytes;
        let handle = runs.by_id.remove(&run)?;
        let events = handle.bus().len();
        self.log.publish(SpanId::RUN, EventKind::SessionRunDropped { run, events });
        Some(handle)
    }
}

impl Engine {
    /// An engine without runs.
    pub fn new(settings: EngineSettings) -> Self {
        Self::with_keeper(settings, None)
    }

    /// A new engine. The keeper, if there is one, stores the logs of its runs.
    pub fn with_keeper(settings: EngineSettings, keeper: Option<Arc<dyn RunKeeper>>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
        let runs = Mutex::default();
        let tools = Mutex::default();
        let log = Bus::with_limits(LogLimits { window: SESSION_BYTES, ahead: u64::MAX });
        let (leaves_runs, wall, day) = (AtomicBool::new(false), OnceLock::new(), OnceLock::new());
        let shared =
            EngineShared { settings, keeper, log, leaves_runs, wall, day, nonce, runs, tools };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the clock by which the deadlines of questions go, before the first run.
    pub(crate) fn set_wall(&self, wall: WallClock) {
        let _ = self.shared.wall.set(wall);
    }

    /// Sets the account of the day that live calls count for, before the first run.
    pub(crate) fn set_day(&self, day: Arc<dyn DayAccount>) {
        let _ = self.shared.day.set(day);
    }

    pub(crate) fn keeper(&self) -> Option<Arc<dyn RunKeeper>> {
        self.shared.keeper.clone()
    }

    /// Log of the engine: which runs were started, closed and forgotten. It keeps the latest thousands
    /// of its events; a reader misses none of those that come after it was made.
    pub fn log(&self) -> &Bus {
        &self.shared.log
    }

    /// The run with this id, if it is not forgotten.
    pub fn run(&self, id: &RunId) -> Option<RunHandle> {
        self.shared.runs().by_id.get(id).cloned()
    }

    /// The runs that are not forgotten, ordered by id.
    pub fn runs(&self) -> Vec<RunHandle> {
        let mut runs: Vec<_> = self.shared.runs().by_id.values().cloned().collect();
        runs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// Number of attempts in flight, of all runs.
    pub fn in_flight(&self) -> u32 {
        self.runs().iter().map(RunHandle::in_flight).sum()
    }

    /// Starts a run. Must be called within a tokio runtime.
    pub fn start(&self, launch: Launch) -> RunHandle {
        self.begin(launch, None, None, true)
    }

    /// Starts a run that the keeper does not keep: it is gone with this engine. Must be called within a
    /// tokio runtime.
    pub(crate) fn start_unkept(&self, launch: Launch) -> RunHandle {
        // No other run, here or in the store, has such a number.
        let id = self.new_id(8, |_| Ok(true)).unwrap_or_else(|(id, _)| id);
        self.begin(launch, None, Some(id), false)
    }

    /// Starts a run with this id, which no other run has. Must be called within a tokio runtime.
    pub(crate) fn start_as(&self, id: RunId, launch: Launch) -> RunHandle {
        self.begin(launch, None, Some(id), true)
    }

    /// Continues a run that did not reach its end, in the same log: the run is executed again from
    /// its start with its recorded replies and results, then it continues live. Its id, seed, flags
    /// and day are those of the recording. Must be called within a tokio runtime.
    /// [`RunHandle::wait_until_live`] says whether the recording could be executed.
    ///
    /// # Errors
    /// [`ResumeError`] if the run has ended, or this engine has it.
    pub fn resume(&self, launch: Launch, resumption: Resumption) -> Result<RunHandle, ResumeError> {
        let recording = &resumption.recording;
        if recording.has_ended() {
            return Err(ResumeError::Ended);
        }
        let id = &recording.head().run;
        match self.run(id) {
            Some(run) if !run.is_over() => return Err(ResumeError::Present(id.clone())),
            // It was continued elsewhere since.
            Some(_) => self.shared.forget(id),
            None => {}
        }
        Ok(self.begin(launch, Some(resumption.into()), None, true))
    }

    /// Starts a run that is executed as a recorded one up to a boundary, with the recorded replies
    /// and results, and continues from there with the settings of `launch`. Its log has an id of its
    /// own, and begins with the events that were executed again. The day, the seed and the positions
    /// of the flags at the start are those of the recording. Must be called within a tokio runtime.
    /// [`RunHandle::wait_until_live`] says whether the run reached the boundary.
    pub fn fork(&self, launch: Launch, fork: ForkStart) -> RunHandle {
        self.begin_fork(launch, fork, None)
    }

    /// The same, with an id that was [reserved](Self::reserve_id).
    pub(crate) fn fork_as(&self, id: RunId, launch: Launch, fork: ForkStart) -> RunHandle {
        self.begin_fork(launch, fork, Some(id))
    }

    fn begin_fork(&self, launch: Launch, fork: ForkStart, id: Option<RunId>) -> RunHandle {
        let ForkStart { recording, at, flags, by, in_doubt } = fork;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = ForkOrigin {
            parent: recording.head().run.clone(),
            at,
            wall_ms: millis(now),
            flags,
            prices: recording.head().first_prices().to_vec(),
        };
        let replayed = Replayed { recording, by, in_doubt, fork: Some(origin) };
        self.begin(launch, Some(replayed), id, true)
    }

    /// Leaves the runs as they are at the end of the program: they are interrupted, and can be continued.
    pub(crate) fn leave_runs(&self) {
        self.shared.leaves_runs.store(true, Ordering::Relaxed);
    }

    /// Whether the runs are left at the end of the program.
    pub(crate) fn leaves_runs(&self) -> bool {
        self.shared.leaves_runs.load(Ordering::Relaxed)
    }

    /// Cancels every run and waits until all have ended. If the runs are left, only waits until their events so
    /// far are stored.
    pub async fn shutdown(&self) {
        let runs = self.runs();
        if self.leaves_runs() {
            for run in &runs {
                run.bus().wait_until_stored().await;
            }
            return;
        }
        for run in &runs {
            run.send(Command::Cancel);
        }
        for run in &runs {
            run.wait_until_finished().await;
        }
    }
}

impl Engine {
    /// An id that no run of this engine has, and no kept run. If the store cannot be written, the run
    /// gets an id anyway; what happens to it is decided once its head is known.
    pub(crate) fn next_id(&self) -> RunId {
        self.reserve_id().unwrap_or_else(|(id, why)| {
            tracing::info!(run = %id, "the store cannot be written: {why:#}");
            id
        })
    }

    /// An id for a run that starts only if it can be kept.
    pub(crate) fn reserve_id(&self) -> Result<RunId, (RunId, Refused)> {
        self.new_id(4, |id| self.shared.keeper.as_ref().map_or(Ok(true), |it| it.reserve(id)))
    }

    /// An id of at least so many digits that no run of this engine has, and that can be reserved.
    fn new_id(
        &self,
        digits: u32,
        reserve: impl Fn(&RunId) -> Result<bool, Refused>,
    ) -> Result<RunId, (RunId, Refused)> {
        let mut tries = 0_u32;
        loop {
            tries += 1;
            let id = {
                let mut runs = self.shared.runs();
                runs.started += 1;
                let number = random_u64(self.shared.nonce, "run", runs.started, "id");
                // Four digits are easy to say aloud; where many are taken, the ids get longer.
                let id = if digits <= 4 && runs.started < 4096 && tries < 8 {
                    format!("r-{:04x}", number & 0xffff)
                } else {
                    format!("r-{:08x}", number & 0xffff_ffff)
                };
                let id = RunId::new(id);
                if runs.by_id.contains_key(&id) || !runs.starting.insert(id.clone()) {
                    continue;
                }
                id
            };
            // Without the lock: it may wait for a disk.
            match reserve(&id) {
                Ok(true) => return Ok(id),
                Ok(false) => self.shared.runs().starting.remove(&id),
                Err(why) => return Err((id, why)),
            };
        }
    }
}

/// Keeps the logs of the runs of an engine.
pub trait RunKeeper: Send + Sync {
    /// Takes an id for a new run; `false`: it is taken, by a kept run or another process.
    fn reserve(&self, id: &RunId) -> Result<bool, Refused>;

    /// The program is to end: nothing waits any longer for other processes.
    fn end_waits(&self) {}

    /// Keeps the log of a run. `reader` is before its first event. The events before `stored` are kept
    /// already; the others are not published yet.
    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq);
}
