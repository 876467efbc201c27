//! Pane 4 of a team: the transcript of messages and call results, indented by depth. It follows the
//! run until the operator scrolls.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::run::RunPage;
use crate::app::run::scroll::Lines;
use crate::app::run::team::transcript::{How, STEP, Spoken, TIME};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::run::{empty, line, out_of_view, row_style};
use crate::ui::text::Pen;
use crate::ui::theme::Role;

/// Draws the pane.
pub(in super::super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let Some(lines) = page.transcript(area.width) else { return };
    let height = usize::from(area.height);
    if lines.count() == 0 {
        return empty(cx, area, "No messages yet.", buf);
    }
    let (top, selected) = page.talk_at(&lines, height);
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
                head(cx, &mut pen, &spoken, mark, (lines.names, lines.models), page);
            }
            pen.to(here.x + lines.left(&spoken)).put(part, style(cx, &spoken));
            if nth == last && cut {
                pen.glyph(Glyph::Ellipsis, cx.theme.style(Role::Dim));
            }
            if nth == last && spoken.how == How::Coming {
                pen.glyph(Glyph::Cursor, cx.theme.style(Role::Cursor));
            }
            row += 1;
        }
        at += 1;
    }
    out_of_view(cx, area, top, &lines, buf);
}

/// Draws a line's time and author, and a glyph for its kind if it is not a message.
fn head(
    cx: &Cx,
    pen: &mut Pen,
    spoken: &Spoken<'_>,
    mark: Option<Glyph>,
    (names, models): (u16, u16),
    page: &RunPage,
) {
    let theme = cx.theme;
    let dim = theme.style(Role::Dim);
    let start = pen.x();
    match mark {
        Some(glyph) => pen.glyph(glyph, theme.style(Role::Key)),
        None => pen.space(1),
    };
    let at = match (spoken.how, spoken.at) {
        (How::Next, _) => "next".to_owned(),
        (_, None) => "before".to_owned(),
        (_, Some(at)) => format::moment(at),
    };
    pen.put(&at, dim).to(start + TIME);
    let (author, role) = match (spoken.author, spoken.how, spoken.at) {
        ("", How::Message, None) => ("you", Role::Dim),
        ("", How::Message, Some(_)) => ("you", Role::Strong),
        ("", How::Next, _) => ("you", Role::Notice),
        ("", ..) => ("run", Role::Dim),
        (author, _, None) => (author, Role::Dim),
        (author, How::Coming, _) => (author, Role::Running),
        (author, ..) => (author, Role::Text),
    };
    pen.name(author, names, theme.style(role)).space(1);
    if models > 0 {
        // Only replies have a model, not messages to an agent.
        let says = matches!(spoken.how, How::Said | How::Coming | How::Called | How::Over);
        let model = spoken.model(page).filter(|_| says).unwrap_or_default();
        super::put_model(cx, pen, model, models - 1, dim);
        pen.space(1);
    }
    pen.space(STEP * spoken.depth.min(6));
    let (glyph, role) = match spoken.how {
        How::Message | How::Said | How::Coming => return,
        How::Called => (Glyph::Within, Role::Dim),
        How::Good => (Glyph::Done, Role::Done),
        How::Bad => (Glyph::Failed, Role::Failed),
        How::Cancelled => (Glyph::Off, Role::Off),
        How::Over => (Glyph::Arrow, Role::Strong),
        How::Refused => (Glyph::Refused, Role::Refused),
        How::Next => (Glyph::Waiting, Role::NeedsYou),
    };
    let role = if spoken.at.is_none() { Role::Dim } else { role };
    pen.put_within(cx.glyphs.of(glyph), 2, theme.style(role));
}

fn style(cx: &Cx, spoken: &Spoken<'_>) -> Style {
    cx.theme.style(match (spoken.at, spoken.how) {
        (None, _) => Role::Dim,
        (_, How::Message) => Role::Strong,
        (_, How::Said | How::Coming | How::Over) => Role::Text,
        (_, How::Called | How::Good) => Role::Dim,
        (_, How::Bad) => Role::Failed,
        (_, How::Cancelled) => Role::Off,
        (_, How::Refused) => Role::Refused,
        (_, How::Next) => Role::Notice,
    })
}
