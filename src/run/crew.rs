//! Several futures that run concurrently inside one task. They make progress while the task waits
//! for something else, they finish in any order, and their results are taken by number. Dropping
//! the set cancels all of them, so nothing outlives the run.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

/// Concurrent futures, each with its number.
pub struct Crew<'a, T> {
    going: FuturesUnordered<BoxFuture<'a, (usize, T)>>,
    done: BTreeMap<usize, T>,
}

impl<T> Default for Crew<'_, T> {
    fn default() -> Self {
        Self { going: FuturesUnordered::new(), done: BTreeMap::new() }
    }
}

impl<'a, T: Send + 'a> Crew<'a, T> {
    /// Adds a future. It is first polled when the set next waits; the caller has to publish
    /// whatever must be in the log before that.
    pub fn start(&mut self, place: usize, member: impl Future<Output = T> + Send + 'a) {
        self.going.push(member.map(move |result| (place, result)).boxed());
    }

    /// Waits for another future while these make progress.
    pub async fn meanwhile<U>(&mut self, wait: impl Future<Output = U>) -> U {
        let mut wait = pin!(wait);
        loop {
            if self.going.is_empty() {
                return wait.await;
            }
            tokio::select! {
                biased;
                waited = &mut wait => return waited,
                Some((place, result)) = self.going.next() => {
                    self.done.insert(place, result);
                }
            }
        }
    }

    /// The result of the future with this number, if it has finished.
    pub fn taken(&mut self, place: usize) -> Option<T> {
        self.done.remove(&place)
    }

    /// Waits for the result of the future with this number; `None` if no such future was started.
    pub async fn take(&mut self, place: usize) -> Option<T> {
        loop {
            if let Some(result) = self.done.remove(&place) {
                return Some(result);
            }
            let (finished, result) = self.going.next().await?;
            self.done.insert(finished, result);
        }
    }
}
