//! The list of events: a window over the log, or over the events that pass a filter. The filter is
//! applied in bounded slices, newest events first, so that a long log never blocks the screen.

use std::ops::Range;

use super::EventWindow;
use super::active_filter::{ActiveFilter, EventLevel, FilterStatus, first_line};
use super::filter::Filter;
use super::filter_input::FilterInput;
use super::input_outcome::InputOutcome;
use crate::app::action::Action;
use crate::event::World;

/// The list of events, its filter and its selection. Places count from the start of the run; only
/// the last part of the log is in memory, and the first row is the first event of that part.
#[derive(Debug)]
pub struct EventList {
    /// Which events are listed without a typed filter; a typed one searches them all.
    level: EventLevel,
    /// What is applied at present: a typed filter, or that of the level.
    filter: Option<ActiveFilter>,
    /// The filter while it is typed.
    pub(super) typing: Option<FilterInput>,
    /// The last filter that was used, which the arrow up recalls.
    last: String,
    /// Why the typed text cannot be used as a filter.
    error: Option<String>,
    /// The selected event; `None` follows the newest.
    cursor: Option<usize>,
    /// The event in the first row, once the operator has scrolled.
    top: usize,
    /// Events dropped from the log.
    dropped: usize,
}

impl Default for EventList {
    fn default() -> Self {
        let level = EventLevel::default();
        Self {
            level,
            filter: level.filter(&EventWindow::default()),
            typing: None,
            last: String::new(),
            error: None,
            cursor: None,
            top: 0,
            dropped: 0,
        }
    }
}

impl EventList {
    /// Filters another slice of the log, if the list is behind it.
    pub(super) fn catch_up(&mut self, log: &EventWindow, world: &World) {
        if self.is_behind(log) {
            self.scan(log, world);
        }
    }

    /// Applies what is typed into the filter.
    pub(super) fn filter_typed(&mut self, log: &EventWindow, world: &World) {
        self.apply_typed(log);
        self.scan(log, world);
    }

    /// Handles an action while a filter is typed; `None`: none is.
    pub(super) fn on_filter_action(
        &mut self,
        action: Action,
        log: &EventWindow,
    ) -> Option<InputOutcome> {
        self.typing.as_ref()?;
        match action {
            Action::Apply => self.accept(),
            Action::Cancel => self.drop_filter(log),
            _ => return Some(InputOutcome::Ignored),
        }
        Some(InputOutcome::redraw())
    }

