//! A folder of documents as two tools: one searches it, one reads from it. The folder is on disk,
//! or the corpus inside the program.
//!
//! A file gets its address from its path, and a requested address is looked up among the known
//! ones, so no request leads outside the folder; the path is checked again when the file is open.
//! The index is shared by the tools of one process, kept in the user's cache, updated from
//! modification time and size, and rebuilt where it is broken, of another format or locked: no
//! search fails for it. A query is words, never a query language. Equal documents give equal
//! results, regardless of the history of the index. A cancelled call keeps what it has read.
//!
//! Skipped files are counted by reason and reported with every result.

pub mod address;
pub mod index;
mod ranking;
pub mod source;
pub mod text_index;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use self::address::canonical_address;
use self::index::{FolderIndex, FolderSearched, IndexLocation};
use self::ranking::Hit;
use self::source::{CatalogueEntry, FolderPage, SkipReason};
use super::text::DocumentFormat;
use crate::base::visible::visible_within;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::scenario::tools::documents::FolderSpec;

pub use self::index::ready;

/// Most bytes of a file that is read; larger ones are skipped.
pub const MAX_BYTES: u64 = 8 << 20;

/// Most files of a folder that become documents; those beyond, in the order of their paths, are
/// skipped.
pub const MAX_FILES: usize = 50_000;

/// Number of results if the call does not set `k`.
const RESULTS: u64 = 10;
/// Most results of one call.
const MAX_RESULTS: u64 = 100;

/// Searches a folder of documents.
pub struct FolderSearch {
    folder: FolderHandle,
}

impl FolderSearch {
    /// The tool of this folder. `cache` is the directory for its index; `None` keeps it in memory.
    /// A missing folder is reported on the first call; [`ready`](self::ready) checks before.
    pub fn new(spec: FolderSpec, cache: Option<PathBuf>) -> Self {
        Self { folder: FolderHandle::new(spec, cache) }
    }

    async fn answer(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let Some(Value::String(query)) = request.args.get("query") else {
            let text = "the argument `query` is missing or not a string";
            return Err(AttemptFailed::new(FailureClass::Tool, text));
        };
        let k = request.args.get("k").and_then(Value::as_u64).unwrap_or(RESULTS);
        let k = usize::try_from(k.clamp(1, MAX_RESULTS)).unwrap_or(1);
        let searched = self.folder.index()?.search(query.clone(), k).await?;
        Ok(Arc::new(search_result(&searched)))
    }
}

impl Tool for FolderSearch {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.answer(request))
    }
}

fn search_result(searched: &FolderSearched) -> Value {
    let mut data = json!({
        "results": searched.found.hits.iter().map(hit_json).collect::<Vec<_>>(),
        "indexed": searched.refreshed.indexed,
        "refreshed": searched.refreshed.read,
        "removed": searched.refreshed.removed,
        "left_out": searched.left_out.to_json(),
        "index": match searched.index {
            IndexLocation::Disk => "disk",
            IndexLocation::Memory => "memory",
        },
    });
    if searched.found.words_left_out > 0
        && let Some(data) = data.as_object_mut()
    {
        data.insert("words_left_out".to_owned(), searched.found.words_left_out.into());
    }
    json!({ "status": "ok", "data": data })
}

fn hit_json(hit: &Hit) -> Value {
    let mut result = json!({
        "url": hit.address,
        "title": hit.title,
        "snippet": hit.snippet,
        "score": f64::from(hit.score) / 1_000.0,
    });
    if let Some(result) = result.as_object_mut() {
        if !hit.published_at.is_empty() {
            result.insert("published_at".to_owned(), hit.published_at.as_str().into());
        }
        if hit.dated_by_file {
            result.insert("dated_by".to_owned(), "modified".into());
        }
    }
    result
}

