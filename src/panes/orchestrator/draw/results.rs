//! Pane 3 of an orchestrator: the result of each task, a line each, and the combined result after
//! the join.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::task_sign;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::layout::window_start;
use crate::panes::orchestrator::results::{ResultLine, result_count, result_line};
use crate::panes::orchestrator::view::OrchestratorView;
use crate::panes::orchestrator::waterfall::WaterfallRow;
use crate::pattern::orchestrator::projection::TaskState;
use crate::pattern::orchestrator::words::results::{one_line, task_result};
use crate::ui::cx::DrawContext;
use crate::ui::table;
use crate::ui::text::Pen;
use crate::ui::theme::StyleRole;

/// Width of a name.
const NAME: u16 = 14;

/// Draws the pane.
pub(crate) fn render(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let count = result_count(data);
    let rows = usize::from(area.height);
    if count == 0 {
        let text = match world.orchestrator().and_then(|it| it.refused.as_ref()) {
            Some(_) => "The plan was refused, so there are no tasks. 2 shows why.",
            None if world.progress.is_live() => "No results yet: the plan comes first.",
            None => "No task was planned.",
        };
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(text, dim);
        return;
    }
    let name = NAME.min(area.width / 3);
    let top = window_start(view.shown_result(data), count, rows);
    for nth in 0..rows {
        let Some(result) = result_line(data, top + nth) else { break };
        let at = line(area, nth as u16);
        match result {
            ResultLine::Level(level, value) => {
                let mut pen = Pen::new(buf, at, cx.glyphs);
                pen.space(3).name(level, name, dim).space(1);
                pen.put(&one_line(value), cx.theme.style(StyleRole::Strong));
            }
            ResultLine::Section(section, value) => {
                let mut pen = Pen::new(buf, at, cx.glyphs);
                pen.space(3).name(section, name, dim).space(1);
                match value.as_object().is_some_and(serde_json::Map::is_empty) {
                    true => pen.put("nothing", dim),
                    false => pen.put(&one_line(value), plain),
                };
            }
            ResultLine::Task(task, row) => {
                let selected = view.waterfall_row() == Some(WaterfallRow::Task(task));
                let mut pen = table::row_or_blank(cx, at, selected, buf);
                let sign = task_sign(cx, world, row);
                pen.glyph(sign.glyph, sign.style).space(1);
                pen.name(row.task.id.as_str(), name, plain).space(1);
                let text = task_result(row);
                let role = match row.state {
                    TaskState::Failed => StyleRole::Failed,
                    TaskState::Degraded => StyleRole::Retry,
                    _ => StyleRole::Text,
                };
                match text.is_empty() {
                    true => pen.put(sign.word, dim),
                    false => pen.put(&text, cx.theme.style(role)),
                };
            }
        }
    }
    if count > rows && rows > 0 && area.width > 20 {
        let text = format!(" {}", table::range(top, rows, count));
        let width = text.len() as u16;
        let at = line(area, area.height - 1);
        let at = Rect { x: at.right() - width, width, ..at };
        Pen::new(buf, at, cx.glyphs).put(&text, dim);
    }
}
