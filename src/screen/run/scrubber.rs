//! The scrubber: the activity over time, marks of important moments, and the playhead. Its time
//! axis, which the graphs of the tools have too, is one of run time: a pause takes only the columns
//! of its label, and so does an idle time that is longer than all the rest.

use std::cmp::Ordering;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::RunPage;
use super::data::RunData;
use super::layout::scrubber_line;
use crate::base::time;
use crate::log::event::{BreakerStage, Elapsed, EventKind};
use crate::log::world::{MarkKind, World};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::text::Pen;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::words_of;
use crate::words::styled::StyleRole;

/// Shortest pause with a label.
const MIN_LABELLED: Duration = Duration::from_secs(1);
/// Columns of a label besides its text: a dash on either side.
const LABEL_DASHES: u16 = 2;

/// The time range of a track of columns.
#[derive(Clone, Debug)]
pub(crate) struct TimeTrack {
    pub track: Rect,
    /// The start of the first column.
    pub from: Elapsed,
    /// The end of the last column.
    pub end: Elapsed,
    /// Contiguous, in order; never empty.
    parts: Vec<TrackPart>,
}

/// A part of the time, and the columns that it takes.
#[derive(Clone, Debug)]
struct TrackPart {
    from: Elapsed,
    until: Elapsed,
    /// Counted from the start of the track.
    first_column: u16,
    end_column: u16,
    is_folded: bool,
}

/// A part of the time that is folded: it takes only the columns of its label.
struct FoldedTime {
    from: Elapsed,
    until: Elapsed,
    width: u16,
}

impl TimeTrack {
    /// The time of a run up to `head` in these columns.
    pub(crate) fn new(data: &RunData, head: Elapsed, track: Rect) -> Self {
        Self::of_world(data.world(), data.scrubber_start(), head, track, &[])
    }

    /// The same, with these times folded too: nothing that matters happened in them.
    pub(super) fn with_quiet(
        data: &RunData,
        head: Elapsed,
        track: Rect,
        quiet: &[(Elapsed, Elapsed)],
    ) -> Self {
        Self::of_world(data.world(), data.scrubber_start(), head, track, quiet)
    }

    fn of_world(
        world: &World,
        from: Elapsed,
        head: Elapsed,
        track: Rect,
        quiet: &[(Elapsed, Elapsed)],
    ) -> Self {
        let end = head.max(from);
        let folds = folds(world, from, end, track.width / 3, quiet);
        let in_labels: u16 = folds.iter().map(|fold| fold.width).sum();
        let folded: u64 = folds.iter().map(|fold| fold.until.0 - fold.from.0).sum();
        let plain = track.width - in_labels;
        let total = u128::from((end.0 - from.0).saturating_sub(folded).max(1));
        let mut parts = Vec::with_capacity(folds.len() * 2 + 1);
        let (mut at, mut shown, mut labels) = (from, 0u64, 0u16);
        // The last of the columns is never beyond the track: `shown` does not exceed `total`.
        let column = |shown: u64, labels: u16| {
            let nth = u128::from(shown) * u128::from(plain) / total;
            labels + u16::try_from(nth).unwrap_or(plain).min(plain)
        };
        for fold in folds.into_iter().chain([FoldedTime { from: end, until: end, width: 0 }]) {
            let first_column = column(shown, labels);
            shown += fold.from.0 - at.0;
            let next = column(shown, labels);
            labels += fold.width;
            let (start, middle) = ((at, first_column), (fold.from, next));
            let last = (fold.until, next + fold.width);
            for ((from, first_column), (until, end_column), is_folded) in
                [(start, middle, false), (middle, last, true)]
            {
                if from < until || parts.is_empty() {
                    parts.push(TrackPart { from, until, first_column, end_column, is_folded });
                }
            }
            at = fold.until;
        }
        Self { track, from, end, parts }
    }

    /// The same time in two columns for each one, the first of them 0.
    pub(crate) fn halves(&self) -> Self {
        let mut halves = self.clone();
        halves.track = Rect { x: 0, width: self.track.width.saturating_mul(2), ..self.track };
        for part in &mut halves.parts {
            part.first_column = part.first_column.saturating_mul(2);
            part.end_column = part.end_column.saturating_mul(2);
        }
        halves
    }

    /// The column of a moment.
    pub(crate) fn column(&self, at: Elapsed) -> u16 {
        let at = at.clamp(self.from, self.end);
        let nth = self.parts.partition_point(|part| part.from <= at).saturating_sub(1);
        let column = self.parts.get(nth).map_or(0, |part| {
            let columns = part.end_column - part.first_column;
            let into = u128::from(at.0 - part.from.0) * u128::from(columns);
            let into = into / u128::from((part.until.0 - part.from.0).max(1));
            part.first_column + u16::try_from(into).unwrap_or(columns).min(columns)
        });
        self.track.x + column.min(self.track.width.saturating_sub(1))
    }

