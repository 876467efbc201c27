//! The tools that read documents: folders, and pages of the web.

use std::path::PathBuf;

use super::NotReady;
use super::folder::{self, FolderRead, FolderSearch, text_index};
use super::web::cache::Cache;
use super::web::{CrawlState, Web, WebReader};
use crate::base::time::WallClock;
use crate::gateway::Tool;
use crate::scenario::tools::documents::{FolderSpec, WebSpec};

/// Makes the tools of one run that read documents; they share their caches.
pub struct DocumentTools {
    web: Web,
    indices: Option<PathBuf>,
}

impl DocumentTools {
    /// Keeps pages and the indices of folders in the user's cache.
    pub fn for_user(clock: WallClock) -> Self {
        Self::with_caches(Cache::for_user(), text_index::user_cache_dir(), clock)
    }

    /// Saves nothing.
    pub fn unsaved(clock: WallClock) -> Self {
        Self::with_caches(None, None, clock)
    }

    fn with_caches(pages: Option<Cache>, indices: Option<PathBuf>, clock: WallClock) -> Self {
        let web = Web::new(CrawlState::of_this_process(), pages, clock);
        Self { web, indices }
    }

    /// Whether the folder can be searched and read now.
    pub fn check_folder(&self, spec: &FolderSpec) -> Result<(), NotReady> {
        folder::ready(spec)
    }

    /// The tool that searches a folder.
    pub fn search_folder(&self, spec: &FolderSpec) -> Box<dyn Tool> {
        Box::new(FolderSearch::new(spec.clone(), self.indices.clone()))
    }

    /// The tool that reads the documents of a folder.
    pub fn read_folder(&self, spec: &FolderSpec) -> Box<dyn Tool> {
        Box::new(FolderRead::new(spec.clone(), self.indices.clone()))
    }

    /// The tool that reads pages of the web.
    pub fn read_web(&self, spec: &WebSpec) -> Box<dyn Tool> {
        Box::new(WebReader::new(spec.clone(), self.web.clone()))
    }
}
