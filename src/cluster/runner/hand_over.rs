//! Gives a run up: whether it is paused, which attempts are in flight, and the answers that its
//! former owner may still get. They are awaited as long as one may arrive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::prepared::PlayedLog;
use crate::cluster::Cluster;
use crate::engine::RunHandle;
use crate::log::bus::{Bus, LateAnswers, LogReader};
use crate::log::event::{Command, Event, EventKind, Initiator, Reply, RunId, Seq, SpanId};

/// Events read at once.
const BATCH: usize = 64;

/// How long the attempts of a run that was lost may take, if none of them says how long.
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Default)]
struct WatchedState {
    paused: bool,
    ended: bool,
    /// The event that comes next.
    next: Seq,
    /// The last command that was taken.
    taken: u64,
    /// Attempts in flight, with the event that began each and its timeout in milliseconds.
    open: BTreeMap<SpanId, (Seq, u64)>,
    /// Attempts that were answered, with the events of start and answer; those that are stored are
    /// forgotten.
    answered: Vec<(SpanId, Seq, Seq, Reply)>,
}

/// Follows a run.
#[derive(Clone)]
pub(crate) struct RunWatch {
    state: Arc<Mutex<WatchedState>>,
    changed: watch::Receiver<u64>,
}

/// Follows the log of a run from its start to its end.
pub(super) fn watch_run(bus: &Bus, mut reader: LogReader) -> RunWatch {
    let (tell, changed) = watch::channel(0);
    let state = Arc::<Mutex<WatchedState>>::default();
    let watched = RunWatch { state: Arc::clone(&state), changed };
    let mark = bus.stored_mark();
    tokio::spawn(async move {
        let mut events: Vec<Arc<Event>> = Vec::new();
        loop {
            let came = reader.next_batch(&mut events, BATCH).await;
            {
                let mut state = lock(&state);
                events.drain(..).for_each(|event| state.take(&event));
                state.ended |= came == 0;
                let stored = mark.next();
                state.answered.retain(|(_, _, answered, _)| *answered >= stored);
            }
            tell.send_modify(|times| *times += 1);
            if came == 0 {
                return;
            }
        }
    });
    watched
}

fn lock(state: &Mutex<WatchedState>) -> MutexGuard<'_, WatchedState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WatchedState {
    fn take(&mut self, event: &Event) {
        self.next = Seq(event.seq.0 + 1);
        match &event.kind {
            EventKind::CommandTaken { place, .. } => self.taken = self.taken.max(*place),
            EventKind::Paused { .. } => self.paused = true,
            EventKind::Resumed { .. } | EventKind::Stepped { .. } => self.paused = false,
            EventKind::AttemptStarted { timeout_ms, .. } => {
                self.open.insert(event.span, (event.seq, *timeout_ms));
            }
            EventKind::AttemptFailed(_) => {
                self.open.remove(&event.span);
            }
            EventKind::AttemptAnswered(reply) => {
                if let Some((started, _)) = self.open.remove(&event.span) {
                    self.answered.push((event.span, started, event.seq, (**reply).clone()));
                }
            }
            _ => {}
        }
    }
}

impl RunWatch {
    /// Waits until the run is paused, or has ended.
    pub async fn until_paused(&self) {
        let mut changed = self.changed.clone();
        let _ = changed
            .wait_for(|_| {
                let state = lock(&self.state);
                state.paused || state.ended
            })
            .await;
    }

    /// The last command that the run has taken before this event.
    pub async fn last_command(&self, before: Seq) -> u64 {
        let mut changed = self.changed.clone();
        let has_read = |state: &WatchedState| state.next >= before || state.ended;
        let _ = changed.wait_for(|_| has_read(&lock(&self.state))).await;
        lock(&self.state).taken
    }

    /// Waits for the attempts in flight that began before the event `stored`, and leaves their answers for
    /// the next owner of the run.
    pub async fn leave_answers(&self, cluster: &Cluster, run: &RunId, stored: Seq) {
        let mut changed = self.changed.clone();
        // Their starts are stored, but may not have been read here yet.
        let has_read = |state: &WatchedState| state.next >= stored || state.ended;
        let _ = changed.wait_for(|_| has_read(&lock(&self.state))).await;
        let longest = {
            let state = lock(&self.state);
            let begun = state.open.values().filter(|(started, _)| *started < stored);
            begun.map(|(_, timeout)| Duration::from_millis(*timeout)).max()
        };
        let until = Instant::now() + longest.unwrap_or_default().min(LONGEST);
        loop {
            let (answers, is_open) = {
                let mut state = lock(&self.state);
                let answers = std::mem::take(&mut state.answered);
                let is_open = state.open.values().any(|(started, _)| *started < stored);
                (answers, is_open)
            };
            for (attempt, started, _, reply) in answers {
                if started < stored {
                    cluster.leave_answer(run, attempt, &reply).await;
                }
            }
            if !is_open || !matches!(timeout_at(until, changed.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }
}

/// Time beyond the timeout of an attempt in which its answer may arrive.
const GRACE: Duration = Duration::from_secs(2);

/// The former owner of a run.
pub(crate) struct FormerOwner {
    cluster: Cluster,
    run: RunId,
    /// Until when it may have an answer to each attempt that was open.
    until: BTreeMap<SpanId, Instant>,
    handle: OnceLock<RunHandle>,
    /// Attempts that wait for an answer now.
    waiting: AtomicU32,
}

impl FormerOwner {
    /// The owner that had stored this log before it was claimed. Both times are those of the server, so the
    /// clocks of runners do not matter.
    pub fn new(cluster: &Cluster, run: &RunId, log: &PlayedLog, claimed_ms: u64) -> Self {
        let now = Instant::now();
        let age = Duration::from_millis(claimed_ms.saturating_sub(log.stored_ms));
        let mut until = BTreeMap::new();
        for event in &log.events {
            match &event.kind {
                EventKind::AttemptStarted { timeout_ms, .. } => {
                    let whole = Duration::from_millis(*timeout_ms) + GRACE;
                    until.insert(event.span, now + whole.saturating_sub(age));
                }
                EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_) => {
                    until.remove(&event.span);
                }
                _ => {}
            }
        }
        let (handle, waiting) = (OnceLock::new(), AtomicU32::new(0));
        Self { cluster: cluster.clone(), run: run.clone(), until, handle, waiting }
    }

    /// The run as it continues here: its clock stops while it waits.
    pub fn set_run(&self, run: RunHandle) {
        let _ = self.handle.set(run);
    }

    fn send(&self, command: Command) {
        if let Some(run) = self.handle.get() {
            run.send(command);
        }
    }
}

/// An attempt that waits. While there is one, the run pauses, so that the wait does not count in its time.
struct WaitsForAnswer<'a>(&'a FormerOwner);

impl<'a> WaitsForAnswer<'a> {
    fn new(former: &'a FormerOwner) -> Self {
        if former.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            former.send(Command::Pause { by: Initiator::Runner });
        }
        Self(former)
    }
}

impl Drop for WaitsForAnswer<'_> {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.send(Command::Resume { by: Initiator::Runner });
        }
    }
}

impl LateAnswers for FormerOwner {
    fn answer(&self, attempt: SpanId) -> BoxFuture<'_, Option<Reply>> {
        Box::pin(async move {
            let until = *self.until.get(&attempt)?;
            if let Ok(Some(reply)) = self.cluster.late_answer(&self.run, attempt).await {
                return Some(reply);
            }
            let _waits = WaitsForAnswer::new(self);
            self.cluster.await_late_answer(&self.run, attempt, until).await
        })
    }
}
