//! The runs that an interrupt (Ctrl-C, SIGTERM) cancels.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::exit::Exit;
use super::message::print_message;
use super::stop_signals::on_stop;
use crate::engine::{RunHandle, RunKeeper};
use crate::event::Command;

/// How long to wait until standard error accepts a line.
const STDERR_TIMEOUT: Duration = Duration::from_millis(100);

/// The current runs, which an interrupt cancels.
#[derive(Default)]
pub struct InterruptTarget {
    /// What keeps the runs: an interrupt ends its waits.
    keeper: Option<Arc<dyn RunKeeper>>,
    runs: Mutex<Vec<RunHandle>>,
    /// Set by the interrupt; later runs are cancelled at their start.
    cancelled: AtomicBool,
}

impl InterruptTarget {
    /// From now on the first interrupt cancels the current runs; the second ends the program
    /// immediately with exit code 130. On systems other than Unix call it within a runtime.
    pub fn of_this_process(keeper: Option<Arc<dyn RunKeeper>>) -> Arc<Self> {
        let target = Arc::new(Self { keeper, ..Self::default() });
        let it = Arc::clone(&target);
        if let Err(error) = on_stop(move || it.stop(), Exit::Cancelled.code()) {
            tracing::warn!("signals end the program immediately: {error}");
        }
        target
    }

    /// Adds a run. Whichever of this and [`cancel`](Self::cancel) comes second sees the other's
    /// effect.
    pub fn watch(&self, run: &RunHandle) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run.clone());
        if self.is_cancelled() {
            run.send(Command::Cancel);
        }
    }

    /// Removes a run that has ended.
    pub fn unwatch(&self, run: &RunHandle) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|other| other.id() != run.id());
    }

    /// Whether an interrupt has come.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Handles the first interrupt.
    fn stop(&self) {
        // On another thread: standard error may stall, and this thread must handle the next signal.
        let (sent, said) = mpsc::channel();
        let tell = move || {
            print_message("cancelling; interrupt again to end immediately");
            let _ = sent.send(());
        };
        match thread::Builder::new().spawn(tell) {
            Ok(_) => drop(said.recv_timeout(STDERR_TIMEOUT)),
            Err(error) => tracing::debug!("cannot report the cancellation: {error}"),
        }
        self.cancel();
    }

    /// Cancels the current runs, and those that start later.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(keeper) = &self.keeper {
            keeper.end_waits();
        }
        for run in &*self.runs.lock().unwrap_or_else(PoisonError::into_inner) {
            run.send(Command::Cancel);
        }
    }
}
