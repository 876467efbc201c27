//! A research run in words: the lines of its events, headless text with sources, notes,
//! verification and the answer with its citations, details for the inspector.

pub mod report;
pub mod source;

use std::borrow::Cow;
use std::fmt::Write as _;

use self::source::{age_text, missing_page_reason, source_state, trust};
use super::{Closing, Narrate, PatternTerms, Progress, add_end, end_line};
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::id::SourceNo;
use crate::log::event::kind::{FallbackKind, Purpose, RunClosed};
use crate::log::event::{Event, EventKind, SpanId};
use crate::log::facts::PatternFact;
use crate::log::facts::research::parts::skip_phrase;
use crate::log::facts::research::{DropReason, ReadingEnd, ResearchFact, SourceOutcome};
use crate::log::world::research::{Research, SourceRow};
use crate::log::world::{RunFold, SpanKind};
use crate::scenario::patterns::research::StepExecutor;
use crate::scenario::spec::script::ScriptStep;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::headless::{event_words, signed_line as word, with_model};
use crate::words::measure::{columns, single_line};
use crate::words::sentence::EventLine;
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

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, line: &mut EventLine<'w>) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
                source,
                ..
            })) => {
                line.text = self.source(*source).map_or("", |row| row.address()).into();
            }
            EventKind::AnswerComposed { by: None, .. } => line.subject = "synthesize".into(),
            kind => fill_line(line, kind),
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
        verdict
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        run.progress.closed.as_ref().map(|closed| end_line(run, closed)).unwrap_or_default()
    }

    fn lines(&self, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
        self::lines(self, event, run)
    }

    fn caller_name(&self, purpose: &Purpose) -> Option<String> {
        call_label(self, purpose)
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

    fn longest_subject(&self, run: &RunFold) -> usize {
        let tools = run.tools.rows().iter().map(|tool| columns(tool.name().as_str()));
        // As wide as where agents call tools.
        tools.max().unwrap_or(0) + 9
    }
}

/// Most items that one line names.
const MAX_ITEMS: usize = 4;

