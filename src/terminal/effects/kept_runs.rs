//! Effects about kept runs: the store that the dashboard reads, the list of runs, their logs, and
//! actions on whole runs.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;

use super::{EffectResult, Services};
use crate::base::time::now_ms;
use crate::base::word_query::WordQuery;
#[cfg(unix)]
use crate::host::kept_runs;
use crate::log::event::{Event, RunId, Seq};
use crate::screen::Msg;
use crate::screen::effect::{KeptChange, RequestId};
use crate::store::database::removal::Deletion;
use crate::store::database::text_index::RunTextIndex;
use crate::store::database::{Database, StoreError};
use crate::store::file::LogFile;
use crate::store::{ReadError, RunLog as _};

/// The store that the dashboard reads; empty where runs are not kept.
#[derive(Clone, Default)]
pub struct KeptRuns {
    database: Option<Database>,
    /// The request of the last search for words that were said.
    last_search: Arc<AtomicU64>,
    /// The damage that the last list of runs had.
    damage: Arc<Mutex<Option<StoreError>>>,
}

impl KeptRuns {
    /// Whether runs are kept, so that a list of them comes.
    pub fn is_on(&self) -> bool {
        self.database.is_some()
    }

    /// The runs in this database.
    pub fn new(database: Option<Database>) -> Self {
        Self { database, ..Self::default() }
    }

    /// The database.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// The damage that a list of runs has, unless the list before had the same.
    pub fn new_damage(&self, found: Option<StoreError>) -> Option<StoreError> {
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = *known == found;
        known.clone_from(&found);
        found.filter(|_| !is_known)
    }

    /// Begins a search: earlier ones are not wanted any more.
    pub fn begin_search(&self, request: RequestId) {
        self.last_search.fetch_max(request.0, Ordering::Relaxed);
    }

    /// Whether no search has begun after this one.
    pub fn is_last_search(&self, request: RequestId) -> bool {
        self.last_search.load(Ordering::Relaxed) == request.0
    }
}

/// Events in one message: small enough that folding them does not delay a key noticeably.
const CHUNK: usize = 512;

impl Services {
    /// Sends events of a kept log in chunks, each when the loop has room for it. `false`: they are not
    /// wanted any more.
    async fn send_events(&self, run: &RunId, request: RequestId, events: &[Arc<Event>]) -> bool {
        for chunk in events.chunks(CHUNK) {
            let room = Arc::clone(&self.room).acquire_owned().await;
            let is_stopped = self.stopped().remove(&request);
            let Some(room) = room.ok().filter(|_| !is_stopped) else { return false };
            let (run, events) = (run.clone(), chunk.to_vec());
            self.answer(EffectResult::Opened {
                msg: Msg::Opened { run, request, events },
                _room: room,
            });
        }
        true
    }

    /// Stops reading the log that was opened with this request.
    pub fn stop_reading(&self, request: RequestId) {
        self.stopped().insert(request);
    }

    fn stopped(&self) -> MutexGuard<'_, BTreeSet<RequestId>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a search where runs are not kept.
    fn refuse_search(&self, request: RequestId) {
        let found = Err("Runs are not kept, so what was said cannot be searched.".to_owned());
        self.send_msg(Msg::Said { request, found, left: 0 });
    }

    fn end_events(&self, run: &RunId, request: RequestId, problem: Option<String>) {
        self.stopped().remove(&request);
        self.send_msg(Msg::OpenedToEnd { run: run.clone(), request, problem });
    }
}

/// How long runs are added to the index between two answers.
const SEARCH_SLICE: Duration = Duration::from_millis(250);

#[cfg(unix)]
impl KeptRuns {
    /// The stored events of a run before this one.
    pub async fn events_before(&self, run: &RunId, end: Seq) -> Vec<Arc<Event>> {
        let Some(database) = self.database() else { return Vec::new() };
        kept_runs::events_before(database, run, end).await
    }
}

/// Most tries, and the time between them, until the lock of a process that was killed is released: its sockets
/// may be closed before.
const RELEASED: (u32, Duration) = (50, Duration::from_millis(20));

/// Waits until no process plays a run that is not followed any more, but not for long. Blocks.
fn wait_until_released(database: &Database, run: &RunId) {
    let (tries, pause) = RELEASED;
    for _ in 0..tries {
        if !database.is_played(run).unwrap_or(false) {
            return;
        }
        std::thread::sleep(pause);
    }
    tracing::debug!("{run} is still played by its process");
}

impl Services {
    /// Reads the list of kept runs.
    pub fn list_kept(&self) {
        self.in_background(|services| services.list_after(None));
    }

    /// Reads the list of kept runs once a run of another process is not followed any more. `has_ended`: its log
    /// has its end.
    #[cfg(unix)]
    pub fn list_followed(&self, run: RunId, has_ended: bool) {
        self.in_background(move |services| {
            if let Some(database) = services.kept.database().filter(|_| !has_ended) {
                wait_until_released(database, &run);
            }
            services.list_after(None);
            services.send_msg(Msg::FollowEnded { run, has_ended });
        });
    }

