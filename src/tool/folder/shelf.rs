//! State of one folder that the tools of this process share: its catalogue and its index.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::address::Layout;
use super::keeping;
use super::left_out::{LeftOut, Reason};
use super::ranking::Hits;
use super::source::{Catalogue, Entry, Page, Source};
use super::stop::{Stop, Stopped};
use super::text_index::{IndexFailed, Refreshed, TextIndex};
use super::walk::WalkFailed;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::event::visible::visible_within;
use crate::scenario::lookup::FolderSpec;
use crate::tool::contained;
use crate::tool::settings::NotReady;

/// How often and at which interval to retry while another process writes the index.
const WAITS: u32 = 10;
const WAIT: Duration = Duration::from_millis(30);

/// Most characters of a path that a message quotes.
const PATH_CHARS: usize = 80;

/// Checks that a folder can be searched and read.
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn ready(spec: &FolderSpec) -> Result<(), NotReady> {
    find(spec).map(|_| ()).map_err(|why| NotReady::Folder { why })
}

/// Location of the index that was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// On the disk.
    Disk,
    /// In memory: the folder has no disk index, or another process is writing it.
    Memory,
}

/// Result of a search.
#[derive(Debug)]
pub struct Searched {
    /// The hits.
    pub found: Hits,
    /// What the refresh before the search changed, and the size of the index.
    pub refreshed: Refreshed,
    /// All skipped files of the folder.
    pub left_out: LeftOut,
    /// Location of the index.
    pub index: Where,
}

/// A folder, shared by the tools of this process.
pub struct Shelf {
    source: Source,
    layout: Layout,
    /// Directory of the disk index; `None`: in memory only.
    kept: Option<PathBuf>,
    indices: Arc<tokio::sync::Mutex<Indices>>,
    /// Catalogue of the last listing.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
}

/// Open indices of a folder.
#[derive(Default)]
struct Indices {
    disk: Option<TextIndex>,
    memory: Option<TextIndex>,
}

type Shelves = HashMap<(Source, Layout, Option<PathBuf>), Weak<Shelf>>;

impl Shelf {
    /// The shared state of a folder. All callers in this process get the same one for the same
    /// folder. `cache` is the directory of the indices.
    ///
    /// # Errors
    /// What is wrong with the folder, and what to do.
    pub fn of(spec: &FolderSpec, cache: Option<&Path>) -> Result<Arc<Self>, String> {
        static SHELVES: LazyLock<Mutex<Shelves>> = LazyLock::new(Mutex::default);
        /// Keeps the shipped corpus, since any run may use it again.
        static SHIPPED: Mutex<Vec<Arc<Shelf>>> = Mutex::new(Vec::new());
        let (source, layout) = find(spec)?;
        let kept = match (&source, cache) {
            (Source::Folder(root), Some(cache)) => Some(keeping::place(cache, root, &layout)),
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
            kept,
            indices: Arc::default(),
            catalogue: Mutex::default(),
        });
        if shelf.source == Source::Corpus {
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
    ) -> Result<Searched, Box<AttemptFailed>> {
        // One search at a time, so that each finds a consistent index.
        let mut indices = Arc::clone(&self.indices).lock_owned().await;
        let shelf = Arc::clone(self);
        apart(move |stop| shelf.search_now(&mut indices, &query, k, stop)).await?
    }

    /// Reads the document with this address, in [`canonical`](super::address::canonical) spelling.
    /// `None` if there is none.
    ///
    /// # Errors
    /// What went wrong, and what to do.
    pub async fn read(
        self: &Arc<Self>,
        address: String,
    ) -> Result<Option<(Entry, Result<Page, Reason>)>, Box<AttemptFailed>> {
        let shelf = Arc::clone(self);
        apart(move |stop| {
            let known = locked(&shelf.catalogue).clone();
            let catalogue = match known.filter(|known| known.find(&address).is_some()) {
                Some(known) => known,
                None => shelf.look(stop)?,
            };
            let Some(entry) = catalogue.find(&address) else { return Ok(None) };
            let page = shelf.source.read(entry, stop);
            stop.check()?;
            Ok(Some((entry.clone(), page)))
        })
        .await?
    }

