//! Futures that are polled only when they were woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Polls a future only when that future was woken, not whenever another part of its task was. This is for a
/// future that is rarely ready, next to one that is polled often.
pub struct WhenWoken<F> {
    inner: F,
    flag: Arc<WakeFlag>,
    waker: Waker,
}

impl<F: Future + Unpin> WhenWoken<F> {
    /// The first poll reaches `inner`.
    pub fn new(inner: F) -> Self {
        let flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), ..WakeFlag::default() });
        Self { inner, waker: Arc::clone(&flag).into(), flag }
    }
}

impl<F: Future + Unpin> Future for WhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // First: a wake after this reaches the task.
        self.flag.register(cx);
        if !self.flag.take() {
            return Poll::Pending;
        }
        let this = &mut *self;
        Pin::new(&mut this.inner).poll(&mut Context::from_waker(&this.waker))
    }
}

/// A waker for one future of a task: remembers that it was woken, and wakes the task.
#[derive(Default)]
pub struct WakeFlag {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl WakeFlag {
    /// Wakes this task from now on.
    pub fn register(&self, task: &Context<'_>) {
        self.task.register(task.waker());
    }

    /// Whether it was woken since the last call.
    pub fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_polled_when_it_was_woken_and_not_with_its_neighbour() {
        let polls = AtomicU32::new(0);
        let (notify, start) = (Notify::new(), tokio::time::Instant::now());
        let mut waits = pin!(notify.notified());
        let counted = pin!(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            waits.as_mut().poll(cx)
        }));
        let mut quiet = WhenWoken::new(counted);
        for _ in 0..10 {
            tokio::select! {
                biased;
                () = &mut quiet => unreachable!("it is notified later"),
                () = sleep(Duration::from_millis(1)) => {}
            }
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        let notifies = async {
            sleep(Duration::from_millis(5)).await;
            notify.notify_waiters();
        };
        tokio::join!(quiet, notifies);
        assert_eq!(polls.load(Ordering::Relaxed), 2);
        assert_eq!(start.elapsed(), Duration::from_millis(15));
    }

    #[tokio::test(start_paused = true)]
    async fn it_wakes_the_task_that_polled_it_last() {
        let mut waits = WhenWoken::new(Box::pin(sleep(Duration::from_millis(2))));
        assert!(futures::poll!(&mut waits).is_pending());
        let task = tokio::spawn(waits);
        assert!(tokio::time::timeout(Duration::from_millis(3), task).await.is_ok());
    }
}
