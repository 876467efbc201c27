//! The limit of concurrent tasks of a run, which can change while tasks run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::bus::Bus;
use crate::event::kind::Initiator;
use crate::event::{Command, EventKind, SpanId};
use crate::run::LiveControl;

/// The limit of concurrent tasks. Each slot does one task after another; a slot above a lowered
/// limit closes after its task.
pub struct ConcurrencyLimit {
    bus: Bus,
    state: Mutex<ConcurrencyState>,
    changed: Notify,
}

struct ConcurrencyState {
    max: u32,
    open: u32,
    /// Whether the limit can be changed: the run has not ended.
    live: bool,
}

/// Largest limit, as in the scenario format.
const MAX_LIMIT: u32 = 1_024;

impl ConcurrencyLimit {
    /// `most` is the limit at the start.
    pub fn new(bus: Bus, most: u32) -> Self {
        let max = most.clamp(1, MAX_LIMIT);
        let state = Mutex::new(ConcurrencyState { max, open: 0, live: true });
        Self { bus, state, changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ConcurrencyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limit. Running tasks continue.
    fn set(&self, most: u32, by: Initiator) {
        let mut state = self.lock();
        let max_parallel = most.clamp(1, MAX_LIMIT);
        if state.live && max_parallel != state.max {
            state.max = max_parallel;
            self.bus.publish(SpanId::RUN, EventKind::ConcurrencyChanged { max_parallel, by });
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Opens one more slot if the limit allows it.
    pub fn open(&self) -> bool {
        let mut state = self.lock();
        let may = state.open < state.max;
        state.open += u32::from(may);
        may
    }

    /// Closes a slot that has finished its task if there are more than the limit; returns whether
    /// it did.
    pub fn close_surplus(&self) -> bool {
        let mut state = self.lock();
        let surplus = state.open > state.max;
        state.open -= u32::from(surplus);
        surplus
    }

    /// Closes a slot.
    pub fn close(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
    }

    /// Waits until the limit has changed since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl LiveControl for ConcurrencyLimit {
    fn take(&self, command: Command) -> Option<Command> {
        match command {
            Command::SetParallel { max_parallel, by } => {
                self.set(max_parallel, by);
                None
            }
            other => Some(other),
        }
    }

    fn end(&self) {
        self.lock().live = false;
    }
}
