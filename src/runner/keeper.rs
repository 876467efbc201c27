//! Passes the log of each run that the engine starts to the task that plays it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::bus::LogReader;
use crate::engine::{RunHandle, RunKeeper};
use crate::event::{RunId, Seq};

/// A run that the engine has started.
pub(super) struct KeptStart {
    /// A reader before its first event.
    pub reader: LogReader,
    /// The events before this one are stored already.
    pub stored: Seq,
}

/// The runs that are about to start.
#[derive(Default)]
pub(super) struct ClusterKeeper {
    starting: Mutex<HashMap<RunId, oneshot::Sender<KeptStart>>>,
}

impl ClusterKeeper {
    /// The start of the run with this id, once the engine starts it.
    pub fn expect(&self, run: &RunId) -> oneshot::Receiver<KeptStart> {
        let (send, receive) = oneshot::channel();
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), send);
        receive
    }
}

impl RunKeeper for ClusterKeeper {
    fn reserve(&self, _: &RunId) -> bool {
        // The id was taken when the run was handed over.
        true
    }

    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq) {
        // Paid calls wait from the first one on.
        let _ = run.bus().stored_mark();
        let starting =
            self.starting.lock().unwrap_or_else(PoisonError::into_inner).remove(run.id());
        if let Some(starting) = starting {
            let _ = starting.send(KeptStart { reader, stored });
        }
    }
}
