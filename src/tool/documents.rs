//! The tools that read documents: folders, and pages of the web. They are built in with the feature
//! `documents`; without it, making one fails and says what to build.

#[cfg(feature = "documents")]
use std::path::PathBuf;

use super::NotReady;
#[cfg(feature = "documents")]
use super::folder::{self, FolderRead, FolderSearch, text_index};
#[cfg(feature = "documents")]
use super::web::cache::Cache;
#[cfg(feature = "documents")]
use super::web::{CrawlState, Web, WebReader};
use crate::base::time::WallClock;
use crate::gateway::Tool;
use crate::scenario::tools::documents::{FolderSpec, WebSpec};

/// Makes the tools of one run that read documents; they share their caches.
pub struct DocumentTools {
    #[cfg(feature = "documents")]
    web: Web,
    #[cfg(feature = "documents")]
    indices: Option<PathBuf>,
}

#[cfg(feature = "documents")]
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
    ///
    /// # Errors
    /// Why it cannot.
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

    /// Whether pages of the web can be read.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check_web(&self) -> Result<(), NotReady> {
        Ok(())
    }

    /// The tool that reads pages of the web.
    pub fn read_web(&self, spec: &WebSpec) -> Box<dyn Tool> {
        Box::new(WebReader::new(spec.clone(), self.web.clone()))
    }
}

/// Without the feature each check fails, and each attempt of a tool that was made without a check.
/// Its functions are documented above.
#[cfg(not(feature = "documents"))]
#[allow(missing_docs)]
mod left_out {
    use std::sync::Arc;

    use futures::future;
    use futures::future::BoxFuture;
    use serde_json::Value;

    use super::DocumentTools;
    use crate::base::time::WallClock;
    use crate::gateway::Tool;
    use crate::gateway::ToolRequest;
    use crate::log::event::kind::{AttemptFailed, FailureClass};
    use crate::scenario::tools::documents::{FolderSpec, WebSpec};
    use crate::tool::NotReady;

    const WHY: &str = "tools that read folders or pages are not built in: \
                       build with the Cargo feature `documents`";

    impl DocumentTools {
        pub fn for_user(_: WallClock) -> Self {
            Self {}
        }

        pub fn unsaved(_: WallClock) -> Self {
            Self {}
        }

        pub fn check_folder(&self, _: &FolderSpec) -> Result<(), NotReady> {
            Err(NotReady::Documents { why: WHY.to_owned() })
        }

        pub fn search_folder(&self, _: &FolderSpec) -> Box<dyn Tool> {
            Box::new(LeftOut)
        }

        pub fn read_folder(&self, _: &FolderSpec) -> Box<dyn Tool> {
            Box::new(LeftOut)
        }

        pub fn check_web(&self) -> Result<(), NotReady> {
            Err(NotReady::Documents { why: WHY.to_owned() })
        }

        pub fn read_web(&self, _: &WebSpec) -> Box<dyn Tool> {
            Box::new(LeftOut)
        }
    }

    /// A tool that is not in this build.
    struct LeftOut;

    impl Tool for LeftOut {
        fn ask<'a>(
            &'a self,
            _: ToolRequest<'a>,
        ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
            Box::pin(future::ready(Err(AttemptFailed::new(FailureClass::Tool, WHY))))
        }
    }
}
