//! Pane 2 of an orchestrator: details of the selected or current row of the waterfall; at the end
//! the outcome.

use crate::panes::orchestrator::subject::TaskSubject;
use crate::panes::orchestrator::task::task_document;
use crate::panes::orchestrator::view::OrchestratorView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::row_sign;
use crate::app::run::data::RunData;
use crate::app::run::inspect::WrappedDocument;
use crate::app::run::subject_text::text_area;
use crate::panes::orchestrator::waterfall::WaterfallRow;
use crate::ui::cx::DrawContext;
use crate::ui::document::draw_line;
use crate::ui::glyph::Glyph;
use crate::ui::run::speech;
use crate::ui::text::Pen;
use crate::ui::theme::{StateSign, StyleRole};

/// Draws the pane.
pub(crate) fn render(
    view: &OrchestratorView,
    page: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    if !view.shows_document(page) {
        return speech::render(&view.spoken(page), page, cx, area, buf);
    }
    let area = text_area(area);
    if area.width == 0 || area.height == 0 {
        return;
    }
    let document = task_document(page, view.subject(page), page.drawn_to(cx.now));
    let lines = WrappedDocument { document: &document, width: area.width };
    let height = usize::from(area.height);
    let top = view.scroll().unwrap_or_default().clamped(&lines, height);
    let mut row = 0;
    for (nth, line) in document.lines.iter().enumerate().skip(top.line) {
        if row >= area.height {
            break;
        }
        let skip = if nth == top.line { top.row } else { 0 };
        row = draw_line(cx, area, row, skip, line, buf);
    }
    // Scroll arrows in the blank column next to the lines.
    let more = Rect { x: area.right(), width: 1, height: area.height.min(1), ..area };
    if top != Default::default() {
        Pen::new(buf, more, cx.glyphs).glyph(Glyph::Up, cx.theme.style(StyleRole::Key));
    }
    if top != crate::app::run::scroll::Scroll::end(&lines, height) {
        let last = Rect { y: area.bottom().saturating_sub(1), ..more };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, cx.theme.style(StyleRole::Key));
    }
}

/// Title and state of the pane.
pub(crate) fn title(
    view: &OrchestratorView,
    page: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let world = page.shown();
    let Some(orchestrator) = world.orchestrator() else { return (String::new(), None) };
    let sign = |row| Some(row_sign(cx, world, orchestrator, row));
    match view.subject(page) {
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
