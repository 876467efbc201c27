//! Keys and mouse in the panes of research.

use ratatui::layout::Rect;

use super::answer::answer_items;
use super::areas::{page_text, source_parts};
use super::item::{ItemList, ItemSubject, WrappedItems};
use super::notes::note_items;
use super::selection::{PageSubject, ResearchView, is_answer_growing};
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::layout::{Areas, Pane};
use crate::app::run::list_cursor::ListCursor;
use crate::app::run::run_view::PaneAt;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::event::id::SourceNo;
use crate::pattern::research::ids::NoteId;

impl ResearchView {
    /// Moves the selection in a pane, or scrolls it.
    pub(super) fn move_in(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match at.pane {
            Pane::First => self.move_among_sources(run, action, at.areas),
            Pane::Second => self.move_in_page(run, action, at.areas),
            Pane::Third | Pane::Fourth => {
                self.pick(run, at.pane, at.areas, SelectionInput::Move(action));
            }
            Pane::Events => {}
        }
    }

    fn move_among_sources(&mut self, run: &RunData, action: Action, areas: &Areas) {
        let Some(research) = run.shown().research() else { return };
        let Some(last) = research.sources.len().checked_sub(1) else { return };
        let height = areas.pane(Pane::First).map_or(8, |area| source_parts(area).rows.height);
        let far = usize::from(height.saturating_sub(1).max(1));
        let at = self.page_source(run).and_then(SourceNo::index).unwrap_or(0);
        let follows = self.about == PageSubject::Follow;
        let to = match action {
            Action::Bottom => {
                self.set_subject(PageSubject::Follow);
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
        self.set_subject(PageSubject::Source(SourceNo::from_index(to.min(last))));
    }

    fn move_in_page(&mut self, run: &RunData, action: Action, areas: &Areas) {
        let Some(area) = areas.pane(Pane::Second).map(page_text) else { return };
        if matches!(action, Action::Left | Action::Right) {
            let by = if action == Action::Left { Action::Up } else { Action::Down };
            return self.move_among_sources(run, by, areas);
        }
        let height = usize::from(area.height);
        let top = self.page_top(run, area.width, height);
        let Some((reading, text)) = self.page_layout(run) else { return };
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
        self.top = Some(top);
    }

    /// Changes the selection among the sentences or the notes; the page follows it.
    fn pick(&mut self, run: &RunData, pane: Pane, areas: &Areas, turn: SelectionInput) {
        let Some(area) = areas.pane(pane) else { return };
        let height = usize::from(area.height).max(1);
        let (picked, about) = if pane == Pane::Third {
            let Some(items) = answer_items(run) else { return };
            let lines = WrappedItems { items: &items, width: area.width };
            let comes = is_answer_growing(run);
            let picked = turn.apply(self.answer, comes, &lines, height);
            (picked, picked.line.and_then(|line| items.item(line)).map(|item| item.subject))
        } else {
            let Some(items) = note_items(run) else { return };
            let lines = WrappedItems { items: &items, width: area.width };
            let comes = run.shown().progress.is_live();
            let picked = turn.apply(self.notes_picked(&items), comes, &lines, height);
            (picked, picked.line.and_then(|line| items.item(line)).map(|item| item.subject))
        };
        let note = about.and_then(|about| first_note(run, &about));
        match (picked.line, note) {
            (None, _) => self.set_subject(PageSubject::Follow),
            (Some(_), Some(note)) => self.set_subject(PageSubject::Note(note)),
            (Some(_), None) => {}
        }
        match pane {
            Pane::Third => self.answer = picked,
            _ => {
                self.items_above = note_items(run).map_or(0, |items| items.above());
                self.notes = picked;
            }
        }
    }

    /// Scrolls a pane of research with the wheel.
    pub(super) fn wheel(&mut self, run: &RunData, pane: Pane, by: isize, areas: &Areas) {
        let action = if by < 0 { Action::Up } else { Action::Down };
        match pane {
            Pane::First => self.move_among_sources(run, action, areas),
            Pane::Second => {
                for _ in 0..by.unsigned_abs() {
                    self.move_in_page(run, action, areas);
                }
            }
            Pane::Third | Pane::Fourth => {
                self.pick(run, pane, areas, SelectionInput::Wheel(by));
            }
            Pane::Events => {}
        }
    }

    /// Selects the clicked line of a pane of research.
    pub(super) fn click(&mut self, run: &RunData, at: PaneAt<'_>, area: Rect, row: u16) {
        match at.pane {
            Pane::First => {
                let rows = source_parts(area).rows;
                let (window, _) = self.source_rows(run, usize::from(rows.height));
                let Some(line) = row.checked_sub(rows.y).map(usize::from) else { return };
                if line < window.len() {
                    let no = SourceNo::from_index(window.start + line);
                    self.set_subject(PageSubject::Source(no));
                }
            }
            Pane::Third | Pane::Fourth => {
                let line = usize::from(row - area.y);
                self.pick(run, at.pane, at.areas, SelectionInput::Hit(line));
            }
            Pane::Second | Pane::Events => {}
        }
    }
}

/// The first note that an item is about.
pub(super) fn first_note(run: &RunData, about: &ItemSubject) -> Option<NoteId> {
    match about {
        ItemSubject::Text => None,
        ItemSubject::Note(id) | ItemSubject::Pair(id, _) => Some(id.clone()),
        ItemSubject::Sentence(at) => citation(run, *at, 0),
    }
}

/// The citation of a sentence with this index.
pub(super) fn citation(run: &RunData, sentence: usize, nth: usize) -> Option<NoteId> {
    let research = run.shown().research()?;
    research.sentences.get(sentence)?.citations.get(nth).cloned()
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
