//! Full-text index of a folder: its contents, and how it is updated.
//!
//! It has one entry for each document, and one for each file that is not readable, so that neither
//! is read again before it changes.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use tantivy::directory::error::LockError;
use tantivy::directory::{Directory, MmapDirectory, RamDirectory};
use tantivy::indexer::LogMergePolicy;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{
    Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument,
    TantivyError, Term,
};

use super::cancellation::{CancelFlag, WorkCancelled};
use super::skipped_files::{SkipReason, SkippedFiles};
use super::source::{Catalogue, CatalogueEntry, DocumentSource, FolderPage};
use super::walk::FileStamp;
use super::words;

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
pub(super) struct IndexFields {
    pub(super) address: Field,
    pub(super) title: Field,
    pub(super) body: Field,
    pub(super) place: Field,
    pub(super) date: Field,
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
    pub(super) fields: IndexFields,
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
        index.tokenizers().register(WORDS, words::analyzer());
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
