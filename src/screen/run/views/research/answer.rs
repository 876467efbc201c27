//! The answer as items: first the current step and its partial reply, then the sentences with their
//! citations, or why there is no answer.

use std::borrow::Cow;

use super::items::{ItemList, ItemSign, ItemSubject, ItemText, PaneItem, single_spaced};
use crate::log::event::{SpanId, StopReason};
use crate::log::facts::research::{ResearchPlan, Sentence};
use crate::log::world::research::rows::WorkflowStep;
use crate::log::world::research::{Research, SourceRow, SourceState};
use crate::log::world::{SpanState, World};
use crate::scenario::patterns::research::{ResearchStep, StepExecutor};
use crate::scenario::spec::script::ScriptStep;
use crate::screen::run::data::RunData;
use crate::words::format;
use crate::words::question::tally_text;
use crate::words::readable::{partial_json, top_text};
use crate::words::styled::{StyleRole, StyledPart};
use crate::words::verdict::{place_after, reason_id, run_lead};

/// Maximum rows of a sentence, and of a partial reply.
const MAX_ROWS: usize = 40;

/// The items of the answer pane in the world that is shown.
pub struct AnswerItems<'a> {
    research: &'a Research,
    /// Items before the sentences.
    above: Vec<PaneItem<'a>>,
    /// Items after the sentences, or shown if there are none.
    below: Vec<PaneItem<'a>>,
}

impl AnswerItems<'_> {
    /// A sentence with its citations.
    fn sentence<'s>(&self, at: usize, sentence: &'s Sentence) -> PaneItem<'s> {
        let text = &*sentence.text;
        let mut tail = Vec::new();
        // Citations in the text itself are not repeated after it.
        let unsaid = sentence.citations.iter().filter(|id| !text.contains(&format!("[{id}]")));
        let marks: Vec<String> = unsaid.map(|id| format!("[{id}]")).collect();
        if !marks.is_empty() {
            tail.push(StyledPart::new(StyleRole::Dim, marks.join(" ")));
        }
        let mut lead = ItemSign::Done;
        if sentence.citations.is_empty() {
            lead = ItemSign::Off;
            tail.push(StyledPart::new(StyleRole::Dim, "uncited"));
        }
        if sentence.unconfirmed {
            lead = ItemSign::Alert;
            tail.push(StyledPart::new(StyleRole::Retry, "unconfirmed"));
        }
        if let Some(conflict) = self.conflict_of(sentence) {
            lead = ItemSign::Alert;
            tail.push(StyledPart::new(StyleRole::Retry, conflict));
        }
        let parts = vec![ItemText { tail, ..ItemText::of(text, StyleRole::Text, MAX_ROWS) }];
        PaneItem { subject: ItemSubject::Sentence(at), name: "".into(), sign: lead, parts }
    }

    /// Which notes contradict those that a sentence cites, if any do.
    fn conflict_of(&self, sentence: &Sentence) -> Option<String> {
        let cites = |note| sentence.citations.contains(note);
        let (mut among, mut others) = (false, Vec::new());
        for conflict in &*self.research.compared.conflicts {
            match (cites(&conflict.left), cites(&conflict.right)) {
                (true, true) => among = true,
                (true, false) => others.push(format!("[{}]", conflict.right)),
                (false, true) => others.push(format!("[{}]", conflict.left)),
                (false, false) => {}
            }
        }
        others.dedup();
        match (among, others.is_empty()) {
            (_, false) => Some(format!("conflicts with {}", others.join(" "))),
            (true, true) => Some("its sources conflict".to_owned()),
            (false, true) => None,
        }
    }
}

impl ItemList for AnswerItems<'_> {
    fn count(&self) -> usize {
        self.above.len() + self.research.sentences.len() + self.below.len()
    }

    fn item(&self, at: usize) -> Option<PaneItem<'_>> {
        if let Some(item) = self.above.get(at) {
            return Some(item.clone());
        }
        let at = at - self.above.len();
        if let Some(sentence) = self.research.sentences.get(at) {
            return Some(self.sentence(at, sentence));
        }
        self.below.get(at - self.research.sentences.len()).cloned()
    }

    fn names(&self) -> u16 {
        0
    }
}

