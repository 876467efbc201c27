//! The targets of the panes of research: what Enter inspects, and what is copied.

use super::item::{About, How, Items};
use crate::app::run::inspect::Target;
use crate::app::run::layout::Pane;
use crate::app::run::{Face, RunPage};
use crate::event::kind::{NoteId, SourceNo};
use crate::event::{EventKind, SpanId};

impl RunPage {
    /// What Enter inspects in the panes of research.
    pub(in crate::app::run) fn research_target(&self) -> Option<Target> {
        let (research, _) = self.shown().research()?;
        match self.focus() {
            Pane::First => self.of_source(self.page_source()?, false),
            Pane::Second => match self.page_note() {
                Some(note) => self.of_note(note, true),
                None => self.of_source(self.page_source()?, true),
            },
            Pane::Third => {
                let picked = self.research.answer.line;
                let about = picked.and_then(|line| Some(self.answer()?.item(line)?.about));
                if let Some(About::Note(note)) = about {
                    return self.of_note(&note, false);
                }
                let call = self.speaking(research).or(research.answer_call);
                call.or(research.plan_call)
                    .map(Target::Call)
                    .or_else(|| self.fact_of(|kind| matches!(kind, EventKind::AnswerCited(_))))
            }
            Pane::Fourth => {
                let picked = self.picked_note();
                let about = picked.and_then(|line| Some(self.notes()?.item(line)?.about));
                let note = match about {
                    Some(About::Note(note)) => Some(note),
                    Some(About::Pair(..)) => {
                        return self.fact_of(|kind| matches!(kind, EventKind::NotesCompared(_)));
                    }
                    _ => research.notes.last().map(|row| row.note.id.clone()),
                };
                self.of_note(&note?, false)
            }
            Pane::Events => None,
        }
    }

    /// The call of a source, else the event that rejected it.
    fn of_source(&self, no: SourceNo, page: bool) -> Option<Target> {
        let (research, _) = self.shown().research()?;
        let row = research.source(no)?;
        let call = if page { row.read_call } else { row.notes_call.or(row.read_call) };
        if let Some(call) = call {
            return Some(Target::Call(call));
        }
        let closed = row.span.and_then(|span| self.shown().spans.get(span)?.closed_by);
        closed.map(Target::Fact).or_else(|| {
            let deduped = self.fact_of(|kind| matches!(kind, EventKind::SourcesDeduped(_)));
            deduped.or(research.search_call.map(Target::Call))
        })
    }

    /// The call that took a note, or the one that read its page, else the event of the note.
    fn of_note(&self, note: &NoteId, page: bool) -> Option<Target> {
        let (research, _) = self.shown().research()?;
        let row = research.source(research.note(note)?.source)?;
        let call = if page { row.read_call } else { row.notes_call };
        call.map(Target::Call).or_else(|| {
            self.fact_of(
                |kind| matches!(kind, EventKind::NoteTaken { note: it, .. } if it.id == *note),
            )
        })
    }

    /// The last shown event that matches.
    fn fact_of(&self, so: impl Fn(&EventKind) -> bool) -> Option<Target> {
        let mut shown = self.log().between(0, self.shown_facts()).rev();
        shown.find(|event| so(&event.kind)).map(|event| Target::Fact(event.seq))
    }

    /// The model call that the page is about.
    pub(in crate::app::run) fn research_call(&self) -> Option<SpanId> {
        let (research, _) = self.shown().research()?;
        let noted = || research.kept().filter_map(|row| row.notes_call).last();
        self.speaking(research).or(research.answer_call).or_else(noted).or(research.plan_call)
    }

    /// The text that is copied from the focused pane of research.
    pub(in crate::app::run) fn research_text(&self) -> Option<String> {
        let (research, _) = self.shown().research().filter(|_| self.face() == Face::Research)?;
        match self.focus() {
            Pane::First => {
                let row = research.source(self.page_source()?)?;
                Some(format!("{}\n{}", row.title(), row.address()))
            }
            Pane::Second => {
                match (self.page_note().and_then(|id| research.note(id)), self.reading()) {
                    (Some(row), _) => Some(quoted(&row.note.quote, &row.note.title, &row.note.url)),
                    (None, Some((_, text))) => Some(text.to_owned()),
                    (None, None) => None,
                }
            }
            Pane::Third => {
                let line = self.research.answer.line;
                let item = line.and_then(|line| Some(told(&self.answer()?.item(line)?)));
                item.or_else(|| self.shown().answer.as_ref().map(|answer| answer.to_string()))
            }
            Pane::Fourth => match self.picked_note() {
                Some(line) => Some(told(&self.notes()?.item(line)?)),
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
fn told(item: &super::item::Item<'_>) -> String {
    let mut lines = Vec::new();
    for part in &item.parts {
        let mut line = part.text.to_string();
        // Citations belong to the text; states do not.
        for (tail, _) in
            part.tail.iter().filter(|(tail, how)| *how == How::Note && tail.starts_with('['))
        {
            line.push(' ');
            line.push_str(tail);
        }
        lines.push(line);
        lines.extend(part.beside.as_ref().map(|other| other.to_string()));
    }
    lines.join("\n")
}