/// Fills the line of an event of research.
pub(super) fn fill_line<'a>(line: &mut EventLine<'a>, kind: &'a EventKind) {
    let things = |count: usize, what| format::count_noun(count as u64, what);
    match kind {
        EventKind::Pattern(PatternFact::Research(ResearchFact::StepsAccepted { steps })) => {
            let actions: Vec<&str> = steps.iter().map(|step| &*step.action).collect();
            line.text = actions.join(", ").into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesFound(found))) => {
            let left: u64 = found.unsearched.values().sum();
            let mut what = format!("{} for {}", things(found.sources.len(), "source"), found.query);
            if left > 0 {
                what.push_str(&format!(", {} left out", format::count_noun(left, "document")));
            }
            line.text = what.into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesDeduped(deduped))) => {
            let mut what = format!("{} kept", deduped.kept.len());
            for it in deduped.dropped.iter().take(MAX_ITEMS) {
                let reason = match it.reason {
                    DropReason::Duplicate { duplicate_of } => {
                        format!("duplicate of {duplicate_of}")
                    }
                    reason => reason.phrase().to_owned(),
                };
                what.push_str(&format!(", {} {reason}", it.source));
            }
            if let Some(more @ 1..) = deduped.dropped.len().checked_sub(MAX_ITEMS) {
                what.push_str(&format!(", {more} more dropped"));
            }
            line.text = what.into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::PageRead(page))) => {
            let dated = if page.published_at.is_empty() { "undated" } else { &page.published_at };
            line.text = format!("{}, {dated}, {}", page.title, characters(page.chars)).into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { note, .. })) => {
            line.text = format!("{}: {}", note.id, note.claim).into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(note))) => {
            line.text = format!("{}: {}", note.reason.phrase(), note.quote).into();
            line.tone = StyleRole::Refused;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesTruncated(cut))) => {
            let (proposed, kept) = (u64::from(cut.proposed), cut.proposed.saturating_sub(cut.cut));
            line.text = format!(
                "{} proposed, first {kept} checked ({})",
                format::count_noun(proposed, "note"),
                cut.limit.phrase()
            )
            .into();
            line.tone = StyleRole::Retry;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(came))) => {
            fill_source_closed(line, came)
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::ReadingClosed { reason })) => {
            line.text = reason.phrase().into();
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(compared))) => {
            let pairs = compared.conflicts.iter().map(|it| {
                format!("{} {} against {} {}", it.left, it.left_figure, it.right, it.right_figure)
            });
            let pairs: Vec<String> = pairs.take(MAX_ITEMS).collect();
            let mut what = match compared.conflicts.len() {
                0 => "no conflict".to_owned(),
                conflicts => format!("{}: {}", things(conflicts, "conflict"), pairs.join(", ")),
            };
            if !compared.agree.is_empty() {
                what.push_str(&format!("; {} in agreement", things(compared.agree.len(), "pair")));
            }
            if !compared.unconfirmed.is_empty() {
                what.push_str(&format!("; {} unconfirmed", compared.unconfirmed.len()));
            }
            line.text = what.into();
            line.tone =
                if compared.conflicts.is_empty() { StyleRole::Text } else { StyleRole::Retry };
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesVerified(verified))) => {
            let issues =
                verified.issues.iter().map(|it| format!("{} {}", it.note, it.issue.phrase()));
            let issues: Vec<String> = issues.collect();
            let checked = format::count_noun(u64::from(verified.checked), "note");
            (line.text, line.tone) = if issues.is_empty() {
                (format!("{checked}, no issue").into(), StyleRole::Done)
            } else {
                (format!("{checked}: {}", issues.join(", ")).into(), StyleRole::Refused)
            };
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerCited(cited))) => {
            let ids: Vec<&str> = cited.citations.iter().map(|id| id.as_str()).collect();
            let sentences = things(cited.sentences.len(), "sentence");
            let uncited = cited.sentences.iter().filter(|it| it.citations.is_empty()).count();
            let mut what = format!("{sentences}, cites {}", ids.join(" "));
            if uncited > 0 {
                what.push_str(&format!(", {uncited} uncited"));
            }
            line.text = what.into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerRefused(refused))) => {
            line.text = refused.reason.phrase();
            line.tone = StyleRole::Refused;
        }
        _ => {}
    }
}

fn fill_source_closed<'a>(line: &mut EventLine<'a>, came: &'a SourceOutcome) {
    match came {
        SourceOutcome::Denied { reason, location } => {
            line.text = match location {
                Some(location) => format!("{} at {location}", reason.phrase()).into(),
                None => reason.phrase().into(),
            };
            line.tone = StyleRole::Refused;
        }
        SourceOutcome::Skipped { reason, text } => {
            line.text = format!("{}: {text}", skip_phrase(reason)).into();
            line.tone = StyleRole::Failed;
        }
        SourceOutcome::Read { notes, refused } => {
            let mut what = format::count_noun(u64::from(*notes), "note");
            if *refused > 0 {
                what.push_str(&format!(", {refused} refused"));
            }
            line.text = what.into();
            line.tone = StyleRole::Done;
        }
        SourceOutcome::Cancelled => {
            line.text = "cancelled".into();
            line.tone = StyleRole::Failed;
        }
    }
}

fn characters(chars: u64) -> String {
    format::count_noun(chars, "character")
}

/// Length limit of a text from a page or a model, in characters; the answer at the end is complete.
const SAID_CHARS: usize = 200;

/// The lines of a research event; `None` if another module may show it.
pub(crate) fn lines(research: &Research, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
    if is_failed_read(event, run) {
        return Some(Vec::new());
    }
    line(research, event, run).map(|line| line.into_iter().collect())
}

