//! Lines of a research run: the sources found and kept, the outcome of each source, the notes, the
//! verification, and below the last line the answer with its citations.

use std::fmt::Write as _;

use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::event::kind::{FallbackKind, Purpose};
use crate::event::patterns::PatternFact;
use crate::event::world::{RunFold, SpanKind};
use crate::event::{Event, EventKind, SpanId};
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::line_parts::{signed as word, with_model};
use crate::narrate::lines::described;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledLine;
use crate::pattern::research::facts::{ReadingEnd, ResearchFact, SourceOutcome};
use crate::pattern::research::projection::{Research, SourceRow};
use crate::pattern::research::spec::StepExecutor;
use crate::scenario::spec::script::ScriptStep;

/// Length limit of a text from a page or a model, in characters; the answer at the end is complete.
const SAID_CHARS: usize = 200;

/// The lines of a research event; `None` if another module may show it.
pub(super) fn lines(research: &Research, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
    if is_failed_read(event, run) {
        return Some(Vec::new());
    }
    line(research, event, run).map(|line| line.into_iter().collect())
}

/// The line of a research event, if it has one; `None` if the event is not of research.
fn line(research: &Research, event: &Event, run: &RunFold) -> Option<Option<StyledLine>> {
    let text = || described(research, event, run).text.into_owned();
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
pub(super) fn call_label(research: &Research, purpose: &Purpose) -> Option<String> {
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
pub(super) fn totals(research: &Research) -> String {
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
pub(super) fn by_rule(research: &Research) -> Option<&'static str> {
    match (research.plan.notes_by, research.plan.answer_by) {
        _ if research.sentences.is_empty() => None,
        (StepExecutor::Rule, StepExecutor::Rule) => Some("extract by rule, no model"),
        (_, StepExecutor::Rule) => Some("answer by rule"),
        (_, StepExecutor::Model) => None,
    }
}

/// How many parts of the question have no answer, if there are some.
pub(super) fn open_parts(research: &Research) -> Option<String> {
    let parts = research.unanswered.len() as u64;
    (parts > 0).then(|| format!("{} unanswered", format::count_noun(parts, "part")))
}

/// The parts of the question that no note says anything about, a line each.
pub(super) fn unanswered(research: &Research) -> String {
    let lines = research.unanswered.iter();
    lines.map(|part| format!("Unanswered: {}\n", visible(part))).collect()
}

/// The answer with citation marks after each sentence, and the list of citations. `None`: the
/// answer has no sentences.
pub(super) fn answer(research: &Research) -> Option<String> {
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
