//! The time of a run. A run that is played has real time. A run that is re-executed from its log
//! has recorded time: it is stopped until its [`ClockDriver`] moves it, and timers fire one at a
//! time, when the driver says so. Once the log is used up, the driver makes it real time again.
//!
//! What happens inside one attempt of a model or tool is never re-executed, so models, tools and
//! their clients use tokio's clock.

mod recorded;

use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use self::recorded::{RecordedSleep, RecordedTime};

pub(crate) use self::recorded::ClockDriver;

/// The clock of a run. Cheap to clone; all clones show the same time.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<RecordedTime>>);

/// A wait by a [`Clock`].
pub type ClockSleep = Either<Sleep, RecordedSleep>;

impl Clock {
    /// Tokio's clock.
    pub fn real() -> Self {
        Self(None)
    }

    /// A clock that is stopped at the present moment, and what moves it.
    pub(crate) fn recorded() -> (Self, ClockDriver) {
        let time = RecordedTime::new(Instant::now());
        (Self(Some(Arc::clone(&time))), ClockDriver::new(time))
    }

    /// The present moment.
    pub fn now(&self) -> Instant {
        match &self.0 {
            None => Instant::now(),
            Some(time) => time.now(),
        }
    }

    /// Time that has passed since this moment; zero if it lies ahead.
    pub fn since(&self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }

    /// Waits for this long.
    pub fn sleep(&self, duration: Duration) -> ClockSleep {
        match &self.0 {
            None => Either::Left(sleep(duration)),
            Some(time) => Either::Right(time.sleep_until(time.now().checked_add(duration))),
        }
    }

    /// Waits until this moment.
    pub fn sleep_until(&self, moment: Instant) -> ClockSleep {
        match &self.0 {
            None => Either::Left(sleep_until(moment)),
            Some(time) => Either::Right(time.sleep_until(Some(moment))),
        }
    }

    /// Says that the run waits for something that is neither a timer nor an event, such as a
    /// computation on another thread, until the returned guard is dropped.
    pub fn outside(&self) -> OutsideGuard {
        if let Some(time) = &self.0 {
            time.count_outside(true);
        }
        OutsideGuard(self.clone())
    }
}

/// The run waits for something outside until this is dropped.
pub struct OutsideGuard(Clock);

impl Drop for OutsideGuard {
    fn drop(&mut self) {
        if let Some(time) = &self.0.0 {
            time.count_outside(false);
        }
    }
}
