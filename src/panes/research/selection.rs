//! The selections in the panes of a research run, and what they show.

use std::ops::Range;

use crate::app::run::data::RunData;
use crate::app::run::layout::{Pane, window_start};
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::event::id::SourceNo;
use crate::panes::research::notes::{Notes, note_items};
use crate::panes::research::page_layout::PageLayout;
use crate::pattern::research::ids::NoteId;
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
    pub(super) layout: Option<PageLayout>,
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

impl ResearchView {
    /// The source whose page is shown.
    pub fn page_source(&self, run: &RunData) -> Option<SourceNo> {
        let research = run.shown().research()?;
        match &self.about {
            PageSubject::Source(no) => research.source(*no).map(|row| row.no),
            PageSubject::Note(id) => research.note(id).map(|row| row.source),
            PageSubject::Follow => match first_cited(research) {
                Some(row) => Some(row.source),
                None => current_source(research, run.shown().progress.is_live()),
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
        list_window(picked, run.shown().progress.is_live(), lines, height)
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
    run.shown().progress.is_live() && run.shown().progress.answer.is_none()
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

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpOrigin {
    /// A sentence of the answer, and which of its citations is shown; both from 0.
    Sentence(usize, usize),
    /// The notes pane.
    Notes,
}
