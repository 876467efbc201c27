//! The scrubber: the activity over time, marks of important moments, and the playhead.

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::layout::line;
use crate::app::run::RunPage;
use crate::app::run::layout::scrubber_line;
use crate::app::run::time_track::TimeTrack;
use crate::event::kind::BreakerStage;
use crate::event::world::MarkKind;
use crate::event::{Elapsed, EventKind};
use crate::narrate::glyph::Glyph;
use crate::narrate::patterns::words;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Draws both rows.
pub(super) fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let track = scrubber_line(area);
    let span = TimeTrack::new(page, page.head_time(cx.now), track);
    let run = &page.world().progress;
    let labels: Vec<_> = span.labels().collect();
    let columns_of_time = match page.log().dropped_count() {
        0 if labels.is_empty() => {
            let end = Elapsed::from_duration(run.run_time(span.end));
            page.world().over_time.activity.columns(end, usize::from(track.width))
        }
        _ => span.column_counts(page),
    };
    let most = columns_of_time.iter().copied().max().unwrap_or(0);
    let playhead = page.is_scrubbed().then(|| span.column(page.shown().progress.at));

    if track.x > area.x {
        let clock = format::clock(run.run_time(span.from));
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(&clock, dim);
    }
    let spark = theme.style(StyleRole::Spark);
    let away = away_columns(page, &span);
    let mut pen = Pen::new(buf, track, cx.glyphs);
    for (nth, count) in columns_of_time.iter().enumerate() {
        let x = track.x + nth as u16;
        if playhead == Some(x) {
            pen.glyph(Glyph::Playhead, theme.style(StyleRole::Playhead));
        } else {
            // The part after the playhead is dimmed.
            let later = playhead.is_some_and(|playhead| x > playhead);
            let is_away = away.iter().any(|columns| columns.contains(&x));
            let style = match (later, is_away) {
                (true, _) => dim,
                (false, true) => theme.style(StyleRole::Notice),
                (false, false) => spark,
            };
            pen.put(cx.glyphs.spark(*count, most), style);
        }
    }
    for (at, length) in labels {
        // What happened in a pause is reached with the keys; its columns say how long it was.
        let dash = cx.glyphs.symbol(Glyph::TrackEmpty);
        let text = format!("{dash}{}{dash}", format::duration_text(length));
        let here = Rect { x: track.x + at.start, width: at.len() as u16, ..line(track, 0) };
        let mut pen = Pen::new(buf, here, cx.glyphs);
        pen.cell(&text, here.width, dim);
        if let Some(x) = playhead.filter(|x| (here.left()..here.right()).contains(x)) {
            let at = Rect { x, width: 1, ..here };
            Pen::new(buf, at, cx.glyphs).glyph(Glyph::Playhead, theme.style(StyleRole::Playhead));
        }
    }
    let rest = Rect { x: track.right(), width: area.right() - track.right(), ..line(area, 0) };
    let mut pen = Pen::new(buf, rest, cx.glyphs);
    if playhead.is_none() {
        pen.glyph(Glyph::Playhead, theme.style(StyleRole::Playhead));
    } else {
        pen.space(1);
    }
    pen.space(1).put(
        &{
            let (from, end) = (run.run_time(span.from), run.run_time(span.end));
            format::axis_time(end, end.saturating_sub(from))
        },
        dim,
    );
    if area.height > 1 {
        marks(page, cx, area, &span, playhead, buf);
    }
}

/// The columns of what happened while the cluster of a watched run was not reached.
fn away_columns(page: &RunPage, span: &TimeTrack) -> Vec<std::ops::RangeInclusive<u16>> {
    let away = page.remote.iter().flat_map(|remote| &remote.away);
    away.map(|away| span.column(away.from)..=span.column(away.until)).collect()
}

impl TimeTrack {
    /// The number of events in each column, counting those that the log still holds.
    fn column_counts(&self, page: &RunPage) -> Vec<u32> {
        let mut before = page.log().dropped_count();
        (0..self.track.width)
            .map(|column| {
                let until = self.column_end(column);
                let after = page.log().partition_point(|event| event.at <= until);
                let count = after.saturating_sub(before);
                before = after;
                u32::try_from(count).unwrap_or(u32::MAX)
            })
            .collect()
    }
}