/// The line of a research event, if it has one; `None` if the event is not of research.
fn line(research: &Research, event: &Event, run: &RunFold) -> Option<Option<StyledLine>> {
    let text = || event_words(research, event, run).text.into_owned();
    let step = |word: &str, what: &str| {
        let what = visible_within(what, SAID_CHARS);
        StyledLine::new(StyleRole::Strong, format!("{word:<8}"))
            .then(format!("  {what}").trim_end().to_owned())
    };
    let signed = |glyph: Glyph, name: &'static str, role: StyleRole, what: &str| {
        word(glyph, name, role).then(format!("  {what}").trim_end().to_owned())
    };
    Some(Some(match &event.kind {
        EventKind::Pattern(PatternFact::Research(ResearchFact::StepsAccepted { steps })) => {
            let steps = format::count_noun(steps.len() as u64, "step");
            step("plan", &with_model(steps, run.models.for_step(ScriptStep::Plan)))
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesDeduped(deduped))) => {
            let query = research.query.as_ref().map_or("", |(query, _)| query);
            let left: u64 = research.unsearched.values().sum();
            let (found, kept) = (research.sources.len(), deduped.kept.len());
            let mut what = format!("found {found}, kept {kept}, for: {query}");
            if left > 0 {
                let _ = write!(what, " ({} left out)", format::count_noun(left, "document"));
            }
            step("search", &what)
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(came))) => {
            let row = source(event.span, run, research)?;
            let (glyph, word, role) = match &**came {
                SourceOutcome::Read { .. } => (Glyph::Done, "read", StyleRole::Done),
                SourceOutcome::Denied { .. } => (Glyph::Refused, "denied", StyleRole::Refused),
                SourceOutcome::Skipped { .. } => (Glyph::Alert, "skipped", StyleRole::Flag),
                SourceOutcome::Cancelled => (Glyph::Failed, "cancelled", StyleRole::Failed),
            };
            let what = visible_within(&text(), SAID_CHARS);
            // The model is named only if it was called for notes.
            let model = run.models.for_step(ScriptStep::Notes).filter(|_| row.notes_call.is_some());
            signed(glyph, word, role, &format!("{}  {}", address(row), with_model(what, model)))
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { note, .. })) => {
            let claim = visible_within(&note.claim, SAID_CHARS);
            signed(
                Glyph::Dot,
                "note",
                StyleRole::Text,
                &format!("{}  {claim}", visible(note.id.as_str())),
            )
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(note))) => {
            let quote = visible_within(&note.quote, SAID_CHARS);
            signed(
                Glyph::Refused,
                "refused",
                StyleRole::Refused,
                &format!("{}: {quote}", note.reason.phrase()),
            )
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesTruncated(_))) => {
            signed(Glyph::Alert, "cut", StyleRole::Flag, &text())
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::ReadingClosed {
            reason: ReadingEnd::NoMoreSources,
        })) => return Some(None),
        EventKind::Pattern(PatternFact::Research(ResearchFact::ReadingClosed { .. })) => {
            step("read", &text())
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesVerified(_))) => {
            step("verify", &text())
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(compared)))
            if compared.conflicts.is_empty() && compared.unconfirmed.is_empty() =>
        {
            return Some(None);
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(_))) => {
            signed(Glyph::Alert, "compared", StyleRole::Flag, &visible_within(&text(), SAID_CHARS))
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerCited(_))) => {
            step("answer", &with_model(text(), run.models.for_step(ScriptStep::Synthesize)))
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerRefused(_))) => signed(
            Glyph::Refused,
            "refused",
            StyleRole::Refused,
            &format!("the answer, {}", text()),
        ),
        _ => return None,
    }))
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

/// What a call does, as it is shown.
fn call_label(research: &Research, purpose: &Purpose) -> Option<String> {
    let of = |no| research.source(no).map_or_else(String::new, address);
    Some(match purpose {
        Purpose::Search => "search".to_owned(),
        Purpose::Read { source } => of(*source),
        Purpose::Notes { source } => format!("notes of {}", of(*source)),
        Purpose::Synthesize => "answer".to_owned(),
        _ => return None,
    })
}

fn source<'w>(span: SpanId, run: &RunFold, research: &'w Research) -> Option<&'w SourceRow> {
    match run.spans.get(span)?.kind {
        SpanKind::Source(no) => research.source(no),
        _ => None,
    }
}

/// The address of a source, cut to the limit: search results are untrusted.
fn address(row: &SourceRow) -> String {
    visible_within(row.url.as_deref().unwrap_or(&row.found.url), SAID_CHARS)
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