    /// Lists the folder.
    fn look(&self, stop: &Stop) -> Result<Arc<Catalogue>, Box<AttemptFailed>> {
        let catalogue =
            self.source.catalogue(&self.layout, stop).map_err(|failed| match failed {
                WalkFailed::Folder(error) => failure(&self.unread(&error)),
                WalkFailed::Stopped => dropped(),
            })?;
        let catalogue = Arc::new(catalogue);
        *locked(&self.catalogue) = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    fn unread(&self, error: &io::Error) -> String {
        match &self.source {
            Source::Corpus => error.to_string(),
            Source::Folder(root) => cannot(root, error),
        }
    }

    fn search_now(
        &self,
        indices: &mut Indices,
        query: &str,
        k: usize,
        stop: &Stop,
    ) -> Result<Searched, Box<AttemptFailed>> {
        let catalogue = self.look(stop)?;
        let asked = Asked { source: &self.source, catalogue: &catalogue, query, k, stop };
        let left_out = catalogue.left_out.clone();
        let searched = |(found, refreshed): (Hits, Refreshed), index| {
            let left_out = left_out.and(&refreshed.left_out);
            Searched { found, refreshed, left_out, index }
        };
        if let Some(place) = &self.kept {
            match on_disk(indices, place, &asked) {
                Ok(done) => {
                    indices.memory = None;
                    return Ok(searched(done, Where::Disk));
                }
                Err(IndexFailed::Stopped) => return Err(dropped()),
                Err(IndexFailed::Busy) => tracing::info!("another process is writing the index"),
                Err(IndexFailed::Broken(why)) => {
                    indices.disk = None;
                    tracing::warn!(why, "the index cannot be stored on disk");
                }
            }
        }
        let done = in_memory(indices, &asked).map_err(|failed| {
            indices.memory = None;
            match failed {
                IndexFailed::Stopped => dropped(),
                IndexFailed::Busy => failure("the index is being written: retry"),
                IndexFailed::Broken(why) => {
                    let why = visible_within(&why, PATH_CHARS);
                    failure(&format!("the folder cannot be indexed ({why}): retry"))
                }
            }
        })?;
        Ok(searched(done, Where::Memory))
    }
}

/// A query for an index.
struct Asked<'a> {
    source: &'a Source,
    catalogue: &'a Catalogue,
    query: &'a str,
    k: usize,
    stop: &'a Stop,
}

impl Asked<'_> {
    fn of(&self, index: &mut TextIndex) -> Result<(Hits, Refreshed), IndexFailed> {
        // An index on disk is data: damage that its checks missed may cause a panic.
        let asked = contained::call(|| {
            let refreshed = index.refresh(self.source, self.catalogue, self.stop)?;
            Ok((index.search(self.query, self.k)?, refreshed))
        });
        asked.unwrap_or_else(|panic| Err(IndexFailed::Broken(panic)))
    }
}

/// Queries the disk index, and rebuilds it once if it is damaged.
fn on_disk(
    indices: &mut Indices,
    place: &Path,
    asked: &Asked<'_>,
) -> Result<(Hits, Refreshed), IndexFailed> {
    let (mut made_anew, mut waits) = (false, 0);
    loop {
        let index = match &mut indices.disk {
            Some(index) => index,
            none => none.insert(keeping::open(place)?),
        };
        let done = asked.of(index);
        keeping::close_to_others(place)?;
        match done {
            Err(IndexFailed::Busy) if indices.memory.is_none() && waits < WAITS => {
                asked.stop.check()?;
                waits += 1;
                thread::sleep(WAIT);
            }
            Err(IndexFailed::Broken(why)) if !made_anew => {
                tracing::warn!(why, "rebuilding an index");
                made_anew = true;
                indices.disk = None;
                keeping::clear(place)?;
            }
            done => return done,
        }
    }
}

fn in_memory(indices: &mut Indices, asked: &Asked<'_>) -> Result<(Hits, Refreshed), IndexFailed> {
    let index = match &mut indices.memory {
        Some(index) => index,
        none => none.insert(TextIndex::in_memory()?),
    };
    asked.of(index)
}

/// Runs blocking work on a blocking thread. Dropping the future stops the work.
async fn apart<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Box<AttemptFailed>> {
    let stop = Stop::default();
    let _stop = stop.on_drop();
    let done = tokio::task::spawn_blocking(move || contained::call(|| work(&stop))).await;
    done.map_err(|error| error.to_string())
        .and_then(|done| done)
        .map_err(|why| failure(&format!("the folder tool failed: {why}")))
}

/// Source and address layout of a folder.
fn find(spec: &FolderSpec) -> Result<(Source, Layout), String> {
    let layout = Layout::new(spec.base_url.as_deref())
        .map_err(|why| format!("{why}: use one such as https://notes.local/"))?;
    let Some(folder) = &spec.folder else { return Ok((Source::Corpus, layout)) };
    let usable = folder.canonicalize().and_then(|root| fs::read_dir(&root).map(|_| root));
    usable.map(|root| (Source::Folder(root), layout)).map_err(|error| cannot(folder, &error))
}

/// Why a folder cannot be listed, and what to do.
fn cannot(folder: &Path, error: &io::Error) -> String {
    let shown = visible_within(&folder.display().to_string(), PATH_CHARS);
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("folder {shown} not found: create it, or choose another one")
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
    AttemptFailed::of(FailureClass::Tool, text)
}

/// Error of a cancelled call; its caller no longer exists.
fn dropped() -> Box<AttemptFailed> {
    failure("the call was cancelled")
}

impl From<Stopped> for Box<AttemptFailed> {
    fn from(_: Stopped) -> Self {
        dropped()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
