//! The targets of the panes of research: what Enter inspects, and what is copied.

use super::item::{ItemList, ItemStyle, ItemSubject};
use crate::app::run::inspect::target::InspectTarget;
use crate::app::run::layout::Pane;
use crate::app::run::{RunPage, View};
use crate::event::kind::{NoteId, PatternFact, ResearchFact, SourceNo};
use crate::event::{EventKind, SpanId};

impl RunPage {
    /// What Enter inspects in the panes of research.
    pub(crate) fn research_target(&self) -> Option<InspectTarget> {
        let research = self.shown().research()?;
        match self.focus() {
            Pane::First => self.source_target(self.page_source()?, false),
            Pane::Second => match self.page_note() {
                Some(note) => self.note_target(note, true),
                None => self.source_target(self.page_source()?, true),
            },
            Pane::Third => {
                let picked = self.research.answer.line;
                let about = picked.and_then(|line| Some(self.answer_items()?.item(line)?.subject));
                if let Some(ItemSubject::Note(note)) = about {
                    return self.note_target(&note, false);
                }
                let call = self.open_model_call(research).or(research.answer_call);
                call.or(research.plan_call).map(InspectTarget::Call).or_else(|| {
                    self.event_target(|kind| {
                        matches!(
                            kind,
                            EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerCited(_)))
                        )
                    })
                })
            }
            Pane::Fourth => {
                let picked = self.picked_note();
                let about = picked.and_then(|line| Some(self.notes()?.item(line)?.subject));
                let note = match about {
                    Some(ItemSubject::Note(note)) => Some(note),
                    Some(ItemSubject::Pair(..)) => {
                        return self.event_target(|kind| {
                            matches!(
                                kind,
                                EventKind::Pattern(PatternFact::Research(
                                    ResearchFact::NotesCompared(_)
                                ))
                            )
                        });
                    }
                    _ => research.notes.last().map(|row| row.note.id.clone()),
                };
                self.note_target(&note?, false)
            }
            Pane::Events => None,
        }
    }

    /// The call of a source, else the event that rejected it.
    fn source_target(&self, no: SourceNo, page: bool) -> Option<InspectTarget> {
        let research = self.shown().research()?;
        let row = research.source(no)?;
        let call = if page { row.read_call } else { row.notes_call.or(row.read_call) };
        if let Some(call) = call {
            return Some(InspectTarget::Call(call));
        }
        let closed = row.span.and_then(|span| self.shown().spans.get(span)?.closed_by);
        closed.map(InspectTarget::Event).or_else(|| {
            let deduped = self.event_target(|kind| {
                matches!(
                    kind,
                    EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesDeduped(_)))
                )
            });
            deduped.or(research.search_call.map(InspectTarget::Call))
        })
    }

    /// The call that took a note, or the one that read its page, else the event of the note.
    fn note_target(&self, note: &NoteId, page: bool) -> Option<InspectTarget> {
        let research = self.shown().research()?;
        let row = research.source(research.note(note)?.source)?;
        let call = if page { row.read_call } else { row.notes_call };
        call.map(InspectTarget::Call).or_else(|| {
            self.event_target(
                |kind| matches!(kind, EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { note: it, .. })) if it.id == *note),
            )
        })
    }

    /// The last shown event that matches.
    fn event_target(&self, so: impl Fn(&EventKind) -> bool) -> Option<InspectTarget> {
        let mut shown = self.log().between(0, self.shown_event_count()).rev();
        shown.find(|event| so(&event.kind)).map(|event| InspectTarget::Event(event.seq))
    }

    /// The model call that the page is about.
    pub(crate) fn research_call(&self) -> Option<SpanId> {
        let research = self.shown().research()?;
        let noted = || research.kept().filter_map(|row| row.notes_call).last();
        self.open_model_call(research)
            .or(research.answer_call)
            .or_else(noted)
            .or(research.plan_call)
    }

    /// The text that is copied from the focused pane of research.
    pub(crate) fn research_text(&self) -> Option<String> {
        let research = self.shown().research().filter(|_| self.view() == View::Research)?;
        match self.focus() {
            Pane::First => {
                let row = research.source(self.page_source()?)?;
                Some(format!("{}\n{}", row.title(), row.address()))
            }
            Pane::Second => {
                match (self.page_note().and_then(|id| research.note(id)), self.page_layout()) {
                    (Some(row), _) => Some(quoted(&row.note.quote, &row.note.title, &row.note.url)),
                    (None, Some((_, text))) => Some(text.to_owned()),
                    (None, None) => None,
                }
            }
            Pane::Third => {
                let line = self.research.answer.line;
                let item = line.and_then(|line| Some(item_text(&self.answer_items()?.item(line)?)));
                item.or_else(|| self.shown().answer.as_ref().map(|answer| answer.to_string()))
            }
            Pane::Fourth => match self.picked_note() {
                Some(line) => Some(item_text(&self.notes()?.item(line)?)),
                None => {
                    let all = research.notes.iter();
                    let told = all.map(|row| {
                        let note = &row.note;
                        format!(
                            "{}  {}\n{}",
                            note.id,
                            note.claim,
                            quoted(&note.quote, &note.title, &note.url)
                        )
                    });
                    Some(told.collect::<Vec<_>>().join("\n\n"))
                }
            },
            Pane::Events => None,
        }
    }
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
        for (tail, _) in
            part.tail.iter().filter(|(tail, how)| *how == ItemStyle::Note && tail.starts_with('['))
        {
            line.push(' ');
            line.push_str(tail);
        }
        lines.push(line);
        lines.extend(part.other.as_ref().map(|other| other.to_string()));
    }
    lines.join("\n")
}
