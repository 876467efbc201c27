//! Full-text index of a folder, in tables of SQLite's FTS5: its contents, how it is updated, and where it
//! is: in the user's cache directory, under a hash of the folder, its base URL and the index's version.
//!
//! It has one entry for each document, and one for each file that is not readable, so that neither
//! is read again before it changes. Its words are those of [`crate::base::stems`], as in a query.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use percent_encoding::percent_decode_str;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use super::address::Layout;
use super::index::{CancelFlag, WorkCancelled};
use super::ranking::PARTS;
use super::source::{
    Catalogue, CatalogueEntry, DocumentSource, FileStamp, FolderPage, SkipReason, SkippedFiles,
};
use crate::base::stems::StemCache;
use crate::base::{private_file, to_hex};

/// Version of the index; other versions are not opened. Raise it with every change to what is
/// indexed, how words are split, or how documents are read.
pub const VERSION: u32 = 3;

/// How long to wait while another process writes the index.
const BUSY_WAIT: Duration = Duration::from_millis(300);

/// Why an index operation failed.
#[derive(Debug)]
pub enum IndexFailed {
    /// Another process is writing the index.
    Busy,
    /// The call was cancelled. What was read until then is kept.
    Stopped,
    /// The index is damaged, or cannot be written.
    Broken(String),
}

impl From<rusqlite::Error> for IndexFailed {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl From<std::io::Error> for IndexFailed {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<WorkCancelled> for IndexFailed {
    fn from(_: WorkCancelled) -> Self {
        Self::Stopped
    }
}

/// `file` has all files, `page` the texts of documents, and each other table the stems of a part of
/// them, so that each part is ranked by its own length. `skipped` is the code of a [`SkipReason`], 0 for
/// documents. The stems have blanks between them, so the tokenizer only splits.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS file (
        id INTEGER PRIMARY KEY,
        address TEXT NOT NULL UNIQUE,
        modified INTEGER NOT NULL,
        size INTEGER NOT NULL,
        skipped INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS page (
        id INTEGER PRIMARY KEY REFERENCES file (id) ON DELETE CASCADE,
        title TEXT NOT NULL,
        date TEXT NOT NULL,
        dated_by_file INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE IF NOT EXISTS title USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE VIRTUAL TABLE IF NOT EXISTS body USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE VIRTUAL TABLE IF NOT EXISTS place USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE VIRTUAL TABLE IF NOT EXISTS date USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE TRIGGER IF NOT EXISTS page_removed AFTER DELETE ON page BEGIN
        DELETE FROM title WHERE rowid = old.id;
        DELETE FROM body WHERE rowid = old.id;
        DELETE FROM place WHERE rowid = old.id;
        DELETE FROM date WHERE rowid = old.id;
    END;";

/// Index data of a file.
struct IndexedFile {
    stamp: FileStamp,
    skipped: Option<SkipReason>,
}

/// Result of a refresh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Files read because they are new or changed.
    pub read: u64,
    /// Removed entries of deleted files.
    pub removed: u64,
    /// Documents in the index now.
    pub indexed: u64,
    /// Files that are not readable documents.
    pub left_out: SkippedFiles,
}

/// Index of a folder.
pub struct TextIndex {
    pub(super) connection: Connection,
}

impl TextIndex {
    /// An empty index in memory.
    ///
    /// # Errors
    /// [`IndexFailed::Broken`]
    pub fn in_memory() -> Result<Self, IndexFailed> {
        Self::open(Connection::open_in_memory()?)
    }

    /// The index in this existing directory of the disk; a new one if the directory is empty.
    ///
    /// # Errors
    /// [`IndexFailed::Broken`] if the directory has a file that is no index.
    pub fn on_disk(folder: &Path) -> Result<Self, IndexFailed> {
        let path = folder.join(FILE);
        // Creates the file with its mode; SQLite gives its other files the same mode.
        drop(private_file::append(&path)?);
        Self::open(Connection::open(&path)?)
    }

    fn open(connection: Connection) -> Result<Self, IndexFailed> {
        connection.busy_timeout(BUSY_WAIT)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = TRUE;
             PRAGMA cache_size = -65536;",
        )?;
        connection.execute_batch(TABLES)?;
        Ok(Self { connection })
    }

