//! Full-text index of a folder: its contents, and how it is updated.
//!
//! It has one entry for each document, and one for each file that is not readable, so that neither
//! is read again before it changes.
//!
//! The tokenizer of the index: the words of [`crate::base::stems`], stemmed by the same algorithm, so
//! that the words of a query are found.
//!
//! Disk location of a folder's index: in the user's cache directory, under a hash of the folder,
//! its base URL and the version of the index.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use tantivy::directory::error::LockError;
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, META_LOCK, MmapDirectory, RamDirectory};
use tantivy::indexer::LogMergePolicy;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    Language, RemoveLongFilter, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
};
use tantivy::{
    Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument,
    TantivyError, Term,
};

use super::address::Layout;
use super::index::{CancelFlag, WorkCancelled};
use super::source::{
    Catalogue, CatalogueEntry, DocumentSource, FileStamp, FolderPage, SkipReason, SkippedFiles,
};
use crate::base::stems::{MAX_WORD_BYTES, words};
use crate::base::{private_file, to_hex};

/// Version of the index; other versions are not opened. Raise it with every change to what is
/// indexed, how words are split, or how documents are read.
pub const VERSION: u32 = 2;

/// Name of the tokenizer in the index.
const WORDS: &str = "words";

/// Buffer of the index writer in bytes.
const WRITER_BYTES: usize = 64 << 20;

/// Share of deleted entries at which a segment is merged.
const MAX_DELETED_SHARE: f32 = 0.3;

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

impl From<TantivyError> for IndexFailed {
    fn from(error: TantivyError) -> Self {
        match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => Self::Busy,
            error => Self::Broken(error.to_string()),
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

/// Fields of an index entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexFields {
    pub(crate) address: Field,
    pub(crate) title: Field,
    pub(crate) body: Field,
    pub(crate) place: Field,
    pub(crate) date: Field,
    modified: Field,
    size: Field,
    left_out: Field,
    dated_by_file: Field,
}

/// Column with the reason why a file is not a document; 0 for documents.
pub(super) const LEFT_OUT: &str = "left_out";
/// Column that is 1 if the date is that of the file.
pub(super) const DATED_BY_FILE: &str = "dated_by_file";

fn schema() -> (Schema, IndexFields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(WORDS)
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(words);
    let fields = IndexFields {
        address: schema.add_text_field("address", STRING | FAST),
        title: schema.add_text_field("title", words.clone() | STORED),
        body: schema.add_text_field("body", words.clone() | STORED),
        place: schema.add_text_field("place", words.clone()),
        date: schema.add_text_field("date", words | STORED),
        modified: schema.add_u64_field("modified", FAST),
        size: schema.add_u64_field("size", FAST),
        left_out: schema.add_u64_field(LEFT_OUT, FAST),
        dated_by_file: schema.add_u64_field(DATED_BY_FILE, FAST),
    };
    (schema.build(), fields)
}

/// Index data of a file.
#[derive(Debug, Clone, Copy)]
struct IndexedFile {
    stamp: FileStamp,
    left_out: Option<SkipReason>,
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
    index: Index,
    reader: IndexReader,
    pub(crate) fields: IndexFields,
    /// Contents by address, as of `generation`.
    known: Arc<HashMap<String, IndexedFile>>,
    generation: Option<u64>,
}

impl TextIndex {
    /// An empty index in memory.
    ///
    /// # Errors
    /// [`IndexFailed::Broken`]
    pub fn in_memory() -> Result<Self, IndexFailed> {
        Self::open(RamDirectory::create())
    }

    /// The index in this existing directory of the disk; a new one if the directory is empty.
    ///
    /// # Errors
    /// [`IndexFailed::Broken`] if the directory has no complete index of this version.
    pub fn on_disk(folder: &Path) -> Result<Self, IndexFailed> {
        let directory = MmapDirectory::open(folder).map_err(TantivyError::from)?;
        let opened = Self::open(directory)?;
        let damaged = opened.index.validate_checksum()?;
        if let Some(file) = damaged.iter().min() {
            return Err(IndexFailed::Broken(format!("{} is damaged", file.display())));
        }
        Ok(opened)
    }

    fn open(directory: impl Directory) -> Result<Self, IndexFailed> {
        let (schema, fields) = schema();
        let index = Index::open_or_create(directory, schema)?;
        debug_assert_eq!(index.settings(), &IndexSettings::default());
        index.tokenizers().register(WORDS, analyzer());
        // Reloaded before each search; no watcher thread.
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { index, reader, fields, known: Arc::default(), generation: None })
    }

