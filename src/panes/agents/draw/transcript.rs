//! Pane 4 of a run with agents: the transcript of messages and call results, indented by depth. It follows the
//! run until the operator scrolls.

use crate::panes::agents::lower::LowerPanes;
use crate::panes::agents::transcript::Transcript;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::scroll::WrappingLines;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::transcript::{STEP, SpokenLine, TIME, TranscriptKind};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::{empty, out_of_view};
use crate::ui::table::row_style;
use crate::ui::text::Pen;
use crate::ui::theme::StyleRole;

/// Draws the pane.
pub(crate) fn render(
    view: &LowerPanes,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(lines) = Transcript::of_run(data, area.width) else { return };
    let height = usize::from(area.height);
    if lines.count() == 0 {
        return empty(cx, area, "No messages yet.", buf);
    }
    let (top, selected) = view.transcript_position(&lines, height);
    let mut row = 0;
    let mut at = top.line;
    while row < height
        && let Some(spoken) = lines.line(at)
    {
        let skip = if at == top.line { top.row } else { 0 };
        let (parts, cut) = lines.wrapped(&spoken);
        let last = parts.len().saturating_sub(1);
        for (nth, part) in parts.iter().enumerate().skip(skip) {
            if row == height {
                break;
            }
            let here = line(area, row as u16);
            row_style(cx, here, selected == Some(at), buf);
            let mut pen = Pen::new(buf, here, cx.glyphs);
            if nth == 0 {
                let mark = if selected == Some(at) { Glyph::Selected } else { Glyph::NotYet };
                let mark = (mark == Glyph::Selected).then_some(mark);
                head(cx, &mut pen, &spoken, mark, (lines.names, lines.models), data);
            }
            pen.advance_to(here.x + lines.text_indent(&spoken)).put(part, style(cx, &spoken));
            if nth == last && cut {
                pen.glyph(Glyph::Ellipsis, cx.theme.style(StyleRole::Dim));
            }
            if nth == last && spoken.kind == TranscriptKind::Streaming {
                pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
            }
            row += 1;
        }
        at += 1;
    }
    out_of_view(cx, area, top, &lines, buf);
}

/// Draws a line's time and author, and a glyph for its kind if it is not a message.
fn head(
    cx: &DrawContext,
    pen: &mut Pen,
    spoken: &SpokenLine<'_>,
    mark: Option<Glyph>,
    (names, models): (u16, u16),
    data: &RunData,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let start = pen.x();
    match mark {
        Some(glyph) => pen.glyph(glyph, theme.style(StyleRole::Key)),
        None => pen.space(1),
    };
    let at = match (spoken.kind, spoken.at) {
        (TranscriptKind::Next, _) => "next".to_owned(),
        (_, None) => "before".to_owned(),
        (_, Some(at)) => format::time_in_run(data.shown().progress.run_time(at)),
    };
    pen.put(&at, dim).advance_to(start + TIME);
    let (author, role) = match (spoken.author, spoken.kind, spoken.at) {
        ("", TranscriptKind::Message, None) => ("you", StyleRole::Dim),
        ("", TranscriptKind::Message, Some(_)) => ("you", StyleRole::Strong),
        ("", TranscriptKind::Next, _) => ("you", StyleRole::Notice),
        ("", ..) => ("run", StyleRole::Dim),
        (author, _, None) => (author, StyleRole::Dim),
        (author, TranscriptKind::Streaming, _) => (author, StyleRole::Running),
        (author, ..) => (author, StyleRole::Text),
    };
    pen.name(author, names, theme.style(role)).space(1);
    if models > 0 {
        // Only replies have a model, not messages to an agent.
        let says = matches!(
            spoken.kind,
            TranscriptKind::Said
                | TranscriptKind::Streaming
                | TranscriptKind::Call
                | TranscriptKind::Handoff
        );
        let model = spoken.model(data).filter(|_| says).unwrap_or_default();
        super::agent::put_model(cx, pen, model, models - 1, dim);
        pen.space(1);
    }
    pen.space(STEP * spoken.depth.min(6));
    let (glyph, role) = match spoken.kind {
        TranscriptKind::Message | TranscriptKind::Said | TranscriptKind::Streaming => return,
        TranscriptKind::Cut => (Glyph::Alert, StyleRole::Retry),
        TranscriptKind::Call => (Glyph::Within, StyleRole::Dim),
        TranscriptKind::Result => (Glyph::Done, StyleRole::Done),
        TranscriptKind::Failed => (Glyph::Failed, StyleRole::Failed),
        TranscriptKind::Cancelled => (Glyph::Off, StyleRole::Off),
        TranscriptKind::Handoff => (Glyph::Arrow, StyleRole::Strong),
        TranscriptKind::Refused => (Glyph::Refused, StyleRole::Refused),
        TranscriptKind::Next => (Glyph::Waiting, StyleRole::NeedsYou),
    };
    let role = if spoken.at.is_none() { StyleRole::Dim } else { role };
    pen.put_within(cx.glyphs.symbol(glyph), 2, theme.style(role));
}

fn style(cx: &DrawContext, spoken: &SpokenLine<'_>) -> Style {
    cx.theme.style(match (spoken.at, spoken.kind) {
        (None, _) => StyleRole::Dim,
        (_, TranscriptKind::Message) => StyleRole::Strong,
        (_, TranscriptKind::Said | TranscriptKind::Streaming | TranscriptKind::Handoff) => {
            StyleRole::Text
        }
        (_, TranscriptKind::Call | TranscriptKind::Result) => StyleRole::Dim,
        (_, TranscriptKind::Cut) => StyleRole::Retry,
        (_, TranscriptKind::Failed) => StyleRole::Failed,
        (_, TranscriptKind::Cancelled) => StyleRole::Off,
        (_, TranscriptKind::Refused) => StyleRole::Refused,
        (_, TranscriptKind::Next) => StyleRole::Notice,
    })
}
