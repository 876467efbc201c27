//! Pane 5: the events, a row each. Only the rows in view are read.

use crate::app::action::Action;
use crate::app::key::{KeyCode, KeyPress};
use crate::app::keys_in_use::key_of;
use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::layout::line;
use crate::app::run::RunPage;
use crate::app::run::active_filter::EventLevel;
use crate::app::run::active_filter::FilterStatus;
use crate::narrate::glyph::{Glyph, Glyphs};
use crate::narrate::patterns::words;
use crate::narrate::tell::event_line;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::table::{self, row_style};
use crate::ui::text::{Pen, columns, elide, on_border};
use crate::ui::theme::StyleRole;

/// The end of the pane's title: the number of events, and how many match the filter.
pub(super) fn aside(page: &RunPage, glyphs: Glyphs) -> String {
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
        _ => facts,
    }
}

/// The pane's title: whether it follows the log, and the filter.
pub(super) fn title(page: &RunPage, cx: &DrawContext, pen: &mut Pen, end: u16, plain: Style) {
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    pen.put_within("Events", end.saturating_sub(pen.x()), plain);
    let list = page.list();
    let dot = cx.glyphs.symbol(Glyph::Dot);
    let follow = if page.is_scrubbed() {
        (format!(" {dot} at {}", page.shown_event_count()), StyleRole::Playhead)
    } else if list.follows() {
        (format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)), StyleRole::Dim)
    } else {
        (format!(" {dot} G: follow"), StyleRole::Notice)
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

/// Draws the pane.
pub(super) fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
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
        let names = format!("names: {}", crate::app::run::filter::NAMES);
        Pen::new(buf, line(area, 2), cx.glyphs).space(1).put(&names, dim);
        return;
    }
    let text = match filter {
        Some(filter) if filter.percent < 100 => {
            format!("Filtering: {} % of the log.", filter.percent)
        }
        Some(_) => {
            let key = key_of(Action::Filter);
            format!("No event matches the filter. {key} changes it, Esc clears it.")
        }
        None if page.earlier.is_reading() => "Reading the events from the store.".to_owned(),
        None if page.is_log_dropped() => {
            let facts = format::exact(page.world().tally.events);
            format!("The {facts} events of this run were dropped to bound memory.")
        }
        None if !page.log().is_empty() => {
            let key = key_of(Action::EventLevel);
            format!("No notable event yet. {key} shows all of them.")
        }
        None => "No events yet.".to_owned(),
    };
    Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(&text, dim);
    if let Some(trouble) = page.list().filter(page.log()).and_then(|filter| filter.error) {
        let failed = cx.theme.style(StyleRole::Failed);
        Pen::new(buf, line(area, 1), cx.glyphs).space(1).put(trouble, failed);
        let names = format!("names: {}", crate::app::run::filter::NAMES);
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
    let shown = event_line(event, page.world());
    row_style(cx, area, selected, buf);
    // Events after the playhead are dimmed.
    let later = playhead.is_some_and(|playhead| place > playhead);
    let dim = theme.style(StyleRole::Dim);
    let plain = if later { dim } else { theme.style(StyleRole::Text) };
    let toned = if later { dim } else { theme.style(shown.tone) };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    match playhead {
        Some(playhead) if playhead == place => {
            pen.glyph(Glyph::Playhead, theme.style(StyleRole::Playhead));
        }
        _ => table::mark(cx, &mut pen, selected),
    }
    let wide = area.width >= 100;
    pen.cell(&format::time_in_run(page.world().progress.run_time(event.at)), 8, dim).space(1);
    let has_rounds = words(page.world()).is_some_and(|words| words.terms().has_rounds);
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
    if let Some((stance, confidence)) = shown.stance {
        let sign = theme.stance(stance);
        pen.glyph(sign.glyph, if later { dim } else { sign.style }).space(1);
        pen.cell(sign.word, 8, plain).put(&format::confidence(confidence), plain).space(2);
    }
    pen.put(&shown.text, if shown.stance.is_some() { dim } else { plain });
}

/// Columns of the longest subject.
fn subject_width(page: &RunPage) -> u16 {
    let world = page.world();
    let longest = words(world).map_or(0, |words| words.longest_subject(world));
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
