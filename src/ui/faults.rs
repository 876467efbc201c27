//! The faults drawer over a run: the faults and limits of a tool, with the keys that change them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, paint, wrap_within};
use super::theme::StyleRole;
use super::{format, frame};
use crate::app::AppState;
use crate::app::faults::{FaultsDrawer, ToolSetting, default_fault, injected_fault};
use crate::app::run::RunPage;
use crate::event::world::tool_row::ToolRow;
use crate::narrate::event_line_tool;
use crate::narrate::glyph::Glyph;
use crate::ui::table;

/// Draws the drawer of a tool.
pub fn render(
    drawer: &FaultsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    let world = page.world();
    let parts = drawer.parts(state.size, world);
    let title =
        frame::live_title("Faults and limits", drawer.tool.as_str(), world.progress.is_live());
    let tools = world.tools.rows();
    let at = tools.iter().position(|tool| *tool.name() == drawer.tool).map_or(0, |at| at + 1);
    let foot = format!("tool {at} of {}", format::count_noun(tools.len() as u64, "tool"));
    let foot = foot.trim_end_matches(" tools").trim_end_matches(" tool");
    frame::window(&title, foot, cx, parts.window, buf);
    let Some(tool) = drawer.tool(world) else { return };
    for nth in 0..usize::from(parts.list.height) {
        let Some(knob) = FaultsDrawer::setting_at(parts.top + nth, &tool.head.limits) else {
            continue;
        };
        let row = Rect { y: parts.list.y + nth as u16, height: 1, ..parts.list };
        knob_row(cx, tool, knob, drawer.selected == knob, row, buf);
    }
    draw_change_help(page, cx, tool, drawer, parts.foot, buf);
}

fn knob_row(
    cx: &DrawContext,
    tool: &ToolRow,
    knob: ToolSetting,
    selected: bool,
    area: Rect,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    if selected {
        paint(buf, area, cx.theme.style(StyleRole::Selected));
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    table::mark(cx, &mut pen, selected);
    match knob {
        ToolSetting::Fault(kind) => {
            let now = injected_fault(tool, kind);
            let (mark, role) = match now {
                Some(_) => ("[x] ", StyleRole::Flag),
                None => ("[ ] ", StyleRole::Off),
            };
            pen.put(mark, cx.theme.style(role)).cell(kind.word(), 12, plain);
            let what =
                event_line_tool::fault_text(&now.unwrap_or(default_fault(kind))).into_owned();
            pen.put(&what, if now.is_some() { cx.theme.style(StyleRole::Flag) } else { dim });
        }
        knob => {
            let Some(limit) = knob.limit(&tool.head.limits) else { return };
            pen.put("  = ", dim).put(&event_line_tool::limit_text(limit), plain);
        }
    }
}

/// Draws the help on a change of the selected row.
fn draw_change_help(
    page: &RunPage,
    cx: &DrawContext,
    tool: &ToolRow,
    drawer: &FaultsDrawer,
    area: Rect,
    buf: &mut Buffer,
) {
    let row = |y: u16| {
        Rect { x: area.x + 1, y, width: area.width.saturating_sub(2), height: 1 }.intersection(area)
    };
    let border = cx.theme.style(StyleRole::Border);
    let mut pen = Pen::new(buf, row(area.y), cx.glyphs);
    pen.glyphs(Glyph::Horizontal, 2, border).space(1);
    let sign = cx.theme.breaker(tool.breaker);
    let heading = match tool.head.limits.breaker {
        Some(_) => format!("breaker {}", sign.word),
        None => "no breaker".to_owned(),
    };
    pen.put(&heading, cx.theme.style(StyleRole::Title)).space(1);
    let rest = pen.left();
    pen.glyphs(Glyph::Horizontal, rest, border);
    let mut lines: Vec<&str> = Vec::new();
    if page.is_scrubbed() {
        lines.push("The run as it is now, not at the playhead.");
    }
    if !page.world().progress.is_live() {
        lines.push("The run has ended: its tools can no longer change.");
    } else {
        lines.push(drawer.selected.help_text());
        lines.push("Takes effect on the next attempt; Space turns a fault off.");
        if tool.head.shared {
            lines.push("Its breaker and bulkhead are shared by all runs of this dashboard.");
        }
    }
    let width = usize::from(area.width.saturating_sub(4)).max(1);
    let mut y = area.y + 1;
    for line in lines {
        let room = area.bottom().saturating_sub(y);
        let (rows, _) = wrap_within(line, width, room.into());
        for (at, text) in rows.iter().take(room.into()).enumerate() {
            let dim = cx.theme.style(StyleRole::Dim);
            let mut pen = Pen::new(buf, row(y), cx.glyphs);
            match at {
                0 => pen.glyph(Glyph::Dot, dim).space(1),
                _ => pen.space(2),
            };
            pen.put(text, cx.theme.style(StyleRole::Text));
            y += 1;
        }
    }
}
