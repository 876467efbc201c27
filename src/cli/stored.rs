//! The store of the runs that a command starts.

use std::sync::Arc;

use super::args::Global;
use crate::engine::RunKeeper;
use crate::shell::kept_store::KeptRuns;

/// What happens to a live run that cannot be stored any more. A scripted run continues unstored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// It pauses until it can be stored.
    Pause,
    /// It stops before its next paid call.
    Stop,
}

/// The store of a command; none with `--no-store`, or if it cannot be opened.
pub struct StoreOfCommand {
    #[cfg(feature = "store")]
    runs: Option<Arc<crate::host::keep::StoredRuns>>,
    /// Problems, one sentence each.
    pub problems: Vec<String>,
    /// Where runs are kept; only where the store was created just now.
    pub place: Option<String>,
}

#[cfg(not(feature = "store"))]
impl StoreOfCommand {
    /// This program was built without a store.
    pub fn open(_global: &Global, _on_failure: OnStoreFailure) -> Self {
        Self { problems: Vec::new(), place: None }
    }

    /// Runs are not kept.
    pub fn keeper(&self) -> Option<Arc<dyn RunKeeper>> {
        None
    }

    /// Runs are not kept.
    pub fn kept(&self) -> KeptRuns {
        KeptRuns::default()
    }

    /// Nothing waits for a store.
    pub fn tell_waits(&self, _tell: impl Fn(&str) + Send + Sync + 'static) {}

    /// Nothing waits for a store.
    pub fn end_waits(&self) {}

    /// Runs are not kept.
    pub fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// There is nothing to wait for.
    pub async fn finish(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(feature = "store")]
mod with_store {
    use std::sync::Arc;

    use tokio::task::spawn_blocking;

    use super::{Global, KeptRuns, OnStoreFailure, RunKeeper, StoreOfCommand};
    use crate::cli::message::print_message;
    use crate::host::config;
    use crate::host::keep::{self, StoreFailure, StoreKeeper, StoredRuns, now_ms, retention};
    use crate::narrate::format;
    use crate::store::database::lock::LockWaits;

    /// Removed runs can be brought back for this long, in milliseconds.
    const UNDO_MS: u64 = 24 * 3_600_000;

    impl StoreOfCommand {
        /// Opens the store, unless the command line or the configuration says that runs are not kept.
        pub fn open(global: &Global, on_failure: OnStoreFailure) -> Self {
            let (mut problems, mut place) = (Vec::new(), None);
            if global.no_store || !config::in_force().store.keep {
                return Self { runs: None, problems, place };
            }
            let runs = match keep::open(LockWaits::new(print_message)) {
                Ok((database, is_new)) => {
                    if is_new {
                        let path = database.path().display();
                        place = Some(format!("runs are kept in {path}; --no-store turns it off"));
                    }
                    if !database.is_local() {
                        problems.push(
                            "the store is on a network file system, where it is slower".to_owned(),
                        );
                    }
                    let failure = match on_failure {
                        OnStoreFailure::Pause => StoreFailure::Pause,
                        OnStoreFailure::Stop => StoreFailure::Stop,
                    };
                    Some(StoredRuns::new(database, failure))
                }
                Err(why) => {
                    problems.push(why);
                    None
                }
            };
            Self { runs, problems, place }
        }

        /// What keeps the runs of an engine.
        pub fn keeper(&self) -> Option<Arc<dyn RunKeeper>> {
            let runs = Arc::clone(self.runs.as_ref()?);
            Some(Arc::new(StoreKeeper(runs)))
        }

        /// The runs that are kept there.
        pub fn kept(&self) -> KeptRuns {
            KeptRuns::new(self.runs.as_ref().map(|runs| runs.database().clone()))
        }

        /// Tells this one, instead of standard error, when the store is locked by another process.
        pub fn tell_waits(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
            if let Some(runs) = &self.runs {
                runs.database().waits().tell(tell);
            }
        }

        /// Ends all waits for other processes.
        pub fn end_waits(&self) {
            if let Some(runs) = &self.runs {
                runs.database().waits().cancel();
            }
        }

        /// Why runs that continued are not kept; a command without the dashboard has printed it before.
        pub fn warnings(&self) -> Vec<String> {
            self.runs.as_ref().map(|runs| runs.take_warnings()).unwrap_or_default()
        }

        /// Waits until every run is stored, then removes what the configuration does not keep.
        /// Returns what went wrong, and what was removed.
        pub async fn finish(&self) -> Vec<String> {
            let Some(runs) = &self.runs else { return Vec::new() };
            runs.finish().await;
            let mut notes = runs.take_notes();
            let (keep, now) = (retention(&config::in_force().store), now_ms());
            let database = runs.database().clone();
            let pruned = spawn_blocking(move || {
                let pruned = database.prune(keep, now, now.saturating_sub(UNDO_MS));
                database.checkpoint();
                pruned
            });
            let Ok(pruned) = pruned.await else { return notes };
            match pruned {
                Ok(pruned) if pruned.runs > 0 => {
                    let runs = format::count_noun(pruned.runs, "old run");
                    let size = format::bytes(pruned.bytes);
                    notes.push(format!("removed {runs} ({size}) from the store"));
                }
                Ok(_) => {}
                Err(error) => notes.push(format!("old runs were not removed: {error}")),
            }
            notes
        }
    }
}
