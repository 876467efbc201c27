//! The targets of the panes of research: what Enter inspects, and what is copied.

use super::answer::{answer_items, open_model_call};
use super::item::{ItemList, ItemSubject};
use super::notes::note_items;
use super::selection::ResearchView;
use crate::app::run::data::RunData;
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::Pane;
use crate::event::SpanId;
use crate::event::id::SourceNo;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledPart;
use crate::pattern::research::facts::{ResearchFact, Sentence};
use crate::pattern::research::ids::NoteId;

impl ResearchView {
    /// What Enter inspects in the panes of research.
    pub(super) fn pane_target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        let research = run.shown().research()?;
        match focus {
            Pane::First => source_target(run, self.page_source(run)?, false),
            Pane::Second => match self.page_note(run) {
                Some(note) => note_target(run, note, true),
                None => source_target(run, self.page_source(run)?, true),
            },
            Pane::Third => {
                let picked = self.answer.line;
                let about = picked.and_then(|line| Some(answer_items(run)?.item(line)?.subject));
                match about {
                    Some(ItemSubject::Note(note)) => return note_target(run, &note, false),
                    Some(ItemSubject::Sentence(at)) => {
                        return sentence_target(run, research.sentences.get(at)?);
                    }
                    _ => {}
                }
                let call = open_model_call(run, research).or(research.answer_call);
                call.or(research.plan_call).map(InspectTarget::Call).or_else(|| {
                    event_target(run, |fact| matches!(fact, ResearchFact::AnswerCited(_)))
                })
            }
            Pane::Fourth => {
                let picked = self.picked_note(run);
                let about = picked.and_then(|line| Some(note_items(run)?.item(line)?.subject));
                let note = match about {
                    Some(ItemSubject::Note(note)) => Some(note),
                    Some(ItemSubject::Pair(..)) => {
                        return event_target(run, |fact| {
                            matches!(fact, ResearchFact::NotesCompared(_))
                        });
                    }
                    _ => research.notes.last().map(|row| row.note.id.clone()),
                };
                note_target(run, &note?, false)
            }
            Pane::Events => None,
        }
    }

    /// The text that is copied from the focused pane of research.
    pub(super) fn pane_text(&self, run: &RunData, focus: Pane) -> Option<String> {
        let research = run.shown().research()?;
        match focus {
            Pane::First => {
                let row = research.source(self.page_source(run)?)?;
                Some(format!("{}\n{}", row.title(), row.address()))
            }
            Pane::Second => {
                match (self.page_note(run).and_then(|id| research.note(id)), self.page_layout(run))
                {
                    (Some(row), _) => Some(quoted(&row.note.quote, &row.note.title, &row.note.url)),
                    (None, Some((_, text))) => Some(text.to_owned()),
                    (None, None) => None,
                }
            }
            Pane::Third => {
                let line = self.answer.line;
                let item = line.and_then(|line| Some(item_text(&answer_items(run)?.item(line)?)));
                item.or_else(|| {
                    run.shown().progress.answer.as_ref().map(|answer| answer.to_string())
                })
            }
            Pane::Fourth => match self.picked_note(run) {
                Some(line) => Some(item_text(&note_items(run)?.item(line)?)),
                None => {
                    let all = research.notes.iter();
                    let texts = all.map(|row| {
                        let note = &row.note;
                        format!(
                            "{}  {}\n{}",
                            note.id,
                            note.claim,
                            quoted(&note.quote, &note.title, &note.url)
                        )
                    });
                    Some(texts.collect::<Vec<_>>().join("\n\n"))
                }
            },
            Pane::Events => None,
        }
    }
}

/// The call of a source, else the event that rejected it.
fn source_target(run: &RunData, no: SourceNo, page: bool) -> Option<InspectTarget> {
    let research = run.shown().research()?;
    let row = research.source(no)?;
    let call = if page { row.read_call } else { row.notes_call.or(row.read_call) };
    if let Some(call) = call {
        return Some(InspectTarget::Call(call));
    }
    let closed = row.span.and_then(|span| run.shown().spans.get(span)?.closed_by);
    closed.map(InspectTarget::Event).or_else(|| {
        let deduped = event_target(run, |fact| matches!(fact, ResearchFact::SourcesDeduped(_)));
        deduped.or(research.search_call.map(InspectTarget::Call))
    })
}

/// The call that took a note, or the one that read its page, else the event of the note.
fn note_target(run: &RunData, note: &NoteId, page: bool) -> Option<InspectTarget> {
    let research = run.shown().research()?;
    let row = research.source(research.note(note)?.source)?;
    let call = if page { row.read_call } else { row.notes_call };
    call.map(InspectTarget::Call).or_else(|| {
        event_target(
            run,
            |fact| matches!(fact, ResearchFact::NoteTaken { note: it, .. } if it.id == *note),
        )
    })
}

/// The note that a sentence cites first; of one without a citation, what wrote the answer.
fn sentence_target(run: &RunData, sentence: &Sentence) -> Option<InspectTarget> {
    let cited = || event_target(run, |fact| matches!(fact, ResearchFact::AnswerCited(_)));
    match sentence.citations.first() {
        Some(note) => note_target(run, note, false),
        None => {
            let written = run.shown().research()?.answer_call;
            written.map(InspectTarget::Call).or_else(cited)
        }
    }
}

/// The last shown fact of research that matches.
fn event_target(run: &RunData, so: impl Fn(&ResearchFact) -> bool) -> Option<InspectTarget> {
    run.last_shown(|event| ResearchFact::of(&event.kind).is_some_and(&so))
        .map(|event| InspectTarget::Event(event.seq))
}

/// The model call that the page is about.
pub(super) fn research_call(run: &RunData) -> Option<SpanId> {
    let research = run.shown().research()?;
    let noted = || research.kept().filter_map(|row| row.notes_call).last();
    open_model_call(run, research).or(research.answer_call).or_else(noted).or(research.plan_call)
}

fn quoted(quote: &str, title: &str, url: &str) -> String {
    format!("\"{}\"\n{title}\n{url}", quote.trim())
}

/// An item as plain text.
fn item_text(item: &super::item::PaneItem<'_>) -> String {
    let mut lines = Vec::new();
    for part in &item.parts {
        let mut line = part.text.to_string();
        // Citations belong to the text; states do not.
        let is_citation =
            |tail: &&StyledPart| tail.role == Some(StyleRole::Dim) && tail.text.starts_with('[');
        for tail in part.tail.iter().filter(is_citation) {
            line.push(' ');
            line.push_str(&tail.text);
        }
        lines.push(line);
        lines.extend(part.other.as_ref().map(|other| other.to_string()));
    }
    lines.join("\n")
}