/// Draws the labels of the second row by importance; those that do not fit are left out.
fn marks(
    page: &RunPage,
    cx: &DrawContext,
    area: Rect,
    span: &TimeTrack,
    playhead: Option<u16>,
    buf: &mut Buffer,
) {
    let (from, track) = (span.from, span.track);
    let theme = cx.theme;
    let row = line(area, 1);
    let mut labels = Labels { row, occupied: vec![false; usize::from(row.width)], set: Vec::new() };
    let mut put = |at: Option<Rect>, text: &str, role: StyleRole| {
        if let Some(at) = at {
            Pen::new(buf, at, cx.glyphs).put(text, theme.style(role));
        }
    };
    let (now, role) = if page.world().progress.is_live() {
        ("now", StyleRole::Notice)
    } else {
        ("end", StyleRole::Dim)
    };
    put(
        labels.reserve(Elapsed(u64::MAX), track.right().saturating_sub(1), now.len(), 0),
        now,
        role,
    );
    for away in page.remote.iter().flat_map(|remote| remote.away.iter().rev()) {
        let x = span.column(away.from);
        let events = format::count(away.events);
        let noun = if away.events == 1 { "event" } else { "events" };
        let text = format!("{events} {noun} while away");
        let place = labels.reserve(away.from, x, columns(&text), 9);
        match place {
            Some(place) => put(Some(place), &text, StyleRole::Notice),
            None => put(
                labels.reserve(away.from, x, columns(&events) + 1, 9),
                &format!("+{events}"),
                StyleRole::Notice,
            ),
        }
    }
    let gone = page.log().dropped_count() as u64;
    if gone > 0 {
        let text = format!("{} events dropped", format::count(gone));
        put(labels.reserve(Elapsed(0), row.x + 1, columns(&text), 0), &text, StyleRole::Notice);
    }
    if page.world().over_time.marks_not_kept > 0 {
        let more = format!("+{}", format::count(page.world().over_time.marks_not_kept));
        put(
            labels.reserve(Elapsed(u64::MAX), track.right() + 3, more.len(), 4),
            &more,
            StyleRole::Dim,
        );
    }
    let finalize = words(page.world()).map_or("brief", |words| words.terms().answer_mark);
    let mut chain = HopLabels::default();
    for rank in 0..3 {
        let shift = if rank < 2 { 9 } else { 1 };
        let mut before = None;
        let held = page.world().over_time.marks.iter().filter(|mark| mark.at >= from);
        for mark in held.filter(|mark| rank_of(&mark.what) == Some(rank)) {
            let x = span.column(mark.at);
            let links = matches!(mark.what, MarkKind::Handoff(_) | MarkKind::Consulted(_));
            // Of several marks in one column only the first is drawn; a chain gets an ellipsis.
            if before.replace(x) == Some(x) {
                if links {
                    chain.omit(&mut labels, mark.at, x, shift);
                }
                continue;
            }
            let (text, role) = match &mark.what {
                MarkKind::Failed if is_cancelled(page, mark.at) => {
                    (cx.glyphs.symbol(Glyph::Off).to_owned(), StyleRole::Off)
                }
                what => label(cx, what, finalize),
            };
            let place = labels.reserve(mark.at, x, columns(&text), shift);
            match (links, place) {
                (true, Some(place)) => chain.links.push((place, Some(text))),
                (true, None) => chain.omit(&mut labels, mark.at, x, shift),
                (false, place) => put(place, &text, role),
            }
        }
    }
    let ellipsis = cx.glyphs.symbol(Glyph::Ellipsis);
    for (place, text) in &chain.links {
        match text {
            Some(text) => put(Some(*place), text, StyleRole::Text),
            None => put(Some(*place), ellipsis, StyleRole::Dim),
        }
    }
    // Last, so that no label leaves its mark for it.
    if let Some(x) = playhead {
        let at = page.world().progress.run_time(page.shown().progress.at);
        let time = format::time_in_run(at);
        for text in [format!("{time} playhead"), time] {
            let place = labels.nearest(x, columns(&text));
            if place.is_some() {
                put(place, &text, StyleRole::Playhead);
                break;
            }
        }
    }
}

/// The labels of handoffs and consultations. Adjacent labels mean consecutive ones, so an ellipsis
/// marks omitted labels between them.
#[derive(Default)]
struct HopLabels {
    /// The place and text of each label; `None`: an ellipsis.
    links: Vec<(Rect, Option<String>)>,
}

impl HopLabels {
    /// Marks an omitted label with an ellipsis. If even that does not fit, the previous label
    /// becomes it.
    fn omit(&mut self, labels: &mut Labels, when: Elapsed, x: u16, shift: u16) {
        if self.links.last().is_some_and(|(_, text)| text.is_none()) {
            return;
        }
        if let Some(place) = labels.reserve(when, x, 1, shift) {
            self.links.push((place, None));
        } else if let [.., (_, None), (place, _)] = self.links[..] {
            labels.free(place);
            self.links.pop();
        } else if let Some((place, text)) = self.links.last_mut() {
            labels.free(Rect { x: place.x + 1, width: place.width.saturating_sub(1), ..*place });
            place.width = 1;
            *text = None;
        }
    }
}

/// The occupied columns of the second row.
struct Labels {
    row: Rect,
    occupied: Vec<bool>,
    /// Time and column of each label.
    set: Vec<(Elapsed, u16)>,
}

impl Labels {
    /// Reserves `width` columns for a label, at `x` or at most `shift` columns away. Labels stay in
    /// time order; `None`: there is no such place.
    fn reserve(&mut self, when: Elapsed, x: u16, width: usize, shift: u16) -> Option<Rect> {
        let width = u16::try_from(width).ok()?;
        // A label near the end is moved left, so that it fits.
        let end = self.row.right().checked_sub(width + 1)?;
        let x = x.min(end).max(self.row.x);
        let last = end.min(x + shift);
        let first = x.saturating_sub(shift).max(self.row.x);
        let x = (x..=last)
            .chain((first..x).rev())
            .find(|x| self.is_free(*x, width) && self.is_in_order(*x, when))?;
        let at = usize::from(x - self.row.x);
        self.occupied.get_mut(at..at + usize::from(width))?.fill(true);
        self.set.push((when, x));
        Some(Rect { x, width, height: self.row.height, ..self.row })
    }

