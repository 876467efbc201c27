//! The list of facts: a window over the log, or over what a filter lets through. The places of
//! what it lets through are found in bounded slices, newest first, so that a long log never holds
//! up the screen.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::RunLog;
use super::filter::{FACT, Filter};
use super::typed::Typed;
use crate::event::{Event, World};
use crate::scenario::condition::Budget;

/// What a filter may cost before the screen wants its turn again, in steps of its evaluation.
const STEPS: u64 = 200_000;

/// The list of facts and where the eye is in it. Places are places in the log, of which the last are
/// held; the first row is the first that is held.
#[derive(Debug, Default)]
pub struct FactList {
    filter: Option<Active>,
    /// What is typed, while it is.
    pub(super) typing: Option<Typed>,
    /// What was typed last.
    last: String,
    /// Why the text cannot be used as a filter.
    trouble: Option<String>,
    /// The fact that is selected; `None` follows the newest.
    cursor: Option<usize>,
    /// The fact in the first row, once the reader has moved.
    top: usize,
    /// Facts that the log holds no more.
    gone: usize,
}

#[derive(Debug)]
struct Active {
    text: String,
    filter: Filter,
    /// Places in order.
    found: VecDeque<usize>,
    /// The stretch of the log that was looked at.
    seen: Range<usize>,
    /// Facts that the condition could not be evaluated for.
    failed: u64,
    /// What was wrong with the first of them.
    trouble: Option<String>,
}

/// How the filter stands, for the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterShown<'a> {
    /// Its text, as typed.
    pub text: &'a str,
    /// Where the next character goes, in bytes, while it is typed.
    pub typing: Option<usize>,
    /// What is wrong with it, if something is.
    pub trouble: Option<&'a str>,
    /// How much of the log it has looked at, in percent.
    pub done: u8,
}

impl FactList {
    /// Whether the newest fact is followed.
    pub fn follows(&self) -> bool {
        self.cursor.is_none()
    }

    /// The selected fact's place; `None` when the newest is followed.
    pub fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    /// How many rows there are.
    pub fn len(&self, log: &RunLog) -> usize {
        match &self.filter {
            Some(active) => active.found.len(),
            // A text that is no filter lets nothing through.
            None if self.is_broken() => 0,
            None => log.len() - log.gone(),
        }
    }

    /// Whether what is typed is meant as a condition and is none.
    pub fn is_broken(&self) -> bool {
        self.typing.is_some() && self.trouble.is_some()
    }

