//! The frame of every screen: the status row and the key row. `header` draws the header rows.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use crate::app::layout::ScreenParts;

use super::cx::DrawContext;
use super::format;
use super::header;
use super::text::{Pen, columns};
use super::theme::StyleRole;
use crate::app::AppState;
use crate::app::comparison_view::AwaitedComparison;
use crate::app::key_hints::{HINT_GAP, fitting_hints};
use crate::app::notice::NoticeKind;
use crate::app::overlay::Overlay;
use crate::event::stop::StopClass;
use crate::narrate::glyph::Glyph;

/// Draws header, status and keys.
pub fn render(state: &AppState, cx: &DrawContext, parts: ScreenParts, buf: &mut Buffer) {
    header::render(state, cx, parts.header, buf);
    status(state, cx, parts.status, buf);
    keys(state, cx, parts.keys, buf);
}

/// One count of the status row.
struct StatusCount {
    glyph: Glyph,
    role: StyleRole,
    count: u64,
    word: &'static str,
}

impl StatusCount {
    fn width(&self) -> usize {
        let word = if self.word.is_empty() { 0 } else { 1 + columns(self.word) };
        2 + columns(&self.count.to_string()) + word + 2
    }

    fn draw(&self, cx: &DrawContext, pen: &mut Pen) {
        let style = cx.theme.style(if self.count == 0 { StyleRole::Dim } else { self.role });
        pen.glyph(self.glyph, style).put(&format!(" {}", self.count), style);
        if !self.word.is_empty() {
            pen.space(1).put(self.word, style);
        }
        pen.space(2);
    }
}

/// Counts on the left, the latest notice on the right. A long notice takes the room of the counts,
/// the last of them first; only a notice longer than the row is cut.
fn status(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (of, mut counts) = counts(state);
    let room = usize::from(area.width).saturating_sub(2);
    let counted = |counts: &[StatusCount]| {
        columns(of) + 2 + counts.iter().map(StatusCount::width).sum::<usize>()
    };
    let (text, more, role) = news(state, room.saturating_sub(counted(&counts)));
    let taken = columns(&text) + columns(&more);
    while counted(&counts) + taken > room {
        if counts.pop().is_none() {
            break;
        }
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    if !counts.is_empty() {
        pen.put(of, cx.theme.style(StyleRole::Dim)).space(2);
    }
    for count in counts {
        count.draw(cx, &mut pen);
    }
    let taken = u16::try_from(taken).unwrap_or(u16::MAX);
    let free = pen.left().saturating_sub(1);
    pen.space(free.saturating_sub(taken));
    let behind = u16::try_from(columns(&more)).unwrap_or(u16::MAX);
    let width = pen.left().saturating_sub(behind.saturating_add(1));
    pen.put_within(&text, width, cx.theme.style(role)).put(&more, cx.theme.style(StyleRole::Dim));
}

/// The text of the status row, the number of further notices, and the style. `room` is what the counts
/// leave.
fn news(state: &AppState, room: usize) -> (String, String, StyleRole) {
    if let Some(notice) = state.notices.current() {
        let (mark, role) = match notice.kind {
            NoticeKind::Info => ("", StyleRole::Notice),
            NoticeKind::Error | NoticeKind::Form => ("! ", StyleRole::Failed),
        };
        let more = match state.notices.hidden_count() {
            0 => String::new(),
            more => format!("  {more} more, Esc"),
        };
        return (format!("{mark}{}", notice.text), more, role);
    }
    if let Some(lines) = state.interrupted_lines() {
        let text = lines.iter().find(|line| columns(line) <= room);
        let text = text.or(lines.last()).cloned().unwrap_or_default();
        return (text, String::new(), StyleRole::Notice);
    }
    if let Some(kept) =
        state.visible_run().and_then(|page| page.kept.as_deref()).filter(|it| !it.is_read)
    {
        let events = format::count_noun(kept.row.events, "event");
        let text = if kept.is_elsewhere() { String::new() } else { format!("reading {events}") };
        return (text, String::new(), StyleRole::Dim);
    }
    if let Some(AwaitedComparison { runs: [left, right], .. }) = &state.to_compare.awaited {
        let text = format!("comparing {left} with {right}");
        return (text, String::new(), StyleRole::Dim);
    }
    let starting =
        state.starting.last().map(|starting| format!("{} {}", starting.doing, starting.title));
    (starting.unwrap_or_default(), String::new(), StyleRole::Dim)
}

/// What is counted, and the counts: the calls of the run on the screen, or the runs of this session; the
/// most important first.
fn counts(state: &AppState) -> (&'static str, Vec<StatusCount>) {
    let count = |glyph, role, count, word| StatusCount { glyph, role, count, word };
    // The comparison covers the run that the counts would be of.
    if state.overlays.iter().any(|it| matches!(it, Overlay::Comparison(_))) {
        return ("", Vec::new());
    }
    if let Some(page) = state.visible_run() {
        let tally = page.shown().tally;
        // The calls of a run that was interrupted are open for ever.
        let is_cut = tally.open() > 0 && !page.shown().progress.is_live();
        let open = match is_cut {
            true => count(Glyph::Off, StyleRole::Off, tally.open(), "cut off"),
            false => count(Glyph::Running, StyleRole::Running, tally.open(), "running"),
        };
        let mut counts = vec![
            count(Glyph::Done, StyleRole::Done, tally.answered, "answered"),
            open,
            count(Glyph::Failed, StyleRole::Failed, tally.failed + tally.omitted, "failed"),
            count(Glyph::Retry, StyleRole::Retry, tally.retries, "retried"),
        ];
        for (glyph, role, number, word) in [
            (Glyph::Alert, StyleRole::Retry, tally.degraded - tally.omitted, "degraded"),
            (Glyph::Refused, StyleRole::Refused, tally.refused_replies, "refused"),
        ] {
            if number > 0 {
                counts.push(count(glyph, role, number, word));
            }
        }
        if tally.cancelled > 0 {
            counts.push(count(Glyph::Off, StyleRole::Off, tally.cancelled, "cancelled"));
        }
        return ("calls", counts);
    }
    if state.runs.is_empty() {
        return ("", Vec::new());
    }
    let ended = |class: fn(StopClass) -> bool| {
        let of = |page: &&crate::app::run::RunPage| {
            let closed = page.world().progress.closed.as_ref();
            closed.is_some_and(|closed| class(closed.reason.class()))
        };
        state.runs.iter().filter(of).count() as u64
    };
    let stopped = ended(|class| !matches!(class, StopClass::Ok | StopClass::Cancelled));
    let counts = vec![
        count(Glyph::Running, StyleRole::Running, state.live_runs().count() as u64, "live"),
        count(Glyph::Done, StyleRole::Done, ended(|class| class == StopClass::Ok), "done"),
        count(
            Glyph::Off,
            StyleRole::Off,
            ended(|class| class == StopClass::Cancelled),
            "cancelled",
        ),
        count(Glyph::Failed, StyleRole::Failed, stopped, "stopped"),
    ];
    ("runs of this session", counts)
}

/// The keys of the focused context.
fn keys(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (gap, margin) = HINT_GAP;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(margin);
    let (key, dim) = (cx.theme.style(StyleRole::Key), cx.theme.style(StyleRole::Dim));
    for hint in fitting_hints(state, area.width) {
        let labels: Vec<&str> = hint.keys.iter().map(|(label, _)| label.as_str()).collect();
        pen.put(&labels.join(" "), key).put(" ", dim);
        pen.put(hint.word, dim).space(gap);
    }
}