    /// Searcher of the current state.
    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
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
        self.reload()?;
        let mut refreshed = Refreshed::default();
        if !self.difference(catalogue).is_none() {
            let mut writer: IndexWriter = self.index.writer_with_num_threads(1, WRITER_BYTES)?;
            let mut policy = LogMergePolicy::default();
            policy.set_del_docs_ratio_before_merge(MAX_DELETED_SHARE);
            writer.set_merge_policy(Box::new(policy));
            // Another process may have written in the meantime.
            self.reload()?;
            let difference = self.difference(catalogue);
            refreshed.removed = difference.gone.len() as u64;
            let done = self.write(&mut writer, source, &difference, stop);
            // What was read before a cancellation is complete; the next refresh continues there.
            refreshed.read = match &done {
                Ok(read) => *read,
                Err(IndexFailed::Stopped) => 0,
                Err(_) => return done.map(|_| refreshed),
            };
            writer.commit()?;
            done?;
            writer.wait_merging_threads()?;
            self.reload()?;
        }
        for known in self.known.values() {
            match known.left_out {
                None => refreshed.indexed += 1,
                Some(reason) => refreshed.left_out.count(reason),
            }
        }
        Ok(refreshed)
    }

    fn difference<'c>(&self, catalogue: &'c Catalogue) -> Difference<'c> {
        let same = |entry: &&CatalogueEntry| {
            self.known.get(&entry.address).is_some_and(|known| known.stamp == entry.file.stamp)
        };
        let there: HashSet<&str> =
            catalogue.entries.iter().map(|entry| entry.address.as_str()).collect();
        let mut gone: Vec<String> =
            self.known.keys().filter(|address| !there.contains(&***address)).cloned().collect();
        gone.sort_unstable();
        Difference {
            changed: catalogue.entries.iter().filter(|entry| !same(entry)).collect(),
            gone,
        }
    }

    fn write(
        &self,
        writer: &mut IndexWriter,
        source: &DocumentSource,
        difference: &Difference<'_>,
        stop: &CancelFlag,
    ) -> Result<u64, IndexFailed> {
        for address in &difference.gone {
            writer.delete_term(Term::from_field_text(self.fields.address, address));
        }
        let mut read = 0;
        for entry in &difference.changed {
            let page = source.read(entry, stop);
            // A cancelled read is repeated by the next refresh.
            stop.check()?;
            if self.known.contains_key(&entry.address) {
                writer.delete_term(Term::from_field_text(self.fields.address, &entry.address));
            }
            writer.add_document(self.document(entry, page))?;
            read += 1;
        }
        Ok(read)
    }

    fn document(
        &self,
        entry: &CatalogueEntry,
        page: Result<FolderPage, SkipReason>,
    ) -> TantivyDocument {
        let fields = &self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(fields.address, &entry.address);
        document.add_u64(fields.modified, entry.file.stamp.modified);
        document.add_u64(fields.size, entry.file.stamp.size);
        match page {
            Err(reason) => document.add_u64(fields.left_out, reason.code()),
            Ok(FolderPage { document: page, dated_by_file }) => {
                document.add_u64(fields.left_out, 0);
                document.add_u64(fields.dated_by_file, u64::from(dated_by_file));
                document.add_text(fields.title, &page.title);
                document.add_text(fields.body, &page.text);
                document.add_text(fields.date, &page.published_at);
                let place = percent_decode_str(&entry.address).decode_utf8_lossy();
                document.add_text(fields.place, place);
            }
        }
        document
    }

    /// Loads what has been committed.
    fn reload(&mut self) -> Result<(), IndexFailed> {
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let generation = searcher.generation().generation_id();
        if self.generation != Some(generation) {
            self.known = Arc::new(load_entries(&searcher)?);
            self.generation = Some(generation);
        }
        Ok(())
    }
}

/// Difference between a folder and its index.
struct Difference<'c> {
    /// Files to read.
    changed: Vec<&'c CatalogueEntry>,
    /// Addresses to remove.
    gone: Vec<String>,
}

