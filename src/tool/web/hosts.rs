//! How many requests go to one host at once, and how soon one after another: for all readers of the
//! process, so that many runs are no more of a burden than one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::tool::bulkhead::{Bulkhead, Permit};

/// So many hosts are remembered before those that nobody asks any more are forgotten.
const MOST: usize = 1_024;

/// The hosts that are asked.
#[derive(Debug, Default)]
pub(super) struct Hosts(Mutex<HashMap<String, Arc<Host>>>);

#[derive(Debug)]
struct Host {
    room: Bulkhead,
    /// When the last request began. Held by whoever waits for its turn, so that turns come in the
    /// order in which they were asked for, and one that is given up costs nobody anything.
    last: tokio::sync::Mutex<Option<Instant>>,
}

/// Leave for one request, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn is over as soon as it is dropped"]
pub(super) struct Turn {
    _permit: Option<Permit>,
    _host: Arc<Host>,
}

impl Hosts {
    /// Waits until a request to `host` may begin: fewer than `at_once` are under way, and the last
    /// began `pace` ago. Given up when it is dropped. Where readers differ, the stricter of those
    /// that are at it decides how many go at once.
    pub(super) async fn turn(&self, host: &str, at_once: u32, pace: Duration) -> Turn {
        let host = self.host(host);
        let at_once = at_once.max(1);
        let fill = host.room.fill();
        let idle = fill.in_flight == 0 && fill.queued == 0;
        if fill.permits != at_once && (idle || fill.permits > at_once) {
            host.room.resize(at_once);
        }
        // It waits as long as it is asked to, so nothing turns it away.
        let permit = host.room.enter(None).await.ok();
        {
            let mut last = host.last.lock().await;
            if let Some(last) = *last {
                // Another runtime may have a clock of its own: one that is ahead delays nobody.
                tokio::time::sleep_until(last.min(Instant::now()) + pace).await;
            }
            *last = Some(Instant::now());
        }
        Turn { _permit: permit, _host: host }
    }

    fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.hosts();
        if hosts.len() >= MOST && !hosts.contains_key(name) {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let new = || Arc::new(Host { room: Bulkhead::new(1), last: Default::default() });
        Arc::clone(hosts.entry(name.to_owned()).or_insert_with(new))
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Arc<Host>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const PACE: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_host_begin_one_after_another_and_those_to_others_at_once() {
        let (hosts, start) = (Hosts::default(), Instant::now());
        for expected in [0, 500, 1_000] {
            drop(hosts.turn("a.example", 9, PACE).await);
            assert_eq!(start.elapsed(), Duration::from_millis(expected));
        }
        drop(hosts.turn("b.example", 9, PACE).await);
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_go_at_once_than_may() {
        let hosts = Hosts::default();
        let first = hosts.turn("a.example", 2, Duration::ZERO).await;
        let second = hosts.turn("a.example", 2, Duration::ZERO).await;
        let mut third = Box::pin(hosts.turn("a.example", 2, Duration::ZERO));
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        let third = third.await;
        let mut stricter = Box::pin(hosts.turn("a.example", 1, Duration::ZERO));
        assert!(stricter.as_mut().now_or_never().is_none());
        drop(second);
        assert!(stricter.as_mut().now_or_never().is_none(), "one is still under way");
        drop(third);
        drop(stricter.await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_given_up_delays_nobody() {
        let (hosts, start) = (Hosts::default(), Instant::now());
        drop(hosts.turn("a.example", 1, PACE).await);
        for _ in 0..10 {
            let mut given_up = Box::pin(hosts.turn("a.example", 1, PACE));
            assert!(given_up.as_mut().now_or_never().is_none());
        }
        drop(hosts.turn("a.example", 1, PACE).await);
        assert_eq!(start.elapsed(), PACE);
    }

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let hosts = Hosts::default();
        let held = hosts.turn("held.example", 1, Duration::ZERO).await;
        for n in 0..3 * MOST {
            drop(hosts.turn(&format!("{n}.example"), 1, Duration::ZERO).await);
        }
        assert!(hosts.hosts().len() <= MOST + 1 && hosts.hosts().contains_key("held.example"));
        drop(held);
    }
}