    fn list_after(&self, change: Option<KeptChange>) {
        let mut rows = self.remote.rows();
        let of_cluster = rows.len();
        match self.kept.database().map(Database::runs) {
            None if of_cluster == 0 && change.is_none() => return,
            None => {}
            Some(Ok(kept)) => {
                if let Some(error) = self.kept.new_damage(kept.error()) {
                    self.store_failed(&error);
                }
                // A copy of a run of the cluster is listed as what it is here.
                let here: HashSet<&RunId> = kept.rows.iter().map(|row| &row.id).collect();
                rows.retain(|row| !here.contains(&row.id));
                rows.extend(kept.rows);
            }
            Some(Err(error)) => return self.store_failed(&error),
        }
        if of_cluster > 0 {
            rows.sort_by(|a, b| (b.started_ms, &b.id).cmp(&(a.started_ms, &a.id)));
        }
        self.send_msg(Msg::Kept { rows, wall_ms: now_ms(), change });
    }

    fn store_failed(&self, error: &StoreError) {
        self.send_msg(Msg::EffectFailed { what: "store", text: error.with_advice() });
    }

    /// Changes a run in the background, then lists the runs. `change` names the change, given the
    /// result of the work.
    fn change_kept<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError> + Send + 'static,
        change: impl FnOnce(T) -> KeptChange + Send + 'static,
    ) {
        self.in_background(move |services| {
            let Some(database) = services.kept.database() else { return };
            match work(database) {
                Ok(done) => services.list_after(Some(change(done))),
                Err(error) => services.store_failed(&error),
            }
        });
    }

    /// Searches the texts that were said, until a later search begins. Runs that are not in the
    /// index are added to the index first, and the results so far are sent now and then.
    pub fn search_said(&self, request: RequestId, query: WordQuery) {
        if self.kept.database().is_none() {
            return self.refuse_search(request);
        }
        self.kept.begin_search(request);
        self.in_background(move |services| {
            let Some(database) = services.kept.database() else { return };
            if let Err(error) = services.search(database, request, &query) {
                let found = Err(format!("The store cannot be read: {error}"));
                services.send_msg(Msg::Said { request, found, left: 0 });
            }
        });
    }

    fn search(
        &self,
        database: &Database,
        request: RequestId,
        query: &WordQuery,
    ) -> Result<(), StoreError> {
        let is_wanted = || self.kept.is_last_search(request);
        let index = RunTextIndex(database);
        let mut behind = index.unindexed()?;
        while let Some(found) = index.runs_that_said(query, &is_wanted)? {
            let left = behind.len() as u64;
            self.send_msg(Msg::Said { request, found: Ok(found), left });
            if left == 0 || !is_wanted() {
                break;
            }
            for (run, why) in index.index_for(&mut behind, SEARCH_SLICE)? {
                self.failed("search", format!("{run} was not searched to its end: {why}"));
            }
        }
        Ok(())
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
                Deletion::Done => KeptChange::Removed(run),
                Deletion::Played => {
                    KeptChange::Refused(format!("{run} is running: it was not removed."))
                }
                Deletion::Missing => KeptChange::Refused(format!("{run} is no longer kept.")),
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
        if self.remote.log(&run).is_some() {
            return self.in_background(move |services| {
                let problem = match crate::terminal::effects::remote::remote_events(&services, &run)
                {
                    Some(Ok(events)) => {
                        let sending = services.send_events(&run, request, &events);
                        services.runtime.block_on(sending);
                        None
                    }
                    Some(Err(why)) => Some(format!("{why:#}")),
                    None => Some("it is not watched any more".to_owned()),
                };
                services.end_events(&run, request, problem);
            });
        }
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
                    Ok(events) if services.send_events(&run, request, &events).await => {}
                    Ok(_) => break,
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
        let services = self.clone();
        self.runtime.spawn(async move {
            services.send_events(&run, request, &log.events).await;
            services.end_events(&run, request, None);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::engine::{Engine, EngineSettings};
    use crate::host::models::LiveModels;
    use crate::host::trust::Trust;
    use crate::log::event::{Elapsed, EventKind, Seq, SpanId};
    use crate::net::ProxyMode;
    use crate::store::file::LogFile;
    use crate::terminal::effects::WAITING_CHUNKS;

    #[tokio::test]
    async fn reading_waits_for_the_loop() {
        let engine = Engine::new(EngineSettings::default());
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        let (services, mut answers) = Services::new(engine, models, trust, None, PathBuf::new());
        let event = |seq: usize| {
            let kind = EventKind::Warning { text: String::new() };
            let (seq, at) = (Seq(seq as u64), Elapsed::default());
            Arc::new(Event { seq, at, span: SpanId::RUN, kind })
        };
        let events = (0..2 * WAITING_CHUNKS * CHUNK).map(event).collect();
        let (run, request) = (RunId::new("r-1000"), RequestId(7));
        services.send_log(run, request, LogFile { events, notes: Vec::new() });
        let first = answers.recv().await.expect("a chunk");
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(answers.len(), WAITING_CHUNKS - 1, "the others wait");
        // The page is closed.
        services.stop_reading(request);
        drop(first);
        let mut chunks = 1;
        while let Some(EffectResult::Opened { .. }) = answers.recv().await {
            chunks += 1;
        }
        assert_eq!(chunks, WAITING_CHUNKS, "no more is read");
    }
}