impl Difference<'_> {
    fn is_none(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// All entries of an index.
fn load_entries(searcher: &Searcher) -> Result<HashMap<String, IndexedFile>, IndexFailed> {
    let mut all = HashMap::new();
    for segment in searcher.segment_readers() {
        let columns = segment.fast_fields();
        let Some(addresses) = columns.str("address")? else { continue };
        let (modified, size) = (columns.u64("modified")?, columns.u64("size")?);
        let left_out = columns.u64(LEFT_OUT)?;
        let mut by_ordinal = Vec::with_capacity(addresses.num_terms());
        let mut stream = addresses.dictionary().stream()?;
        while stream.advance() {
            by_ordinal.push(String::from_utf8_lossy(stream.key()).into_owned());
        }
        for doc in segment.doc_ids_alive() {
            let ordinal = addresses.term_ords(doc).next().and_then(|at| usize::try_from(at).ok());
            let Some(address) = ordinal.and_then(|at| by_ordinal.get(at)) else { continue };
            let first = |column: &tantivy::columnar::Column<u64>| column.first(doc).unwrap_or(0);
            let stamp = FileStamp { modified: first(&modified), size: first(&size) };
            let left_out = SkipReason::from_code(first(&left_out));
            all.insert(address.clone(), IndexedFile { stamp, left_out });
        }
    }
    Ok(all)
}

/// Tokenizer of the index.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordTokenizer)
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Tokenizer that yields the words of a text.
#[derive(Clone)]
struct WordTokenizer;

struct WordStream<I> {
    words: I,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = tantivy::tokenizer::BoxTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        let token = Token { position: usize::MAX, ..Token::default() };
        tantivy::tokenizer::BoxTokenStream::new(WordStream { words: words(text), token })
    }
}

impl<I: Iterator<Item = (usize, String)>> TokenStream for WordStream<I> {
    fn advance(&mut self) -> bool {
        let Some((at, word)) = self.words.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = at;
        self.token.offset_to = at + word.len();
        self.token.text = word;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

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

/// Opens the index in this directory. A damaged one, or one of another program, is rebuilt.
///
/// # Errors
/// [`IndexFailed::Busy`] if it has to be rebuilt while another process writes it;
/// [`IndexFailed::Broken`] if nothing can be stored there.
pub fn open_index(place: &Path) -> Result<TextIndex, IndexFailed> {
    private_file::make_dir(place)?;
    remove_unused(place, SystemTime::now());
    let opened = open_or_renew(place);
    restrict_access(place)?;
    opened
}

fn open_or_renew(place: &Path) -> Result<TextIndex, IndexFailed> {
    match TextIndex::on_disk(place) {
        Err(IndexFailed::Broken(why)) => {
            tracing::warn!(place = %place.display(), why, "rebuilding an index");
            clear_index(place)?;
            TextIndex::on_disk(place)
        }
        opened => opened,
    }
}

/// Removes everything in this directory except its locks.
///
/// # Errors
/// Same as [`open_index`].
pub fn clear_index(place: &Path) -> Result<(), IndexFailed> {
    let directory = MmapDirectory::open(place).map_err(tantivy::TantivyError::from)?;
    let _lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(tantivy::TantivyError::from)?;
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let is_lock = path.file_name().is_some_and(|name| {
            [&INDEX_WRITER_LOCK.filepath, &META_LOCK.filepath].iter().any(|lock| *lock == name)
        });
        if !is_lock {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Restricts the directory and its files to their owner. The index library creates files that
/// others can read, and the directory may have been readable before.
///
/// # Errors
/// The error of the file system.
pub fn restrict_access(place: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let close = |path: &Path, to: u32| match fs::symlink_metadata(path) {
            Ok(about) if about.is_symlink() || about.permissions().mode() & 0o777 == to => Ok(()),
            Ok(_) => fs::set_permissions(path, fs::Permissions::from_mode(to)),
            Err(error) => Err(error),
        };
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(place)? {
            match close(&entry?.path(), 0o600) {
                // Another process has merged it away.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
    }
    #[cfg(not(unix))]
    let _ = place;
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
    use crate::base::stems::stems;

    #[test]
    fn the_index_and_queries_have_the_same_stems() {
        let mut analyzer = analyzer();
        let long = "x".repeat(MAX_WORD_BYTES);
        for text in ["running payments failed vendor.example", "enterprise été 支付", &long, ""]
        {
            let mut indexed = Vec::new();
            analyzer.token_stream(text).process(&mut |token| indexed.push(token.text.clone()));
            assert_eq!(indexed, stems(text), "{text}");
        }
    }

    #[test]
    fn what_nobody_has_used_for_long_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_841_600);
        let make = |name: &str, days: u64| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("made");
            fs::write(path.join("meta.json"), "{}").expect("written");
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
    fn a_place_tells_folders_and_addresses_apart() {
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
