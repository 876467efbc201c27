//! Pane 5, the list of events: a window over the log, or over the events that pass a filter. Only
//! the rows in view are read.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::filter::{ActiveFilter, EventLevel, Filter, FilterStatus, first_line};
use super::views::follow_note;
use super::{EventWindow, InputOutcome, RunPage};
use crate::log::event::World;
use crate::screen::action::Action;
use crate::screen::filter_input::FilterInput;
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::keymap::key_of;
use crate::screen::layout::line;
use crate::screen::list::{RowCursor, row_style};
use crate::screen::text::{Pen, elide, on_border};
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure::columns;
use crate::words::patterns::words_of;
use crate::words::sentence::{Stated, sentence};
use crate::words::styled::StyleRole;

/// The list of events, its filter and its selection. Places count from the start of the run; only
/// the last part of the log is in memory, and the first row is the first event of that part.
#[derive(Debug)]
pub struct EventList {
    /// Which events are listed without a typed filter; a typed one searches them all.
    level: EventLevel,
    /// The filter that is applied at present: a typed one, or that of the level.
    filter: Option<ActiveFilter>,
    /// The filter while it is typed.
    pub(crate) typing: Option<FilterInput>,
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
    pub(crate) fn catch_up(&mut self, log: &EventWindow, world: &World) {
        if self.is_behind(log) {
            self.scan(log, world);
        }
    }

    /// Applies the typed filter.
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
    pub(crate) fn on_move(&mut self, action: Action, log: &EventWindow, height: usize) {
        let len = self.len(log);
        let Some(last) = len.checked_sub(1) else { return };
        let mut rows = self.rows();
        // A step up from the followed row leaves it.
        if rows.cursor.is_none() && action == Action::Up {
            rows = rows.select(last, len, height);
        }
        self.set_rows(rows.after_action(action, len, height));
    }

    /// Scrolls the window, as a wheel does; the selection stays within it.
    pub(crate) fn scroll(&mut self, by: isize, log: &EventWindow, height: usize) {
        if self.len(log) > 0 {
            self.set_rows(self.rows().after_wheel(by, self.len(log), height));
        }
    }

    /// The selection and the window, in rows of the list.
    fn rows(&self) -> RowCursor {
        RowCursor { cursor: self.cursor.map(|cursor| self.row(cursor)), top: self.row(self.top) }
    }

    fn set_rows(&mut self, rows: RowCursor) {
        self.cursor = rows.cursor.and_then(|row| self.place(row));
        self.top = self.place(rows.top).unwrap_or(self.dropped);
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

    /// Whether the typed text is a condition that does not compile.
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
    fn shown_place(&self, events: usize) -> usize {
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
        self.rows().window(self.len(log), height)
    }

    /// The place of the selected event; the newest if it is followed.
    pub fn selected(&self, log: &EventWindow) -> Option<usize> {
        match self.cursor {
            Some(cursor) => Some(cursor),
            None => self.place(self.len(log).checked_sub(1)?),
        }
    }

    /// Follows the newest event again.
    pub(crate) fn follow(&mut self) {
        self.cursor = None;
    }

    /// Selects an event and brings it into view. Clears a filter that hides it, and lists all
    /// events if it is not notable.
    pub(crate) fn select(&mut self, place: usize, log: &EventWindow, height: usize) {
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

    /// Applies the text typed so far: words at once, CEL as soon as it compiles.
    fn apply_typed(&mut self, log: &EventWindow) {
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
                // The earlier filter no longer matches the typed text.
                self.filter = None;
                self.error = Some(first_line(&error.to_string()));
            }
        }
    }

