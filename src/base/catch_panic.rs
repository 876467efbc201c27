//! Contains panics: one inside a tool or model fails only its attempt, one inside a pattern ends
//! only its run. While such code runs, a mark on its thread tells the program's panic hook to leave
//! the terminal alone.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

struct CatchMark;

impl CatchMark {
    fn set() -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Self
    }
}

impl Drop for CatchMark {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Whether a panic on this thread would be contained now.
pub fn is_catching() -> bool {
    DEPTH.with(|depth| depth.get() > 0)
}

/// A future whose panics become an error value.
pub struct CatchPanic<F>(F);

impl<F: Future + Unpin> CatchPanic<F> {
    /// Contains the panics of `inner`.
    pub fn new(inner: F) -> Self {
        Self(inner)
    }
}

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = {
            let _mark = CatchMark::set();
            // After a panic the future is dropped, so nothing sees its inconsistent state.
            catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.0).poll(cx)))
        };
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
        }
    }
}

/// Calls a synchronous function whose panics become an error value.
///
/// # Errors
/// The message of the panic.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let _mark = CatchMark::set();
    // Inconsistent state is dropped with the closure.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_panic_becomes_error() {
        assert_eq!(catch_panic(|| 1), Ok(1));
        let marked = catch_panic(|| {
            if is_catching() {
                panic!("boom")
            }
        });
        assert_eq!(marked, Err("boom".to_owned()));
        assert!(!is_catching());
    }

    #[tokio::test]
    async fn future_panic_becomes_error_and_unmarks() {
        let seen = CatchPanic::new(Box::pin(async {
            assert!(is_catching());
            if is_catching() {
                panic!("boom {}", 1);
            }
        }))
        .await;
        assert_eq!(seen, Err("boom 1".to_owned()));
        assert!(!is_catching());
    }
}