    /// Updates the index from the folder: reads new and changed files, removes deleted ones.
    ///
    /// # Errors
    /// [`IndexFailed::Busy`] if there are changes and another process is writing.
    pub fn refresh(
        &mut self,
        source: &DocumentSource,
        catalogue: &Catalogue,
        stop: &CancelFlag,
    ) -> Result<Refreshed, IndexFailed> {
        let mut refreshed = Refreshed::default();
        let mut known = indexed_files(&self.connection)?;
        if !Difference::new(&known, catalogue).is_none() {
            let change =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have written in the meantime.
            let difference = Difference::new(&indexed_files(&change)?, catalogue);
            refreshed.removed = difference.gone.len() as u64;
            let done = write(&change, source, &difference, stop);
            known = indexed_files(&change)?;
            // What was read before a cancellation is complete; the next refresh continues there.
            if matches!(done, Ok(_) | Err(IndexFailed::Stopped)) {
                change.commit()?;
            }
            refreshed.read = done?;
        }
        for file in known.values() {
            match file.skipped {
                None => refreshed.indexed += 1,
                Some(reason) => refreshed.left_out.count(reason),
            }
        }
        Ok(refreshed)
    }
}

/// Removes and adds what differs; returns how many files were read.
fn write(
    change: &Transaction<'_>,
    source: &DocumentSource,
    difference: &Difference<'_>,
    stop: &CancelFlag,
) -> Result<u64, IndexFailed> {
    let mut remove = change.prepare("DELETE FROM file WHERE address = ?1")?;
    for address in &difference.gone {
        remove.execute([address])?;
    }
    let mut add_file = change
        .prepare("INSERT INTO file (address, modified, size, skipped) VALUES (?1, ?2, ?3, ?4)")?;
    let mut add_page = change.prepare(
        "INSERT INTO page (id, title, date, dated_by_file, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut add_words = Vec::new();
    for (part, _) in PARTS {
        add_words
            .push(change.prepare(&format!("INSERT INTO {part} (rowid, words) VALUES (?1, ?2)"))?);
    }
    let mut stems = StemCache::default();
    let mut read = 0;
    for entry in &difference.changed {
        let page = source.read(entry, stop);
        // A cancelled read is repeated by the next refresh.
        stop.check()?;
        remove.execute([&entry.address])?;
        let FileStamp { modified, size } = entry.file.stamp;
        let skipped = page.as_ref().err().map_or(0, |reason| reason.code());
        let id = add_file.insert(params![
            entry.address,
            modified.cast_signed(),
            size.cast_signed(),
            skipped.cast_signed()
        ])?;
        if let Ok(FolderPage { document: page, dated_by_file }) = page {
            add_page.execute(params![
                id,
                page.title,
                page.published_at,
                dated_by_file,
                page.text
            ])?;
            let place = percent_decode_str(&entry.address).decode_utf8_lossy();
            // In the order of `PARTS`.
            let parts = [&page.title, &page.text, &*place, &page.published_at];
            for (add, part) in add_words.iter_mut().zip(parts) {
                add.execute(params![id, stems.joined(part)])?;
            }
        }
        read += 1;
    }
    Ok(read)
}

/// Difference between a folder and its index.
struct Difference<'c> {
    /// Files to read.
    changed: Vec<&'c CatalogueEntry>,
    /// Addresses to remove.
    gone: Vec<String>,
}

impl<'c> Difference<'c> {
    fn new(known: &HashMap<String, IndexedFile>, catalogue: &'c Catalogue) -> Self {
        let same = |entry: &&CatalogueEntry| {
            known.get(&entry.address).is_some_and(|known| known.stamp == entry.file.stamp)
        };
        let there: HashSet<&str> =
            catalogue.entries.iter().map(|entry| entry.address.as_str()).collect();
        let mut gone: Vec<String> =
            known.keys().filter(|address| !there.contains(&***address)).cloned().collect();
        gone.sort_unstable();
        Self { changed: catalogue.entries.iter().filter(|entry| !same(entry)).collect(), gone }
    }

