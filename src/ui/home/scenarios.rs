//! Pane 1 of the first screen: the scenarios, and the description of the selected one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::AppState;
use crate::app::home::HomePane;
use crate::app::state::ScenarioEntry;
use crate::narrate::glyph::Glyph;
use crate::ui::cx::DrawContext;
use crate::ui::pane::{empty, paragraph};
use crate::ui::table::{self, Column};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Draws the rows and the heads above them.
pub(super) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if state.scenarios.is_empty() {
        let text = "No scenarios. Put a file into ./scenarios and press r, or name one on the \
                    command line.";
        return empty(cx, table::head_row(area).union(area), text, buf);
    }
    let longest = state.scenarios.iter().map(|entry| columns(entry.name.as_str())).max();
    let name = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).clamp(8, 28) + 2;
    let pattern = if area.width >= 64 { 15 } else { 0 };
    let title = if area.width >= 104 { 34 } else { area.width };
    let heads = [
        Column::left("scenario", name),
        Column::left("pattern", pattern),
        Column::left("title", title),
        Column::rest("about"),
    ];
    table::heads(cx, Pen::new(buf, table::head_row(area), cx.glyphs).space(3), &heads);

    let focused = state.home.focus == HomePane::Scenarios;
    let shown = state.scenarios.iter().skip(state.home.scenarios_top);
    for (entry, y) in shown.zip(area.top()..area.bottom()) {
        let selected = state.home.scenario.as_ref() == Some(&entry.path);
        let pen = table::pane_row(cx, area, y, selected, focused, buf);
        scenario_row(entry, cx, pen, [name, pattern, title]);
    }
}

fn scenario_row(
    entry: &ScenarioEntry,
    cx: &DrawContext,
    mut pen: Pen,
    [name, pattern, title]: [u16; 3],
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    match &entry.loaded {
        Ok(scenario) => {
            if scenario.run_warnings(false).next().is_none() {
                pen.space(2);
            } else {
                pen.glyph(Glyph::Alert, cx.theme.style(StyleRole::Retry)).space(1);
            }
            pen.name(entry.name.as_str(), name - 2, plain).space(2);
            if pattern > 0 {
                pen.cell(scenario.pattern.get().name(), pattern, dim);
            }
            let width = title.saturating_sub(2).min(pen.left());
            pen.cell(&scenario.title, width, plain).space(2).put(&scenario.about, dim);
        }
        Err(_) => {
            let bad = cx.theme.style(StyleRole::Failed);
            pen.glyph(Glyph::Failed, bad).space(1);
            pen.name(entry.name.as_str(), name - 2, bad).space(2);
            pen.put(&entry.first_error().unwrap_or_default(), bad);
        }
    }
}

/// The description of the selected scenario, below the list.
pub(super) fn about(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some(entry) = state.home.selected_scenario(&state.scenarios) else { return };
    if area.height < 3 {
        return;
    }
    let line = Rect { height: 1, ..area };
    Pen::new(buf, line, cx.glyphs).glyphs(
        Glyph::Horizontal,
        area.width,
        cx.theme.style(StyleRole::Border),
    );
    let (text, role) = match &entry.loaded {
        Ok(scenario) => (scenario.about.clone(), StyleRole::Dim),
        Err(_) => {
            let text = entry.first_error().unwrap_or_default();
            (format!("{text}. E edits the file."), StyleRole::Failed)
        }
    };
    let text_area = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: (area.height - 1).min(2),
    };
    paragraph(cx, text_area, &text, cx.theme.style(role), buf);
}
