//! Cache of the `robots.txt` rules of sites.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::robots::RobotsRules;

/// How long rules are cached; RFC 9309 allows a day.
const RULES_TTL: Duration = Duration::from_secs(3_600);
/// How long an unreachable `robots.txt` is cached.
const UNREACHABLE_TTL: Duration = Duration::from_secs(60);
/// Number of sites from which on unused ones are removed.
const MAX_SITES: usize = 1_024;

/// Result of a request for `robots.txt`.
#[derive(Debug)]
pub(super) enum RobotsReply {
    /// The rules; empty if the site has no `robots.txt`.
    Rules(RobotsRules),
    /// The site failed with this status: everything is disallowed (RFC 9309, 2.3.1.4).
    Unreachable(u16),
    /// `robots.txt` redirects to this address, which this run must not read.
    RedirectedAway(String),
}

/// A result with the time for which it is cached.
pub(super) struct CachedRobots {
    reply: Arc<RobotsReply>,
    ttl: Duration,
}

impl CachedRobots {
    /// Cached for the usual time.
    pub(super) fn cached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: RULES_TTL }
    }

    /// Cached for a short time only.
    pub(super) fn briefly_cached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: UNREACHABLE_TTL }
    }

    /// Not cached: valid for this request alone.
    pub(super) fn uncached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: Duration::ZERO }
    }
}

type RobotsSlot = Arc<tokio::sync::Mutex<Option<(Instant, Arc<RobotsReply>)>>>;

/// Cached `robots.txt` results by scheme, host and port.
#[derive(Debug, Default)]
pub(super) struct RobotsCache(Mutex<HashMap<String, RobotsSlot>>);

impl RobotsCache {
    /// The cached result of a site, else the result of `ask`. Concurrent requests for the same site
    /// wait for the first; if that fails or is cancelled, the next one calls its own `ask`.
    pub(super) async fn get_or_fetch<E>(
        &self,
        site: &str,
        ask: impl AsyncFnOnce() -> Result<CachedRobots, E>,
    ) -> Result<Arc<RobotsReply>, E> {
        let slot = self.slot(site);
        let mut slot = slot.lock().await;
        if let Some((until, reply)) = &*slot
            && Instant::now() < *until
        {
            return Ok(Arc::clone(reply));
        }
        let verdict = ask().await?;
        *slot = Some((Instant::now() + verdict.ttl, Arc::clone(&verdict.reply)));
        Ok(verdict.reply)
    }

    fn slot(&self, site: &str) -> RobotsSlot {
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MAX_SITES && !sites.contains_key(site) {
            sites.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(sites.entry(site.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_site_says_is_kept_for_a_while_and_trouble_for_less() {
        let (permissions, asked) = (RobotsCache::default(), AtomicU32::new(0));
        let ask = async |verdict: CachedRobots| {
            asked.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(verdict)
        };
        let rules = || CachedRobots::cached(RobotsReply::Rules(RobotsRules::default()));
        let trouble = || CachedRobots::briefly_cached(RobotsReply::Unreachable(503));
        for (verdict, wait, times) in [
            (trouble(), 0, 1),
            (rules(), 59, 1),
            (rules(), 1, 2),
            (trouble(), 3_599, 2),
            (trouble(), 1, 3),
        ] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            let Ok(_) = permissions.get_or_fetch("https://a.example", || ask(verdict)).await;
            assert_eq!(asked.load(Ordering::SeqCst), times);
        }
        let Ok(_) = permissions.get_or_fetch("https://a.example:8443", || ask(rules())).await;
        assert_eq!(asked.load(Ordering::SeqCst), 4, "another port is another site");
    }

    #[tokio::test(start_paused = true)]
    async fn what_counts_for_one_run_alone_is_not_kept() {
        let permissions = RobotsCache::default();
        let elsewhere = async || {
            Ok::<_, Infallible>(CachedRobots::uncached(RobotsReply::RedirectedAway(String::new())))
        };
        let Ok(reply) = permissions.get_or_fetch("https://a.example", elsewhere).await;
        assert!(matches!(&*reply, RobotsReply::RedirectedAway(_)));
        let rules = async || {
            Ok::<_, Infallible>(CachedRobots::cached(RobotsReply::Rules(RobotsRules::default())))
        };
        let Ok(reply) = permissions.get_or_fetch("https://a.example", rules).await;
        assert!(matches!(&*reply, RobotsReply::Rules(_)), "another run may read it");
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let permissions = RobotsCache::default();
        let failed =
            permissions.get_or_fetch("https://a.example", async || Err("no connection")).await;
        assert_eq!(failed.expect_err("it failed"), "no connection");
        let verdict = CachedRobots::cached(RobotsReply::Rules(RobotsRules::default()));
        let reply =
            permissions.get_or_fetch("https://a.example", async || Ok::<_, ()>(verdict)).await;
        assert!(matches!(&*reply.expect("asked again"), RobotsReply::Rules(_)));
    }
}
