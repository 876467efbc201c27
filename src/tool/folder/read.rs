//! The tool that reads a document of a folder.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::address::canonical;
use super::search::FolderHandle;
use super::skipped_files::SkipReason;
use super::source::{CatalogueEntry, FolderPage};
use crate::base::visible::visible_within;
use crate::document::DocumentFormat;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::gateway::interface::{Tool, ToolRequest};
use crate::scenario::spec::lookup::FolderSpec;

/// Most characters of an address that a result quotes.
const ADDRESS_CHARS: usize = 120;

/// Reads documents of a folder by their addresses.
pub struct FolderRead {
    folder: FolderHandle,
}

impl FolderRead {
    /// The tool of this folder; `cache` as in [`FolderSearch`](super::FolderSearch::new).
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
        let Some(address) = canonical(url) else {
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
