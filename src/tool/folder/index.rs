//! State of one folder that the tools of this process share: its catalogue and its index. Its work is
//! done on a blocking thread, and a dropped call cancels it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::{fs, io};

use super::address::Layout;
use super::ranking::Hits;
use super::source::{
    Catalogue, CatalogueEntry, DocumentSource, FolderPage, SkipReason, SkippedFiles, WalkFailed,
};
use super::text_index;
use super::text_index::{IndexFailed, Refreshed, TextIndex};
use crate::base::catch_panic;
use crate::base::visible::visible_within;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::scenario::tools::documents::FolderSpec;
use crate::tool::NotReady;

/// Most characters of a path that a message quotes.
const PATH_CHARS: usize = 80;

/// Checks that a folder can be searched and read.
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn ready(spec: &FolderSpec) -> Result<(), NotReady> {
    resolve_folder(spec).map(|_| ()).map_err(|why| NotReady::Documents { why })
}

/// Location of the index that was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexLocation {
    Disk,
    /// In memory: the folder has no disk index, or another process is writing it.
    Memory,
}

/// Result of a search.
#[derive(Debug)]
pub struct FolderSearched {
    pub found: Hits,
    /// What the refresh before the search changed, and the size of the index.
    pub refreshed: Refreshed,
    pub left_out: SkippedFiles,
    pub index: IndexLocation,
}

/// A folder, shared by the tools of this process.
pub struct FolderIndex {
    source: DocumentSource,
    layout: Layout,
    /// Directory of the disk index; `None`: in memory only.
    index_dir: Option<PathBuf>,
    indices: Mutex<OpenIndices>,
    /// Catalogue of the last listing.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
}

/// Open indices of a folder.
#[derive(Default)]
struct OpenIndices {
    disk: Option<TextIndex>,
    memory: Option<TextIndex>,
}

type FolderIndices = HashMap<(DocumentSource, Layout, Option<PathBuf>), Weak<FolderIndex>>;

impl FolderIndex {
    /// The shared state of a folder. All callers in this process get the same one for the same
    /// folder. `cache` is the directory of the indices.
    ///
    /// # Errors
    /// What is wrong with the folder, and what to do.
    pub fn shared(spec: &FolderSpec, cache: Option<&Path>) -> Result<Arc<Self>, String> {
        static SHELVES: LazyLock<Mutex<FolderIndices>> = LazyLock::new(Mutex::default);
        /// Keeps the shipped corpus, since any run may use it again.
        static SHIPPED: Mutex<Vec<Arc<FolderIndex>>> = Mutex::new(Vec::new());
        let (source, layout) = resolve_folder(spec)?;
        let kept = match (&source, cache) {
            (DocumentSource::Folder(root), Some(cache)) => {
                Some(text_index::index_path(cache, root, &layout))
            }
            _ => None,
        };
        let key = (source, layout, kept);
        let mut shelves = locked(&SHELVES);
        if let Some(shelf) = shelves.get(&key).and_then(Weak::upgrade) {
            return Ok(shelf);
        }
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let (source, layout, kept) = key.clone();
        let shelf = Arc::new(Self {
            source,
            layout,
            index_dir: kept,
            indices: Mutex::default(),
            catalogue: Mutex::default(),
        });
        if shelf.source == DocumentSource::Corpus {
            locked(&SHIPPED).push(Arc::clone(&shelf));
        }
        shelves.insert(key, Arc::downgrade(&shelf));
        Ok(shelf)
    }

    /// Searches after a refresh of the index. Dropping the future stops the work between two
    /// documents; what was read until then is kept.
    ///
    /// # Errors
    /// What went wrong, and what to do.
    pub async fn search(
        self: &Arc<Self>,
        query: String,
        k: usize,
    ) -> Result<FolderSearched, Box<AttemptFailed>> {
        let shelf = Arc::clone(self);
        run_blocking(move |stop| {
            // One search at a time, so that each finds a consistent index. The wait is on this
            // thread: runs with simulated time are in runtimes of their own, and the clock of such a
            // runtime would advance while it awaits another one.
            let mut indices = locked(&shelf.indices);
            stop.check()?;
            shelf.search_now(&mut indices, &query, k, stop)
        })
        .await?
    }

