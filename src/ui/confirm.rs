//! The window of a question.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::format::count_noun;
use super::frame;
use super::text::Pen;
use super::theme::StyleRole;
use crate::app::confirm::Confirm;
use crate::app::layout::Size;
use crate::narrate::glyph::Glyph;

/// Draws a question.
pub fn render(confirm: &Confirm, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let parts = confirm.parts(size);
    frame::window("Confirm", "", cx, parts.window, buf);
    let (rows, question) = confirm.rows(size);
    let text = parts.text;
    let shown = rows.iter().enumerate().skip(confirm.top);
    for ((at, row), y) in shown.zip(text.y..text.bottom()) {
        let role = if at < question { StyleRole::Strong } else { StyleRole::Text };
        Pen::new(buf, Rect { y, height: 1, ..text }, cx.glyphs).put(row, cx.theme.style(role));
    }
    let below = rows.len().saturating_sub(confirm.top + usize::from(text.height));
    let mut pen = Pen::new(buf, parts.more, cx.glyphs);
    let key = cx.theme.style(StyleRole::Key);
    if below > 0 {
        let more = count_noun(below as u64, "more line");
        pen.glyph(Glyph::Down, key).put(
            &format!(" {more} below: {}", keys([Action::Down, Action::PageDown, Action::Bottom])),
            key,
        );
    } else if confirm.top > 0 {
        let more = count_noun(confirm.top as u64, "line");
        pen.glyph(Glyph::Up, key).put(
            &format!(" {more} above: {}", keys([Action::Up, Action::PageUp, Action::Top])),
            key,
        );
    }
    let yes = if confirm.accepts_yes() { StyleRole::Button } else { StyleRole::Dim };
    Pen::new(buf, parts.yes, cx.glyphs)
        .put(&format!("[ {} yes ]", key_of(Action::Confirm)), cx.theme.style(yes));
    Pen::new(buf, parts.no, cx.glyphs).put(&format!("[ {} no ]", key_of(Action::Decline)), key);
}

/// The keys of actions, separated by commas.
fn keys(actions: [Action; 3]) -> String {
    actions.map(key_of).join(", ")
}
