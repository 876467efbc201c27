//! The faults drawer over a run: the faults and limits of a tool, with the keys that change them.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::pane::list_below_heading;
use super::theme::StyleRole;
use super::{format, frame};
use crate::app::AppState;
use crate::app::faults::{FaultsDrawer, ToolSetting, default_fault, injected_fault};
use crate::app::run::RunPage;
use crate::app::run::tool_summary::window_state;
use crate::event::world::tool_row::ToolRow;
use crate::narrate::event_line_tool;
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
    let mut pen = table::row(cx, area, selected, buf);
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
            pen.put("  = ", dim).put(&event_line_tool::limit_text(limit, &tool.head.limits), plain);
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
    let sign = cx.theme.breaker(tool.breaker);
    let heading = match tool.head.limits.breaker {
        Some(_) => format!("breaker {}", sign.word),
        None => "no breaker".to_owned(),
    };
    let state = window_state(tool, page.head_time(cx.now));
    let key = key_of(Action::Toggle);
    let effect = format!("Takes effect on the next attempt; {key} turns a fault off.");
    let mut lines: Vec<&str> = Vec::new();
    if page.is_scrubbed() {
        lines.push("The run as it is now, not at the playhead.");
    }
    if !page.world().progress.is_live() {
        lines.push("The run has ended: its tools can no longer change.");
    } else {
        if let Some(state) = &state {
            lines.push(state);
        }
        lines.push(drawer.selected.help_text());
        lines.push(&effect);
        if tool.head.shared {
            lines.push("Its breaker and bulkhead are shared by all runs of this dashboard.");
        }
    }
    list_below_heading(cx, area, &heading, &lines, buf);
}
