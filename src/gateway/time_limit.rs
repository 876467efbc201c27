//! Timeout of one attempt, and containment of its panics.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::timeout;

use crate::base::contained::Contained;
use crate::event::kind::{AttemptFailed, FailureClass};

/// Runs an attempt with a timeout and contains its panics; `None` is a timeout. Allocates nothing for
/// an attempt that is ready at once.
///
/// # Errors
/// The attempt's own failure, or a panic.
pub async fn run_within<T>(
    limit: Duration,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Option<Result<T, Box<AttemptFailed>>> {
    let attempt = pin!(attempt);
    timeout(limit, Contained::new(attempt)).await.ok().map(flatten_panic)
}

/// Like [`run_within`], with the caller's own clock.
pub(super) async fn run_within_clock<T>(
    time_up: BoxFuture<'_, ()>,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Option<Result<T, Box<AttemptFailed>>> {
    let attempt = pin!(attempt);
    tokio::select! {
        biased;
        ended = Contained::new(attempt) => Some(flatten_panic(ended)),
        () = time_up => None,
    }
}

fn flatten_panic<T>(
    ended: Result<Result<T, Box<AttemptFailed>>, String>,
) -> Result<T, Box<AttemptFailed>> {
    ended.unwrap_or_else(|panic| {
        tracing::error!(%panic, "a tool panicked; its attempt failed, the run continues");
        Err(AttemptFailed::new(FailureClass::Panic, format!("panicked: {panic}")))
    })
}

/// The failure of an attempt that was not done in time; `partial` is the text that had come.
pub(super) fn timeout_error(
    limit: Duration,
    from: Option<String>,
    partial: Option<Arc<str>>,
) -> Box<AttemptFailed> {
    let limit = format!("{:.1} s, the timeout of one attempt (timeout_s)", limit.as_secs_f64());
    let from = from.map_or_else(String::new, |host| format!(" from {host}"));
    let text = match &partial {
        None => format!("no reply{from} within {limit}."),
        Some(text) => format!(
            "the reply{from} was not complete within {limit}: {} characters had come.",
            text.chars().count()
        ),
    };
    Box::new(AttemptFailed { partial, ..*AttemptFailed::new(FailureClass::Timeout, text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_whether_text_came() {
        let limit = Duration::from_secs(3);
        let said = |partial: Option<&str>| {
            timeout_error(limit, Some("a.example".to_owned()), partial.map(Arc::from)).text
        };
        assert_eq!(
            said(None),
            "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s)."
        );
        assert_eq!(
            said(Some("grün")),
            "the reply from a.example was not complete within 3.0 s, the timeout of one attempt \
             (timeout_s): 4 characters had come."
        );
    }
}
