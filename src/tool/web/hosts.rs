//! Politeness for each host: concurrency limit, pace between requests, and `Retry-After`. Shared by
//! all readers of the process, so that many runs together cause no more load than one. It is kept
//! here and not in the gateway, where all hosts are one tool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::gateway::bulkhead::{Bulkhead, Permit};

/// Number of hosts from which on unused ones are removed.
const MAX_HOSTS: usize = 1_024;

/// Longest `Retry-After` that a request waits for; beyond it, the host's pages fail.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Upper bound of a `Retry-After`: a day.
const MAX_HOST_RETRY_AFTER: Duration = Duration::from_secs(86_400);

/// State of the hosts, by name.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<HashMap<String, Arc<Host>>>);

#[derive(Debug)]
struct Host {
    bulkhead: Bulkhead,
    /// Start of the last request. The lock is held while a request waits for its turn, so requests
    /// start in order, and a cancelled one does not delay the others.
    last: tokio::sync::Mutex<Option<Instant>>,
    retry_after: Mutex<Option<HostRetryAfter>>,
}

/// A host's `Retry-After`.
#[derive(Debug, Clone, Copy)]
struct HostRetryAfter {
    until: Instant,
    /// Status of the response that carried it.
    status: u16,
}

/// A refusal: the host's `Retry-After` is longer than we wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostBusy {
    /// Status of the response that carried it.
    pub(crate) status: u16,
    pub(crate) left: Duration,
}

/// Permission for one request, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends as soon as it is dropped"]
pub(crate) struct RequestSlot {
    _permit: Option<Permit>,
    _host: Arc<Host>,
}

impl Hosts {
    /// Waits until a request to `host` may start: fewer than `at_once` are in flight, and the last
    /// one started at least `pace` ago. Dropping the future cancels it. If readers have different
    /// limits, the strictest of the current ones applies.
    pub(crate) async fn acquire(
        &self,
        host: &str,
        at_once: u32,
        pace: Duration,
    ) -> Result<RequestSlot, HostBusy> {
        let host = self.host(host);
        host.required_wait()?;
        let at_once = at_once.max(1);
        let fill = host.bulkhead.fill();
        let idle = fill.in_flight == 0 && fill.queued == 0;
        if fill.permits != at_once && (idle || fill.permits > at_once) {
            host.bulkhead.resize(at_once);
        }
        // Without a time limit, the queue never rejects.
        let permit = host.bulkhead.enter(None).await.ok();
        {
            let mut last = host.last.lock().await;
            if let Some(last) = *last {
                // Another runtime may have its own clock; one that is ahead must not cause a delay.
                tokio::time::sleep_until(last.min(Instant::now()) + pace).await;
            }
            // A `Retry-After` may have arrived while this request was queued.
            while let Some(wait) = host.required_wait()? {
                tokio::time::sleep(wait).await;
            }
            *last = Some(Instant::now());
        }
        Ok(RequestSlot { _permit: permit, _host: host })
    }

    /// Stores the `Retry-After` of a host, which came with this status. [`HostBusy`] if it is longer
    /// than we wait.
    pub(super) fn record_retry_after(
        &self,
        host: &str,
        status: u16,
        wait: Duration,
    ) -> Result<(), HostBusy> {
        let host = self.host(host);
        {
            let mut rest = host.lock_retry_after();
            let until = Instant::now() + wait.min(MAX_HOST_RETRY_AFTER);
            if rest.is_none_or(|rest| rest.until < until) {
                *rest = Some(HostRetryAfter { until, status });
            }
        }
        host.required_wait().map(|_| ())
    }

    fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.hosts();
        if hosts.len() >= MAX_HOSTS && !hosts.contains_key(name) {
            hosts
                .retain(|_, host| Arc::strong_count(host) > 1 || host.retry_after_left().is_some());
        }
        let new = || {
            let (last, rest) = Default::default();
            Arc::new(Host { bulkhead: Bulkhead::new(1), last, retry_after: rest })
        };
        Arc::clone(hosts.entry(name.to_owned()).or_insert_with(new))
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Arc<Host>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    fn lock_retry_after(&self) -> MutexGuard<'_, Option<HostRetryAfter>> {
        self.retry_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time left of the host's `Retry-After`, with its status.
    fn retry_after_left(&self) -> Option<(u16, Duration)> {
        let HostRetryAfter { until, status } = (*self.lock_retry_after())?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some((status, left))
    }

