//! Passes the log of each run that the engine starts to the task that plays it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::late::FormerOwner;
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

/// A run that is about to start.
struct ExpectedStart {
    started: oneshot::Sender<KeptStart>,
    /// The runner that it was taken over from.
    former: Option<Arc<FormerOwner>>,
}

/// The runs that are about to start.
#[derive(Default)]
pub(super) struct ClusterKeeper {
    starting: Mutex<HashMap<RunId, ExpectedStart>>,
}

impl ClusterKeeper {
    /// The start of the run with this id, once the engine starts it; `former`: the runner that it was
    /// taken over from.
    pub fn expect(
        &self,
        run: &RunId,
        former: Option<Arc<FormerOwner>>,
    ) -> oneshot::Receiver<KeptStart> {
        let (started, receive) = oneshot::channel();
        let expected = ExpectedStart { started, former };
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), expected);
        receive
    }
}

impl RunKeeper for ClusterKeeper {
    fn reserve(&self, _: &RunId) -> Result<bool, String> {
        // The id was taken when the run was handed over.
        Ok(true)
    }

    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq) {
        // Paid calls wait from the first one on.
        let _ = run.bus().stored_mark();
        let starting =
            self.starting.lock().unwrap_or_else(PoisonError::into_inner).remove(run.id());
        if let Some(starting) = starting {
            // Before the run's task begins: it may ask for late answers at once.
            if let Some(former) = starting.former {
                former.set_run(run.clone());
                let _ = run.bus().late_answers().set(former);
            }
            let _ = starting.started.send(KeptStart { reader, stored });
        }
    }
}
