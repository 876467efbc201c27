//! The cluster that the dashboard shows, its rows, and the copies of the logs that are watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "nats")]
use std::sync::OnceLock;

use crate::bus::Bus;
#[cfg(feature = "nats")]
use crate::cluster::Cluster;
#[cfg(feature = "nats")]
use crate::cluster::rows::RowChange;
use crate::event::RunId;
use crate::event::run_row::RunRow;

/// The cluster that the dashboard shows, and what is watched of it.
#[derive(Clone, Default)]
pub struct RemoteRuns {
    #[cfg(feature = "nats")]
    pub(super) cluster: Arc<OnceLock<Cluster>>,
    pub(super) watched: Arc<Mutex<BTreeMap<RunId, Bus>>>,
    pub(super) rows: Arc<Mutex<BTreeMap<String, ListedRow>>>,
}

/// A run in the list of the cluster.
pub(super) struct ListedRow {
    row: RunRow,
    /// The pool of the runners that may play it.
    #[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "there is no cluster"))]
    pool: String,
}

impl RemoteRuns {
    /// The log of a run that is watched.
    pub fn log(&self, run: &RunId) -> Option<Bus> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    /// Whether the cluster has this run.
    #[cfg(feature = "nats")]
    pub(super) fn has(&self, run: &RunId) -> bool {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.contains_key(run.as_str()) || self.log(run).is_some()
    }

    /// The pool of the runners that may play a run.
    #[cfg(feature = "nats")]
    pub(super) fn pool(&self, run: &RunId) -> Option<String> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.get(run.as_str()).map(|listed| listed.pool.clone()).filter(|pool| !pool.is_empty())
    }

    /// Takes a change of the list of runs.
    #[cfg(feature = "nats")]
    pub(super) fn take(&self, change: RowChange) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            RowChange::Row(row) => {
                let listed = ListedRow { row: row.to_run_row(), pool: row.pool };
                rows.insert(row.run, listed);
            }
            RowChange::Gone(run) => drop(rows.remove(run.as_str())),
        }
    }

    /// The rows of its runs, the newest first.
    pub fn rows(&self) -> Vec<RunRow> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.values().map(|listed| listed.row.clone()).collect()
    }
}
