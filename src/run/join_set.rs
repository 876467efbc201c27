//! Several futures that run concurrently inside one task. They make progress while the task waits
//! for something else, they finish in any order, and their results are taken by number. Dropping
//! the set cancels all of them, so nothing outlives the run.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

/// Concurrent futures, each with its number.
pub struct OrderedJoinSet<'a, T> {
    running: FuturesUnordered<BoxFuture<'a, (usize, T)>>,
    done: BTreeMap<usize, T>,
}

impl<T> Default for OrderedJoinSet<'_, T> {
    fn default() -> Self {
        Self { running: FuturesUnordered::new(), done: BTreeMap::new() }
    }
}

impl<'a, T: Send + 'a> OrderedJoinSet<'a, T> {
    /// Adds a future. It is first polled when the set next waits; the caller first publishes the
    /// events that must be in the log before that.
    pub fn spawn(&mut self, place: usize, member: impl Future<Output = T> + Send + 'a) {
        self.running.push(member.map(move |result| (place, result)).boxed());
    }

    /// Waits for another future while these make progress.
    pub async fn run_while<U>(&mut self, wait: impl Future<Output = U>) -> U {
        let mut wait = pin!(wait);
        loop {
            if self.running.is_empty() {
                return wait.await;
            }
            tokio::select! {
                biased;
                waited = &mut wait => return waited,
                Some((place, result)) = self.running.next() => {
                    self.done.insert(place, result);
                }
            }
        }
    }

    /// The result of the future with this number, if it has finished.
    pub fn try_take(&mut self, place: usize) -> Option<T> {
        self.done.remove(&place)
    }

    /// Waits for the result of any future, with its number, as long as they are `wanted`; `None`: they
    /// no longer are, or there are none.
    pub async fn take_any(&mut self, wanted: impl Fn() -> bool) -> Option<(usize, T)> {
        if let Some(done) = self.done.pop_first() {
            return Some(done);
        }
        poll_fn(|cx| match self.running.poll_next_unpin(cx) {
            Poll::Pending if !wanted() => Poll::Ready(None),
            polled => polled,
        })
        .await
    }

    /// Waits for the result of the future with this number; `None` if no such future was started.
    pub async fn take(&mut self, place: usize) -> Option<T> {
        loop {
            if let Some(result) = self.done.remove(&place) {
                return Some(result);
            }
            let (finished, result) = self.running.next().await?;
            self.done.insert(finished, result);
        }
    }
}
