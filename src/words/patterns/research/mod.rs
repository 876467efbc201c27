//! A research run in words: sentences for its events, the answer with its citations, details for
//! the inspector.

pub mod report;
pub mod source;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use self::source::{age_text, missing_page_reason, source_state, trust};
use super::{
    Closing, Narrate, PatternPane, PatternTerms, Progress, RunStep, RunStepState, add_end, end_line,
};
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::id::SourceNo;
use crate::log::event::{Event, EventKind, FallbackKind, Purpose, RunClosed, SpanId, StopReason};
use crate::log::facts::PatternFact;
use crate::log::facts::research::skip_phrase;
use crate::log::facts::research::{DropReason, ReadingEnd, ResearchFact, SourceOutcome};
use crate::log::world::research::rows::WorkflowStep;
use crate::log::world::research::{Research, SourceRow};
use crate::log::world::{RunFold, SpanKind};
use crate::scenario::patterns::research::StepExecutor;
use crate::scenario::spec::script::ScriptStep;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::headless::SAID_CHARS;
use crate::words::measure::{columns, single_line};
use crate::words::sentence::{HeadlessForm, Sentence, round_and_purpose};
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::verdict::RunVerdict;

impl Narrate for Research {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "answer", answer_mark: "answer", has_rounds: false }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let far = format!("{}/{}", self.pages_read(), self.plan.budget.max_read_pages);
        Progress {
            text: Some(format!("pages {far}")),
            short: far,
            budget: Some(("notes", self.notes.len() as u64, self.plan.budget.max_notes.into())),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let domains = self.plan.allowed_domains_policy.len() as u64;
        let pages = format::count_noun(self.plan.budget.max_read_pages.into(), "page");
        (format::count_noun(domains, "domain"), format!("max {pages}"))
    }

    fn span_name(&self, span: &SpanKind) -> Option<Cow<'_, str>> {
        match span {
            SpanKind::Source(no) => Some(no.to_string().into()),
            _ => None,
        }
    }

    fn steps(&self, run: &RunFold) -> Vec<RunStep> {
        let current = WorkflowStep::current(run, self);
        let place = |step| WorkflowStep::ALL.iter().position(|it| *it == step);
        let now = current.and_then(place).unwrap_or(WorkflowStep::ALL.len());
        let steps = WorkflowStep::ALL.iter().enumerate().map(|(nth, step)| {
            let state = match nth.cmp(&now) {
                Ordering::Less => RunStepState::Ended,
                Ordering::Equal if run.progress.closed.is_some() => RunStepState::Ended,
                Ordering::Equal => RunStepState::Running,
                Ordering::Greater => RunStepState::Waiting,
            };
            RunStep::new(step.name(), state)
        });
        steps.collect()
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Research(fact)) => self.fill(it, fact, event, run),
            EventKind::AnswerComposed { by: None, .. } => it.subject = "synthesize".into(),
            // The source's own line reports it.
            _ if is_failed_read(event, run) => it.headless = HeadlessForm::Hidden,
            _ => {}
        }
    }

    fn call_fields(&self, purpose: &Purpose, of_event: bool, to: &mut StyledText) {
        add_call(self, purpose, of_event, to);
    }

    fn event_fields(&self, event: &Event, run: &RunFold, to: &mut StyledText) {
        add_event(self, event, run, to);
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
        let far = self.funnel();
        let sources = format!(
            "{} found, {} kept, {} allowed, {} read",
            far.found, far.deduped, far.allowed, far.read
        );
        to.item("sources", StyleRole::Text, sources);
        let mut notes = format!("{} taken, {} cited", far.notes, far.cited);
        for (count, word) in [
            (self.refused.len(), "refused"),
            (self.compared.conflicts.len(), "in conflict"),
            (self.compared.unconfirmed.len(), "unconfirmed"),
        ] {
            if count > 0 {
                notes.push_str(&format!(", {count} {word}"));
            }
        }
        to.item("notes", StyleRole::Text, notes);
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        let funnel = self.funnel();
        if closed.reason.is_success() && !self.sentences.is_empty() {
            verdict.word = "answered".into();
            verdict.facts.extend(by_rule(self).map(Into::into));
            let sources = format::count_noun(funnel.read as u64, "page");
            verdict.facts.push(format!("{} of {} notes cited", funnel.cited, funnel.notes));
            verdict.facts.push(format!("{sources} read"));
            let conflicts = self.compared.conflicts.len() as u64;
            if conflicts > 0 {
                verdict.facts.push(format::count_noun(conflicts, "conflict"));
            }
            verdict.facts.extend(open_parts(self));
        }
        if closed.reason == StopReason::NoReliableSources {
            verdict.facts.extend(dropped(self));
        }
        verdict
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        run.progress.closed.as_ref().map(|closed| end_line(run, closed)).unwrap_or_default()
    }

    fn full_subject(&self, event: &Event, run: &RunFold) -> Option<String> {
        let row = match (&event.kind, round_and_purpose(event.span, run).1) {
            (_, Some(Purpose::Synthesize)) => return Some("answer".to_owned()),
            (EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(_))), _) => {
                source(event.span, run, self)?
            }
            // The line of the source has its address.
            (EventKind::Pattern(_), _) => return None,
            (_, Some(Purpose::Read { source })) => self.source(*source)?,
            (_, Some(Purpose::Notes { source })) => {
                let row = self.source(*source)?;
                return Some(format!("notes of {} {}", row.no, row.address()));
            }
            _ => return None,
        };
        Some(format!("{} {}", row.no, row.address()))
    }

    fn totals(&self) -> Vec<StyledPart> {
        vec![StyledPart::plain(totals(self))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: self::answer(self), table: unanswered(self) }
    }

    fn report(&self, run: &RunFold) -> Option<String> {
        report::markdown(self, run)
    }

    fn has_report(&self, run: &RunFold) -> bool {
        self.answered.is_some() || run.progress.closed.is_some()
    }

    fn rows(&self, pane: PatternPane, _run: &RunFold) -> Option<Vec<String>> {
        (pane == PatternPane::First).then(|| source::rows(self))
    }

    fn items(&self) -> Option<Vec<String>> {
        Some((1..=self.sources.len()).map(|number| number.to_string()).collect())
    }

    fn longest_subject(&self, run: &RunFold) -> usize {
        let tools = run.tools.rows().iter().map(|tool| columns(tool.name().as_str()));
        // As wide as where agents call tools.
        tools.max().unwrap_or(0) + 9
    }
}

