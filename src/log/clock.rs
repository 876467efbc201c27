//! The time of a run. A run that is played has real time. A run that is executed again has recorded
//! time: it is stopped until its [`ClockDriver`] moves it, and timers fire one at a time. Once the
//! recording is used up, it is real time again.
//!
//! What happens inside one attempt of a model or tool is never executed again, so models, tools and
//! their clients use tokio's clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::Either;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

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

    /// A clock that is stopped at the present moment, and the driver that moves it.
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

/// A time that is stopped until its driver moves it, and is real time from
/// [`ClockDriver::go_live`] on.
pub struct RecordedTime {
    live: OnceLock<LiveStart>,
    state: Mutex<TimerState>,
}

/// The moment when recorded time became real time.
#[derive(Clone, Copy)]
struct LiveStart {
    /// By this clock.
    recorded: Instant,
    /// By tokio's clock.
    real: Instant,
}

struct TimerState {
    now: Instant,
    /// The timers that have not fired, by deadline, then in the order of their registration.
    timers: BTreeMap<(Instant, u64), Waker>,
    registered: u64,
    /// How many waits for something outside there are.
    outside: u32,
}

impl RecordedTime {
    /// A time that is stopped at this moment.
    pub(crate) fn new(now: Instant) -> Arc<Self> {
        let state = TimerState { now, timers: BTreeMap::new(), registered: 0, outside: 0 };
        Arc::new(Self { live: OnceLock::new(), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        match self.live.get() {
            Some(start) => start.recorded + start.real.elapsed(),
            None => self.lock().now,
        }
    }

    /// A timer for this moment; `None`: a moment that never comes.
    pub(crate) fn sleep_until(self: &Arc<Self>, until: Option<Instant>) -> RecordedSleep {
        RecordedSleep { time: Arc::clone(self), until, timer: Timer::New }
    }

    fn count_outside(&self, begins: bool) {
        let mut state = self.lock();
        state.outside = match begins {
            true => state.outside.saturating_add(1),
            false => state.outside.saturating_sub(1),
        };
    }
}

impl LiveStart {
    /// A moment of this clock by tokio's clock; the past is the start.
    fn to_real(self, moment: Instant) -> Instant {
        let ahead = moment.saturating_duration_since(self.recorded);
        self.real.checked_add(ahead).unwrap_or(self.real)
    }
}

/// A wait by recorded time. It ends when the driver fires it, or in real time once time is real.
pub struct RecordedSleep {
    time: Arc<RecordedTime>,
    /// `None`: it never ends.
    until: Option<Instant>,
    timer: Timer,
}

enum Timer {
    /// Not polled yet.
    New,
    Registered(u64),
    /// A timer of tokio.
    Real(Pin<Box<Sleep>>),
}

impl Future for RecordedSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(until) = this.until else { return Poll::Pending };
        if let Timer::Real(sleep) = &mut this.timer {
            return sleep.as_mut().poll(cx);
        }
        let mut state = this.time.lock();
        if let Timer::Registered(number) = this.timer {
            match state.timers.get_mut(&(until, number)) {
                None => return Poll::Ready(()),
                Some(waker) => waker.clone_from(cx.waker()),
            }
        }
        if let Some(start) = this.time.live.get() {
            if let Timer::Registered(number) = this.timer {
                state.timers.remove(&(until, number));
            }
            drop(state);
            let mut sleep = Box::pin(sleep_until(start.to_real(until)));
            let polled = sleep.as_mut().poll(cx);
            this.timer = Timer::Real(sleep);
            return polled;
        }
        if let Timer::New = this.timer {
            state.registered += 1;
            let number = state.registered;
            state.timers.insert((until, number), cx.waker().clone());
            this.timer = Timer::Registered(number);
        }
        Poll::Pending
    }
}

impl Drop for RecordedSleep {
    fn drop(&mut self) {
        if let (Some(until), Timer::Registered(number)) = (self.until, &self.timer) {
            self.time.lock().timers.remove(&(until, *number));
        }
    }
}

/// Moves the time of one recorded clock.
pub(crate) struct ClockDriver(Arc<RecordedTime>);

impl ClockDriver {
    pub(crate) fn new(time: Arc<RecordedTime>) -> Self {
        Self(time)
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.now()
    }

    /// The deadline of the earliest timer.
    #[cfg(test)]
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.0.lock().timers.keys().next().map(|(until, _)| *until)
    }

    /// Moves time forward to this moment, never back. No timer fires.
    pub(crate) fn advance(&self, to: Instant) {
        let mut state = self.0.lock();
        state.now = state.now.max(to);
    }

    /// Fires the earliest timer if it is due. Of timers with the same deadline, the one that was
    /// registered first fires first. Returns whether one fired.
    pub(crate) fn fire(&self) -> bool {
        let mut state = self.0.lock();
        let now = state.now;
        let due = state.timers.first_entry().filter(|timer| timer.key().0 <= now);
        let Some(waker) = due.map(|timer| timer.remove()) else { return false };
        drop(state);
        waker.wake();
        true
    }

    /// Whether the run waits for something outside, so that it is not idle.
    pub(crate) fn waits_outside(&self) -> bool {
        self.0.lock().outside > 0
    }

    /// Makes recorded time real time from now on. Timers that have not fired become real timers
    /// with the time that is left.
    pub(crate) fn go_live(&self) {
        let waiting: Vec<Waker> = {
            let state = self.0.lock();
            let _ = self.0.live.set(LiveStart { recorded: state.now, real: Instant::now() });
            state.timers.values().cloned().collect()
        };
        for waker in waiting {
            waker.wake();
        }
    }
}