/// The items of the answer in the world that is shown.
pub fn answer_items(run: &RunData) -> Option<AnswerItems<'_>> {
    let world = run.shown();
    let research = world.research()?;
    let plan = &*research.plan;
    let mut answer = AnswerItems { research, above: Vec::new(), below: Vec::new() };
    match (&world.progress.closed, WorkflowStep::current(world, research)) {
        (Some(closed), _) if !closed.reason.is_success() => {
            add_stop(&mut answer.below, world, research);
        }
        (None, Some(stage)) => {
            let call = open_model_call(run, research);
            let text = step_text(stage, world, research, plan);
            answer
                .below
                .push(PaneItem::text(ItemSign::Running, ItemText::of(text, StyleRole::Running, 4)));
            add_partial_reply(run, &mut answer.below, call);
        }
        _ if research.sentences.is_empty() => {
            // A log of another version may have the text alone.
            if let Some(text) = &world.progress.answer {
                let part = ItemText::of(&**text, StyleRole::Text, MAX_ROWS);
                answer.below.push(PaneItem::text(ItemSign::None, part));
            }
        }
        _ => {}
    }
    for part in &*research.unanswered {
        let text = format!("Unanswered: {part}");
        let text = ItemText::of(text, StyleRole::Retry, 4);
        answer.below.push(PaneItem::text(ItemSign::Alert, text));
    }
    if let Some(questions) =
        tally_text(&world.questions).filter(|_| world.progress.closed.is_some())
    {
        let text = ItemText::of(format!("Questions: {questions}"), StyleRole::Dim, 2);
        answer.below.push(PaneItem::text(ItemSign::None, text));
    }
    Some(answer)
}

/// The open model call, if any.
pub(super) fn open_model_call(run: &RunData, research: &Research) -> Option<SpanId> {
    let spans = &run.shown().spans;
    let noting = research.kept().filter_map(|row| row.notes_call);
    let calls = research.plan_call.into_iter().chain(noting).chain(research.answer_call);
    let open = |call: &SpanId| spans.get(*call).is_some_and(|it| it.state == SpanState::Open);
    calls.filter(open).last()
}

fn add_partial_reply<'a>(run: &'a RunData, items: &mut Vec<PaneItem<'a>>, call: Option<SpanId>) {
    let attempt = call.and_then(|call| run.shown().spans.last_child(call));
    let live = attempt.and_then(|attempt| run.live(attempt.id));
    if let Some(live) = live.filter(|live| !live.text.is_empty()) {
        items.push(PaneItem::gap());
        let part = ItemText {
            shows_end: true,
            ..ItemText::of(partial_json(&live.text), StyleRole::Dim, MAX_ROWS)
        };
        items.push(PaneItem::text(ItemSign::None, part));
    }
}

/// Adds why there is no answer, and what to do.
fn add_stop<'a>(items: &mut Vec<PaneItem<'a>>, world: &'a World, research: &'a Research) {
    let Some(closed) = &world.progress.closed else { return };
    let lead = run_lead(world, closed);
    let head = format!("{lead}{}", place_after(&lead, closed));
    let (lead, how) = match closed.reason {
        StopReason::Cancelled => (ItemSign::Off, StyleRole::Dim),
        _ => (ItemSign::Failed, StyleRole::Failed),
    };
    items.push(PaneItem::text(lead, ItemText::of(head, how, 4)));
    if let Some(id) = reason_id(closed) {
        items.push(PaneItem::text(ItemSign::None, ItemText::of(id, StyleRole::Dim, 1)));
    }
    if let Some(cause) = world.stop_cause() {
        let text = ItemText::of(cause.to_string(), StyleRole::Text, 6);
        items.push(PaneItem::text(ItemSign::None, text));
    }
    if let Some(advice) = world.stop_advice() {
        items.push(PaneItem::text(ItemSign::None, ItemText::of(advice, StyleRole::Text, 6)));
    }
    match &closed.reason {
        StopReason::VerificationFailed(_) => {
            let issues = research.verified.iter().flat_map(|verified| &*verified.issues);
            items.push(PaneItem::gap());
            for it in issues {
                let text = format!("{}: {}", it.note, it.issue.phrase());
                let mut parts = vec![ItemText::of(text, StyleRole::Failed, 2)];
                if let Some(row) = research.note(&it.note) {
                    let page = research.source(row.source).map_or("", |source| &*source.domain);
                    let claim = format!("claim: {}", single_spaced(&row.note.claim));
                    let quote = format!("quote: \"{}\"", single_spaced(&row.note.quote));
                    let page = format!("page: {} {page}", row.source);
                    for text in [claim, quote, page] {
                        parts.push(ItemText::of(text, StyleRole::Text, 6));
                    }
                }
                let about = ItemSubject::Note(it.note.clone());
                items.push(PaneItem {
                    subject: about,
                    name: "".into(),
                    sign: ItemSign::Failed,
                    parts,
                });
            }
        }
        StopReason::NoReliableSources | StopReason::NoSourcesAfterDedupe => {
            items.push(PaneItem::gap());
            items.extend(rejected_sources(research));
        }
        StopReason::InvalidAnswer(_) => {
            if let Some((_, raw)) = &research.refused_answer {
                add_raw_reply(items, "refused reply", raw);
            }
        }
        StopReason::InvalidPlan(_) | StopReason::InvalidStep(_) => {
            if let Some(refused) = &research.refused_plan {
                add_raw_reply(items, "refused plan", &refused.raw);
            }
        }
        _ => {}
    }
}