    /// The end of the column with this index.
    pub(super) fn column_end(&self, nth: u16) -> Elapsed {
        if nth.saturating_add(1) >= self.track.width {
            return self.end;
        }
        let place = self.parts.partition_point(|part| part.end_column <= nth);
        self.parts.get(place).map_or(self.end, |part| {
            let columns = u128::from((part.end_column - part.first_column).max(1));
            let into = u128::from(part.until.0 - part.from.0);
            let into = into * u128::from(nth + 1 - part.first_column) / columns;
            Elapsed(part.from.0 + u64::try_from(into).unwrap_or(0))
        })
    }

    /// The columns of each label, counted from the start of the track, and the folded time.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (std::ops::Range<u16>, Duration)> {
        let labelled = |part: &&TrackPart| part.is_folded && part.end_column > part.first_column;
        self.parts
            .iter()
            .filter(labelled)
            .map(|part| (part.first_column..part.end_column, part.until.since(part.from)))
    }
}

/// The folded times between two moments, in order. Labels take at most `room` columns; the longest
/// times get theirs first.
fn folds(
    world: &World,
    from: Elapsed,
    end: Elapsed,
    room: u16,
    quiet: &[(Elapsed, Elapsed)],
) -> Vec<FoldedTime> {
    let progress = &world.progress;
    let pauses = progress.pauses().iter();
    // The present pause has no label: it is still growing, and the header shows it.
    let open =
        progress.stopped_since().map(|since| FoldedTime { from: since, until: end, width: 0 });
    let idle = world.over_time.idle.folded(progress.active_between(from, end), from);
    let mut folds: Vec<FoldedTime> = pauses
        .chain(idle)
        .chain(quiet.iter().copied())
        .map(|(from, until)| FoldedTime { from, until, width: 0 })
        .chain(open)
        .map(|it| FoldedTime { from: it.from.max(from), until: it.until.min(end), ..it })
        .filter(|it| it.from < it.until)
        .collect();
    folds.sort_by_key(|it| it.from);
    // The time between two processes of a run is idle and a pause.
    let mut before = from;
    folds.retain_mut(|it| {
        it.from = it.from.max(before);
        before = before.max(it.until);
        it.from < it.until
    });
    let is_open = |it: &FoldedTime| progress.stopped_since().is_some() && it.until == end;
    let mut by_length: Vec<usize> = (0..folds.len()).filter(|nth| !is_open(&folds[*nth])).collect();
    by_length.sort_by_key(|nth| std::cmp::Reverse(folds[*nth].until.since(folds[*nth].from)));
    let mut left = room;
    for nth in by_length {
        let fold = &mut folds[nth];
        let length = fold.until.since(fold.from);
        let text = time::duration_text(length).len();
        let width = u16::try_from(text).unwrap_or(u16::MAX).saturating_add(LABEL_DASHES);
        if length < MIN_LABELLED || width > left {
            break;
        }
        (fold.width, left) = (width, left - width);
    }
    folds
}

/// Draws both rows.
pub(crate) fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
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
        let text = format!("{dash}{}{dash}", time::duration_text(length));
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

