//! Waits of the loop for what may not be there.

use futures::{Stream, StreamExt as _};
use tokio::time::Instant;

/// Waits until a time; forever if there is none.
pub(super) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The next item of a stream; waits forever if there is none.
pub(super) async fn next_of<I: Stream + Unpin>(input: &mut Option<I>) -> Option<I::Item> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}