    /// Whether a filter is on.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// How the filter stands; `None` when there is none and none is typed.
    pub fn filter(&self, log: &RunLog) -> Option<FilterShown<'_>> {
        let active = self.filter.as_ref();
        let held = (log.len() - log.gone()) as u64;
        let done = active.map_or(100, |active| {
            let percent = active.seen.len() as u64 * 100 / held.max(1);
            u8::try_from(percent).unwrap_or(100)
        });
        let nothing = active.filter(|active| active.found.is_empty() && done == 100);
        let trouble = self
            .trouble
            .as_deref()
            .or_else(|| nothing.and_then(|active| active.trouble.as_deref()));
        match &self.typing {
            Some(typed) => {
                Some(FilterShown { text: typed.text(), typing: Some(typed.at()), trouble, done })
            }
            None => {
                active.map(|active| FilterShown { text: &active.text, typing: None, trouble, done })
            }
        }
    }

    /// The place in the log of a row.
    pub fn place(&self, row: usize) -> Option<usize> {
        match &self.filter {
            Some(active) => active.found.get(row).copied(),
            None => Some(self.gone + row),
        }
    }

    /// The row of a place, or of the first one after it.
    fn row(&self, place: usize) -> usize {
        match &self.filter {
            Some(active) => active.found.partition_point(|found| *found < place),
            None => place.saturating_sub(self.gone),
        }
    }

    /// The rows that stand in a window of this height.
    pub fn window(&self, log: &RunLog, height: usize) -> Range<usize> {
        let len = self.len(log);
        if height == 0 || len == 0 {
            return 0..0;
        }
        let last = len.saturating_sub(height);
        let start = match self.cursor {
            None => last,
            Some(cursor) => {
                let row = self.row(cursor).min(len.saturating_sub(1));
                let top = self.row(self.top);
                top.clamp((row + 1).saturating_sub(height), row).min(last)
            }
        };
        start..(start + height).min(len)
    }

    /// The place of the row that is selected; the newest when it is followed.
    pub fn selected(&self, log: &RunLog) -> Option<usize> {
        match self.cursor {
            Some(cursor) => Some(cursor),
            None => self.place(self.len(log).checked_sub(1)?),
        }
    }

    /// Selects the row this many rows further on.
    pub(super) fn step(&mut self, by: isize, log: &RunLog, height: usize) {
        let Some(last) = self.len(log).checked_sub(1) else { return };
        let window = self.window(log, height);
        let row = self.cursor.map_or(last, |cursor| self.row(cursor).min(last));
        if self.cursor.is_none() && by > 0 {
            return;
        }
        let row = row.saturating_add_signed(by).min(last);
        self.top = self.place(window.start).unwrap_or(self.gone);
        self.cursor = self.place(row);
        let window = self.window(log, height);
        self.top = self.place(window.start).unwrap_or(self.gone);
    }

    /// Selects the first row.
    pub(super) fn first(&mut self, log: &RunLog) {
        self.cursor = self.place(0).filter(|_| self.len(log) > 0);
        self.top = self.gone;
    }

    /// Follows the newest fact again.
    pub(super) fn follow(&mut self) {
        self.cursor = None;
    }

    /// Moves the window without the selection, as a wheel does; the selection stays within it.
    pub(super) fn scroll(&mut self, by: isize, log: &RunLog, height: usize) {
        let len = self.len(log);
        let Some(last) = len.checked_sub(1) else { return };
        let window = self.window(log, height);
        if self.cursor.is_none() && by > 0 {
            return;
        }
        let start = window.start.saturating_add_signed(by).min(len.saturating_sub(height));
        let row = self.cursor.map_or(last, |cursor| self.row(cursor));
        let row = row.clamp(start, (start + height).saturating_sub(1).max(start)).min(last);
        self.top = self.place(start).unwrap_or(self.gone);
        self.cursor = self.place(row);
        // Further down than the end is back to following.
        if by > 0 && start == window.start && start + height >= len {
            self.follow();
        }
    }

    /// Selects a fact and brings it into view. A filter that hides it is taken off.
    pub(super) fn select(&mut self, place: usize, log: &RunLog, height: usize) {
        if let Some(active) = &self.filter
            && active.found.binary_search(&place).is_err()
        {
            self.filter = None;
        }
        let window = self.window(log, height);
        // What stands before and after it is seen with it.
        let margin = (height / 4).min(3);
        let row = self.row(place);
        let least = (row + 1 + margin).saturating_sub(height);
        let start = window.start.clamp(least, row.saturating_sub(margin).max(least));
        self.top = self.place(start).unwrap_or(self.gone);
        self.cursor = Some(place);
    }

    /// Starts to type a filter, from the last one.
    pub(super) fn type_filter(&mut self) {
        let text = self.filter.as_ref().map_or(self.last.clone(), |active| active.text.clone());
        self.typing = Some(Typed::new(text));
    }

    /// Takes what is typed so far: words at once, CEL as soon as it can be compiled.
    pub(super) fn typed(&mut self, log: &RunLog) {
        let Some(typed) = &self.typing else { return };
        let text = typed.text().to_owned();
        if self.filter.as_ref().is_some_and(|active| active.text == text) {
            self.trouble = None;
            return;
        }
        match Filter::parse(&text) {
            Ok(None) => {
                self.filter = None;
                self.trouble = None;
            }
            Ok(Some(filter)) => {
                self.trouble = None;
                self.filter = Some(Active {
                    text,
                    filter,
                    found: VecDeque::new(),
                    seen: log.len()..log.len(),
                    failed: 0,
                    trouble: None,
                });
            }
            Err(error) => {
                // What was typed before is no filter that anyone asked for.
                self.filter = None;
                self.trouble = Some(first_line(&error.to_string()));
            }
        }
    }

    /// Ends typing and keeps the filter. A text that cannot be used is typed on.
    pub(super) fn keep(&mut self) {
        if self.trouble.is_some() {
            return;
        }
        if let Some(typed) = self.typing.take() {
            self.last = typed.text().to_owned();
        }
    }

    /// Ends typing, and takes the filter off.
    pub(super) fn drop_filter(&mut self) {
        if let Some(active) = self.filter.take() {
            self.last = active.text;
        }
        self.typing = None;
        self.trouble = None;
    }

    /// Whether there is more of the log for the filter to look at.
    pub(super) fn is_behind(&self, log: &RunLog) -> bool {
        let held = log.gone()..log.len();
        self.filter.as_ref().is_some_and(|active| active.seen != held)
    }

    /// The log holds the facts before this place no more.
    pub(super) fn let_go(&mut self, place: usize) {
        self.gone = place;
        self.cursor = self.cursor.map(|cursor| cursor.max(place));
        self.top = self.top.max(place);
        let Some(active) = &mut self.filter else { return };
        let gone = active.found.partition_point(|found| *found < place);
        active.found.drain(..gone);
        active.seen = active.seen.start.max(place)..active.seen.end.max(place);
    }

    /// Lets the filter look at a slice of what it has not seen: what is new first, then backwards.
    pub(super) fn look(&mut self, log: &RunLog, world: &World) {
        let Some(active) = &mut self.filter else { return };
        let mut left = active.filter.slice();
        let mut steps = STEPS;
        while left > 0 && steps > 0 && active.seen.end < log.len() {
            let place = active.seen.end;
            active.seen.end += 1;
            left -= 1;
            if active.lets(log.get(place), world, &mut steps) {
                active.found.push_back(place);
            }
        }
        while left > 0 && steps > 0 && active.seen.start > log.gone() {
            active.seen.start -= 1;
            left -= 1;
            let place = active.seen.start;
            if active.lets(log.get(place), world, &mut steps) {
                active.found.push_front(place);
            }
        }
    }
}

impl Active {
    /// Whether a fact is let through. What that cost is taken from `steps`.
    fn lets(&mut self, event: Option<&Arc<Event>>, world: &World, steps: &mut u64) -> bool {
        let Some(event) = event else { return false };
        let mut budget = Budget::new(FACT);
        let lets = self.filter.lets(event, world, &mut budget);
        *steps = steps.saturating_sub(budget.steps() + self.filter.reads(event));
        match lets {
            Ok(lets) => lets,
            Err(error) => {
                self.failed += 1;
                self.trouble.get_or_insert_with(|| first_line(&error.to_string()));
                false
            }
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
