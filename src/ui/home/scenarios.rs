//! Pane 1 of the first screen: the scenarios, and the description of the selected one.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::AppState;
use crate::app::home::HomePane;
use crate::app::scenario_list::ScenarioLine;
use crate::app::state::ScenarioEntry;
use crate::narrate::glyph::Glyph;
use crate::scenario::catalogue::ScenarioGroup;
use crate::ui::cx::DrawContext;
use crate::ui::pane::{empty, paragraph};
use crate::ui::run::events::filter_text;
use crate::ui::table::{self, Column};
use crate::ui::text::{Pen, columns, on_border};
use crate::ui::theme::StyleRole;

/// Columns of a pattern's name, which is shown where the group does not say it.
const PATTERN: u16 = 15;

/// The width of a name and of a title, with the blanks after them.
struct ScenarioColumns {
    name: u16,
    title: u16,
}

/// Draws the rows and the heads above them.
pub(super) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if state.scenarios.is_empty() {
        let text = match state.home.is_read {
            true => format!(
                "No scenarios. Put a file into ./scenarios and press {}, or name one on the command line.",
                key_of(Action::Rescan)
            ),
            false => "Reading the scenarios.".to_owned(),
        };
        return empty(cx, table::head_row(area).union(area), &text, buf);
    }
    let longest = state.scenarios.iter().map(|entry| columns(entry.name.as_str())).max();
    let name = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).clamp(8, 28) + 2;
    let title = if area.width >= 100 { 38 } else { area.width };
    let heads =
        [Column::left("scenario", name), Column::left("title", title), Column::rest("about")];
    table::heads(cx, Pen::new(buf, table::head_row(area), cx.glyphs).space(5), &heads);

    let focused = state.home.focus == HomePane::Scenarios;
    let widths = ScenarioColumns { name, title };
    let lines = state.home.lines(&state.scenarios);
    if lines.count() == 0 {
        let text = "No scenario has these words. Esc removes the filter.";
        return empty(cx, area, text, buf);
    }
    for (line, y) in lines.from(state.home.scenarios_top).zip(area.top()..area.bottom()) {
        match line {
            ScenarioLine::Group(group) => {
                let row = Rect { y, height: 1, ..area };
                let mut pen = Pen::new(buf, row, cx.glyphs);
                pen.space(1).put(group.title(), cx.theme.style(StyleRole::Title)).space(2);
                let room = pen.left().saturating_sub(1);
                pen.put_within(group.about(), room, cx.theme.style(StyleRole::Dim));
            }
            ScenarioLine::Entry(index) => {
                let Some(entry) = state.scenarios.get(index) else { continue };
                let selected = state.home.scenario.as_ref() == Some(&entry.path);
                let mut pen = table::pane_row(cx, area, y, selected, focused, buf);
                pen.space(2);
                scenario_row(entry, cx, pen, &widths);
            }
        }
    }
}

/// Draws the filter into the upper border of the pane, after its title.
pub(super) fn filter_line(
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    taken: u16,
    buf: &mut Buffer,
) {
    let Some(filter) = state.home.filter.status() else { return };
    let start = area.x.saturating_add(taken);
    let row =
        Rect { x: start, y: area.y, width: area.right().saturating_sub(start + 2), height: 1 };
    let mut pen = Pen::new(buf, row.intersection(area), cx.glyphs);
    if pen.left() < 14 {
        return;
    }
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    pen.put("  filter: ", dim);
    let room = pen.left().saturating_sub(1);
    filter_text(cx, &mut pen, filter, room, " words of a name, title or pattern");
    pen.put(" ", dim);
}

fn scenario_row(entry: &ScenarioEntry, cx: &DrawContext, mut pen: Pen, widths: &ScenarioColumns) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let name = widths.name;
    match &entry.loaded {
        Ok(scenario) => {
            if scenario.run_warnings(false).next().is_none() {
                pen.space(2);
            } else {
                pen.glyph(Glyph::Alert, cx.theme.style(StyleRole::Retry)).space(1);
            }
            pen.name(entry.name.as_str(), name - 2, plain).space(2);
            let mut title = widths.title;
            if entry.group() == ScenarioGroup::Own && pen.left() > 2 * PATTERN {
                pen.cell(scenario.pattern.get().name(), PATTERN, dim);
                title = title.saturating_sub(PATTERN);
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
            (format!("{text}. {} edits the file.", key_of(Action::Edit)), StyleRole::Failed)
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
