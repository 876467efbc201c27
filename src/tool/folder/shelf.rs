//! What the tools of this process share of one folder: what is in it, and its index.

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

/// How often a writer in another process is asked again, and how long it is waited between.
const WAITS: u32 = 10;
const WAIT: Duration = Duration::from_millis(30);

/// The most characters of a path that a text repeats.
const PATH_CHARS: usize = 80;

/// Whether a folder can be searched and read.
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn ready(spec: &FolderSpec) -> Result<(), NotReady> {
    find(spec).map(|_| ()).map_err(|why| NotReady::Folder { why })
}

/// Where the index is that was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// On the disk.
    Disk,
    /// In memory: nothing is kept of this folder, or another process writes what is kept.
    Memory,
}

/// What a search came to.
#[derive(Debug)]
pub struct Searched {
    /// What was found.
    pub found: Hits,
    /// What the index did before, and what is in it.
    pub refreshed: Refreshed,
    /// All that was left out of the folder.
    pub left_out: LeftOut,
    /// Where the index is.
    pub index: Where,
}

/// A folder, as the tools of this process share it.
pub struct Shelf {
    source: Source,
    layout: Layout,
    /// Where its index is kept; `None`: in memory alone.
    kept: Option<PathBuf>,
    indices: Arc<tokio::sync::Mutex<Indices>>,
    /// What was in it when it was looked at last.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
}

/// What there is of a folder's indices.
#[derive(Default)]
struct Indices {
    disk: Option<TextIndex>,
    memory: Option<TextIndex>,
}

type Shelves = HashMap<(Source, Layout, Option<PathBuf>), Weak<Shelf>>;

impl Shelf {
    /// The shelf of a folder. Everyone in this process who asks for the same folder gets the same
    /// one. `cache` is where indices are kept.
    ///
    /// # Errors
    /// What is wrong with the folder, and what to do.
    pub fn of(spec: &FolderSpec, cache: Option<&Path>) -> Result<Arc<Self>, String> {
        static SHELVES: LazyLock<Mutex<Shelves>> = LazyLock::new(Mutex::default);
        /// The shipped corpus stays: every run may come back to it.
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

    /// Searches, after the index has followed the folder. Dropping it ends the work between two
    /// documents; what was read until then is kept.
    ///
    /// # Errors
    /// What went wrong, and what to do.
    pub async fn search(
        self: &Arc<Self>,
        query: String,
        k: usize,
    ) -> Result<Searched, Box<AttemptFailed>> {
        // One at a time: the next one finds the index as this one leaves it.
        let mut indices = Arc::clone(&self.indices).lock_owned().await;
        let shelf = Arc::clone(self);
        apart(move |stop| shelf.search_now(&mut indices, &query, k, stop)).await?
    }

    /// Reads the document that stands under an address, as [`canonical`](super::address::canonical)
    /// writes it. `None`: none does.
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

    /// Looks what is in the folder.
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
                Err(IndexFailed::Busy) => tracing::info!("another process writes the index"),
                Err(IndexFailed::Broken(why)) => {
                    indices.disk = None;
                    tracing::warn!(why, "the index cannot be kept on the disk");
                }
            }
        }
        let done = in_memory(indices, &asked).map_err(|failed| {
            indices.memory = None;
            match failed {
                IndexFailed::Stopped => dropped(),
                IndexFailed::Busy => failure("the index is being written: try again"),
                IndexFailed::Broken(why) => {
                    let why = visible_within(&why, PATH_CHARS);
                    failure(&format!("the folder cannot be indexed ({why}): try again"))
                }
            }
        })?;
        Ok(searched(done, Where::Memory))
    }
}

/// What an index is asked.
struct Asked<'a> {
    source: &'a Source,
    catalogue: &'a Catalogue,
    query: &'a str,
    k: usize,
    stop: &'a Stop,
}

impl Asked<'_> {
    fn of(&self, index: &mut TextIndex) -> Result<(Hits, Refreshed), IndexFailed> {
        // What an index on the disk holds is data: a break in it that its checks did not find may
        // well be a panic.
        let asked = contained::call(|| {
            let refreshed = index.refresh(self.source, self.catalogue, self.stop)?;
            Ok((index.search(self.query, self.k)?, refreshed))
        });
        asked.unwrap_or_else(|panic| Err(IndexFailed::Broken(panic)))
    }
}

/// Asks the index that is kept, made anew once where it is broken.
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
                tracing::warn!(why, "an index is made anew");
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

/// Does work that blocks in a thread for such work. Dropping it stops the work.
async fn apart<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Box<AttemptFailed>> {
    let stop = Stop::default();
    let _stop = stop.on_drop();
    let done = tokio::task::spawn_blocking(move || contained::call(|| work(&stop))).await;
    done.map_err(|error| error.to_string())
        .and_then(|done| done)
        .map_err(|why| failure(&format!("the folder's tool broke down: {why}")))
}

/// Where the documents of a folder come from, and under which addresses they stand.
fn find(spec: &FolderSpec) -> Result<(Source, Layout), String> {
    let layout = Layout::new(spec.base_url.as_deref())
        .map_err(|why| format!("{why}: write one such as https://notes.local/"))?;
    let Some(folder) = &spec.folder else { return Ok((Source::Corpus, layout)) };
    let usable = folder.canonicalize().and_then(|root| fs::read_dir(&root).map(|_| root));
    usable.map(|root| (Source::Folder(root), layout)).map_err(|error| cannot(folder, &error))
}

/// Why a folder cannot be looked through, and what to do.
fn cannot(folder: &Path, error: &io::Error) -> String {
    let shown = visible_within(&folder.display().to_string(), PATH_CHARS);
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no folder {shown}: make it, or name another one")
        }
        io::ErrorKind::NotADirectory => {
            format!("{shown} is no folder: name the folder that it is in")
        }
        io::ErrorKind::PermissionDenied => {
            format!("the folder {shown} may not be read: allow it, or name another one")
        }
        _ => format!("the folder {shown} cannot be read ({error}): name another one"),
    }
}

fn failure(text: &str) -> Box<AttemptFailed> {
    AttemptFailed::of(FailureClass::Tool, text)
}

/// Nobody hears this one.
fn dropped() -> Box<AttemptFailed> {
    failure("the call was dropped")
}

impl From<Stopped> for Box<AttemptFailed> {
    fn from(_: Stopped) -> Self {
        dropped()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
