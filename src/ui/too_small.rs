//! What a terminal shows that is too small for the dashboard.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The smallest size that is drawn: columns and rows.
pub const LEAST: (u16, u16) = (60, 16);

/// Whether this area is too small.
pub fn is(area: Rect) -> bool {
    area.width < LEAST.0 || area.height < LEAST.1
}

/// Says which size it has and which it needs, and that nothing is lost.
pub fn render(area: Rect, buf: &mut Buffer) {
    let (cols, rows) = LEAST;
    let lines = [
        format!("{}x{}, needs {cols}x{rows}", area.width, area.height),
        "the run goes on".to_owned(),
    ];
    let top = area.y + area.height.saturating_sub(2) / 2;
    for (line, y) in lines.iter().zip(top..area.bottom()) {
        let width = u16::try_from(line.len()).unwrap_or(u16::MAX);
        let x = area.x + area.width.saturating_sub(width) / 2;
        buf.set_stringn(x, y, line, area.width.into(), Style::new());
    }
}
