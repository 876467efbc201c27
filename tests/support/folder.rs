//! A folder of documents in a place of its own, and the tools over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use roundtable::gateway::{Tool, ToolRequest};
use roundtable::log::event::AttemptFailed;
use roundtable::scenario::tools::documents::FolderSpec;
use roundtable::tool::folder::{FolderRead, FolderSearch};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Where the files of the tests stand.
pub const BASE: &str = "https://notes.local/";

/// A folder with documents, and a place where its index is kept.
pub struct Shelf {
    dir: TempDir,
    base_url: Option<String>,
}

impl Shelf {
    /// An empty folder whose files stand under [`BASE`].
    pub fn new() -> Self {
        Self::at(Some(BASE))
    }

    /// An empty folder that is a mirror of the web.
    pub fn mirror() -> Self {
        Self::at(None)
    }

    fn at(base_url: Option<&str>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("notes")).expect("made");
        Self { dir, base_url: base_url.map(str::to_owned) }
    }

    /// Writes a file, its last change `age` seconds after 7 March 2026.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>, age: u64) -> &Self {
        let whole = self.path(path);
        fs::create_dir_all(whole.parent().expect("a parent")).expect("made");
        fs::write(&whole, text).expect("written");
        let at = UNIX_EPOCH + Duration::from_secs(1_772_841_600 + age);
        self.touch(path, at)
    }

    pub fn touch(&self, path: &str, at: SystemTime) -> &Self {
        let file = fs::File::options().append(true).open(self.path(path)).expect("opens");
        file.set_modified(at).expect("dated");
        self
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("notes")
    }

    pub fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    /// A path in the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Where its index is kept.
    pub fn place(&self) -> PathBuf {
        let all = fs::read_dir(self.cache().join("folders")).expect("one is kept");
        let all: Vec<PathBuf> = all.map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(all.len(), 1);
        all.into_iter().next().expect("one")
    }

    pub fn spec(&self) -> FolderSpec {
        FolderSpec { folder: Some(self.root()), base_url: self.base_url.clone() }
    }

    pub fn search(&self) -> FolderSearch {
        FolderSearch::new(self.spec(), Some(self.cache()))
    }

    /// One whose index is in memory.
    pub fn search_in_memory(&self) -> FolderSearch {
        FolderSearch::new(self.spec(), None)
    }

    pub fn read(&self) -> FolderRead {
        FolderRead::new(self.spec(), Some(self.cache()))
    }
}

/// The spec of a folder by its path.
pub fn spec(folder: &Path) -> FolderSpec {
    FolderSpec { folder: Some(folder.to_owned()), base_url: Some(BASE.to_owned()) }
}

pub async fn ask(tool: &dyn Tool, args: Value) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let Value::Object(args): Value = args else { panic!("arguments are a table") };
    let args: Map<String, Value> = args;
    tool.ask(ToolRequest::bare(&args)).await
}

/// The data of a search.
pub async fn found(tool: &FolderSearch, query: &str) -> Value {
    let answer = ask(tool, json!({ "query": query, "k": 10 })).await.expect("an answer");
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["data"].clone()
}

/// The addresses of the results, without [`BASE`].
pub fn urls(data: &Value) -> Vec<String> {
    let results = data["results"].as_array().expect("a list");
    let url = |result: &Value| {
        let url = result["url"].as_str().expect("an address");
        url.strip_prefix(BASE).unwrap_or(url).to_owned()
    };
    results.iter().map(url).collect()
}

/// The whole answer of a read.
pub async fn page(tool: &FolderRead, url: &str) -> Value {
    (*ask(tool, json!({ "url": url })).await.expect("an answer")).clone()
}