/// A tool's handle of a folder, resolved on first use, because the folder may not exist yet.
pub(crate) struct FolderHandle {
    spec: FolderSpec,
    cache: Option<PathBuf>,
    /// Keeps the shared state of the folder alive as long as the tool.
    shelf: Mutex<Option<Arc<FolderIndex>>>,
}

impl FolderHandle {
    pub(crate) fn new(spec: FolderSpec, cache: Option<PathBuf>) -> Self {
        Self { spec, cache, shelf: Mutex::default() }
    }

    pub(crate) fn index(&self) -> Result<Arc<FolderIndex>, Box<AttemptFailed>> {
        // Resolved on each call, because the path may lead elsewhere by now.
        let shelf = FolderIndex::shared(&self.spec, self.cache.as_deref().map(Path::new))
            .map_err(|why| AttemptFailed::new(FailureClass::Tool, why))?;
        let mut held = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::clone(&shelf));
        Ok(shelf)
    }
}

/// Most characters of an address that a result quotes.
const ADDRESS_CHARS: usize = 120;

/// Reads documents of a folder by their addresses.
pub struct FolderRead {
    folder: FolderHandle,
}

impl FolderRead {
    /// The tool of this folder; `cache` as in [`FolderSearch`](self::FolderSearch::new).
    pub fn new(spec: FolderSpec, cache: Option<PathBuf>) -> Self {
        Self { folder: FolderHandle::new(spec, cache) }
    }

    async fn answer(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let Some(Value::String(url)) = request.args.get("url") else {
            let text = "the argument `url` is missing or not a string";
            return Err(AttemptFailed::new(FailureClass::Tool, text));
        };
        let shown = visible_within(url, ADDRESS_CHARS);
        let shelf = self.folder.index()?;
        let Some(address) = canonical_address(url) else {
            let text = format!("{shown} is not a valid address of a file");
            return Ok(Arc::new(read_failure("invalid_url", &text)));
        };
        Ok(Arc::new(match shelf.read(address).await? {
            None => read_failure("not_found", &format!("the folder has no document at {shown}")),
            Some((entry, Ok(page))) => read_result(&entry, &page),
            Some((_, Err(reason))) => {
                let (code, what) = describe_skip(reason);
                read_failure(code, &format!("the file of {shown} {what}"))
            }
        }))
    }
}

impl Tool for FolderRead {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.answer(request))
    }
}

fn read_result(entry: &CatalogueEntry, page: &FolderPage) -> Value {
    let mut data = json!({
        "url": entry.address,
        "title": page.document.title,
        "published_at": page.document.published_at,
        "body": page.document.text,
        "content_type": match entry.file.format {
            DocumentFormat::Html => "text/html",
            DocumentFormat::Markdown => "text/markdown",
            DocumentFormat::Plain => "text/plain",
            DocumentFormat::Pdf => "application/pdf",
        },
    });
    if page.dated_by_file
        && let Some(data) = data.as_object_mut()
    {
        data.insert("dated_by".to_owned(), "modified".into());
    }
    json!({ "status": "ok", "data": data })
}

fn read_failure(code: &str, text: &str) -> Value {
    json!({ "status": "error", "error": code, "text": text })
}

/// Identifier and text for a file that cannot be read.
fn describe_skip(reason: SkipReason) -> (&'static str, &'static str) {
    match reason {
        SkipReason::Empty => ("empty_page", "contains no text"),
        SkipReason::Charset => ("charset", "has an unknown charset"),
        SkipReason::Binary => ("content_type", "is not text"),
        SkipReason::Broken => ("unreadable", "is damaged: it cannot be parsed"),
        SkipReason::TooLarge => ("unreadable", "is too large now"),
        SkipReason::Unopened => ("not_found", "was removed, or access is denied"),
        SkipReason::Hidden
        | SkipReason::OutsideLink
        | SkipReason::LinkedFolder
        | SkipReason::Special
        | SkipReason::OtherType
        | SkipReason::TooMany
        | SkipReason::NoAddress => ("not_found", "is no longer a document of the folder"),
    }
}
