//! The tool that searches a folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::folder_index::{FolderIndex, FolderSearched, IndexLocation};
use super::ranking::Hit;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::gateway::interface::{Tool, ToolRequest};
use crate::scenario::spec::lookup::FolderSpec;

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
    /// A missing folder is reported on the first call; [`ready`](super::ready) checks before.
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
pub(super) struct FolderHandle {
    spec: FolderSpec,
    cache: Option<PathBuf>,
    /// Keeps the shared state of the folder alive as long as the tool.
    shelf: Mutex<Option<Arc<FolderIndex>>>,
}

impl FolderHandle {
    pub(super) fn new(spec: FolderSpec, cache: Option<PathBuf>) -> Self {
        Self { spec, cache, shelf: Mutex::default() }
    }

    pub(super) fn index(&self) -> Result<Arc<FolderIndex>, Box<AttemptFailed>> {
        // Resolved on each call, because the path may lead elsewhere by now.
        let shelf = FolderIndex::shared(&self.spec, self.cache.as_deref().map(Path::new))
            .map_err(|why| AttemptFailed::new(FailureClass::Tool, why))?;
        let mut held = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::clone(&shelf));
        Ok(shelf)
    }
}
