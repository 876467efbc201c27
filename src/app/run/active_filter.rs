//! What decides which events the list of a run shows: its level, or a typed filter. It is applied in
//! bounded slices, newest events first, so that a long log never blocks the screen.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::EventWindow;
use super::filter::{EVENT_LIMITS, Filter};
use crate::event::{Event, World};
use crate::scenario::condition::EvalBudget;

/// Most that a filter may cost before the screen must be drawn again, in steps of its evaluation.
const SCAN_STEPS: u64 = 200_000;

/// Which events are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EventLevel {
    /// Those that a reader of a run wants to know.
    #[default]
    Notable,
    /// All of them.
    All,
}

impl EventLevel {
    /// Its filter over a log, of which a first slice is filtered; `None`: everything passes.
    pub(super) fn filter(self, log: &EventWindow) -> Option<ActiveFilter> {
        (self == Self::Notable).then(|| {
            let mut active = ActiveFilter::new(String::new(), Filter::Notable, log);
            // What is notable does not depend on the state of the run.
            active.scan(log, &World::new());
            active
        })
    }
}

/// The state of the filter, for the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterStatus<'a> {
    /// Its text, as typed.
    pub text: &'a str,
    /// The filter before it, which the arrow up recalls; empty: none.
    pub last: &'a str,
    /// While it is typed: where the next character goes, in bytes.
    pub typing: Option<usize>,
    /// What is wrong with it, if anything.
    pub error: Option<&'a str>,
    /// How much of the log was filtered, in percent.
    pub percent: u8,
}

#[derive(Debug)]
pub(super) struct ActiveFilter {
    pub(super) text: String,
    pub(super) filter: Filter,
    /// Places of the events that pass, in order.
    pub(super) found: VecDeque<usize>,
    /// The part of the log that was filtered so far.
    pub(super) scanned: Range<usize>,
    /// Events for which the condition could not be evaluated.
    pub(super) failed: u64,
    /// The error of the first of them.
    pub(super) error: Option<String>,
}

impl ActiveFilter {
    /// A filter that has seen nothing of the log.
    pub(super) fn new(text: String, filter: Filter, log: &EventWindow) -> Self {
        let scanned = log.len()..log.len();
        Self { text, filter, found: VecDeque::new(), scanned, failed: 0, error: None }
    }

    pub(super) fn is_typed(&self) -> bool {
        !matches!(self.filter, Filter::Notable)
    }

    /// Filters the next slice of the log: new events first, then backwards.
    pub(super) fn scan(&mut self, log: &EventWindow, world: &World) {
        let mut left = self.filter.batch_size();
        let mut steps = SCAN_STEPS;
        if self.scanned.is_empty() {
            self.scanned = log.len()..log.len();
        }
        while left > 0 && steps > 0 && self.scanned.end < log.len() {
            let place = self.scanned.end;
            self.scanned.end += 1;
            left -= 1;
            if self.matches(log.get(place), world, &mut steps) {
                self.found.push_back(place);
            }
        }
        while left > 0 && steps > 0 && self.scanned.start > log.dropped_count() {
            self.scanned.start -= 1;
            left -= 1;
            let place = self.scanned.start;
            if self.matches(log.get(place), world, &mut steps) {
                self.found.push_front(place);
            }
        }
    }

    /// Whether an event passes. The cost is subtracted from `steps`.
    pub(super) fn matches(
        &mut self,
        event: Option<&Arc<Event>>,
        world: &World,
        steps: &mut u64,
    ) -> bool {
        let Some(event) = event else { return false };
        let mut budget = EvalBudget::new(EVENT_LIMITS);
        let lets = self.filter.matches(event, world, &mut budget);
        *steps = steps.saturating_sub(budget.steps() + self.filter.conversion_cost(event));
        match lets {
            Ok(lets) => lets,
            Err(error) => {
                self.failed += 1;
                self.error.get_or_insert_with(|| first_line(&error.to_string()));
                false
            }
        }
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