    /// Reads the document with this address, in
    /// [canonical](crate::tool::folder::address::canonical_address) spelling. `None` if no document has it.
    ///
    /// # Errors
    /// What went wrong, and what to do.
    pub async fn read(
        self: &Arc<Self>,
        address: String,
    ) -> Result<Option<(CatalogueEntry, Result<FolderPage, SkipReason>)>, Box<AttemptFailed>> {
        let shelf = Arc::clone(self);
        run_blocking(move |stop| {
            let known = locked(&shelf.catalogue).clone();
            let catalogue = match known.filter(|known| known.find(&address).is_some()) {
                Some(known) => known,
                None => shelf.list(stop)?,
            };
            let Some(entry) = catalogue.find(&address) else { return Ok(None) };
            let page = shelf.source.read(entry, stop);
            stop.check()?;
            Ok(Some((entry.clone(), page)))
        })
        .await?
    }

    fn list(&self, stop: &CancelFlag) -> Result<Arc<Catalogue>, Box<AttemptFailed>> {
        let catalogue =
            self.source.catalogue(&self.layout, stop).map_err(|failed| match failed {
                WalkFailed::Folder(error) => failure(&self.list_error(&error)),
                WalkFailed::Stopped => cancelled_error(),
            })?;
        let catalogue = Arc::new(catalogue);
        *locked(&self.catalogue) = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    fn list_error(&self, error: &io::Error) -> String {
        match &self.source {
            DocumentSource::Corpus => error.to_string(),
            DocumentSource::Folder(root) => folder_error(root, error),
        }
    }

    fn search_now(
        &self,
        indices: &mut OpenIndices,
        query: &str,
        k: usize,
        stop: &CancelFlag,
    ) -> Result<FolderSearched, Box<AttemptFailed>> {
        let catalogue = self.list(stop)?;
        let asked = IndexQuery { source: &self.source, catalogue: &catalogue, query, k, stop };
        let left_out = catalogue.left_out.clone();
        let searched = |(found, refreshed): (Hits, Refreshed), index| {
            let left_out = left_out.plus(&refreshed.left_out);
            FolderSearched { found, refreshed, left_out, index }
        };
        if let Some(place) = &self.index_dir {
            match query_disk(indices, place, &asked) {
                Ok(done) => {
                    indices.memory = None;
                    return Ok(searched(done, IndexLocation::Disk));
                }
                Err(IndexFailed::Stopped) => return Err(cancelled_error()),
                Err(IndexFailed::Busy) => tracing::info!("another process is writing the index"),
                Err(IndexFailed::Broken(why)) => {
                    indices.disk = None;
                    tracing::warn!(why, "the index cannot be stored on disk");
                }
            }
        }
        let done = query_memory(indices, &asked).map_err(|failed| {
            indices.memory = None;
            match failed {
                IndexFailed::Stopped => cancelled_error(),
                IndexFailed::Busy => failure("the index is being written: retry"),
                IndexFailed::Broken(why) => {
                    let why = visible_within(&why, PATH_CHARS);
                    failure(&format!("the folder cannot be indexed ({why}): retry"))
                }
            }
        })?;
        Ok(searched(done, IndexLocation::Memory))
    }
}

/// A query for an index.
struct IndexQuery<'a> {
    source: &'a DocumentSource,
    catalogue: &'a Catalogue,
    query: &'a str,
    k: usize,
    stop: &'a CancelFlag,
}

impl IndexQuery<'_> {
    fn run(&self, index: &mut TextIndex) -> Result<(Hits, Refreshed), IndexFailed> {
        // An index on disk is data: damage that its checks missed may cause a panic.
        let asked = catch_panic::catch_panic(|| {
            let refreshed = index.refresh(self.source, self.catalogue, self.stop)?;
            Ok((index.search(self.query, self.k)?, refreshed))
        });
        asked.unwrap_or_else(|panic| Err(IndexFailed::Broken(panic)))
    }
}

/// Queries the disk index, and rebuilds it once if it is damaged.
fn query_disk(
    indices: &mut OpenIndices,
    place: &Path,
    asked: &IndexQuery<'_>,
) -> Result<(Hits, Refreshed), IndexFailed> {
    let mut made_anew = false;
    loop {
        let index = match &mut indices.disk {
            Some(index) => index,
            none => none.insert(text_index::open_index(place)?),
        };
        let done = asked.run(index);
        match done {
            Err(IndexFailed::Broken(why)) if !made_anew => {
                tracing::warn!(why, "rebuilding an index");
                made_anew = true;
                indices.disk = None;
                text_index::clear_index(place)?;
            }
            done => return done,
        }
    }
}

