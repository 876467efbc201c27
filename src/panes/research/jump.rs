//! Jumps from a sentence of the answer to the quotes that it cites, from a note to its page, and
//! back.

use super::answer::answer_items;
use super::item::{ItemList, ItemSubject};
use super::moves::{citation, first_note};
use super::notes::note_items;
use super::selection::{JumpOrigin, PageSubject, ResearchView};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::app::run::run_view::Jumped;

impl ResearchView {
    /// Jumps from the selection to the quote behind it, then to the next quote, and back at the
    /// end.
    pub(super) fn jump_from(&mut self, run: &RunData, focus: Pane) -> Jumped {
        match (focus, self.jump) {
            (Pane::Third, _) => self.jump_from_sentence(run),
            (Pane::Fourth, _) => self.jump_from_note(run),
            (Pane::Second, Some(JumpOrigin::Sentence(sentence, nth))) => {
                let Some(note) = citation(run, sentence, nth + 1) else {
                    return self.jump_back(Pane::Third);
                };
                self.set_subject(PageSubject::Note(note));
                self.jump = Some(JumpOrigin::Sentence(sentence, nth + 1));
                Jumped::To(Pane::Second)
            }
            (Pane::Second, Some(JumpOrigin::Notes)) => self.jump_back(Pane::Fourth),
            _ => Jumped::Elsewhere,
        }
    }

    fn jump_back(&mut self, pane: Pane) -> Jumped {
        self.jump = None;
        Jumped::To(pane)
    }

    fn jump_from_sentence(&mut self, run: &RunData) -> Jumped {
        let Some(research) = run.shown().research() else { return Jumped::Nowhere };
        let picked = self.answer.line;
        let about = picked.and_then(|line| Some(answer_items(run)?.item(line)?.subject));
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
            return Jumped::Elsewhere;
        }
        match sentence.and_then(|at| Some((at, citation(run, at, 0)?))) {
            Some((at, note)) => {
                let line = answer_items(run).and_then(|items| {
                    let is = |line: &usize| {
                        items
                            .item(*line)
                            .is_some_and(|item| item.subject == ItemSubject::Sentence(at))
                    };
                    (0..items.count()).find(is)
                });
                self.answer.line = picked.or(line);
                self.show_page(PageSubject::Note(note), JumpOrigin::Sentence(at, 0))
            }
            None => Jumped::Nowhere,
        }
    }

    fn jump_from_note(&mut self, run: &RunData) -> Jumped {
        let Some(research) = run.shown().research() else { return Jumped::Nowhere };
        let picked = self.picked_note(run);
        let about = picked.and_then(|line| Some(note_items(run)?.item(line)?.subject));
        let note = match about {
            Some(about) => first_note(run, &about),
            None => research.notes.first().map(|row| row.note.id.clone()),
        };
        match note {
            Some(note) => self.show_page(PageSubject::Note(note), JumpOrigin::Notes),
            None if research.notes.is_empty() && research.refused.is_empty() => Jumped::Elsewhere,
            None => Jumped::Nowhere,
        }
    }

    fn show_page(&mut self, about: PageSubject, from: JumpOrigin) -> Jumped {
        self.set_subject(about);
        self.top = None;
        self.jump = Some(from);
        Jumped::To(Pane::Second)
    }

    /// Whether `c` jumps to a quote from here, or back from one.
    pub(super) fn can_jump(&self, run: &RunData, focus: Pane) -> bool {
        let Some(research) = run.shown().research() else { return false };
        match focus {
            Pane::Second => self.jump.is_some(),
            Pane::Third => !research.citations.is_empty(),
            Pane::Fourth => !research.notes.is_empty(),
            Pane::First | Pane::Events => false,
        }
    }

    /// Why `c` did nothing in the panes of research, for the message line.
    pub(super) fn no_jump_reason(&self, run: &RunData, focus: Pane) -> Option<String> {
        run.shown().research()?;
        Some(match focus {
            Pane::Third => "This sentence cites no note.".to_owned(),
            Pane::Fourth => "That note was refused: it has no quote to show.".to_owned(),
            _ => return None,
        })
    }
}
