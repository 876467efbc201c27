//! What the page of a run asks the panes of research. Their selections are in `selection`; how keys
//! and the mouse change them is in `moves` and `jump`.

use ratatui::layout::Rect;

use super::page_layout::PageLayout;
use super::selection::{PageSubject, ResearchView};
use super::target::research_call;
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns};
use crate::app::run::run_view::{Jumped, PaneAt, RunView};
use crate::event::SpanId;

impl RunView for ResearchView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Sources", "Page", "Answer", "Notes"]
    }

    fn answer_pane(&self) -> Pane {
        Pane::Third
    }

    fn layout(&self, _run: &RunData, page: Rect) -> PaneWish {
        // The rows of sources are wide; the answer and the notes get nearly equal shares.
        let inner = inner_columns(page);
        PaneWish {
            rows: RowWish::Texts,
            first: inner.saturating_mul(62) / 100,
            third: inner.saturating_mul(48) / 100,
            ended: None,
        }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        self.move_in(run, at, action);
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        self.wheel(run, at.pane, by, at.areas);
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        if let Some(area) = at.area() {
            self.click(run, at, area, row);
        }
    }

    fn on_cause(&mut self, run: &RunData, focus: Pane) -> Jumped {
        self.jump_from(run, focus)
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.about != PageSubject::Follow
            || self.top.is_some()
            || self.answer.line.is_some()
            || self.notes.line.is_some();
        if with_tool || !any {
            return false;
        }
        *self = Self { layout: self.layout.take(), ..Self::default() };
        true
    }

    // Drawing a frame never lays out a page.
    fn refresh(&mut self, run: &RunData) {
        let Some(no) = self.page_source(run) else { return };
        let Some(research) = run.shown().research() else { return };
        let stands = match (&self.layout, PageLayout::key_for(research, no)) {
            (_, None) => true,
            (Some(reading), Some(made)) => reading.has_key(made),
            (None, Some(_)) => false,
        };
        if !stands {
            self.layout = PageLayout::lay_out(research, no);
        }
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let target = self.pane_target(run, focus);
        target.or_else(|| self.subject_call(run).map(InspectTarget::Call))
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        research_call(run)
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        self.pane_text(run, focus)
    }

    fn offers(&self, run: &RunData, focus: Pane, action: Action) -> bool {
        action == Action::Cause && self.can_jump(run, focus)
    }

    fn rank(&self, _run: &RunData, action: Action) -> Option<u8> {
        // An answer is read together with its pages and notes.
        match action {
            Action::NextPane => Some(3),
            Action::NewRun => Some(6),
            _ => None,
        }
    }

    fn why_not(&self, run: &RunData, focus: Pane, action: Action) -> Option<String> {
        self.no_jump_reason(run, focus).filter(|_| action == Action::Cause)
    }
}
