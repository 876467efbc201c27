//! A scripted tool: results from the scenario, and a simulated vendor that degrades under load.
//! Everything that a tool can do, offline.
//!
//! Rows, latencies and random draws are the same in every run with the same seed. The effect of
//! load also depends on how many requests overlap. Under paused time, as in tests, that repeats
//! exactly; under real time, a request may end just before or just after another begins, so two
//! runs with the same seed may differ slightly.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::result_json;
use crate::base::seeded_random::{happens_with, random_duration, random_u64};
use crate::base::visible::visible_within;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::gateway::interface::{Tool, ToolRequest};
use crate::net::Redactor;
use crate::scenario::spec::tool::{FixtureAnswer, FixtureRow, FixtureSpec, LoadSpec};

/// Most characters of a call's arguments that an error message quotes.
const ARGS_CHARS: usize = 120;

/// A tool with results from the scenario's table.
pub struct FixtureTool {
    spec: Arc<FixtureSpec>,
    instant: bool,
    /// Requests in flight.
    in_flight: AtomicU32,
    /// Requests that ended in the flaky time, where failures are spread evenly.
    flaky_answers: AtomicU64,
    /// Time since the first request; decides when the tool is flaky or slow.
    clock: Mutex<Option<ActiveClock>>,
}

impl FixtureTool {
    /// The tool of this table; `instant` skips its latencies.
    pub fn new(spec: Arc<FixtureSpec>, instant: bool) -> Self {
        let (in_flight, flaky_answers) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { spec, instant, in_flight, flaky_answers, clock: Mutex::new(None) }
    }

    /// Time from the first request to this one.
    fn since_first(&self, active: Duration) -> Duration {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        clock
            .get_or_insert(ActiveClock { elapsed: Duration::ZERO, at: now, active })
            .advance_to(now, active)
    }

    /// Whether a request that ends now fails because the tool is flaky, at this rate.
    fn is_flaky(&self, rate: f64, draw: u64) -> bool {
        let evenly = self.spec.load.is_some_and(|load| load.flaky_evenly);
        if !evenly || rate == 0.0 {
            return happens_with(rate, draw);
        }
        // In whole thousandths, so that no sum is rounded.
        let thousandths = (rate * 1_000.0).round() as u64;
        let nth = self.flaky_answers.fetch_add(1, Ordering::AcqRel);
        (nth + 1) * thousandths / 1_000 > nth * thousandths / 1_000
    }

    async fn answer(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let here = InFlight::enter(&self.in_flight);
        let strain = self
            .spec
            .load
            .map(|load| LoadEffect::from_load(load, here.number, self.since_first(request.active)));
        let Some(row) = self.spec.rows.iter().find(|row| row_matches(row, request)) else {
            return Err(no_row_error(request));
        };
        // Draws of one attempt's requests are close to each other, so each is hashed again.
        let draw = |what| random_u64(request.draw, "fixture", request.attempt, what);
        let takes = if self.instant {
            Duration::ZERO
        } else {
            random_duration(row.latency, draw("latency"))
        };
        let takes = strain.as_ref().map_or(takes, |strain| takes.mul_f64(strain.slowdown));
        let fault = row.fault.as_ref().filter(|fault| request.attempt <= fault.times);
        if let Some(fault) = fault {
            let Some(failed) =
                AttemptFailed::from_scripted_fault(&fault.kind, "a malformed result")
            else {
                return std::future::pending().await;
            };
            sleep_unless_zero(takes).await;
            return Err(failed);
        }
        sleep_unless_zero(takes).await;
        if let Some(LoadEffect { overload, flaky, .. }) = strain {
            let why = if happens_with(overload, draw("overload")) {
                Some("overloaded")
            } else if self.is_flaky(flaky, draw("flaky")) {
                Some("flaky")
            } else {
                None
            };
            if let Some(why) = why {
                return Err(AttemptFailed::from_status(503, format!("HTTP 503 ({why}, scripted)")));
            }
        }
        match &row.answer {
            FixtureAnswer::Value(value) => Ok(Arc::clone(value)),
            FixtureAnswer::Raw(text) => {
                result_json::parse_json(text.as_bytes(), "the result", &Redactor::default())
            }
        }
    }
}

impl Tool for FixtureTool {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.answer(request))
    }
}

/// One request in flight; dropping it lowers the count.
struct InFlight<'a> {
    count: &'a AtomicU32,
    /// Requests in flight, including this one.
    number: u32,
}

impl<'a> InFlight<'a> {
    fn enter(count: &'a AtomicU32) -> Self {
        let number = count.fetch_add(1, Ordering::AcqRel) + 1;
        Self { count, number }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Clock of a fixture. It follows the active time of the runs that call it, which stops while they
/// are paused.
struct ActiveClock {
    elapsed: Duration,
    /// Time of the last request.
    at: Instant,
    /// Active time of the run that made the last request.
    active: Duration,
}

impl ActiveClock {
    /// Advances the clock to a request at `now` from a run that has been active for `active`. The
    /// run itself is not known here. Several runs of different ages may share the fixture, so the
    /// clock never advances by more than the real time, and never goes back.
    fn advance_to(&mut self, now: Instant, active: Duration) -> Duration {
        let outside = now.saturating_duration_since(self.at);
        let inside = active.checked_sub(self.active).unwrap_or(outside);
        *self = Self { elapsed: self.elapsed + inside.min(outside), at: now, active };
        self.elapsed
    }
}

/// Effect of load and time on one request.
#[derive(Debug, PartialEq)]
struct LoadEffect {
    /// Factor for the latency.
    slowdown: f64,
    /// Probability of a failure through overload.
    overload: f64,
    /// Probability of a failure while the tool is flaky.
    flaky: f64,
}

impl LoadEffect {
    fn from_load(load: LoadSpec, in_flight: u32, since_first: Duration) -> Self {
        let capacity = f64::from(load.capacity.max(1));
        let of_capacity = f64::from(in_flight) / capacity;
        let flaky = (load.flaky_from..load.flaky_until).contains(&since_first);
        let slow = (load.slow_from..load.slow_until).contains(&since_first);
        Self {
            slowdown: of_capacity.max(1.0) * if slow { load.slow_factor } else { 1.0 },
            overload: (of_capacity - 1.0).clamp(0.0, 1.0),
            flaky: if flaky { load.flaky_rate } else { 0.0 },
        }
    }
}

/// Sleeps. No timer for zero, which tokio would round up to a millisecond.
async fn sleep_unless_zero(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

/// Whether a row matches these arguments and this attempt.
fn row_matches(row: &FixtureRow, request: ToolRequest<'_>) -> bool {
    row.attempt.is_none_or(|attempt| attempt == request.attempt)
        && row.args.iter().all(|(name, value)| request.args.get(name) == Some(value))
}

fn no_row_error(request: ToolRequest<'_>) -> Box<AttemptFailed> {
    let args = args_text(request.args);
    let text = format!(
        "no row matches {args} (attempt {}): add one whose args match, or one without args",
        request.attempt
    );
    AttemptFailed::new(FailureClass::Tool, text)
}

fn args_text(args: &Map<String, Value>) -> String {
    visible_within(&Value::Object(args.clone()).to_string(), ARGS_CHARS)
}

#[cfg(test)]
mod tests;