    /// Moves the selection in a window of this height.
    pub(super) fn on_move(&mut self, action: Action, log: &EventWindow, height: usize) {
        let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Action::Up => self.step(-1, log, height),
            Action::Down => self.step(1, log, height),
            Action::PageUp => self.step(-page, log, height),
            Action::PageDown => self.step(page, log, height),
            Action::Top => self.select_first(log),
            Action::Bottom => self.follow(),
            _ => {}
        }
    }

    /// Whether the list follows the newest event.
    pub fn follows(&self) -> bool {
        self.cursor.is_none()
    }

    /// The place of the selected event; `None` if the newest is followed.
    pub fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    /// The number of rows.
    pub fn len(&self, log: &EventWindow) -> usize {
        match &self.filter {
            Some(active) => active.found.len(),
            // An invalid filter matches nothing.
            None if self.is_invalid() => 0,
            None => log.len() - log.dropped_count(),
        }
    }

    /// Whether what is typed is a condition that does not compile.
    pub fn is_invalid(&self) -> bool {
        self.typing.is_some() && self.error.is_some()
    }

    /// Whether a typed filter is on.
    pub fn is_filtered(&self) -> bool {
        self.typed_filter().is_some()
    }

    fn typed_filter(&self) -> Option<&ActiveFilter> {
        self.filter.as_ref().filter(|active| active.is_typed())
    }

    /// Which events are listed without a typed filter.
    pub(crate) fn level(&self) -> EventLevel {
        self.level
    }

    /// Lists the events of the other level. A typed filter is cleared: it has searched them all.
    pub(super) fn switch_level(&mut self, log: &EventWindow) {
        self.level = match self.level {
            EventLevel::Notable => EventLevel::All,
            EventLevel::All => EventLevel::Notable,
        };
        self.drop_filter(log);
        self.show_level(log);
    }

    /// Applies the level in place of a typed filter.
    fn show_level(&mut self, log: &EventWindow) {
        self.filter = self.level.filter(log);
    }

    /// The state of the filter; `None` if there is none and none is typed.
    pub fn filter(&self, log: &EventWindow) -> Option<FilterStatus<'_>> {
        let active = self.typed_filter();
        let held = (log.len() - log.dropped_count()) as u64;
        let done = active.map_or(100, |active| {
            let percent = active.scanned.len() as u64 * 100 / held.max(1);
            u8::try_from(percent).unwrap_or(100)
        });
        let nothing = active.filter(|active| active.found.is_empty() && done == 100);
        let trouble =
            self.error.as_deref().or_else(|| nothing.and_then(|active| active.error.as_deref()));
        match &self.typing {
            Some(typed) => Some(FilterStatus {
                text: typed.text(),
                last: typed.last(),
                typing: Some(typed.cursor()),
                error: trouble,
                percent: done,
            }),
            None => active.map(|active| FilterStatus {
                text: &active.text,
                last: "",
                typing: None,
                error: trouble,
                percent: done,
            }),
        }
    }

    /// The place in the log of the event in this row.
    pub fn place(&self, row: usize) -> Option<usize> {
        match &self.filter {
            Some(active) => active.found.get(row).copied(),
            None => Some(self.dropped + row),
        }
    }

    /// The place of the last listed event among the first `events`.
    pub(crate) fn shown_place(&self, events: usize) -> usize {
        let last = events.saturating_sub(1);
        match &self.filter {
            Some(active) => {
                let after = active.found.partition_point(|found| *found <= last);
                after.checked_sub(1).and_then(|row| active.found.get(row).copied()).unwrap_or(last)
            }
            None => last,
        }
    }

    /// The row of the event at this place, or of the first event after it.
    fn row(&self, place: usize) -> usize {
        match &self.filter {
            Some(active) => active.found.partition_point(|found| *found < place),
            None => place.saturating_sub(self.dropped),
        }
    }

    /// The rows in a window of this height.
    pub fn window(&self, log: &EventWindow, height: usize) -> Range<usize> {
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

    /// The place of the selected event; the newest if it is followed.
    pub fn selected(&self, log: &EventWindow) -> Option<usize> {
        match self.cursor {
            Some(cursor) => Some(cursor),
            None => self.place(self.len(log).checked_sub(1)?),
        }
    }

    /// Moves the selection by this many rows.
    pub(super) fn step(&mut self, by: isize, log: &EventWindow, height: usize) {
        let Some(last) = self.len(log).checked_sub(1) else { return };
        let window = self.window(log, height);
        let row = self.cursor.map_or(last, |cursor| self.row(cursor).min(last));
        if self.cursor.is_none() && by > 0 {
            return;
        }
        let row = row.saturating_add_signed(by).min(last);
        self.top = self.place(window.start).unwrap_or(self.dropped);
        self.cursor = self.place(row);
        let window = self.window(log, height);
        self.top = self.place(window.start).unwrap_or(self.dropped);
    }

    /// Selects the first row.
    pub(super) fn select_first(&mut self, log: &EventWindow) {
        self.cursor = self.place(0).filter(|_| self.len(log) > 0);
        self.top = self.dropped;
    }

    /// Follows the newest event again.
    pub(super) fn follow(&mut self) {
        self.cursor = None;
    }

    /// Scrolls the window, as a wheel does; the selection stays within it.
    pub(super) fn scroll(&mut self, by: isize, log: &EventWindow, height: usize) {
        let len = self.len(log);
        let Some(last) = len.checked_sub(1) else { return };
        let window = self.window(log, height);
        if self.cursor.is_none() && by > 0 {
            return;
        }
        let start = window.start.saturating_add_signed(by).min(len.saturating_sub(height));
        let row = self.cursor.map_or(last, |cursor| self.row(cursor));
        let row = row.clamp(start, (start + height).saturating_sub(1).max(start)).min(last);
        self.top = self.place(start).unwrap_or(self.dropped);
        self.cursor = self.place(row);
        // Scrolling past the end follows the newest event again.
        if by > 0 && start == window.start && start + height >= len {
            self.follow();
        }
    }

    /// Selects an event and brings it into view. Clears a filter that hides it, and lists all
    /// events if it is not notable.
    pub(super) fn select(&mut self, place: usize, log: &EventWindow, height: usize) {
        if self.typed_filter().is_some_and(|active| active.found.binary_search(&place).is_err()) {
            self.show_level(log);
        }
        let is_notable = log.get(place).is_none_or(|event| event.kind.is_notable());
        if !self.is_filtered() && !is_notable {
            self.level = EventLevel::All;
            self.filter = None;
        }
        let window = self.window(log, height);
        // Some events before and after it stay in view.
        let margin = (height / 4).min(3);
        let row = self.row(place);
        let least = (row + 1 + margin).saturating_sub(height);
        let start = window.start.clamp(least, row.saturating_sub(margin).max(least));
        self.top = self.place(start).unwrap_or(self.dropped);
        self.cursor = Some(place);
    }

    /// Selects an event that is listed: this one, or the last one before it.
    pub(super) fn select_at_or_before(
        &mut self,
        place: usize,
        log: &EventWindow,
        world: &World,
        height: usize,
    ) {
        self.scan(log, world);
        let listed = match &self.filter {
            Some(active) => {
                let after = active.found.partition_point(|found| *found <= place);
                after.checked_sub(1).or(Some(0)).and_then(|row| active.found.get(row).copied())
            }
            None => Some(place),
        };
        if let Some(place) = listed {
            self.select(place, log, height);
        }
    }

    /// Starts typing a filter: the one that is set is changed, else the line is empty.
    pub(super) fn type_filter(&mut self) {
        let text = self.typed_filter().map(|active| active.text.clone()).unwrap_or_default();
        self.typing = Some(FilterInput::new(text, self.last.clone()));
    }

    /// Applies what is typed so far: words at once, CEL as soon as it compiles.
    pub(super) fn apply_typed(&mut self, log: &EventWindow) {
        let Some(typed) = &self.typing else { return };
        let text = typed.text().to_owned();
        if self.typed_filter().is_some_and(|active| active.text == text) {
            self.error = None;
            return;
        }
        match Filter::parse(&text) {
            Ok(None) => {
                self.show_level(log);
                self.error = None;
            }
            Ok(Some(filter)) => {
                self.error = None;
                self.filter = Some(ActiveFilter::new(text, filter, log));
            }
            Err(error) => {
                // The earlier filter no longer matches what is typed.
                self.filter = None;
                self.error = Some(first_line(&error.to_string()));
            }
        }
    }

    /// Ends typing and keeps the filter. Typing does not end while the text is invalid.
    pub(super) fn accept(&mut self) {
        if self.error.is_some() {
            return;
        }
        if let Some(typed) = self.typing.take() {
            self.last = typed.text().to_owned();
        }
    }

    /// Ends typing and clears the filter.
    pub(super) fn drop_filter(&mut self, log: &EventWindow) {
        if let Some(active) = self.filter.take_if(|active| active.is_typed()) {
            self.last = active.text;
        }
        if self.filter.is_none() {
            self.show_level(log);
        }
        self.typing = None;
        self.error = None;
    }

    /// Whether part of the log is still to be filtered.
    pub(super) fn is_behind(&self, log: &EventWindow) -> bool {
        let held = log.dropped_count()..log.len();
        self.filter.as_ref().is_some_and(|active| active.scanned != held)
    }

    /// The log dropped the events before this place.
    pub(super) fn drop_before(&mut self, place: usize) {
        self.dropped = place;
        self.cursor = self.cursor.map(|cursor| cursor.max(place));
        self.top = self.top.max(place);
        let Some(active) = &mut self.filter else { return };
        let gone = active.found.partition_point(|found| *found < place);
        active.found.drain(..gone);
        active.scanned = active.scanned.start.max(place)..active.scanned.end.max(place);
    }

    /// Events that had left memory are in memory again.
    pub(super) fn on_read_back(&mut self) {
        self.dropped = 0;
    }

    /// Filters the next slice of the log: new events first, then backwards.
    pub(super) fn scan(&mut self, log: &EventWindow, world: &World) {
        if let Some(active) = &mut self.filter {
            active.scan(log, world);
        }
    }
}
