//! The screen of a terminal that is too small for the dashboard.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, columns};
use super::theme::StyleRole;
use crate::app::AppState;
use crate::app::layout::MIN_SIZE;
pub use crate::app::layout::too_small as is;

/// Shows the current and the needed size, which runs continue, and how to quit: other keys do
/// nothing on a screen that cannot show their effect.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (cols, rows) = MIN_SIZE;
    let live = state.live_runs().count();
    let goes_on = match (state.visible_run().filter(|page| page.world().progress.is_live()), live) {
        (Some(page), _) => format!("run {} continues", page.id()),
        (None, 0) => "no run is live".to_owned(),
        (None, 1) => "the run continues".to_owned(),
        (None, live) => format!("{live} runs continue"),
    };
    let lines = [
        (format!("{}x{}: too small", area.width, area.height), StyleRole::Strong),
        (format!("needs {cols}x{rows}"), StyleRole::Text),
        (goes_on, StyleRole::Dim),
        ("Ctrl-C twice quits".to_owned(), StyleRole::Dim),
    ];
    let top = area.y + area.height.saturating_sub(lines.len() as u16) / 2;
    for ((line, role), y) in lines.iter().zip(top..area.bottom()) {
        let width = u16::try_from(columns(line)).unwrap_or(u16::MAX).min(area.width);
        let row = Rect { x: area.x + (area.width - width) / 2, y, width, height: 1 };
        Pen::new(buf, row, cx.glyphs).put(line, cx.theme.style(*role));
    }
}