fn add_raw_reply(items: &mut Vec<PaneItem<'_>>, name: &str, raw: &serde_json::Value) {
    items.push(PaneItem::gap());
    items.push(PaneItem::text(ItemSign::None, ItemText::of(name.to_owned(), StyleRole::Dim, 1)));
    items.push(PaneItem::text(ItemSign::None, ItemText::of(top_text(raw), StyleRole::Dim, 8)));
}

/// The number of sources that were rejected, by reason.
fn rejected_sources<'a>(research: &Research) -> Vec<PaneItem<'a>> {
    let mut reasons: Vec<(Cow<'_, str>, u64, ItemSign)> = Vec::new();
    for row in &research.sources {
        let Some(reason) = row.drop_phrase() else { continue };
        let lead = match row.state {
            SourceState::Denied { .. } => ItemSign::Refused,
            SourceState::Skipped { .. } => ItemSign::Failed,
            _ => ItemSign::Off,
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
        reasons.push(("read, no note".into(), dry as u64, ItemSign::Done));
    }
    let items = reasons.into_iter().map(|(reason, count, lead)| {
        let text = format!("{}: {reason}", format::count_noun(count, "source"));
        PaneItem::text(lead, ItemText::of(text, StyleRole::Text, 1))
    });
    items.collect()
}

/// What the current step does, in a sentence.
fn step_text(
    stage: WorkflowStep,
    world: &World,
    research: &Research,
    plan: &ResearchPlan,
) -> String {
    let models = &world.models;
    let by = |who: StepExecutor, model: Option<&str>| match who {
        StepExecutor::Model => model.unwrap_or("the model").to_owned(),
        StepExecutor::Rule => "a rule".to_owned(),
    };
    match stage {
        WorkflowStep::Plan => {
            format!("Planning with {}.", by(plan.plan_by, models.for_step(ScriptStep::Plan)))
        }
        WorkflowStep::Step(ResearchStep::Search) => "Searching for sources.".to_owned(),
        WorkflowStep::Step(ResearchStep::Dedupe) => "Removing duplicate addresses.".to_owned(),
        WorkflowStep::Step(ResearchStep::ReadExtract) => {
            let on =
                |row: &&SourceRow| matches!(row.state, SourceState::Reading | SourceState::Noting);
            match research.kept().find(on) {
                Some(row) if row.state == SourceState::Noting => {
                    format!(
                        "Taking notes on {} with {}.",
                        row.no,
                        by(plan.notes_by, models.for_step(ScriptStep::Notes))
                    )
                }
                Some(row) if row.read_call.is_none() => {
                    format!("Checking {} {} against the allowlists.", row.no, row.domain)
                }
                Some(row) => format!("Reading {} {}.", row.no, row.domain),
                None => "Picking the next source.".to_owned(),
            }
        }
        WorkflowStep::Step(ResearchStep::Verify) => {
            let notes = format::count_noun(research.notes.len() as u64, "note");
            format!("Checking the quotes of {notes} against their pages.")
        }
        WorkflowStep::Step(ResearchStep::Synthesize) => {
            let notes = format::count_noun(research.notes.len() as u64, "note");
            format!(
                "Composing the answer from {notes} with {}.",
                by(plan.answer_by, models.for_step(ScriptStep::Synthesize))
            )
        }
    }
}
