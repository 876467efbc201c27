//! The view of a research run: the selections in its panes. How keys and the mouse change them is in
//! `moves` and `jump`.

use std::ops::Range;

use ratatui::layout::Rect;

use super::jump::JumpOrigin;
use super::notes::{Notes, note_items};
use super::page_layout::PageLayout;
use super::target::research_call;
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::window_start;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns};
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::run_view::{Jumped, PaneAt, RunView};
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::app::run::subject_text::text_area;
use crate::event::SpanId;
use crate::pattern::research::ids::{NoteId, SourceNo};
use crate::pattern::research::projection::{NoteRow, Research, SourceState};

/// Selections and scroll positions in the panes of research.
#[derive(Debug, Default)]
pub struct ResearchView {
    /// The subject of the page's pane.
    pub(super) about: PageSubject,
    /// First row in view of the page; `None`: where its quote is, else at its start.
    pub(super) top: Option<Scroll>,
    pub(super) answer: ListCursor,
    pub(super) notes: ListCursor,
    /// Items above the first note at the time of the selection.
    pub(super) items_above: usize,
    /// The origin of the last jump to the page.
    pub(super) jump: Option<JumpOrigin>,
    /// The layout of the page that is shown.
    layout: Option<PageLayout>,
}

/// The subject of the page's pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PageSubject {
    /// The source that is being read.
    #[default]
    Follow,
    /// A selected source.
    Source(SourceNo),
    /// The quote of a note, on its page.
    Note(NoteId),
}

impl ResearchView {
    pub(super) fn set_subject(&mut self, about: PageSubject) {
        if self.about != about {
            self.about = about;
            self.top = None;
        }
        self.jump = None;
    }
}

/// The areas of the sources pane, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceParts {
    /// The funnel: one row.
    pub funnel: Rect,
    /// The budgets, one or two rows.
    pub budgets: Rect,
    /// The row of column names.
    pub head: Rect,
    /// The rows of sources.
    pub rows: Rect,
}

/// From this width on, the budgets fit in one row.
const ONE_ROW: u16 = 104;

/// Divides the rows of the sources pane.
pub fn source_parts(area: Rect) -> SourceParts {
    let wanted = if area.width >= ONE_ROW { 1 } else { 2 };
    let (funnel, budgets, head) = match area.height {
        0 => (0, 0, 0),
        1..=3 => (u16::from(area.height > 1), 0, 0),
        4..=6 => (1, 0, 1),
        _ => (1, wanted, 1),
    };
    let part = |before: u16, height: u16| Rect { y: area.y + before, height, ..area };
    let above = funnel + budgets + head;
    SourceParts {
        funnel: part(0, funnel),
        budgets: part(funnel, budgets),
        head: part(funnel + budgets, head),
        rows: part(above, area.height - above),
    }
}

/// Rows above the text of a page: title, address, age and trust, a gap.
pub const PAGE_HEAD: u16 = 4;
/// Columns left of the text of a page, for the ids of notes whose quotes begin there.
pub const GUTTER: u16 = 4;

/// The area of a page's text in its pane.
pub fn page_text(area: Rect) -> Rect {
    let area = text_area(area);
    let head = match area.height {
        10.. => PAGE_HEAD,
        6..10 => 2,
        3..6 => 1,
        _ => 0,
    };
    let gutter = if area.width >= 24 { GUTTER } else { 0 };
    Rect {
        x: area.x + gutter,
        y: area.y + head,
        width: area.width - gutter,
        height: area.height - head,
    }
}

impl ResearchView {
    /// The source whose page is shown.
    pub fn page_source(&self, run: &RunData) -> Option<SourceNo> {
        let research = run.shown().research()?;
        match &self.about {
            PageSubject::Source(no) => research.source(*no).map(|row| row.no),
            PageSubject::Note(id) => research.note(id).map(|row| row.source),
            PageSubject::Follow => match first_cited(research) {
                Some(row) => Some(row.source),
                None => current_source(research, run.shown().is_live()),
            },
        }
    }

