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

use crate::base::seeded_random::{happens_with, random_duration, random_u64};
use crate::base::visible::visible_within;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::Redactor;
use crate::scenario::tools::fixture::{FixtureAnswer, FixtureRow, FixtureSpec, LoadSpec};
use crate::tool;

/// Most characters of a call's arguments that an error message quotes.
const ARGS_CHARS: usize = 120;

/// A tool with results from the scenario's table.
pub struct FixtureTool {
    spec: Arc<FixtureSpec>,
    instant: bool,
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
            let Some(failed) = AttemptFailed::from_scripted_fault(fault, "a malformed result")
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
                tool::parse_json(text.as_bytes(), "the result", &Redactor::default())
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
        && row.nth.is_none_or(|nth| nth == request.nth)
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
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;
    use serde_json::json;

    use super::*;
    use crate::base::seeded_random::Latency;
    use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind};

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("a table")
    }

    fn row(needs: Value, answer: Value) -> FixtureRow {
        FixtureRow {
            args: args(needs),
            attempt: None,
            nth: None,
            latency: Latency::default(),
            fault: None,
            answer: FixtureAnswer::Value(Arc::new(answer)),
        }
    }

    fn tool(rows: Vec<FixtureRow>, load: Option<LoadSpec>) -> FixtureTool {
        FixtureTool::new(Arc::new(FixtureSpec { rows, load }), false)
    }

    async fn ask(
        tool: &FixtureTool,
        args: &Map<String, Value>,
        attempt: u32,
    ) -> Result<Arc<Value>, Box<AttemptFailed>> {
        tool.ask(ToolRequest { attempt, draw: 7, ..ToolRequest::bare(args) }).await
    }

    fn takes(ms: u64) -> Latency {
        Latency { min: Duration::from_millis(ms), max: Duration::from_millis(ms) }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_row_that_fits_answers() {
        let second = FixtureRow { attempt: Some(2), ..row(json!({}), json!({ "n": 2 })) };
        let rows = vec![row(json!({ "sku": "a" }), json!({ "n": 1 })), second];
        let tool = tool(rows, None);
        let a = args(json!({ "sku": "a", "more": true }));
        assert_eq!(*ask(&tool, &a, 1).await.expect("an answer"), json!({ "n": 1 }));
        let b = args(json!({ "sku": "b" }));
        assert_eq!(*ask(&tool, &b, 2).await.expect("an answer"), json!({ "n": 2 }));
        let failed = ask(&tool, &b, 1).await.expect_err("no row fits");
        assert_eq!(failed.class, FailureClass::Tool);
        assert_eq!(
            failed.text,
            "no row matches {\"sku\":\"b\"} (attempt 1): add one whose args match, or one \
         without args"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn draws_latency_within_bounds_unless_instant() {
        let bounds = Latency { min: Duration::from_millis(100), max: Duration::from_millis(900) };
        let spec = FixtureSpec {
            rows: vec![FixtureRow { latency: bounds, ..row(json!({}), json!({})) }],
            load: None,
        };
        let spec = Arc::new(spec);
        let slow = FixtureTool::new(Arc::clone(&spec), false);
        let (args, mut seen) = (Map::new(), std::collections::BTreeSet::new());
        for draw in 0..20 {
            let began = Instant::now();
            let asked = ToolRequest { draw, ..ToolRequest::bare(&args) };
            slow.ask(asked).await.expect("an answer");
            let took = began.elapsed();
            // tokio's timer has a resolution of one millisecond.
            assert!(took >= bounds.min && took <= bounds.max + Duration::from_millis(1));
            seen.insert(took);
        }
        assert!(seen.len() > 10, "neighbouring draws differ: {seen:?}");
        let began = Instant::now();
        let instant = FixtureTool::new(spec, true);
        ask(&instant, &args, 1).await.expect("an answer");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_comes_first_and_passes() {
        let kind =
            ScriptFaultKind::Status { status: 429, retry_after: Some(Duration::from_secs(2)) };
        let fault = Some(ScriptFault::new(kind, 2));
        let latency = takes(50);
        let tool = tool(vec![FixtureRow { fault, latency, ..row(json!({}), json!({})) }], None);
        for attempt in 1..=2 {
            let began = Instant::now();
            let failed = ask(&tool, &Map::new(), attempt).await.expect_err("a fault");
            assert_eq!(failed.class, FailureClass::RateLimited);
            assert_eq!((failed.status, failed.retry_after_ms), (Some(429), Some(2_000)));
            assert_eq!(began.elapsed(), Duration::from_millis(50));
        }
        ask(&tool, &Map::new(), 3).await.expect("an answer");
    }

    #[tokio::test(start_paused = true)]
    async fn hang_ends_only_when_dropped() {
        let fault = Some(ScriptFault::new(ScriptFaultKind::Hang, 1));
        let tool = tool(vec![FixtureRow { fault, ..row(json!({}), json!({})) }], None);
        let args = Map::new();
        let mut asked = ask(&tool, &args, 1).boxed();
        assert!(tokio::time::timeout(Duration::from_secs(3_600), &mut asked).await.is_err());
        assert_eq!(tool.in_flight.load(Ordering::Acquire), 1);
        drop(asked);
        assert_eq!(tool.in_flight.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn reads_raw_answer_as_json() {
        let raw = |text: &str| FixtureRow {
            answer: FixtureAnswer::Raw(text.into()),
            ..row(json!({}), json!({}))
        };
        let good = tool(vec![raw(" {\"n\": 1} ")], None);
        assert_eq!(*ask(&good, &Map::new(), 1).await.expect("JSON"), json!({ "n": 1 }));
        for (text, says) in [
            ("{\"n\": }", "the result is not JSON: expected value at line 1 column 7: {\"n\": }"),
            (" \n", "the result is empty, JSON was expected"),
        ] {
            let failed = ask(&tool(vec![raw(text)], None), &Map::new(), 1).await;
            let failed = failed.expect_err("no JSON");
            assert_eq!((failed.class, &*failed.text), (FailureClass::BadResponse, says));
        }
    }

    const VENDOR: LoadSpec = LoadSpec {
        capacity: 10,
        flaky_rate: 1.0,
        flaky_from: Duration::from_secs(5),
        flaky_until: Duration::from_secs(8),
        flaky_evenly: false,
        slow_factor: 3.0,
        slow_from: Duration::from_secs(20),
        slow_until: Duration::from_secs(22),
    };

    const SOON: Duration = Duration::ZERO;

    /// Makes `at_once` concurrent requests from a run that has been active for `active`; returns
    /// how many failed, and how long the last took.
    async fn storm(tool: &FixtureTool, at_once: u64, active: Duration) -> (usize, Duration) {
        let (args, began) = (Map::new(), Instant::now());
        let asked = (0..at_once)
            .map(|draw| tool.ask(ToolRequest { draw, active, ..ToolRequest::bare(&args) }));
        let failed = join_all(asked).await.into_iter().filter_map(Result::err);
        let failed = failed.inspect(|failed| assert_eq!(failed.status, Some(503))).count();
        (failed, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn overload_slows_then_fails() {
        let rows = || vec![FixtureRow { latency: takes(100), ..row(json!({}), json!({})) }];
        let vendor = tool(rows(), Some(VENDOR));
        assert_eq!(storm(&vendor, 10, SOON).await, (0, Duration::from_millis(100)));
        let (failed, took) = storm(&vendor, 15, SOON).await;
        assert!(failed <= 5, "none of the first ten fails: {failed}");
        assert_eq!(took, Duration::from_millis(150));
        let (failed, took) = storm(&vendor, 100, SOON).await;
        assert!((81..90).contains(&failed), "all from the twentieth on: {failed}");
        assert_eq!(took, Duration::from_millis(1_000));
        assert_eq!(vendor.in_flight.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn flaky_vendor_recovers_in_time() {
        let vendor = tool(vec![row(json!({}), json!({}))], Some(VENDOR));
        let at = Duration::from_secs;
        tokio::time::advance(at(6)).await;
        assert_eq!(storm(&vendor, 1, at(6)).await.0, 0, "its time begins with the first request");
        tokio::time::advance(at(5)).await;
        assert_eq!(storm(&vendor, 5, at(11)).await.0, 5);
        tokio::time::advance(at(3)).await;
        assert_eq!(storm(&vendor, 5, at(14)).await.0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn clock_stands_while_paused() {
        let vendor = tool(vec![row(json!({}), json!({}))], Some(VENDOR));
        let at = Duration::from_secs;
        assert_eq!(storm(&vendor, 1, at(0)).await.0, 0);
        tokio::time::advance(at(600)).await;
        assert_eq!(storm(&vendor, 5, at(4)).await.0, 0, "the run has gone on for four seconds");
        tokio::time::advance(at(600)).await;
        assert_eq!(storm(&vendor, 5, at(7)).await.0, 5, "it is flaky now");
        tokio::time::advance(at(600)).await;
        assert_eq!(storm(&vendor, 5, at(8)).await.0, 0, "it has recovered");
    }

    #[tokio::test(start_paused = true)]
    async fn even_failures_never_come_in_fives() {
        let load = LoadSpec { flaky_rate: 0.8, flaky_evenly: true, flaky_from: SOON, ..VENDOR };
        let vendor = tool(vec![row(json!({}), json!({}))], Some(load));
        let mut results = String::new();
        for _ in 0..15 {
            results.push(if storm(&vendor, 1, SOON).await.0 > 0 { 'x' } else { '.' });
        }
        assert_eq!(results, ".xxxx.xxxx.xxxx");
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_slow_for_its_time() {
        let rows = vec![FixtureRow { latency: takes(100), ..row(json!({}), json!({})) }];
        let vendor = tool(rows, Some(VENDOR));
        let mut took = Vec::new();
        for second in [0, 19, 20, 21, 22] {
            tokio::time::advance(Duration::from_secs(60)).await;
            took.push(storm(&vendor, 1, Duration::from_secs(second)).await.1.as_millis());
        }
        assert_eq!(took, [100, 100, 300, 300, 100]);
    }

    #[test]
    fn shared_clock_never_jumps() {
        let (began, at) = (Instant::now(), Duration::from_secs);
        let mut clock = ActiveClock { elapsed: at(0), at: began, active: at(60) };
        for (outside, active, elapsed, why) in [
            (1, 61, 1, "the first run"),
            (3, 2, 3, "a younger one"),
            (4, 64, 4, "the first again"),
            (5, 900, 5, "an older one"),
            (5, 4, 5, "the younger one in the same moment"),
            (65, 5, 6, "the younger one, after a pause"),
        ] {
            assert_eq!(clock.advance_to(began + at(outside), at(active)), at(elapsed), "{why}");
        }
    }

    #[test]
    fn what_load_does_to_a_request() {
        let early = Duration::ZERO;
        for (in_flight, slower, overload) in
            [(1, 1.0, 0.0), (10, 1.0, 0.0), (15, 1.5, 0.5), (20, 2.0, 1.0), (90, 9.0, 1.0)]
        {
            let strain = LoadEffect { slowdown: slower, overload, flaky: 0.0 };
            assert_eq!(LoadEffect::from_load(VENDOR, in_flight, early), strain);
        }
        let at = |secs| LoadEffect::from_load(VENDOR, 1, Duration::from_secs(secs)).flaky;
        assert_eq!((at(4), at(5), at(7), at(8)), (0.0, 1.0, 1.0, 0.0));
    }
}
