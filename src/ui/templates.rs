//! The window in which the template of a new scenario is chosen.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::pane::{paragraph, scroll_arrows};
use super::theme::StyleRole;
use super::{frame, table};
use crate::app::layout::Size;
use crate::app::template_list::TemplateList;

/// Columns of a pattern's name.
const NAME: u16 = 15;

/// Draws the window.
pub fn render(list: &TemplateList, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let parts = list.parts(size);
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    frame::window("New scenario from a template", "", cx, parts.window, buf);
    let shown = list.templates.iter().enumerate().skip(parts.top);
    for ((at, template), y) in shown.zip(parts.list.y..parts.list.bottom()) {
        let area = Rect { y, height: 1, ..parts.list };
        let mut pen = table::row(cx, area, at == list.selected, buf);
        pen.cell(&template.pattern, NAME, plain).put(&template.about, dim);
    }
    let hidden = [parts.top > 0, parts.top + usize::from(parts.list.height) < list.templates.len()];
    scroll_arrows(cx, parts.window.right().saturating_sub(1), parts.list, hidden, buf);
    if let Some(template) = list.templates.get(list.selected) {
        let text = format!(
            "{} writes scenarios/my-{}.toml; it runs without a model.",
            key_of(Action::WriteTemplate),
            template.pattern
        );
        let area = Rect {
            x: parts.foot.x + 1,
            y: parts.foot.y + parts.foot.height.min(1),
            width: parts.foot.width.saturating_sub(2),
            height: parts.foot.height.saturating_sub(1),
        };
        paragraph(cx, area, &text, dim, buf);
    }
}