/// The columns of the events that happened while the cluster of a watched run was not reached.
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
            Pen::new(buf, at, cx.glyphs).put(text, theme.style_among_many(role));
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
    let finalize = words_of(page.world()).map_or("brief", |words| words.terms().answer_mark);
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
        | MarkKind::Asked(_)
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
        MarkKind::Asked(who) => (format!("{} {who}", glyph(Glyph::NeedsYou)), StyleRole::NeedsYou),
        MarkKind::Retry => (glyph(Glyph::Retry), StyleRole::Retry),
        MarkKind::Closed => (String::new(), StyleRole::Dim),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::{Boundary, Event, EventKind, Initiator, Seq, SpanId, World};
    use crate::support::facts;

    /// A world of events at these times, in seconds, with pauses between two times each.
    fn world(events: &[u64], pauses: &[(u64, u64)]) -> World {
        let second = |at: u64| Elapsed(at * 1_000_000);
        let mut timed: Vec<(u64, EventKind)> = Vec::new();
        let warning = || EventKind::Warning { text: String::new() };
        timed.extend(events.iter().map(|at| (*at, warning())));
        for (from, until) in pauses {
            timed.push((*from, EventKind::Paused { at: vec![Boundary::Finalize.id()] }));
            let paused_ms = (until - from) * 1_000;
            timed.push((*until, EventKind::Resumed { by: Initiator::You, paused_ms }));
        }
        timed.sort_by_key(|(at, _)| *at);
        let mut world = World::new();
        let head = facts::waiting().log[0].kind.clone();
        timed.insert(0, (0, head));
        for (seq, (at, kind)) in (0..).zip(timed) {
            world.apply(&Event { seq: Seq(seq), at: second(at), span: SpanId::RUN, kind });
        }
        world
    }

    fn track(world: &World, width: u16) -> TimeTrack {
        let head = world.progress.at;
        TimeTrack::of_world(world, Elapsed(0), head, Rect::new(3, 0, width, 1), &[])
    }

    fn labels(track: &TimeTrack) -> Vec<(u16, u16, u64)> {
        track.labels().map(|(at, time)| (at.start, at.end, time.as_secs())).collect()
    }

    #[test]
    fn pause_takes_columns_of_its_label() {
        // Ten seconds of work and a pause of 111 s after the first four.
        let world = world(&[0, 1, 2, 3, 4, 115, 116, 119, 121], &[(4, 115)]);
        let track = track(&world, 107);
        // `-1m51s-` has seven columns; the hundred others are ten to the second.
        assert_eq!(labels(&track), [(40, 47, 111)]);
        assert_eq!(track.column(Elapsed(2_000_000)), 3 + 20);
        assert_eq!(track.column(Elapsed(116_000_000)), 3 + 57);
        assert_eq!(track.column_end(19), Elapsed(2_000_000));
        assert_eq!(track.column_end(106), Elapsed(121_000_000));
    }

    #[test]
    fn folds_idle_times_longer_than_rest() {
        // One wait of 4 min in a run of 5.
        let one = world(&[0, 20, 40, 280, 290, 300], &[]);
        assert_eq!(labels(&track(&one, 100)).len(), 1);
        // Three calls of 60 s: that is what the run is made of.
        let calls = world(&[0, 60, 120, 180], &[]);
        assert_eq!(labels(&track(&calls, 100)), []);
        // Less than half a minute is looked at.
        let short = world(&[0, 1, 29, 30], &[]);
        assert_eq!(labels(&track(&short, 100)), []);
    }

    #[test]
    fn folds_overlapping_idle_and_pause_once() {
        // The process died at 10 s, and the run was continued 200 s later.
        let mut world = world(&[0, 5, 10], &[]);
        let (seq, at, span) = (Seq(9), Elapsed(210_000_000), SpanId::RUN);
        let kind = EventKind::Resumed { by: Initiator::You, paused_ms: 200_000 };
        world.apply(&Event { seq, at, span, kind });
        let track = track(&world, 100);
        assert_eq!(labels(&track).len(), 1);
        assert_eq!(track.column(Elapsed(5_000_000)), 3 + 46);
    }

    #[test]
    fn present_pause_has_no_label() {
        let mut world = world(&[0, 5, 10], &[]);
        let at = vec![Boundary::Finalize.id()];
        let (seq, span) = (Seq(9), SpanId::RUN);
        let paused = EventKind::Paused { at };
        world.apply(&Event { seq, at: Elapsed(10_000_000), span, kind: paused });
        let head = Elapsed(500_000_000);
        let track = TimeTrack::of_world(&world, Elapsed(0), head, Rect::new(0, 0, 100, 1), &[]);
        assert_eq!(labels(&track), []);
        assert_eq!(track.column(Elapsed(5_000_000)), 50);
    }

    proptest! {
        #[test]
        fn columns_keep_order_of_moments(
            events in prop::collection::vec(0u64..2_000, 1..40),
            cuts in prop::collection::btree_set(0u64..2_000, 0..20),
            width in 1u16..200,
        ) {
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let pauses: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|it| (it[0], it[1])).collect();
            let world = world(&events, &pauses);
            let track = track(&world, width);
            let ends: Vec<Elapsed> = (0..width).map(|nth| track.column_end(nth)).collect();
            prop_assert!(ends.is_sorted(), "{ends:?}");
            prop_assert_eq!(ends.last(), Some(&track.end));
            let columns: Vec<u16> =
                (0..=track.end.0 / 500_000).map(|at| track.column(Elapsed(at * 500_000))).collect();
            prop_assert!(columns.is_sorted(), "{columns:?}");
            prop_assert!(columns.iter().all(|column| (3..3 + width).contains(column)));
            let halves = track.halves();
            for (nth, end) in (0..).zip(&ends) {
                // A moment before the end of a column is in that column or before it.
                let before = Elapsed(end.0.saturating_sub(1));
                prop_assert!(track.column(before) <= 3 + nth, "{nth} {end:?} {track:?}");
                prop_assert_eq!(halves.column_end(nth * 2 + 1), *end);
            }
            let labels = labels(&track);
            prop_assert!(labels.windows(2).all(|two| two[0].1 <= two[1].0), "{labels:?}");
            let in_labels: u16 = labels.iter().map(|(from, end, _)| end - from).sum();
            prop_assert!(in_labels <= width / 3);
        }
    }

    #[test]
    fn quiet_times_take_only_their_label() {
        let world = world(&[0, 19, 30, 40, 50, 60, 70, 80, 85], &[]);
        let second = |at: u64| Elapsed(at * 1_000_000);
        let quiet = [(second(20), second(84))];
        let place = Rect::new(0, 0, 60, 1);
        let track = TimeTrack::of_world(&world, Elapsed(0), second(85), place, &quiet);
        let labels: Vec<_> = track.labels().collect();
        assert_eq!(labels.len(), 1, "{labels:?}");
        assert_eq!(labels[0].1, Duration::from_secs(64));
        assert!(track.column(second(19)) > 40, "what mattered has the columns");
    }
}