/// How many sources were dropped for each reason.
fn dropped(research: &Research) -> Vec<String> {
    let mut reasons: Vec<(Cow<'_, str>, u64)> = Vec::new();
    for reason in research.sources.iter().filter_map(|row| row.drop_phrase()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let counted = reasons.into_iter().enumerate().map(|(nth, (reason, count))| {
        let of = if nth == 0 { "sources: " } else { "" };
        format!("{of}{count} {reason}")
    });
    counted.collect()
}

/// Most items that one line names.
const MAX_ITEMS: usize = 4;

impl Research {
    /// Fills the sentence for a fact of research.
    fn fill<'w>(
        &'w self,
        it: &mut Sentence<'w>,
        fact: &'w ResearchFact,
        event: &Event,
        run: &RunFold,
    ) {
        let things = |count: usize, what| format::count_noun(count as u64, what);
        match fact {
            ResearchFact::StepsAccepted { steps } => {
                let actions: Vec<&str> = steps.iter().map(|step| &*step.action).collect();
                it.set(StyleRole::Done, things(steps.len(), "step"))
                    .with_detail(actions.join(", "))
                    .as_step("plan");
            }
            ResearchFact::SourcesFound(found) => {
                let mut text = things(found.sources.len(), "source");
                let left: u64 = found.unsearched.values().sum();
                if left > 0 {
                    let left = format::count_noun(left, "document");
                    text.push_str(&format!(", {left} left out"));
                }
                it.set(StyleRole::Done, text).with_detail(&*found.query).as_step("search");
            }
            ResearchFact::SourcesDeduped(deduped) => {
                let mut text = format!("{} kept", deduped.kept.len());
                for dropped in deduped.dropped.iter().take(MAX_ITEMS) {
                    let reason = match dropped.reason {
                        DropReason::Duplicate { duplicate_of } => {
                            format!("duplicate of {duplicate_of}")
                        }
                        reason => reason.phrase().to_owned(),
                    };
                    text.push_str(&format!(", {} {reason}", dropped.source));
                }
                if let Some(more @ 1..) = deduped.dropped.len().checked_sub(MAX_ITEMS) {
                    text.push_str(&format!(", {more} more dropped"));
                }
                it.set(StyleRole::Done, text);
                if !deduped.dropped.is_empty() {
                    it.as_step("dedupe");
                }
            }
            ResearchFact::SourceStarted { source, .. } => {
                it.text = self.source(*source).map_or("", |row| row.address()).into();
            }
            ResearchFact::PageRead(page) => {
                let dated = &*page.published_at;
                let dated = if dated.is_empty() { "undated" } else { dated };
                let text = format!("{}, {dated}, {}", page.title, characters(page.chars));
                it.set(StyleRole::Done, text);
            }
            ResearchFact::NoteTaken { note, .. } => {
                it.set(StyleRole::Done, note.id.as_str())
                    .with_detail(&*note.claim)
                    .as_sign(Glyph::Dot, "note");
            }
            ResearchFact::NoteRefused(note) => {
                it.set(StyleRole::Refused, note.reason.phrase())
                    .with_detail(&*note.quote)
                    .as_sign(Glyph::Refused, "refused");
            }
            ResearchFact::NotesTruncated(cut) => {
                let proposed = format::count_noun(cut.proposed.into(), "note");
                let kept = cut.proposed.saturating_sub(cut.cut);
                let limit = cut.limit.phrase();
                let text = format!("{proposed} proposed, first {kept} checked ({limit})");
                it.set(StyleRole::Retry, text).as_sign(Glyph::Alert, "cut");
            }
            ResearchFact::SourceClosed(outcome) => {
                // The model is named only if it was called for notes.
                let row = source(event.span, run, self);
                let by_model = row.is_some_and(|row| row.notes_call.is_some());
                let model = run.models.for_step(ScriptStep::Notes).filter(|_| by_model);
                fill_source_closed(it, outcome, model);
            }
            ResearchFact::ReadingClosed { reason } => {
                it.text = reason.phrase().into();
                if *reason != ReadingEnd::NoMoreSources {
                    it.as_step("read");
                }
            }
            ResearchFact::NotesCompared(compared) => {
                let pairs = compared.conflicts.iter().map(|it| {
                    let (left, right) = (&it.left_figure, &it.right_figure);
                    format!("{} {left} against {} {right}", it.left, it.right)
                });
                let pairs: Vec<String> = pairs.take(MAX_ITEMS).collect();
                let mut text = match compared.conflicts.len() {
                    0 => "no conflict".to_owned(),
                    conflicts => format!("{}: {}", things(conflicts, "conflict"), pairs.join(", ")),
                };
                if !compared.agree.is_empty() {
                    let agree = things(compared.agree.len(), "pair");
                    text.push_str(&format!("; {agree} in agreement"));
                }
                if !compared.unconfirmed.is_empty() {
                    text.push_str(&format!("; {} unconfirmed", compared.unconfirmed.len()));
                }
                let calm = compared.conflicts.is_empty();
                it.set(if calm { StyleRole::Text } else { StyleRole::Retry }, text);
                if !(calm && compared.unconfirmed.is_empty()) {
                    it.about("").as_sign(Glyph::Alert, "compared");
                }
            }
            ResearchFact::NotesVerified(verified) => {
                let issues =
                    verified.issues.iter().map(|it| format!("{} {}", it.note, it.issue.phrase()));
                let issues: Vec<String> = issues.collect();
                let checked = format::count_noun(verified.checked.into(), "note");
                match issues.is_empty() {
                    true => it.set(StyleRole::Done, format!("{checked}, no issue")),
                    false => {
                        it.set(StyleRole::Refused, format!("{checked}: {}", issues.join(", ")))
                    }
                }
                .as_step("verify");
            }
            ResearchFact::AnswerCited(cited) => {
                let ids: Vec<&str> = cited.citations.iter().map(|id| id.as_str()).collect();
                let sentences = things(cited.sentences.len(), "sentence");
                let uncited = cited.sentences.iter().filter(|it| it.citations.is_empty()).count();
                let mut text = format!("{sentences}, cites {}", ids.join(" "));
                if uncited > 0 {
                    text.push_str(&format!(", {uncited} uncited"));
                }
                it.set(StyleRole::Done, text).as_step("answer");
            }
            ResearchFact::AnswerRefused(refused) => {
                it.set(StyleRole::Refused, refused.reason.phrase())
                    .as_sign(Glyph::Refused, "refused");
            }
        }
    }
}

/// Fills how a source ended.
fn fill_source_closed<'a>(
    it: &mut Sentence<'a>,
    outcome: &'a SourceOutcome,
    notes_by: Option<&str>,
) {
    match outcome {
        SourceOutcome::Denied { reason, location } => {
            let place = location.as_ref().map(|location| format!(" at {location}"));
            let text = format!("{}{}", reason.phrase(), place.unwrap_or_default());
            it.set(StyleRole::Refused, text).as_sign(Glyph::Refused, "denied")
        }
        SourceOutcome::Skipped { reason, text } => it
            .set(StyleRole::Failed, skip_phrase(reason))
            .with_detail(&**text)
            .as_sign(Glyph::Alert, "skipped"),
        SourceOutcome::Read { notes, refused } => {
            let mut text = format::count_noun((*notes).into(), "note");
            if *refused > 0 {
                text.push_str(&format!(", {refused} refused"));
            }
            if let Some(model) = notes_by {
                text.push_str(&format!(" ({model})"));
            }
            it.set(StyleRole::Done, text).as_sign(Glyph::Done, "read")
        }
        SourceOutcome::Cancelled => {
            it.set(StyleRole::Failed, "cancelled").as_sign(Glyph::Failed, "cancelled")
        }
    };
}

