//! The page of a research run: the selections in its panes, and how keys and the mouse change them.

pub mod answer;
pub mod item;
mod jump;
mod navigation;
pub mod notes;
pub mod page_layout;
pub mod step;
mod target;

use std::ops::Range;

use ratatui::layout::Rect;

use self::jump::JumpOrigin;
pub use self::jump::JumpResult;
use self::page_layout::PageLayout;
use super::RunPage;
use super::layout::Pane;
use super::list_cursor::ListCursor;
use super::scroll::{Scroll, WrappingLines};
use super::subject_text::text_area;
use super::table::first_seat;
use crate::event::kind::{NoteId, SourceNo};
use crate::pattern::research::projection::{NoteRow, Research, SourceState};

/// Selections and scroll positions in the panes of research.
#[derive(Debug, Default)]
pub(super) struct ResearchView {
    /// The subject of the page's pane.
    about: PageSubject,
    /// First row in view of the page; `None`: where its quote is, else at its start.
    top: Option<Scroll>,
    answer: ListCursor,
    notes: ListCursor,
    /// Items above the first note at the time of the selection.
    items_above: usize,
    /// The origin of the last jump to the page.
    jump: Option<JumpOrigin>,
    /// The layout of the page that is shown.
    layout: Option<PageLayout>,
}

/// The subject of the page's pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum PageSubject {
    /// The source that is being read.
    #[default]
    Follow,
    /// A selected source.
    Source(SourceNo),
    /// The quote of a note, on its page.
    Note(NoteId),
}

impl ResearchView {
    /// Clears the selections; returns whether there were any.
    pub(super) fn clear_selections(&mut self) -> bool {
        let any = self.about != PageSubject::Follow
            || self.top.is_some()
            || self.answer.line.is_some()
            || self.notes.line.is_some();
        if any {
            *self = Self { layout: self.layout.take(), ..Self::default() };
        }
        any
    }

    fn set_subject(&mut self, about: PageSubject) {
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

impl RunPage {
    /// The source whose page is shown.
    pub fn page_source(&self) -> Option<SourceNo> {
        let research = self.shown().research()?;
        match &self.research.about {
            PageSubject::Source(no) => research.source(*no).map(|row| row.no),
            PageSubject::Note(id) => research.note(id).map(|row| row.source),
            PageSubject::Follow => match first_cited(research) {
                Some(row) => Some(row.source),
                None => current_source(research, self.shown().is_live()),
            },
        }
    }

    /// The note whose quote the page's pane shows, if any.
    pub fn page_note(&self) -> Option<&NoteId> {
        let research = self.shown().research()?;
        match &self.research.about {
            PageSubject::Note(id) => research.note(id).map(|row| &row.note.id),
            PageSubject::Source(_) => None,
            PageSubject::Follow => {
                if let Some(row) = first_cited(research) {
                    return Some(&row.note.id);
                }
                let no = self.page_source()?;
                let of = |row: &&NoteRow| row.source == no;
                research.notes.iter().rfind(of).map(|row| &row.note.id)
            }
        }
    }

    /// Whether a pane follows the run.
    pub fn follows_research(&self, pane: Pane) -> bool {
        match pane {
            Pane::First | Pane::Second => self.research.about == PageSubject::Follow,
            Pane::Third => self.research.answer.line.is_none(),
            Pane::Fourth => self.research.notes.line.is_none(),
            Pane::Events => false,
        }
    }

    /// The sources in view in a window of this height, and the one that the operator selected.
    pub fn source_rows(&self, height: usize) -> (Range<usize>, Option<usize>) {
        let Some(research) = self.shown().research() else { return (0..0, None) };
        let len = research.sources.len();
        let at = self.page_source().and_then(SourceNo::index);
        let start = first_seat(at.unwrap_or(0), len, height);
        let by_hand = self.research.about != PageSubject::Follow;
        (start..(start + height).min(len), at.filter(|_| by_hand))
    }

    /// The layout of the page that is shown, and its text.
    pub fn page_layout(&self) -> Option<(&PageLayout, &str)> {
        let no = self.page_source()?;
        let research = self.shown().research()?;
        let made = PageLayout::key_for(research, no)?;
        let reading = self.research.layout.as_ref().filter(|reading| reading.has_key(made))?;
        Some((reading, research.source(no)?.page.as_ref()?.text()))
    }

    /// Updates the layout of the page if another page is shown or its notes changed. Called after
    /// each change, so that drawing a frame never lays out a page.
    pub(super) fn refresh_page_layout(&mut self) {
        let Some(no) = self.page_source() else { return };
        let Some(research) = self.shown().research() else { return };
        let wanted = PageLayout::key_for(research, no);
        let stands = match (&self.research.layout, wanted) {
            (_, None) => true,
            (Some(reading), Some(made)) => reading.has_key(made),
            (None, Some(_)) => false,
        };
        if !stands {
            let reading = PageLayout::lay_out(research, no);
            self.research.layout = reading;
        }
    }

    /// The first row of the page in view, in a window of this width and height.
    pub fn page_top(&self, width: u16, height: usize) -> Scroll {
        let Some((reading, text)) = self.page_layout() else { return Scroll::default() };
        let lines = reading.wrapped_at(text, width);
        let shown = || lines.scroll_to_quote(self.page_note()?, height);
        match self.research.top {
            Some(top) => top.clamped(&lines, height),
            None => shown().unwrap_or_default(),
        }
    }

    /// The first row of the answer in view, and the selected sentence.
    pub fn answer_at(&self, lines: &impl WrappingLines, height: usize) -> (Scroll, Option<usize>) {
        list_window(self.research.answer, self.is_answer_growing(), lines, height)
    }

    /// The first row of the notes in view, and the selected item.
    pub fn notes_at(&self, lines: &impl WrappingLines, height: usize) -> (Scroll, Option<usize>) {
        let picked = self.notes().map(|items| self.notes_picked(&items)).unwrap_or_default();
        list_window(picked, self.shown().is_live(), lines, height)
    }

    /// The selection among the notes, moved down by the items that were added above them since.
    fn notes_picked(&self, items: &notes::Notes<'_>) -> ListCursor {
        let (then, now) = (self.research.items_above, items.above());
        let moved = |line: usize| if line < then { line } else { line - then + now };
        let picked = self.research.notes;
        let top = Scroll { line: moved(picked.top.line), ..picked.top };
        ListCursor { line: picked.line.map(moved), top }
    }

    /// The index of the selected item among the notes.
    fn picked_note(&self) -> Option<usize> {
        self.notes().and_then(|items| self.notes_picked(&items).line)
    }

    /// Whether the answer's pane is still growing.
    fn is_answer_growing(&self) -> bool {
        self.shown().is_live() && self.shown().answer.is_none()
    }
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
