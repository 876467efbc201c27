//! Jumps from a sentence of the answer to the quotes that it cites, from a note to its page, and
//! back.

use super::item::{ItemList, ItemSubject};
use super::{PageSubject, RunPage};
use crate::app::run::layout::Pane;

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpOrigin {
    /// A sentence of the answer, and which of its citations is shown; both from 0.
    Sentence(usize, usize),
    /// The notes pane.
    Notes,
}

/// The result of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpResult {
    /// The jump was made.
    Moved,
    /// There is nothing to jump to.
    NoTarget,
    /// The selection has no quote; a jump to its cause may be possible.
    NoQuote,
}

impl RunPage {
    /// Jumps from the selection to the quote behind it, then to the next quote, and back at the
    /// end.
    pub(crate) fn jump(&mut self) -> JumpResult {
        match (self.focus(), self.research.jump) {
            (Pane::Third, _) => self.jump_from_sentence(),
            (Pane::Fourth, _) => self.jump_from_note(),
            (Pane::Second, Some(JumpOrigin::Sentence(sentence, nth))) => {
                let Some(note) = self.citation(sentence, nth + 1) else {
                    return self.jump_back(Pane::Third);
                };
                self.research.set_subject(PageSubject::Note(note));
                self.research.jump = Some(JumpOrigin::Sentence(sentence, nth + 1));
                JumpResult::Moved
            }
            (Pane::Second, Some(JumpOrigin::Notes)) => self.jump_back(Pane::Fourth),
            _ => JumpResult::NoQuote,
        }
    }

    fn jump_back(&mut self, pane: Pane) -> JumpResult {
        self.research.jump = None;
        self.focus_on(pane);
        JumpResult::Moved
    }

    fn jump_from_sentence(&mut self) -> JumpResult {
        let Some(research) = self.shown().research() else { return JumpResult::NoTarget };
        let picked = self.research.answer.line;
        let about = picked.and_then(|line| Some(self.answer_items()?.item(line)?.subject));
        let sentence = match about {
            Some(ItemSubject::Sentence(at)) => Some(at),
            Some(ItemSubject::Note(note)) => {
                return self.show_page(PageSubject::Note(note), JumpOrigin::Notes);
            }
            Some(_) => None,
            // Without a selection: the first sentence with a citation.
            None => research.sentences.iter().position(|it| !it.citations.is_empty()),
        };
        if research.sentences.is_empty() && sentence.is_none() {
            return JumpResult::NoQuote;
        }
        match sentence.and_then(|at| Some((at, self.citation(at, 0)?))) {
            Some((at, note)) => {
                let line = self.answer_items().and_then(|items| {
                    let is = |line: &usize| {
                        items
                            .item(*line)
                            .is_some_and(|item| item.subject == ItemSubject::Sentence(at))
                    };
                    (0..items.count()).find(is)
                });
                self.research.answer.line = picked.or(line);
                self.show_page(PageSubject::Note(note), JumpOrigin::Sentence(at, 0))
            }
            None => JumpResult::NoTarget,
        }
    }

    fn jump_from_note(&mut self) -> JumpResult {
        let Some(research) = self.shown().research() else { return JumpResult::NoTarget };
        let picked = self.picked_note();
        let about = picked.and_then(|line| Some(self.notes()?.item(line)?.subject));
        let note = match about {
            Some(about) => self.first_note(&about),
            None => research.notes.first().map(|row| row.note.id.clone()),
        };
        match note {
            Some(note) => self.show_page(PageSubject::Note(note), JumpOrigin::Notes),
            None if research.notes.is_empty() && research.refused.is_empty() => JumpResult::NoQuote,
            None => JumpResult::NoTarget,
        }
    }

    fn show_page(&mut self, about: PageSubject, from: JumpOrigin) -> JumpResult {
        self.research.set_subject(about);
        self.research.top = None;
        self.research.jump = Some(from);
        self.focus_on(Pane::Second);
        JumpResult::Moved
    }

    /// Whether `c` jumps to a quote from here, or back from one.
    pub fn can_jump(&self) -> bool {
        let Some(research) = self.shown().research() else { return false };
        match self.focus() {
            Pane::Second => self.research.jump.is_some(),
            Pane::Third => !research.citations.is_empty(),
            Pane::Fourth => !research.notes.is_empty(),
            Pane::First | Pane::Events => false,
        }
    }

    /// Why `c` did nothing in the panes of research, for the message line.
    pub(crate) fn no_jump_reason(&self) -> Option<String> {
        self.shown().research()?;
        Some(match self.focus() {
            Pane::Third => "This sentence cites no note.".to_owned(),
            Pane::Fourth => "That note was refused: it has no quote to show.".to_owned(),
            _ => return None,
        })
    }
}