fn characters(chars: u64) -> String {
    format::count_noun(chars, "character")
}

/// Whether the event is a failed read of a source, which the source's own line reports.
fn is_failed_read(event: &Event, run: &RunFold) -> bool {
    let lost = matches!(
        &event.kind,
        EventKind::CallFailed { .. } | EventKind::CallDegraded { by: FallbackKind::Omitted, .. }
    );
    let what = run.spans.get(event.span).map(|span| &span.kind);
    lost && matches!(what, Some(SpanKind::Call(Purpose::Read { .. })))
}

fn source<'w>(span: SpanId, run: &RunFold, research: &'w Research) -> Option<&'w SourceRow> {
    match run.spans.get(span)?.kind {
        SpanKind::Source(no) => research.source(no),
        _ => None,
    }
}

/// The totals on the last line of a run.
pub(crate) fn totals(research: &Research) -> String {
    let funnel = research.funnel();
    let things = |count: usize, what| format::count_noun(count as u64, what);
    let mut totals = format!(
        "  {}, {}, {} cited",
        things(funnel.read, "page"),
        things(funnel.notes, "note"),
        funnel.cited
    );
    for fact in by_rule(research).into_iter().map(str::to_owned).chain(open_parts(research)) {
        totals += ", ";
        totals += &fact;
    }
    totals
}

