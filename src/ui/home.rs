//! The first screen: scenarios, and the runs of this session.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Cx;
use crate::app::State;
use crate::event::visible::visible;

/// Draws the first screen.
pub fn render(state: &State, _cx: &Cx, area: Rect, buf: &mut Buffer) {
    if state.scenarios.is_empty() {
        let text = "No scenario: put a file into ./scenarios, or name one on the command line.";
        buf.set_stringn(
            area.x + 1,
            area.y,
            text,
            area.width.saturating_sub(1).into(),
            Style::new(),
        );
    }
    for (entry, y) in state.scenarios.iter().zip(area.y..area.bottom()) {
        let text = match &entry.loaded {
            Ok(scenario) => format!("{}  {}", entry.name, scenario.title),
            Err(problems) => format!("{}  {} problems", entry.name, problems.len()),
        };
        buf.set_stringn(
            area.x + 1,
            y,
            visible(&text),
            area.width.saturating_sub(1).into(),
            Style::new(),
        );
    }
}
