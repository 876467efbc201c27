//! The recorded run that was read last.

use std::sync::{Arc, Mutex, PoisonError};

use crate::event::RunId;
use crate::host::recorded::RecordedRun;

/// The recorded run that was read last. A clone refers to the same one.
#[derive(Clone, Default)]
pub struct LastRecorded(Arc<Mutex<Option<Arc<RecordedRun>>>>);

impl LastRecorded {
    /// Keeps a run until the next one is read.
    pub fn keep(&self, run: &Arc<RecordedRun>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(run));
    }

    /// The run that was read last, if it is this one.
    pub fn get(&self, run: &RunId) -> Option<Arc<RecordedRun>> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.as_ref().filter(|recorded| recorded.id == *run).cloned()
    }
}