/// What was done by rule instead of a model.
pub(crate) fn by_rule(research: &Research) -> Option<&'static str> {
    match (research.plan.notes_by, research.plan.answer_by) {
        _ if research.sentences.is_empty() => None,
        (StepExecutor::Rule, StepExecutor::Rule) => Some("extract by rule, no model"),
        (_, StepExecutor::Rule) => Some("answer by rule"),
        (_, StepExecutor::Model) => None,
    }
}

/// How many parts of the question have no answer, if there are some.
fn open_parts(research: &Research) -> Option<String> {
    let parts = research.unanswered.len() as u64;
    (parts > 0).then(|| format!("{} unanswered", format::count_noun(parts, "part")))
}

/// The parts of the question that no note says anything about, a line each.
pub(crate) fn unanswered(research: &Research) -> String {
    let lines = research.unanswered.iter();
    lines.map(|part| format!("Unanswered: {}\n", visible(part))).collect()
}

/// The answer with citation marks after each sentence, and the list of citations. `None`: the
/// answer has no sentences.
pub(crate) fn answer(research: &Research) -> Option<String> {
    if research.sentences.is_empty() {
        return None;
    }
    let mut out = String::new();
    for sentence in &*research.sentences {
        let _ = write!(out, "{}", visible(&sentence.text));
        for id in &*sentence.citations {
            let _ = write!(out, " [{}]", visible_within(id.as_str(), REASON_CHARS));
        }
        let _ = match (sentence.citations.is_empty(), sentence.unconfirmed) {
            (true, _) => writeln!(out, " (uncited)"),
            (false, true) => writeln!(out, " (unconfirmed)"),
            (false, false) => writeln!(out),
        };
    }
    out.push('\n');
    for row in research.notes.iter().filter(|row| research.is_cited(&row.note.id)) {
        let note = &row.note;
        let day = if note.modified || note.published_at.is_empty() {
            note.date_label()
        } else {
            note.published_at.to_string()
        };
        let _ = writeln!(
            out,
            "[{}] {}, {}, {}",
            visible_within(note.id.as_str(), REASON_CHARS),
            visible_within(&note.title, SAID_CHARS),
            visible_within(&day, REASON_CHARS),
            visible_within(&note.url, SAID_CHARS)
        );
    }
    Some(out)
}