    /// Time that a request to this host has to wait, if any.
    fn required_wait(&self) -> Result<Option<Duration>, HostBusy> {
        match self.retry_after_left() {
            Some((status, left)) if left > LONGEST_WAIT => Err(HostBusy { status, left }),
            left => Ok(left.map(|(_, left)| left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const PACE: Duration = Duration::from_millis(500);

    async fn turn(hosts: &Hosts, host: &str, at_once: u32, pace: Duration) -> RequestSlot {
        hosts.acquire(host, at_once, pace).await.expect("it does not rest")
    }

    #[tokio::test(start_paused = true)]
    async fn paces_requests_per_host() {
        let (hosts, start) = (Hosts::default(), Instant::now());
        for expected in [0, 500, 1_000] {
            drop(turn(&hosts, "a.example", 9, PACE).await);
            assert_eq!(start.elapsed(), Duration::from_millis(expected));
        }
        drop(turn(&hosts, "b.example", 9, PACE).await);
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn limits_concurrent_requests() {
        let hosts = Hosts::default();
        let first = turn(&hosts, "a.example", 2, Duration::ZERO).await;
        let second = turn(&hosts, "a.example", 2, Duration::ZERO).await;
        let mut third = Box::pin(turn(&hosts, "a.example", 2, Duration::ZERO));
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        let third = third.await;
        let mut stricter = Box::pin(turn(&hosts, "a.example", 1, Duration::ZERO));
        assert!(stricter.as_mut().now_or_never().is_none());
        drop(second);
        assert!(stricter.as_mut().now_or_never().is_none(), "one is still under way");
        drop(third);
        drop(stricter.await);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_turn_delays_no_other() {
        let (hosts, start) = (Hosts::default(), Instant::now());
        drop(turn(&hosts, "a.example", 1, PACE).await);
        for _ in 0..10 {
            let mut given_up = Box::pin(turn(&hosts, "a.example", 1, PACE));
            assert!(given_up.as_mut().now_or_never().is_none());
        }
        drop(turn(&hosts, "a.example", 1, PACE).await);
        assert_eq!(start.elapsed(), PACE);
    }

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let hosts = Hosts::default();
        let held = turn(&hosts, "held.example", 1, Duration::ZERO).await;
        for n in 0..3 * MAX_HOSTS {
            drop(turn(&hosts, &format!("{n}.example"), 1, Duration::ZERO).await);
        }
        assert!(hosts.hosts().len() <= MAX_HOSTS + 1 && hosts.hosts().contains_key("held.example"));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn host_pauses_for_retry_after() {
        let (hosts, start) = (Hosts::default(), Instant::now());
        let rest =
            |host: &str, secs| hosts.record_retry_after(host, 429, Duration::from_secs(secs));
        let resting = |secs| HostBusy { status: 429, left: Duration::from_secs(secs) };
        assert_eq!(rest("a.example", 2), Ok(()), "so long is waited");
        drop(turn(&hosts, "a.example", 1, PACE).await);
        assert_eq!(start.elapsed(), Duration::from_secs(2));
        assert_eq!(rest("a.example", 3_600), Err(resting(3_600)));
        assert_eq!(rest("a.example", 1), Err(resting(3_600)), "the longer of the two");
        tokio::time::advance(Duration::from_secs(600)).await;
        let asked = hosts.acquire("a.example", 1, PACE).now_or_never().expect("at once");
        assert_eq!(asked.err(), Some(resting(3_000)));
        drop(turn(&hosts, "b.example", 1, PACE).await);
        assert_eq!(start.elapsed(), Duration::from_secs(602), "no other host waits for it");
        assert_eq!(rest("c.example", u64::MAX), Err(resting(86_400)), "nobody rests for ever");
        tokio::time::advance(Duration::from_secs(3_000)).await;
        drop(turn(&hosts, "a.example", 1, PACE).await);
    }

    #[tokio::test(start_paused = true)]
    async fn queued_request_hears_of_retry_after() {
        let hosts = Hosts::default();
        let first = turn(&hosts, "a.example", 1, PACE).await;
        let mut second = Box::pin(hosts.acquire("a.example", 1, PACE));
        assert!(second.as_mut().now_or_never().is_none());
        let recorded = hosts.record_retry_after("a.example", 503, Duration::from_secs(20));
        assert_eq!(recorded.map_err(|it| it.status), Err(503));
        drop(first);
        assert_eq!(second.await.err().map(|it| it.status), Some(503));
    }
}
