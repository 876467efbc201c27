//! Pane 2 of an orchestrator: details of the selected or current row of the waterfall; at the end
//! the outcome.

use crate::panes::orchestrator::subject::TaskSubject;
use crate::panes::orchestrator::task::task_document;
use crate::panes::orchestrator::view::OrchestratorView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::row_sign;
use crate::app::run::data::RunData;
use crate::app::run::subject_text::text_area;
use crate::narrate::glyph::Glyph;
use crate::panes::orchestrator::waterfall::WaterfallRow;
use crate::ui::cx::DrawContext;
use crate::ui::document::draw_scrolled;
use crate::ui::run::speech;
use crate::ui::theme::StateSign;

/// Draws the pane.
pub(crate) fn render(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    if !view.shows_document(data) {
        return speech::render(&view.spoken(data), data, cx, area, buf);
    }
    let document = task_document(data, view.subject(data), data.drawn_to(cx.now));
    draw_scrolled(cx, text_area(area), &document, view.scroll().unwrap_or_default(), buf);
}

/// Title and state of the pane.
pub(crate) fn title(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let world = data.shown();
    let Some(orchestrator) = world.orchestrator() else { return (String::new(), None) };
    let sign = |row| Some(row_sign(cx, world, orchestrator, row));
    match view.subject(data) {
        TaskSubject::Plan => ("plan".to_owned(), sign(WaterfallRow::Plan)),
        TaskSubject::Task(task) => {
            let name = orchestrator.tasks.get(task).map(|row| {
                format!("{} {} {}", row.task.id, cx.glyphs.symbol(Glyph::Dot), row.task.worker)
            });
            (name.unwrap_or_default(), sign(WaterfallRow::Task(task)))
        }
        TaskSubject::Join => ("join".to_owned(), sign(WaterfallRow::Join)),
        TaskSubject::Finalize => ("report".to_owned(), sign(WaterfallRow::Report)),
        TaskSubject::Outcome => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        TaskSubject::None => ("Task".to_owned(), None),
    }
}