    fn is_none(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// All entries of an index by address.
fn indexed_files(connection: &Connection) -> Result<HashMap<String, IndexedFile>, IndexFailed> {
    let mut all = connection.prepare_cached("SELECT address, modified, size, skipped FROM file")?;
    let rows = all.query_map([], |row| {
        let number = |column| row.get(column).map(i64::cast_unsigned);
        let stamp = FileStamp { modified: number(1)?, size: number(2)? };
        Ok((row.get(0)?, IndexedFile { stamp, skipped: SkipReason::from_code(number(3)?) }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Name of the index in its directory.
const FILE: &str = "index.db";

/// Hexadecimal digits of a directory name.
const DIGITS: usize = 32;

/// Unused indices are removed after this time: their folder may be gone, or their version obsolete.
const UNUSED_AFTER: Duration = Duration::from_secs(90 * 86_400);

/// Most indices that are checked, and removed, at once.
const MAX_CHECKED: usize = 1_000;
const MAX_REMOVED: usize = 20;

/// The user's cache directory of this program; `None` without a home directory.
pub fn user_cache_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(etcetera::BaseStrategy::cache_dir(&base).join("roundtable"))
}

/// Directory of the index of the folder `root` (its canonical path) below `cache`.
pub fn index_path(cache: &Path, root: &Path, layout: &Layout) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    let base = match layout {
        Layout::Under(base) => base.as_str(),
        Layout::Mirror => "",
    };
    // Length prefixes keep the two parts apart.
    for part in [root.as_os_str().as_encoded_bytes(), base.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name = to_hex(&hash.finalize());
    name.truncate(DIGITS);
    cache.join("folders").join(name)
}

/// Opens the index in this directory. A damaged one, or a file of another program, is rebuilt.
///
/// # Errors
/// [`IndexFailed::Busy`] while another process writes it; [`IndexFailed::Broken`] if nothing can be
/// stored there.
pub fn open_index(place: &Path) -> Result<TextIndex, IndexFailed> {
    private_file::make_dir(place)?;
    // It may exist already, readable for others.
    #[cfg(unix)]
    fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    remove_unused(place, SystemTime::now());
    match TextIndex::on_disk(place) {
        Err(IndexFailed::Broken(why)) => {
            tracing::warn!(place = %place.display(), why, "rebuilding an index");
            clear_index(place)?;
            TextIndex::on_disk(place)
        }
        opened => opened,
    }
}

/// Removes the index in this directory.
///
/// # Errors
/// [`IndexFailed::Broken`]
pub fn clear_index(place: &Path) -> Result<(), IndexFailed> {
    for entry in fs::read_dir(place)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// Marks this index as used now, and removes others that were not used for long. Errors are
/// ignored; the next call tries again.
fn remove_unused(place: &Path, now: SystemTime) {
    let _ = fs::File::open(place).and_then(|folder| folder.set_modified(now));
    let Some(all) = place.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let unused = all.flatten().take(MAX_CHECKED).filter(|entry| {
        let is_index = entry.file_name().to_str().is_some_and(|name| {
            name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let is_old = |about: fs::Metadata| {
            let used = about.modified().ok();
            about.is_dir()
                && used.and_then(|used| now.duration_since(used).ok()) > Some(UNUSED_AFTER)
        };
        is_index && entry.path() != place && entry.metadata().is_ok_and(is_old)
    });
    for entry in unused.take(MAX_REMOVED) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_long_unused_indexes() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_841_600);
        let make = |name: &str, days: u64| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("made");
            fs::write(path.join(FILE), "").expect("written");
            let used = now - Duration::from_secs(days * 86_400);
            fs::File::open(&path).and_then(|it| it.set_modified(used)).expect("dated");
            path
        };
        let own = make(&"0".repeat(DIGITS), 400);
        let (old, new) = (make(&"a".repeat(DIGITS), 91), make(&"b".repeat(DIGITS), 89));
        let foreign = make("something-else", 400);
        remove_unused(&own, now);
        assert_eq!(
            [&own, &old, &new, &foreign].map(|path| path.exists()),
            [true, false, true, true]
        );
        let used = fs::metadata(&own).and_then(|about| about.modified()).expect("dated");
        assert_eq!(used, now);
    }

    #[test]
    fn index_paths_never_collide() {
        let cache = Path::new("/cache");
        let under = |base: &str| Layout::Under(base.to_owned());
        let places = [
            index_path(cache, Path::new("/a"), &Layout::Mirror),
            index_path(cache, Path::new("/b"), &Layout::Mirror),
            index_path(cache, Path::new("/a"), &under("http://x/")),
            index_path(cache, Path::new("/ahttp://x/"), &Layout::Mirror),
        ];
        for (at, one) in places.iter().enumerate() {
            assert!(one.starts_with("/cache/folders"));
            assert!(places.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(places.first(), Some(&index_path(cache, Path::new("/a"), &Layout::Mirror)));
    }
}