fn query_memory(
    indices: &mut OpenIndices,
    asked: &IndexQuery<'_>,
) -> Result<(Hits, Refreshed), IndexFailed> {
    let index = match &mut indices.memory {
        Some(index) => index,
        none => none.insert(TextIndex::in_memory()?),
    };
    asked.run(index)
}

/// Runs blocking work on a blocking thread. Dropping the future stops the work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
) -> Result<T, Box<AttemptFailed>> {
    let stop = CancelFlag::default();
    let _stop = stop.on_drop();
    let done = tokio::task::spawn_blocking(move || catch_panic::catch_panic(|| work(&stop))).await;
    done.map_err(|error| error.to_string())
        .and_then(|done| done)
        .map_err(|why| failure(&format!("the folder tool failed: {why}")))
}

/// Source and address layout of a folder.
fn resolve_folder(spec: &FolderSpec) -> Result<(DocumentSource, Layout), String> {
    let layout = Layout::new(spec.base_url.as_deref())
        .map_err(|why| format!("{why}: use one such as https://notes.local/"))?;
    let Some(folder) = &spec.folder else { return Ok((DocumentSource::Corpus, layout)) };
    let usable = folder.canonicalize().and_then(|root| fs::read_dir(&root).map(|_| root));
    usable
        .map(|root| (DocumentSource::Folder(root), layout))
        .map_err(|error| folder_error(folder, &error))
}

/// Why a folder cannot be listed, and what to do.
fn folder_error(folder: &Path, error: &io::Error) -> String {
    let shown = visible_within(&folder.display().to_string(), PATH_CHARS);
    match error.kind() {
        io::ErrorKind::NotFound => {
            let place = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            let place = visible_within(&place.display().to_string(), 300);
            format!("folder {place} not found: create it, or choose another one")
        }
        io::ErrorKind::NotADirectory => {
            format!("{shown} is not a folder: give the folder that contains it")
        }
        io::ErrorKind::PermissionDenied => {
            format!("no permission to read the folder {shown}: allow it, or choose another one")
        }
        _ => format!("the folder {shown} cannot be read ({error}): choose another one"),
    }
}

fn failure(text: &str) -> Box<AttemptFailed> {
    AttemptFailed::new(FailureClass::Tool, text)
}

/// Error of a cancelled call; its caller no longer exists.
fn cancelled_error() -> Box<AttemptFailed> {
    failure("the call was cancelled")
}

impl From<WorkCancelled> for Box<AttemptFailed> {
    fn from(_: WorkCancelled) -> Self {
        cancelled_error()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancellation flag of the work; clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

/// The work was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCancelled;

impl CancelFlag {
    /// Called between two steps of the work.
    ///
    /// # Errors
    /// The work was cancelled.
    pub fn check(&self) -> Result<(), WorkCancelled> {
        if self.0.load(Ordering::Relaxed) { Err(WorkCancelled) } else { Ok(()) }
    }

    /// A guard that cancels the work when it is dropped.
    pub fn on_drop(&self) -> CancelGuard {
        CancelGuard(self.clone())
    }
}

/// Cancels the work when it is dropped.
#[derive(Debug)]
pub struct CancelGuard(CancelFlag);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_clock_waits_for_locked_index() {
        let spec = FolderSpec { folder: None, base_url: None };
        let index = FolderIndex::shared(&spec, None).expect("the shipped corpus");
        let (locked_now, is_locked) = mpsc::channel();
        let other = Arc::clone(&index);
        let holder = thread::spawn(move || {
            let _held = locked(&other.indices);
            locked_now.send(()).expect("the test waits");
            // Real time, which no clock of the runtime sees.
            thread::park_timeout(Duration::from_millis(50));
        });
        is_locked.recv().expect("the other search has the index");
        let search = index.search("payments".to_owned(), 3);
        let found = tokio::time::timeout(Duration::from_secs(1), search).await;
        assert!(matches!(found, Ok(Ok(_))), "in time");
        holder.join().expect("the other search ends");
    }
}
