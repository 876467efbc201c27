//! Several futures side by side inside one task: they go on while the task waits for something
//! else, finish in any order, and are taken in their own. Dropping the crew cancels them all, so
//! nothing of a run outlives it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

/// Futures that go on side by side, by their place.
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
    /// Starts another. It is first polled when the crew next waits for something that is not there
    /// yet; whatever must be true from now on is done before.
    pub fn start(&mut self, place: usize, member: impl Future<Output = T> + Send + 'a) {
        self.going.push(member.map(move |result| (place, result)).boxed());
    }

    /// Waits for something else while the members go on.
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

    /// The result of the member at this place, if it is there already.
    pub fn taken(&mut self, place: usize) -> Option<T> {
        self.done.remove(&place)
    }

    /// The result of the member at this place; `None` if no such member was started.
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
