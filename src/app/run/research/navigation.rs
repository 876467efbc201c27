//! Keys and mouse in the panes of research.

use ratatui::layout::Rect;

use super::item::{ItemList, ItemSubject, WrappedItems};
use super::{PageSubject, RunPage, page_text, source_parts};
use crate::app::action::Action;
use crate::app::run::layout::{Areas, Pane};
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::event::kind::{NoteId, SourceNo};

impl RunPage {
    /// Moves the selection in the panes of research.
    pub(crate) fn move_in_research(&mut self, action: Action, areas: &Areas) {
        match self.panes.focus {
            Pane::First => self.move_among_sources(action, areas),
            Pane::Second => self.move_in_page(action, areas),
            Pane::Third | Pane::Fourth => {
                let pane = self.panes.focus;
                self.pick(pane, areas, SelectionInput::Move(action));
            }
            Pane::Events => {}
        }
    }

    fn move_among_sources(&mut self, action: Action, areas: &Areas) {
        let Some(research) = self.shown().research() else { return };
        let Some(last) = research.sources.len().checked_sub(1) else { return };
        let height = areas.pane(Pane::First).map_or(8, |area| source_parts(area).rows.height);
        let far = usize::from(height.saturating_sub(1).max(1));
        let at = self.page_source().and_then(SourceNo::index).unwrap_or(0);
        let follows = self.research.about == PageSubject::Follow;
        let to = match action {
            Action::Bottom => {
                self.research.set_subject(PageSubject::Follow);
                return;
            }
            // The first step selects the source that is shown now.
            Action::Up | Action::Down | Action::Left | Action::Right if follows => at,
            Action::Up | Action::Left => at.saturating_sub(1),
            Action::Down | Action::Right => at + 1,
            Action::PageUp => at.saturating_sub(far),
            Action::PageDown => at + far,
            Action::Top => 0,
            _ => return,
        };
        self.research.set_subject(PageSubject::Source(SourceNo::from_index(to.min(last))));
    }

    fn move_in_page(&mut self, action: Action, areas: &Areas) {
        let Some(area) = areas.pane(Pane::Second).map(page_text) else { return };
        if matches!(action, Action::Left | Action::Right) {
            let by = if action == Action::Left { Action::Up } else { Action::Down };
            return self.move_among_sources(by, areas);
        }
        let height = usize::from(area.height);
        let top = self.page_top(area.width, height);
        let Some((reading, text)) = self.page_layout() else { return };
        let lines = reading.wrapped_at(text, area.width);
        let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
        let top = match action {
            Action::Up => top.step(-1, &lines, height),
            Action::Down => top.step(1, &lines, height),
            Action::PageUp => top.step(-page, &lines, height),
            Action::PageDown => top.step(page, &lines, height),
            Action::Top => Scroll::default(),
            Action::Bottom => Scroll::end(&lines, height),
            _ => return,
        };
        self.research.top = Some(top);
    }

    /// Changes the selection among the sentences or the notes; the page follows it.
    fn pick(&mut self, pane: Pane, areas: &Areas, turn: SelectionInput) {
        let Some(area) = areas.pane(pane) else { return };
        let height = usize::from(area.height).max(1);
        let (picked, about) = if pane == Pane::Third {
            let Some(items) = self.answer_items() else { return };
            let lines = WrappedItems { items: &items, width: area.width };
            let comes = self.is_answer_growing();
            let picked = turn.apply(self.research.answer, comes, &lines, height);
            (picked, picked.line.and_then(|line| items.item(line)).map(|item| item.subject))
        } else {
            let Some(items) = self.notes() else { return };
            let lines = WrappedItems { items: &items, width: area.width };
            let comes = self.shown().is_live();
            let picked = turn.apply(self.notes_picked(&items), comes, &lines, height);
            (picked, picked.line.and_then(|line| items.item(line)).map(|item| item.subject))
        };
        let note = about.and_then(|about| self.first_note(&about));
        match (picked.line, note) {
            (None, _) => self.research.set_subject(PageSubject::Follow),
            (Some(_), Some(note)) => self.research.set_subject(PageSubject::Note(note)),
            (Some(_), None) => {}
        }
        match pane {
            Pane::Third => self.research.answer = picked,
            _ => {
                self.research.items_above = self.notes().map_or(0, |items| items.above());
                self.research.notes = picked;
            }
        }
    }

    /// The first note that an item is about.
    pub(super) fn first_note(&self, about: &ItemSubject) -> Option<NoteId> {
        match about {
            ItemSubject::Text => None,
            ItemSubject::Note(id) | ItemSubject::Pair(id, _) => Some(id.clone()),
            ItemSubject::Sentence(at) => self.citation(*at, 0),
        }
    }

    /// The citation of a sentence with this index.
    pub(super) fn citation(&self, sentence: usize, nth: usize) -> Option<NoteId> {
        let research = self.shown().research()?;
        research.sentences.get(sentence)?.citations.get(nth).cloned()
    }

    /// Scrolls a pane of research with the wheel.
    pub(crate) fn wheel_in_research(&mut self, pane: Pane, by: isize, areas: &Areas) {
        let action = if by < 0 { Action::Up } else { Action::Down };
        match pane {
            Pane::First => self.move_among_sources(action, areas),
            Pane::Second => {
                for _ in 0..by.unsigned_abs() {
                    self.move_in_page(action, areas);
                }
            }
            Pane::Third | Pane::Fourth => {
                self.pick(pane, areas, SelectionInput::Wheel(by));
            }
            Pane::Events => {}
        }
    }

    /// Selects the clicked line of a pane of research.
    pub(crate) fn click_in_research(&mut self, pane: Pane, area: Rect, row: u16, areas: &Areas) {
        match pane {
            Pane::First => {
                let rows = source_parts(area).rows;
                let (window, _) = self.source_rows(usize::from(rows.height));
                let Some(line) = row.checked_sub(rows.y).map(usize::from) else { return };
                if line < window.len() {
                    let no = SourceNo::from_index(window.start + line);
                    self.research.set_subject(PageSubject::Source(no));
                }
            }
            Pane::Third | Pane::Fourth => {
                let line = usize::from(row - area.y);
                self.pick(pane, areas, SelectionInput::Hit(line));
            }
            Pane::Second | Pane::Events => {}
        }
    }
}

/// An input that moves a selection.
#[derive(Clone, Copy, Debug)]
enum SelectionInput {
    Move(Action),
    Wheel(isize),
    Hit(usize),
}

impl SelectionInput {
    /// The new selection. `comes`: the list grows and is shown at its end; else it is shown at its
    /// start.
    fn apply(
        self,
        from: ListCursor,
        comes: bool,
        lines: &impl WrappingLines,
        height: usize,
    ) -> ListCursor {
        let Some(last) = lines.count().checked_sub(1) else { return from };
        let first = ListCursor { line: Some(0), top: Scroll::default() };
        let rests = from.line.is_none() && !comes;
        let from = if rests { first } else { from };
        let to = match self {
            // The first step selects the first line in view.
            Self::Move(Action::Up | Action::Down | Action::Left | Action::Right) if rests => from,
            Self::Move(Action::Bottom) if !comes => from.select(last, lines, height),
            Self::Move(action) => from.after_action(action, lines, height),
            Self::Wheel(by) => from.after_wheel(by, lines, height),
            Self::Hit(row) => from.after_click(row, lines, height),
        };
        match to.line {
            None if !comes => ListCursor { line: Some(last), ..to },
            _ => to,
        }
    }
}
