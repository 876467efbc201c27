//! How many tasks of a run go at once: a limit that can change while they do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::bus::Bus;
use crate::event::kind::By;
use crate::event::{EventKind, SpanId};

/// The lanes of a run. A lane does one task after another; one that is too many ends with its task.
pub struct Lanes {
    bus: Bus,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    most: u32,
    open: u32,
    /// Whether the limit can be changed: the pattern has one, and the run has not ended.
    live: bool,
}

/// The most that may go at once, as in a scenario's file.
const MOST: u32 = 1_024;

impl Lanes {
    /// So many at most; `None`: the pattern has no such limit.
    pub fn new(bus: Bus, most: Option<u32>) -> Self {
        let live = most.is_some();
        let state = Mutex::new(State { most: most.unwrap_or(1).clamp(1, MOST), open: 0, live });
        Self { bus, state, changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how many there are at most. Tasks that are out go on.
    pub fn set(&self, most: u32, by: By) {
        let mut state = self.lock();
        let max_parallel = most.clamp(1, MOST);
        if state.live && max_parallel != state.most {
            state.most = max_parallel;
            self.bus.publish(SpanId::RUN, EventKind::ParallelChanged { max_parallel, by });
            drop(state);
            self.changed.notify_one();
        }
    }

    /// The run has ended: the limit changes no more.
    pub fn end(&self) {
        self.lock().live = false;
    }

    /// Opens one more lane, where one more may be open.
    pub fn open(&self) -> bool {
        let mut state = self.lock();
        let may = state.open < state.most;
        state.open += u32::from(may);
        may
    }

    /// Whether a lane that has done its task is to end because there are too many; it is closed
    /// then.
    pub fn close_surplus(&self) -> bool {
        let mut state = self.lock();
        let surplus = state.open > state.most;
        state.open -= u32::from(surplus);
        surplus
    }

    /// A lane has ended.
    pub fn close(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
    }

    /// Waits until the limit has changed since this was last called.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