    /// The free place for `width` columns that is nearest to `x`; `None`: nothing is free.
    fn nearest(&self, x: u16, width: usize) -> Option<Rect> {
        let width = u16::try_from(width).ok()?;
        let end = self.row.right().checked_sub(width + 1)?;
        let free = (self.row.x..=end).filter(|at| self.is_free(*at, width));
        let x = free.min_by_key(|at| at.abs_diff(x))?;
        Some(Rect { x, width, height: self.row.height, ..self.row })
    }

    /// Frees reserved columns.
    fn free(&mut self, place: Rect) {
        let at = usize::from(place.x.saturating_sub(self.row.x));
        if let Some(cells) = self.occupied.get_mut(at..at + usize::from(place.width)) {
            cells.fill(false);
        }
    }

    /// Whether a label at `x` is after those of earlier moments and before those of later ones.
    fn is_in_order(&self, x: u16, when: Elapsed) -> bool {
        self.set.iter().all(|(other, at)| match other.cmp(&when) {
            Ordering::Less => *at < x,
            Ordering::Equal => true,
            Ordering::Greater => *at > x,
        })
    }

    /// Whether these columns and one on either side are free.
    fn is_free(&self, x: u16, width: u16) -> bool {
        let at = usize::from(x - self.row.x);
        let end = (at + usize::from(width) + 1).min(self.occupied.len());
        self.occupied.get(at.saturating_sub(1)..end).is_some_and(|cells| !cells.contains(&true))
    }
}

/// The importance of a mark, 0 first; `None`: it has no label.
fn rank_of(what: &MarkKind) -> Option<u8> {
    match what {
        MarkKind::Flag(..)
        | MarkKind::Failed
        | MarkKind::Refused
        | MarkKind::Breaker(..)
        | MarkKind::Fault(..) => Some(0),
        MarkKind::Round(_)
        | MarkKind::Handoff(_)
        | MarkKind::Consulted(_)
        | MarkKind::Part(_)
        | MarkKind::Finalize => Some(1),
        MarkKind::Paused | MarkKind::Retry => Some(2),
        MarkKind::Closed => None,
    }
}

/// Whether the task that ended at this moment was cancelled, not failed.
fn is_cancelled(page: &RunPage, at: Elapsed) -> bool {
    let log = page.log();
    let first = log.partition_point(|event| event.at < at);
    let mut ends = log.between(first, log.len()).take_while(|event| event.at == at);
    ends.any(
        |event| matches!(&event.kind, EventKind::Pattern(fact) if fact.get().is_cancellation()),
    )
}

/// A mark's label and role.
fn label(cx: &DrawContext, what: &MarkKind, finalize: &str) -> (String, StyleRole) {
    let glyph = |glyph: Glyph| cx.glyphs.symbol(glyph).to_owned();
    match what {
        MarkKind::Round(number) => (format!("R{number}"), StyleRole::Text),
        MarkKind::Handoff(to) => (format!("{} {to}", glyph(Glyph::Arrow)), StyleRole::Text),
        MarkKind::Consulted(whom) => {
            (format!("{} {whom}", glyph(Glyph::Consults)), StyleRole::Text)
        }
        MarkKind::Part(part) => (part.to_string(), StyleRole::Text),
        MarkKind::Finalize => (finalize.to_owned(), StyleRole::Text),
        MarkKind::Flag(_, true) => ("flag on".to_owned(), StyleRole::Flag),
        MarkKind::Flag(_, false) => ("flag off".to_owned(), StyleRole::Flag),
        MarkKind::Breaker(tool, BreakerStage::Open | BreakerStage::Held) => {
            (format!("{} {tool}", glyph(Glyph::Refused)), StyleRole::Refused)
        }
        MarkKind::Breaker(tool, BreakerStage::HalfOpen) => {
            (format!("{tool} half-open"), StyleRole::Dim)
        }
        MarkKind::Breaker(tool, BreakerStage::Closed) => (format!("{tool} closed"), StyleRole::Dim),
        MarkKind::Breaker(tool, BreakerStage::Disabled) => (format!("{tool} off"), StyleRole::Dim),
        MarkKind::Fault(tool, true) => (format!("fault {tool}"), StyleRole::Flag),
        MarkKind::Fault(tool, false) => (format!("fault off {tool}"), StyleRole::Dim),
        MarkKind::Refused => (glyph(Glyph::Refused), StyleRole::Refused),
        MarkKind::Failed => (glyph(Glyph::Failed), StyleRole::Failed),
        MarkKind::Paused => (glyph(Glyph::Paused), StyleRole::Paused),
        MarkKind::Retry => (glyph(Glyph::Retry), StyleRole::Retry),
        MarkKind::Closed => (String::new(), StyleRole::Dim),
    }
}
