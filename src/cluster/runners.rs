//! The runners that are alive: each writes a key that disappears when it no longer does.

use serde::{Deserialize, Serialize};

use super::connection::{Cluster, plain};
use super::names::RUNNERS;

/// A runner that is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunnerRow {
    /// Its name.
    pub name: String,
    /// The pool that it plays runs of.
    pub pool: String,
    /// How many runs it plays at a time.
    pub slots: u32,
    /// How many it plays now.
    pub busy: u32,
    /// Version of the program.
    pub version: String,
    /// What it allows scenarios to do.
    pub allows: Vec<String>,
    /// Whether it takes no more runs.
    pub draining: bool,
    /// When it began, as Unix time in milliseconds of its machine.
    pub since_ms: u64,
    /// Milliseconds without a sign of life after which its runs are taken over; 0: not known.
    pub takeover_ms: u64,
}

impl RunnerRow {
    /// Whether both play runs of one pool with different takeover times. The queue of a pool has one time: a
    /// runner that gives a sign of life less often than it would lose its runs.
    pub fn disagrees(&self, other: &Self) -> bool {
        let is_known = self.takeover_ms > 0 && other.takeover_ms > 0;
        let are_two = self.pool == other.pool && self.name != other.name;
        are_two && is_known && self.takeover_ms != other.takeover_ms
    }
}

impl Cluster {
    /// Says that a runner is alive.
    ///
    /// # Errors
    /// The server does not store it, in one sentence.
    pub async fn put_runner(&self, row: &RunnerRow) -> Result<(), String> {
        let bytes = serde_json::to_vec(row).map_err(|error| error.to_string())?;
        let store = self.context().get_key_value(RUNNERS).await.map_err(|error| plain(&error))?;
        let key = self.namespace().runner(&row.name);
        store.put(key, bytes.into()).await.map_err(|error| plain(&error))?;
        Ok(())
    }

    /// A runner has ended.
    pub async fn remove_runner(&self, name: &str) {
        if let Ok(store) = self.context().get_key_value(RUNNERS).await {
            let _ = store.purge(self.namespace().runner(name)).await;
        }
    }

    /// The runners that are alive, by name.
    ///
    /// # Errors
    /// The server does not answer, in one sentence.
    pub async fn runners(&self) -> Result<Vec<RunnerRow>, String> {
        use futures::StreamExt as _;
        let store = self.context().get_key_value(RUNNERS).await.map_err(|error| plain(&error))?;
        let mut keys = store.keys().await.map_err(|error| plain(&error))?;
        let prefix = format!("{}.", self.namespace());
        let mut found = Vec::new();
        while let Some(Ok(key)) = keys.next().await {
            if !key.starts_with(&prefix) {
                continue;
            }
            let Ok(Some(bytes)) = store.get(key).await else { continue };
            found.extend(serde_json::from_slice::<RunnerRow>(&bytes).ok());
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}
