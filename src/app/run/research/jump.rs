//! Jumps from a sentence of the answer to the quotes that it cites, from a note to its page, and
//! back.

use super::item::{About, Items};
use super::{RunPage, Subject};
use crate::app::run::layout::Pane;

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// A sentence of the answer, and which of its citations is shown; both from 0.
    Sentence(usize, usize),
    /// The notes pane.
    Notes,
}

/// The result of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumped {
    /// The jump was made.
    There,
    /// There is nothing to jump to.
    Nowhere,
    /// The selection has no quote; a jump to its cause may be possible.
    Elsewhere,
}

impl RunPage {
    /// Jumps from the selection to the quote behind it, then to the next quote, and back at the
    /// end.
    pub(in crate::app::run) fn jump(&mut self) -> Jumped {
        match (self.focus(), self.research.jump) {
            (Pane::Third, _) => self.jump_from_sentence(),
            (Pane::Fourth, _) => self.jump_from_note(),
            (Pane::Second, Some(Jump::Sentence(sentence, nth))) => {
                let Some(note) = self.citation(sentence, nth + 1) else {
                    return self.back_to(Pane::Third);
                };
                self.research.look_at(Subject::Note(note));
                self.research.jump = Some(Jump::Sentence(sentence, nth + 1));
                Jumped::There
            }
            (Pane::Second, Some(Jump::Notes)) => self.back_to(Pane::Fourth),
            _ => Jumped::Elsewhere,
        }
    }

    fn back_to(&mut self, pane: Pane) -> Jumped {
        self.research.jump = None;
        self.focus_on(pane);
        Jumped::There
    }

    fn jump_from_sentence(&mut self) -> Jumped {
        let Some((research, _)) = self.shown().research() else { return Jumped::Nowhere };
        let picked = self.research.answer.line;
        let about = picked.and_then(|line| Some(self.answer()?.item(line)?.about));
        let sentence = match about {
            Some(About::Sentence(at)) => Some(at),
            Some(About::Note(note)) => return self.show(Subject::Note(note), Jump::Notes),
            Some(_) => None,
            // Without a selection: the first sentence with a citation.
            None => research.sentences.iter().position(|it| !it.citations.is_empty()),
        };
        if research.sentences.is_empty() && sentence.is_none() {
            return Jumped::Elsewhere;
        }
        match sentence.and_then(|at| Some((at, self.citation(at, 0)?))) {
            Some((at, note)) => {
                let line = self.answer().and_then(|items| {
                    let is = |line: &usize| {
                        items.item(*line).is_some_and(|item| item.about == About::Sentence(at))
                    };
                    (0..items.count()).find(is)
                });
                self.research.answer.line = picked.or(line);
                self.show(Subject::Note(note), Jump::Sentence(at, 0))
            }
            None => Jumped::Nowhere,
        }
    }

    fn jump_from_note(&mut self) -> Jumped {
        let Some((research, _)) = self.shown().research() else { return Jumped::Nowhere };
        let picked = self.picked_note();
        let about = picked.and_then(|line| Some(self.notes()?.item(line)?.about));
        let note = match about {
            Some(about) => self.first_note(&about),
            None => research.notes.first().map(|row| row.note.id.clone()),
        };
        match note {
            Some(note) => self.show(Subject::Note(note), Jump::Notes),
            None if research.notes.is_empty() && research.refused.is_empty() => Jumped::Elsewhere,
            None => Jumped::Nowhere,
        }
    }

    fn show(&mut self, about: Subject, from: Jump) -> Jumped {
        self.research.look_at(about);
        self.research.top = None;
        self.research.jump = Some(from);
        self.focus_on(Pane::Second);
        Jumped::There
    }

    /// Whether `c` jumps to a quote from here, or back from one.
    pub fn can_jump(&self) -> bool {
        let Some((research, _)) = self.shown().research() else { return false };
        match self.focus() {
            Pane::Second => self.research.jump.is_some(),
            Pane::Third => !research.citations.is_empty(),
            Pane::Fourth => !research.notes.is_empty(),
            Pane::First | Pane::Events => false,
        }
    }

    /// Why `c` did nothing in the panes of research, for the message line.
    pub(in crate::app::run) fn why_no_jump(&self) -> Option<String> {
        self.shown().research()?;
        Some(match self.focus() {
            Pane::Third => "This sentence cites no note.".to_owned(),
            Pane::Fourth => "That note was refused: it has no quote to show.".to_owned(),
            _ => return None,
        })
    }
}
