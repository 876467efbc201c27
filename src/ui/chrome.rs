//! What frames every screen: two header rows, the status row, the key row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::Cx;
use crate::app::{State, keymap};

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Two header rows.
    pub header: Rect,
    /// What the screen itself fills.
    pub body: Rect,
    /// Counts and the last news.
    pub status: Rect,
    /// The keys of what is focused.
    pub keys: Rect,
}

impl Parts {
    /// Cuts an area into its parts.
    pub fn of(area: Rect) -> Self {
        let row = |y: u16, height: u16| Rect::new(area.x, y, area.width, height).intersection(area);
        let bottom = area.bottom();
        let header = row(area.y, 2);
        let body = row(header.bottom(), area.height.saturating_sub(4));
        Self {
            header,
            body,
            status: row(bottom.saturating_sub(2).max(area.y), 1),
            keys: row(bottom.saturating_sub(1).max(area.y), 1),
        }
    }
}

/// Draws header, status and keys.
pub fn render(state: &State, _cx: &Cx, parts: Parts, buf: &mut Buffer) {
    let Parts { header, status, keys, .. } = parts;
    buf.set_stringn(header.x, header.y, " roundtable", header.width.into(), Style::new());
    if let Some(notice) = &state.notice {
        let text = crate::event::visible::visible(&notice.text);
        buf.set_stringn(
            status.x + 1,
            status.y,
            text,
            status.width.saturating_sub(1).into(),
            Style::new(),
        );
    }
    let row: Vec<String> = keymap::bindings(state.context())
        .filter(|binding| binding.rank > 0)
        .filter_map(|binding| {
            let key = binding.keys.first()?.label(state.settings.ascii);
            Some(format!("{key} {}", binding.word))
        })
        .collect();
    let style = Style::new().add_modifier(Modifier::DIM);
    buf.set_stringn(keys.x + 1, keys.y, row.join("  "), keys.width.saturating_sub(1).into(), style);
}