    /// Ends typing and keeps the filter. Typing does not end while the text is invalid.
    pub(crate) fn accept(&mut self) {
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
    pub(crate) fn drop_before(&mut self, place: usize) {
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
    pub(crate) fn scan(&mut self, log: &EventWindow, world: &World) {
        if let Some(active) = &mut self.filter {
            active.scan(log, world);
        }
    }
}

/// The end of the pane's title: the number of events, and how many match the filter.
pub(crate) fn aside(page: &RunPage, glyphs: Glyphs) -> String {
    let log = page.log();
    let facts = format::count_noun(log.len() as u64, "event");
    let list = page.list();
    match list.filter(log) {
        Some(filter) if list.is_filtered() => {
            let looking = if filter.percent < 100 {
                format!(", scanned {} %", filter.percent)
            } else {
                String::new()
            };
            format!("{facts} {} {} shown{looking}", glyphs.symbol(Glyph::Dot), list.len(log))
        }
        None if list.level() == EventLevel::Notable => {
            let key = key_of(Action::EventLevel);
            let dot = glyphs.symbol(Glyph::Dot);
            format!("{} notable of {facts} {dot} {key}: all", list.len(log))
        }
        None => {
            let (dot, key) = (glyphs.symbol(Glyph::Dot), key_of(Action::EventLevel));
            format!("{facts} {dot} {key}: notable")
        }
        Some(_) => facts,
    }
}

/// The pane's title: whether it follows the log, and the filter.
pub(crate) fn title(page: &RunPage, cx: &DrawContext, pen: &mut Pen, end: u16, plain: Style) {
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    pen.put_within("Events", end.saturating_sub(pen.x()), plain);
    let list = page.list();
    let dot = cx.glyphs.symbol(Glyph::Dot);
    let follow = if page.is_scrubbed() {
        (format!(" {dot} at {}", page.shown_event_count()), StyleRole::Playhead)
    } else if list.follows() {
        (follow_note(cx, true), StyleRole::Dim)
    } else {
        (follow_note(cx, false), StyleRole::Notice)
    };
    if columns(&follow.0) <= usize::from(end.saturating_sub(pen.x())) {
        pen.put(&follow.0, on_border(cx.theme.style(follow.1)));
    }
    let Some(filter) = list.filter(page.log()) else { return };
    let room = end.saturating_sub(pen.x());
    if room < 12 {
        return;
    }
    pen.put("   filter: ", dim);
    let room = end.saturating_sub(pen.x());
    filter_text(cx, pen, filter, room, " words, or kind == \"call.retried\" && round == 2");
}

/// The filter's text, with a cursor while it is edited, then its error. An empty one shows `hint`.
pub(crate) fn filter_text(
    cx: &DrawContext,
    pen: &mut Pen,
    filter: FilterStatus<'_>,
    room: u16,
    hint: &str,
) {
    let of = |role| on_border(cx.theme.style(role));
    let style = of(if filter.typing.is_some() { StyleRole::Field } else { StyleRole::Found });
    let end = pen.x() + room;
    match filter.typing {
        None => {
            pen.put_within(filter.text, room, style);
        }
        Some(at) => {
            let (before, after) = filter.text.split_at(at.min(filter.text.len()));
            // If it does not fit, its end is shown.
            let mut start = before;
            while columns(start) + 1 > usize::from(room) {
                let Some(first) = start.chars().next() else { break };
                start = &start[first.len_utf8()..];
            }
            pen.put(start, style).glyph(Glyph::Cursor, of(StyleRole::Cursor));
            pen.put_within(after, end.saturating_sub(pen.x()), style);
            if filter.text.is_empty() {
                let dim = of(StyleRole::Dim);
                if !filter.last.is_empty() {
                    let up = KeyPress::new(KeyCode::Up).label(cx.glyphs == Glyphs::Ascii);
                    let recalled = format!(" {up} recalls {}; ", filter.last);
                    pen.put_within(&recalled, end.saturating_sub(pen.x()), dim);
                }
                pen.put_within(hint, end.saturating_sub(pen.x()), dim);
            }
        }
    }
    // An empty pane shows the error in its first row.
    if let Some(trouble) = filter.error.filter(|_| filter.typing.is_none()) {
        let left = end.saturating_sub(pen.x());
        if left > 8 {
            pen.put_within(&format!("  {trouble}"), left, of(StyleRole::Failed));
        }
    }
}

pub(crate) fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let log = page.log();
    let list = page.list();
    let rows_area = page.list_area(area);
    if rows_area != area {
        dropped_line(page, cx, area, buf);
    }
    let area = rows_area;
    let rows = list.window(log, usize::from(area.height));
    if rows.is_empty() {
        empty(page, cx, area, buf);
        return;
    }
    let selected = list.cursor();
    // The playhead is at the last listed event that has happened.
    let playhead = page.is_scrubbed().then(|| list.shown_place(page.shown_event_count()));
    for (nth, row) in rows.enumerate() {
        let Some(place) = list.place(row) else { break };
        let at = line(area, nth as u16);
        event_row(page, cx, at, place, selected == Some(place), playhead, buf);
    }
}

/// The line above the first row: the number of dropped events.
fn dropped_line(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let gone = format::exact(page.log().dropped_count() as u64);
    let mut text = match (page.earlier.is_reading(), page.earlier.is_stored()) {
        (true, _) => format!("reading {gone} earlier events"),
        (false, true) => {
            format!("{gone} earlier events in the store: {} reads them", key_of(Action::Top))
        }
        (false, false) => format!("{gone} earlier events dropped to bound memory"),
    };
    if page.list().is_filtered() {
        text.push_str(": the filter covers only the rest");
    }
    let notice = cx.theme.style(StyleRole::Notice);
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(1).glyph(Glyph::Ellipsis, notice).space(1).put(&text, notice);
}

fn empty(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let filter = page.list().filter(page.log());
    if page.list().is_invalid()
        && let Some(trouble) = filter.and_then(|filter| filter.error)
    {
        let failed = cx.theme.style(StyleRole::Failed);
        let glyph = cx.glyphs.symbol(Glyph::Failed);
        let text = format!("{glyph} {trouble}");
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(&text, failed);
        let apply = key_of(Action::Apply);
        let keys =
            format!("{apply} applies a valid filter, Esc clears it; plain words need no quotes.");
        Pen::new(buf, line(area, 1), cx.glyphs).space(1).put(&keys, dim);
        let names = format!("names: {}", super::filter::NAMES);
        Pen::new(buf, line(area, 2), cx.glyphs).space(1).put(&names, dim);
        return;
    }
    let text = match filter {
        Some(filter) if filter.percent < 100 => {
            format!("Filtering: {} % of the log.", filter.percent)
        }
        Some(_) => {
            let key = key_of(Action::Filter);
            format!("No event matches the filter. {key} changes it, Esc removes it.")
        }
        None if page.earlier.is_reading() => "Reading the events from the store.".to_owned(),
        None if page.is_log_dropped() => {
            let facts = format::exact(page.world().tally.events);
            format!("The {facts} events of this run were dropped to bound memory.")
        }
        None if !page.log().is_empty() => {
            let key = key_of(Action::EventLevel);
            format!("No notable events yet: {key} shows all events.")
        }
        None => "No events yet: the run is starting.".to_owned(),
    };
    Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(&text, dim);
    if let Some(trouble) = page.list().filter(page.log()).and_then(|filter| filter.error) {
        let failed = cx.theme.style(StyleRole::Failed);
        Pen::new(buf, line(area, 1), cx.glyphs).space(1).put(trouble, failed);
        let names = format!("names: {}", super::filter::NAMES);
        Pen::new(buf, line(area, 2), cx.glyphs).space(1).put(&names, dim);
    }
}

fn event_row(
    page: &RunPage,
    cx: &DrawContext,
    area: Rect,
    place: usize,
    selected: bool,
    playhead: Option<usize>,
    buf: &mut Buffer,
) {
    let Some(event) = page.log().get(place) else { return };
    let theme = cx.theme;
    let shown = sentence(event, page.world());
    row_style(cx, area, selected, buf);
    // Events after the playhead are dimmed.
    let later = playhead.is_some_and(|playhead| place > playhead);
    let dim = theme.style(StyleRole::Dim);
    let plain = if later { dim } else { theme.style(StyleRole::Text) };
    let toned = if later { dim } else { theme.style_among_many(shown.role) };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    match playhead {
        Some(playhead) if playhead == place => {
            pen.glyph(Glyph::Playhead, theme.style(StyleRole::Playhead));
        }
        _ => list::mark(cx, &mut pen, selected),
    }
    let wide = area.width >= 100;
    pen.cell(&format::time_in_run(page.world().progress.run_time(event.at)), 8, dim).space(1);
    let has_rounds = words_of(page.world()).is_some_and(|words| words.terms().has_rounds);
    if has_rounds || shown.round.is_some() {
        let round = shown.round.map_or_else(|| "--".to_owned(), |round| format!("R{round}"));
        pen.cell(&round, if wide { 4 } else { 3 }, dim);
    }
    let kind = if wide { 22 } else { 16.min(area.width / 4) };
    pen.cell(&short_kind(shown.kind, usize::from(kind), cx.glyphs), kind, toned).space(1);
    let names = subject_width(page).clamp(8, if wide { 24 } else { (area.width / 5).max(8) });
    // The agent's number identifies it, so only the tool's name is shortened.
    let number = shown.subject.strip_prefix("agent ").and_then(|rest| rest.find(' '));
    let (agent, name) = shown.subject.split_at(number.map_or(0, |at| at + "agent  ".len()));
    let taken = u16::try_from(columns(agent)).unwrap_or(u16::MAX).min(names);
    pen.cell(agent, taken, plain).name(name, names - taken, plain).space(1);
    if let Some(stated) = shown.stated {
        let badge = stated.badge();
        let style = if later { dim } else { theme.style(badge.role) };
        pen.glyph(badge.glyph, style).space(1);
        match stated {
            Stated::Stance(_, confidence) => {
                pen.cell(badge.word, 8, plain).put(&format::confidence(confidence), plain)
            }
            Stated::Decision(_) => pen.put(badge.word, plain),
        }
        .space(2);
    }
    pen.put(&shown.full_text(), if shown.stated.is_some() { dim } else { plain });
}

/// Columns of the longest subject.
fn subject_width(page: &RunPage) -> u16 {
    let world = page.world();
    let longest = words_of(world).map_or(0, |words| words.longest_subject(world));
    u16::try_from(longest).unwrap_or(u16::MAX)
}

/// A kind in at most `width` columns; the part after its last dot is kept.
fn short_kind(kind: &str, width: usize, glyphs: Glyphs) -> Cow<'_, str> {
    let last = kind.rfind('.').filter(|_| columns(kind) > width);
    match last.map(|dot| kind.split_at(dot)) {
        Some((room, what)) if columns(what) + 3 <= width => {
            let room = elide(room, width - columns(what), glyphs);
            Cow::Owned(format!("{room}{what}"))
        }
        _ => Cow::Borrowed(kind),
    }
}
