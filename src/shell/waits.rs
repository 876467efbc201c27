//! Waits of the loop for what may not be there.

use futures::{Stream, StreamExt as _};
use tokio::time::Instant;

/// Like [`sleep_until`], but a time that has come is seen at once: a timer of tokio fires only when its
/// runtime looks at the clock, which it rarely does while events keep arriving.
pub(super) async fn due(at: Option<Instant>) {
    if at.is_none_or(|at| at > Instant::now()) {
        sleep_until(at).await;
    }
}

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

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_time_that_has_come_is_seen_before_the_runtime_looks_at_the_clock() {
        let now = Instant::now();
        assert!(due(Some(now)).now_or_never().is_some());
        let later = now + std::time::Duration::from_secs(3_600);
        assert!(due(Some(later)).now_or_never().is_none());
        assert!(due(None).now_or_never().is_none());
    }
}