    /// The note whose quote the page's pane shows, if any.
    pub fn page_note<'a>(&self, run: &'a RunData) -> Option<&'a NoteId> {
        let research = run.shown().research()?;
        match &self.about {
            PageSubject::Note(id) => research.note(id).map(|row| &row.note.id),
            PageSubject::Source(_) => None,
            PageSubject::Follow => {
                if let Some(row) = first_cited(research) {
                    return Some(&row.note.id);
                }
                let no = self.page_source(run)?;
                let of = |row: &&NoteRow| row.source == no;
                research.notes.iter().rfind(of).map(|row| &row.note.id)
            }
        }
    }

    /// Whether a pane follows the run.
    pub fn follows(&self, pane: Pane) -> bool {
        match pane {
            Pane::First | Pane::Second => self.about == PageSubject::Follow,
            Pane::Third => self.answer.line.is_none(),
            Pane::Fourth => self.notes.line.is_none(),
            Pane::Events => false,
        }
    }

    /// The sources in view in a window of this height, and the one that the operator selected.
    pub fn source_rows(&self, run: &RunData, height: usize) -> (Range<usize>, Option<usize>) {
        let Some(research) = run.shown().research() else { return (0..0, None) };
        let len = research.sources.len();
        let at = self.page_source(run).and_then(SourceNo::index);
        let start = window_start(at.unwrap_or(0), len, height);
        let by_hand = self.about != PageSubject::Follow;
        (start..(start + height).min(len), at.filter(|_| by_hand))
    }

    /// The layout of the page that is shown, and its text.
    pub fn page_layout<'a>(&'a self, run: &'a RunData) -> Option<(&'a PageLayout, &'a str)> {
        let no = self.page_source(run)?;
        let research = run.shown().research()?;
        let made = PageLayout::key_for(research, no)?;
        let reading = self.layout.as_ref().filter(|reading| reading.has_key(made))?;
        Some((reading, research.source(no)?.page.as_ref()?.text()))
    }

    /// The first row of the page in view, in a window of this width and height.
    pub fn page_top(&self, run: &RunData, width: u16, height: usize) -> Scroll {
        let Some((reading, text)) = self.page_layout(run) else { return Scroll::default() };
        let lines = reading.wrapped_at(text, width);
        let shown = || lines.scroll_to_quote(self.page_note(run)?, height);
        match self.top {
            Some(top) => top.clamped(&lines, height),
            None => shown().unwrap_or_default(),
        }
    }

    /// The first row of the answer in view, and the selected sentence.
    pub fn answer_at(
        &self,
        run: &RunData,
        lines: &impl WrappingLines,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        list_window(self.answer, is_answer_growing(run), lines, height)
    }

    /// The first row of the notes in view, and the selected item.
    pub fn notes_at(
        &self,
        run: &RunData,
        lines: &impl WrappingLines,
        height: usize,
    ) -> (Scroll, Option<usize>) {
        let picked = note_items(run).map(|items| self.notes_picked(&items)).unwrap_or_default();
        list_window(picked, run.shown().is_live(), lines, height)
    }

    /// The selection among the notes, moved down by the items that were added above them since.
    pub(super) fn notes_picked(&self, items: &Notes<'_>) -> ListCursor {
        let (then, now) = (self.items_above, items.above());
        let moved = |line: usize| if line < then { line } else { line - then + now };
        let picked = self.notes;
        let top = Scroll { line: moved(picked.top.line), ..picked.top };
        ListCursor { line: picked.line.map(moved), top }
    }

    /// The index of the selected item among the notes.
    pub(super) fn picked_note(&self, run: &RunData) -> Option<usize> {
        note_items(run).and_then(|items| self.notes_picked(&items).line)
    }
}

/// Whether the answer's pane is still growing.
pub(super) fn is_answer_growing(run: &RunData) -> bool {
    run.shown().is_live() && run.shown().answer.is_none()
}

/// The window of a list: at its end while the list grows, else at its start.
fn list_window(
    picked: ListCursor,
    comes: bool,
    lines: &impl WrappingLines,
    height: usize,
) -> (Scroll, Option<usize>) {
    match picked.line {
        None if !comes => (Scroll::default(), None),
        _ => picked.position(lines, height),
    }
}

/// The first note that the answer cites.
fn first_cited(research: &Research) -> Option<&NoteRow> {
    research.note(research.citations.first()?)
}

/// The source that is being read, or was last; once the run has ended, the last one whose page was
/// read, if there is one.
fn current_source(research: &Research, live: bool) -> Option<SourceNo> {
    let latest = |so: &dyn Fn(&SourceState) -> bool| {
        let opened = research.kept().filter(|row| row.opened.is_some() && so(&row.state));
        opened.max_by_key(|row| (row.opened, row.span)).map(|row| row.no)
    };
    let read = |state: &SourceState| matches!(state, SourceState::Read { .. });
    let read = (!live).then(|| latest(&read)).flatten();
    read.or_else(|| latest(&|_| true))
}

impl RunView for ResearchView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Sources", "Page", "Answer", "Notes"]
    }

    fn layout(&self, _run: &RunData, page: Rect) -> PaneWish {
        // The rows of sources are wide; the answer and the notes get nearly equal shares.
        let inner = inner_columns(page);
        PaneWish {
            rows: RowWish::Texts,
            first: inner.saturating_mul(62) / 100,
            third: inner.saturating_mul(48) / 100,
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
