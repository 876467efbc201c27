//! The answer as items: first the current step and its partial reply, then the sentences with their
//! citations, or why there is no answer.

use super::item::{About, How, Item, Items, Lead, Part};
use super::step::Stage;
use crate::app::format;
use crate::app::run::RunPage;
use crate::event::kind::{ResearchPlan, Sentence};
use crate::event::world::research::{Research, SourceRow, SourceState};
use crate::event::world::{SpanState, World};
use crate::event::{ResearchStep, SpanId, StopReason};
use crate::scenario::research::DoneBy;

/// Most rows of a sentence, and of a partial reply.
const MOST: usize = 40;

/// The items of the answer pane in the world that is shown.
pub struct Answer<'a> {
    research: &'a Research,
    /// Items before the sentences.
    above: Vec<Item<'a>>,
    /// Items after the sentences, or shown if there are none.
    below: Vec<Item<'a>>,
}

impl Answer<'_> {
    /// A sentence with its citations.
    fn sentence(at: usize, sentence: &Sentence) -> Item<'_> {
        let text = &*sentence.text;
        let mut tail = Vec::new();
        // Citations in the text itself are not repeated after it.
        let unsaid = sentence.citations.iter().filter(|id| !text.contains(&format!("[{id}]")));
        let marks: Vec<String> = unsaid.map(|id| format!("[{id}]")).collect();
        if !marks.is_empty() {
            tail.push((marks.join(" "), How::Note));
        }
        let mut lead = Lead::Done;
        if sentence.citations.is_empty() {
            lead = Lead::Off;
            tail.push(("uncited".to_owned(), How::Note));
        }
        if sentence.unconfirmed {
            lead = Lead::Alert;
            tail.push(("unconfirmed".to_owned(), How::Alert));
        }
        let parts = vec![Part { tail, ..Part::of(text, How::Said, MOST) }];
        Item { about: About::Sentence(at), name: "".into(), lead, parts }
    }
}

impl Items for Answer<'_> {
    fn count(&self) -> usize {
        self.above.len() + self.research.sentences.len() + self.below.len()
    }

    fn item(&self, at: usize) -> Option<Item<'_>> {
        if let Some(item) = self.above.get(at) {
            return Some(item.clone());
        }
        let at = at - self.above.len();
        if let Some(sentence) = self.research.sentences.get(at) {
            return Some(Self::sentence(at, sentence));
        }
        self.below.get(at - self.research.sentences.len()).cloned()
    }

    fn names(&self) -> u16 {
        0
    }
}

impl RunPage {
    /// The items of the answer in the world that is shown.
    pub fn answer(&self) -> Option<Answer<'_>> {
        let world = self.shown();
        let (research, plan) = world.research()?;
        let mut answer = Answer { research, above: Vec::new(), below: Vec::new() };
        match (&world.closed, Stage::current(world, research)) {
            (Some(closed), _) if !closed.reason.is_success() => {
                self.stopped(&mut answer.below, world, research);
            }
            (None, Some(stage)) => {
                let call = self.speaking(research);
                let told = going(stage, world, research, plan);
                answer.below.push(Item::text(Lead::Running, Part::of(told, How::Running, 4)));
                self.says(&mut answer.below, call);
            }
            _ if research.sentences.is_empty() => {
                // A log of another version may have the text alone.
                if let Some(text) = &world.answer {
                    let part = Part::of(&**text, How::Said, MOST);
                    answer.below.push(Item::text(Lead::None, part));
                }
            }
            _ => {}
        }
        Some(answer)
    }

    /// The open model call, if any.
    pub(super) fn speaking(&self, research: &Research) -> Option<SpanId> {
        let spans = &self.shown().spans;
        let noting = research.kept().filter_map(|row| row.notes_call);
        let calls = research.plan_call.into_iter().chain(noting).chain(research.answer_call);
        let open = |call: &SpanId| spans.get(*call).is_some_and(|it| it.state == SpanState::Open);
        calls.filter(open).last()
    }

    /// Adds the partial reply of a model call.
    fn says<'a>(&'a self, items: &mut Vec<Item<'a>>, call: Option<SpanId>) {
        let attempt = call.and_then(|call| self.shown().spans.last_child(call));
        let live = attempt.and_then(|attempt| self.live(attempt.id));
        if let Some(live) = live.filter(|live| !live.text.is_empty()) {
            items.push(Item::gap());
            let part = Part { coming: true, ..Part::of(&live.text, How::Note, MOST) };
            items.push(Item::text(Lead::None, part));
        }
    }

    /// Adds why there is no answer, and what to do.
    fn stopped<'a>(&self, items: &mut Vec<Item<'a>>, world: &'a World, research: &'a Research) {
        let Some(closed) = &world.closed else { return };
        let place = closed.phase.as_deref().map(|phase| format!(" in {phase}"));
        let head = format!("{}{}", closed.reason, place.unwrap_or_default());
        let (lead, how) = match closed.reason {
            StopReason::Cancelled => (Lead::Off, How::Note),
            _ => (Lead::Failed, How::Failed),
        };
        items.push(Item::text(lead, Part::of(head, how, 4)));
        if let Some(advice) = closed.reason.advice() {
            items.push(Item::text(Lead::None, Part::of(advice, How::Said, 6)));
        }
        match &closed.reason {
            StopReason::VerificationFailed(_) => {
                let issues = research.verified.iter().flat_map(|verified| &*verified.issues);
                items.push(Item::gap());
                for it in issues {
                    let told = format!("{}: {}", it.note, it.issue);
                    let parts = vec![Part::of(told, How::Failed, 2)];
                    let about = About::Note(it.note.clone());
                    items.push(Item { about, name: "".into(), lead: Lead::Failed, parts });
                }
            }
            StopReason::NoReliableSources | StopReason::NoSourcesAfterDedupe => {
                items.push(Item::gap());
                items.extend(fallen(research));
            }
            StopReason::InvalidAnswer(_) => {
                if let Some((_, raw)) = &research.refused_answer {
                    given(items, "refused reply", raw);
                }
            }
            StopReason::InvalidPlan(_) | StopReason::InvalidStep(_) => {
                if let Some(refused) = &research.refused_plan {
                    given(items, "refused plan", &refused.raw);
                }
            }
            _ => {}
        }
    }
}

