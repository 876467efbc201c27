//! Keys and mouse in the panes of research: jumps from a sentence of the answer to the quotes that it
//! cites, from a note to its page, and back; the targets of Enter, and the texts to copy.

use ratatui::layout::Rect;

use super::answer::{answer_items, open_model_call};
use super::items::{ItemList, ItemSubject, WrappedItems};
use super::notes::note_items;
use super::sources::{page_text, source_parts};
use super::{JumpOrigin, PageSubject, ResearchView, is_answer_growing};
use crate::log::event::SpanId;
use crate::log::event::id::SourceNo;
use crate::log::facts::research::{NoteId, ResearchFact, Sentence};
use crate::screen::action::Action;
use crate::screen::list::ListCursor;
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::InspectTarget;
use crate::screen::run::layout::{Areas, Pane};
use crate::screen::run::views::{Jumped, PaneAt};
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::words::styled::{StyleRole, StyledPart};

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
    pub(crate) fn wheel(&mut self, run: &RunData, pane: Pane, by: isize, areas: &Areas) {
        let action = Action::of_wheel(by);
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
    pub(crate) fn click(&mut self, run: &RunData, at: PaneAt<'_>, area: Rect, row: u16) {
        match at.pane {
            Pane::First => {
                if let Some(at) = self.source_list(run, area).0.row_at(row) {
                    self.set_subject(PageSubject::Source(SourceNo::from_index(at)));
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

fn first_note(run: &RunData, about: &ItemSubject) -> Option<NoteId> {
    match about {
        ItemSubject::Text => None,
        ItemSubject::Note(id) | ItemSubject::Pair(id, _) => Some(id.clone()),
        ItemSubject::Sentence(at) => citation(run, *at, 0),
    }
}

/// The citation of a sentence with this index.
pub(crate) fn citation(run: &RunData, sentence: usize, nth: usize) -> Option<NoteId> {
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
        let Some(research) = run.shown().research() else { return Jumped::Elsewhere };
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
            None => Jumped::Nowhere("This sentence cites no note."),
        }
    }

    fn jump_from_note(&mut self, run: &RunData) -> Jumped {
        let Some(research) = run.shown().research() else { return Jumped::Elsewhere };
        let picked = self.picked_note(run);
        let about = picked.and_then(|line| Some(note_items(run)?.item(line)?.subject));
        let note = match about {
            Some(about) => first_note(run, &about),
            None => research.notes.first().map(|row| row.note.id.clone()),
        };
        match note {
            Some(note) => self.show_page(PageSubject::Note(note), JumpOrigin::Notes),
            None if research.notes.is_empty() && research.refused.is_empty() => Jumped::Elsewhere,
            None => Jumped::Nowhere("That note was refused: it has no quote to show."),
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
}

impl ResearchView {
    /// The target that Enter inspects in the panes of research.
    pub(crate) fn pane_target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
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
    pub(crate) fn pane_text(&self, run: &RunData, focus: Pane) -> Option<String> {
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

/// The note that a sentence cites first; without a citation, the call that wrote the answer, or its
/// event.
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
fn item_text(item: &super::items::PaneItem<'_>) -> String {
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