/// Adds the details of a call; `of_event` if the details of its source are already there.
pub(super) fn add_call(
    research: &Research,
    purpose: &Purpose,
    of_event: bool,
    to: &mut StyledText,
) {
    match purpose {
        Purpose::Plan => to.field("purpose", "plan"),
        Purpose::Search => to.field("purpose", "search"),
        Purpose::Synthesize => to.field("purpose", "answer"),
        Purpose::Read { source } | Purpose::Notes { source } => {
            to.field("source", source.to_string());
            if let Some(row) = research.source(*source).filter(|_| !of_event) {
                to.field("title", single_line(row.title()));
                to.field("address", single_line(row.address()));
            }
        }
        _ => {}
    }
}

/// Adds the details of an event.
pub(crate) fn add_event(research: &Research, event: &Event, run: &RunFold, to: &mut StyledText) {
    match &event.kind {
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
            source, ..
        })) => add_source(research, *source, to),
        EventKind::Pattern(PatternFact::Research(ResearchFact::PageRead(page))) => {
            add_source(research, page.source, to)
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { source, note })) => {
            add_source(research, *source, to);
            to.field("note", note.id.as_str());
            to.field("claim", single_line(&note.claim));
            to.field("quote", single_line(&note.quote));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(note))) => {
            add_source(research, note.source, to);
            to.field("refused", note.reason.phrase());
            to.field("claim", single_line(&note.claim));
            to.field("quote", single_line(&note.quote));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesTruncated(cut))) => {
            add_source(research, cut.source, to);
            to.field("proposed", cut.proposed.to_string());
            to.field("cut", format!("{} ({})", cut.cut, cut.limit.phrase()));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(_))) => {
            if let Some(SpanKind::Source(source)) = run.spans.get(event.span).map(|it| &it.kind) {
                add_source(research, *source, to);
            }
        }
        _ => {}
    }
}

/// Adds the details of a source.
fn add_source(research: &Research, source: SourceNo, to: &mut StyledText) {
    let plan = &*research.plan;
    let Some(row) = research.source(source) else { return };
    to.field("source", source.to_string());
    to.field("title", single_line(row.title()));
    to.field("address", single_line(row.address()));
    to.field("state", source_state(row));
    if let Some(trust) = trust(row, plan) {
        to.field("trust", format::confidence(trust));
    }
    let age = age_text(row, plan);
    if !age.is_empty() {
        to.field("age", age);
    }
    if row.page.is_none() {
        let (why, to_do) = missing_page_reason(row, plan);
        to.field("why", single_line(&why));
        if let Some(to_do) = to_do {
            to.field("", to_do);
        }
    }
}
