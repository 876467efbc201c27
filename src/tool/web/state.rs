//! What all web readers of a process share: clients, pace, `robots.txt` rules, the cache and the clock.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use super::cache::Cache;
use super::hosts::Hosts;
use super::robots_cache::RobotsCache;
use crate::base::wall_clock::WallClock;
use crate::net::{Http, Reach};

/// Shared state of polite crawling: concurrency and pace for each host, and `robots.txt` rules.
#[derive(Debug, Default)]
pub struct CrawlState {
    pub(super) hosts: Hosts,
    pub(super) robots: RobotsCache,
}

impl CrawlState {
    /// The state shared by the whole process.
    pub fn of_this_process() -> Arc<Self> {
        static MANNERS: LazyLock<Arc<CrawlState>> = LazyLock::new(Arc::default);
        Arc::clone(&MANNERS)
    }
}

/// State shared by all web readers. Clones share it.
#[derive(Clone)]
pub struct Web(Arc<WebState>);

struct WebState {
    anywhere: Http,
    internet: Http,
    crawl: Arc<CrawlState>,
    cache: Option<Cache>,
    clock: WallClock,
}

impl Web {
    /// Shared state with this crawl state, cache and clock.
    pub fn new(manners: Arc<CrawlState>, cache: Option<Cache>, clock: WallClock) -> Self {
        let (anywhere, internet) = (Http::direct(Reach::Anywhere), Http::direct(Reach::Internet));
        Self(Arc::new(WebState { anywhere, internet, crawl: manners, cache, clock }))
    }

    /// The client for public addresses, or for any.
    pub(super) fn client(&self, anywhere: bool) -> &Http {
        if anywhere { &self.0.anywhere } else { &self.0.internet }
    }

    pub(super) fn crawl_state(&self) -> &CrawlState {
        &self.0.crawl
    }

    /// The cache of pages on disk, if there is one.
    pub(super) fn cache(&self) -> Option<&Cache> {
        self.0.cache.as_ref()
    }

    /// The time now.
    pub(super) fn now(&self) -> SystemTime {
        (self.0.clock)()
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").finish_non_exhaustive()
    }
}