fn given(items: &mut Vec<Item<'_>>, name: &str, raw: &serde_json::Value) {
    items.push(Item::gap());
    items.push(Item::text(Lead::None, Part::of(name.to_owned(), How::Note, 1)));
    let text = serde_json::to_string(raw).unwrap_or_default();
    items.push(Item::text(Lead::None, Part::of(text, How::Quoted, 8)));
}

/// The number of sources that were rejected, by reason.
fn fallen<'a>(research: &Research) -> Vec<Item<'a>> {
    let mut reasons: Vec<(&str, u64, Lead)> = Vec::new();
    for row in &research.sources {
        let Some(reason) = row.fell_out() else { continue };
        let lead = match row.state {
            SourceState::Denied { .. } => Lead::Refused,
            SourceState::Skipped { .. } => Lead::Failed,
            _ => Lead::Off,
        };
        match reasons.iter_mut().find(|(known, ..)| *known == reason) {
            Some((_, count, _)) => *count += 1,
            None => reasons.push((reason, 1, lead)),
        }
    }
    let without =
        |row: &&std::sync::Arc<SourceRow>| matches!(row.state, SourceState::Read { notes: 0, .. });
    let dry = research.sources.iter().filter(without).count();
    if dry > 0 {
        reasons.push(("read, no note", dry as u64, Lead::Done));
    }
    let told = reasons.into_iter().map(|(reason, count, lead)| {
        let text = format!("{}: {reason}", format::things(count, "source"));
        Item::text(lead, Part::of(text, How::Said, 1))
    });
    told.collect()
}

/// What the current step does, in a sentence.
fn going(stage: Stage, world: &World, research: &Research, plan: &ResearchPlan) -> String {
    let models = &world.models;
    let by = |who: DoneBy, model: Option<&str>| match who {
        DoneBy::Model => model.unwrap_or("the model").to_owned(),
        DoneBy::Rule => "a rule".to_owned(),
    };
    match stage {
        Stage::Plan => format!("Planning with {}.", by(plan.plan_by, models.plan())),
        Stage::Step(ResearchStep::Search) => "Searching for sources.".to_owned(),
        Stage::Step(ResearchStep::Dedupe) => "Removing duplicate addresses.".to_owned(),
        Stage::Step(ResearchStep::ReadExtract) => {
            let on =
                |row: &&SourceRow| matches!(row.state, SourceState::Reading | SourceState::Noting);
            match research.kept().find(on) {
                Some(row) if row.state == SourceState::Noting => {
                    format!(
                        "Taking notes on {} with {}.",
                        row.no,
                        by(plan.notes_by, models.notes())
                    )
                }
                Some(row) if row.read_call.is_none() => {
                    format!("Checking {} {} against the allowlists.", row.no, row.domain)
                }
                Some(row) => format!("Reading {} {}.", row.no, row.domain),
                None => "Picking the next source.".to_owned(),
            }
        }
        Stage::Step(ResearchStep::Verify) => {
            let notes = format::things(research.notes.len() as u64, "note");
            format!("Checking the quotes of {notes} against their pages.")
        }
        Stage::Step(ResearchStep::Synthesize) => {
            let notes = format::things(research.notes.len() as u64, "note");
            format!(
                "Composing the answer from {notes} with {}.",
                by(plan.answer_by, models.answer())
            )
        }
    }
}
