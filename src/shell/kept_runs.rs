//! Effects about kept runs: their list, their logs, and what is done with whole runs.

use std::sync::Arc;

use super::effects::Services;
use crate::app::Msg;
use crate::app::request::RequestId;
use crate::event::{Event, RunId};

/// Events in one message: small enough that folding them does not delay a key noticeably.
const CHUNK: usize = 512;

impl Services {
    /// Sends events of a kept log in chunks.
    fn send_events(&self, run: &RunId, request: RequestId, events: &[Arc<Event>]) {
        for chunk in events.chunks(CHUNK) {
            let (run, events) = (run.clone(), chunk.to_vec());
            self.send_msg(Msg::Opened { run, request, events });
        }
    }

    fn end_events(&self, run: &RunId, request: RequestId, problem: Option<String>) {
        self.send_msg(Msg::OpenedToEnd { run: run.clone(), request, problem });
    }
}

#[cfg(not(feature = "store"))]
impl Services {
    /// Runs are not kept: there is no list.
    pub fn list_kept(&self) {}

    /// Runs are not kept.
    pub fn open_kept(&self, run: RunId, request: RequestId, _follows: bool) {
        self.end_events(&run, request, Some("runs are not kept".to_owned()));
    }

    /// Runs are not kept.
    pub fn pin_kept(&self, _run: RunId, _pinned: bool) {}

    /// Runs are not kept.
    pub fn remove_kept(&self, _run: RunId) {}

    /// Runs are not kept.
    pub fn restore_kept(&self, _run: RunId) {}
}

#[cfg(feature = "store")]
mod with_store {
    use futures::StreamExt as _;

    use super::{Arc, Event, Msg, RequestId, RunId, Services};
    use crate::app::kept_change::KeptChange;
    use crate::event::Seq;
    use crate::host::keep::now_ms;
    use crate::store::database::{Database, StoreError};
    use crate::store::file::LogFile;
    use crate::store::{ReadError, RunLog as _};

    impl Services {
        /// Reads the list of kept runs.
        pub fn list_kept(&self) {
            if self.kept.database().is_some() {
                self.in_background(|services| services.list_after(None));
            }
        }

        fn list_after(&self, change: Option<KeptChange>) {
            let Some(database) = self.kept.database() else { return };
            match database.runs() {
                Ok(rows) => self.send_msg(Msg::Kept { rows, wall_ms: now_ms(), change }),
                Err(error) => self.store_failed(&error),
            }
        }

        fn store_failed(&self, error: &StoreError) {
            self.send_msg(Msg::EffectFailed { what: "store", text: error.to_string() });
        }

        /// Changes a run in the background, then lists the runs. `change` is what was done, by
        /// whether it could be.
        fn change_kept(
            &self,
            work: impl FnOnce(&Database) -> Result<bool, StoreError> + Send + 'static,
            change: impl FnOnce(bool) -> KeptChange + Send + 'static,
        ) {
            self.in_background(move |services| {
                let Some(database) = services.kept.database() else { return };
                match work(database) {
                    Ok(done) => services.list_after(Some(change(done))),
                    Err(error) => services.store_failed(&error),
                }
            });
        }

        /// Pins a run, or takes its pin away.
        pub fn pin_kept(&self, run: RunId, pinned: bool) {
            let id = run.clone();
            self.change_kept(
                move |database| database.pin(&id, pinned),
                move |done| match done {
                    true => KeptChange::Pinned(run, pinned),
                    false => KeptChange::Refused(format!("{run} is no longer kept.")),
                },
            );
        }

        /// Removes a run.
        pub fn remove_kept(&self, run: RunId) {
            let id = run.clone();
            self.change_kept(
                move |database| database.delete(&id, now_ms()),
                move |done| match done {
                    true => KeptChange::Removed(run),
                    false => KeptChange::Refused(format!("{run} is running: it was not removed.")),
                },
            );
        }

        /// Brings back a removed run.
        pub fn restore_kept(&self, run: RunId) {
            let id = run.clone();
            self.change_kept(
                move |database| database.undelete(&id),
                move |done| match done {
                    true => KeptChange::Restored(run),
                    false => KeptChange::Refused(format!("{run} was removed for good.")),
                },
            );
        }

        /// Reads the log of a run; with `follows` until the run has ended.
        pub fn open_kept(&self, run: RunId, request: RequestId, follows: bool) {
            let Some(database) = self.kept.database().cloned() else {
                return self.end_events(&run, request, Some("runs are not kept".to_owned()));
            };
            let services = self.clone();
            self.runtime.spawn(async move {
                let start = Seq(0);
                let mut groups = match follows {
                    true => database.tail(&run, start),
                    false => database.read(&run, start),
                };
                let mut problem = None;
                while let Some(group) = groups.next().await {
                    let events: Result<Vec<Arc<Event>>, ReadError> =
                        group.and_then(|group| group.events(start));
                    match events {
                        Ok(events) => services.send_events(&run, request, &events),
                        Err(error) => {
                            problem = Some(error.to_string());
                            break;
                        }
                    }
                }
                services.end_events(&run, request, problem);
            });
        }

        /// Sends the events of a file that was read.
        pub fn send_log(&self, run: RunId, request: RequestId, log: LogFile) {
            self.in_background(move |services| {
                services.send_events(&run, request, &log.events);
                services.end_events(&run, request, None);
            });
        }
    }
}
