//! What failed, was refused or waits for another attempt: the causes behind a stop.

use super::back_off::BackOff;
use super::last_errors::LastErrors;
use super::refusals::Refusals;
use super::spans::Spans;
use crate::event::Event;
use crate::event::kind::BudgetReached;

/// What failed, was refused or waits for another attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    pub last_errors: LastErrors,
    pub refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    pub budget_reached: Option<BudgetReached>,
    pub back_off: BackOff,
}

impl Failures {
    /// Keeps the causes that an event has, after the span tree.
    pub(super) fn apply(&mut self, event: &Event, spans: &Spans) {
        self.last_errors.apply(event, spans);
        self.refusals.apply(event, spans);
    }
}
