//! The answer of research as Markdown: each sentence with its notes as footnotes, each footnote
//! with the quote from the page; then what was not used and why, and the contradictions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::log::event::id::SourceNo;
use crate::log::event::{RunStarted, StopReason};
use crate::log::facts::research::skip_phrase;
use crate::log::facts::research::{DropReason, Note, NoteId, ReadingEnd, ResearchPlan, Sentence};
use crate::log::world::RunFold;
use crate::log::world::research::{Research, SourceRow, SourceState};
use crate::words::format;
use crate::words::markdown::{code, link, paragraph, reason_markdown, text};
use crate::words::verdict::run_lead;

/// A run of research as Markdown, as far as it has come; `None` before its head.
pub fn markdown(research: &Research, run: &RunFold) -> Option<String> {
    let plan = &*research.plan;
    let head = run.head.as_deref()?;
    let mut out = String::new();
    heading(&mut out, head, plan);
    answer(&mut out, run, research);
    footnotes(&mut out, research);
    list(
        &mut out,
        "Unanswered",
        research.unanswered.iter().map(|part| format!("- {}", text(part))),
    );
    unused_section(&mut out, research);
    conflicts(&mut out, research);
    Some(out)
}

fn heading(out: &mut String, head: &RunStarted, plan: &ResearchPlan) {
    let _ = writeln!(out, "# {}\n", text(&head.title));
    let _ = writeln!(out, "**Question:** {}\n", text(&plan.question));
    let _ = writeln!(out, "As of {}.\n", text(&plan.as_of));
}

fn answer(out: &mut String, run: &RunFold, research: &Research) {
    let _ = writeln!(out, "## Answer\n");
    let sentences: Vec<String> = research
        .sentences
        .iter()
        .filter(|sentence| !sentence.text.is_empty() || !sentence.citations.is_empty())
        .enumerate()
        .map(|(place, sentence)| sentence_markdown(sentence, place == 0))
        .collect();
    let why = match (&run.progress.closed, sentences.is_empty()) {
        (_, false) => sentences.join(" "),
        (Some(closed), true) if closed.reason == StopReason::NoSourcesAfterDedupe => {
            // It begins with `No answer`.
            let advice = closed.reason.advice().unwrap_or_default();
            format!("{} ({})", text(advice), code(&closed.reason.to_string()))
        }
        (Some(closed), true) => {
            let cause = run.stop_cause().map(|cause| format!(" {}", text(&cause)));
            let reason = reason_markdown(&run_lead(run, closed), &closed.reason);
            format!("No answer: {reason}.{}", cause.unwrap_or_default())
        }
        (None, true) => "No answer yet.".to_owned(),
    };
    let _ = writeln!(out, "{why}");
    if let Some(mark) = run.progress.answer_end.mark() {
        let _ = writeln!(out, "\n*The answer was {mark}.*");
    }
}

/// A sentence with its citations.
fn sentence_markdown(sentence: &Sentence, first: bool) -> String {
    let mut markdown = if first { paragraph(&sentence.text) } else { text(&sentence.text) };
    for id in &*sentence.citations {
        let _ = write!(markdown, "[^{}]", label(id));
    }
    if sentence.citations.is_empty() {
        markdown.push_str(" *(uncited)*");
    } else if sentence.unconfirmed {
        markdown.push_str(" *(unconfirmed)*");
    }
    markdown
}

/// The id of a note as a footnote label. Ids are our own, but a file may contain anything.
fn label(id: &NoteId) -> String {
    let label: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    if label.is_empty() { "note".to_owned() } else { label }
}

/// The notes that the answer cites or that contradict another note.
fn footnotes(out: &mut String, research: &Research) {
    let conflicts = research.compared.conflicts.iter();
    let named: BTreeSet<&NoteId> = conflicts
        .flat_map(|conflict| [&conflict.left, &conflict.right])
        .chain(&*research.citations)
        .collect();
    let notes = research.notes.iter().map(|row| &*row.note).filter(|note| named.contains(&note.id));
    for (place, note) in notes.enumerate() {
        if place == 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "[^{}]: {}", label(&note.id), footnote(note));
    }
}

fn footnote(note: &Note) -> String {
    let title = if note.title.trim().is_empty() { &note.url } else { &note.title };
    format!("{}, {}: \"{}\"", link(title, &note.url), text(&note.date_label()), text(&note.quote))
}

/// Sources and notes that were not used, each with its reason.
fn unused_section(out: &mut String, research: &Research) {
    let sources = research.sources.iter().filter_map(|row| {
        let why = unused_reason(row, research)?;
        Some(format!("- {}: {why}", code(address(row))))
    });
    let notes = research.refused.iter().map(|note| {
        let of = research.source(note.source).map_or("", address);
        format!("- a note of {}: {}, \"{}\"", code(of), note.reason.phrase(), text(&note.quote))
    });
    let cut = research.sources.iter().filter_map(|row| {
        let cut = row.cut?;
        let notes = format::count_noun(u64::from(cut.cut), "note");
        Some(format!("- {notes} of {}: over the {}", code(address(row)), cut.limit.phrase()))
    });
    let verified = research.verified.iter().flat_map(|it| &*it.issues);
    let issues = verified.filter_map(|it| {
        let note = &research.note(&it.note)?.note;
        let (of, issue) = (code(&note.url), it.issue.phrase());
        Some(format!(
            "- note {} of {of}: {issue}, \"{}\"",
            text(it.note.as_str()),
            text(&note.quote)
        ))
    });
    let left_out = research.unsearched.iter().map(|(reason, count)| {
        format!(
            "- {} that could not be searched: {}",
            format::count_noun(*count, "document"),
            text(reason)
        )
    });
    list(out, "Not used", sources.chain(notes).chain(cut).chain(issues).chain(left_out));
}

fn list(out: &mut String, heading: &str, rows: impl Iterator<Item = String>) {
    for (place, row) in rows.enumerate() {
        if place == 0 {
            let _ = writeln!(out, "\n## {heading}\n");
        }
        let _ = writeln!(out, "{row}");
    }
}

/// The address of a source: the one that was read, else the one that was found.
fn address(row: &SourceRow) -> &str {
    row.url.as_deref().unwrap_or(&row.found.url)
}

/// Why a source was not used; `None` if it was read, or may still be.
fn unused_reason(row: &SourceRow, research: &Research) -> Option<String> {
    Some(match &row.state {
        SourceState::Dropped(DropReason::Duplicate { duplicate_of: of }) => {
            format!("duplicate of {}", duplicate_of(*of, research))
        }
        SourceState::Dropped(reason) => reason.phrase().to_owned(),
        SourceState::Denied { reason, location: None } => reason.phrase().to_owned(),
        SourceState::Denied { reason, location: Some(location) } => {
            format!("{}, redirects to {}", reason.phrase(), code(location))
        }
        SourceState::Skipped { reason, text: detail } => {
            format!("{}, {}", text(&skip_phrase(reason)), text(detail))
        }
        SourceState::NotReached(ReadingEnd::MaxReadPages) => {
            "not reached: page limit reached (`max_read_pages`)".to_owned()
        }
        SourceState::NotReached(ReadingEnd::MaxNotes) => {
            "not reached: note limit reached (`max_notes`)".to_owned()
        }
        SourceState::NotReached(ReadingEnd::NoMoreSources) => "not reached".to_owned(),
        SourceState::Cancelled => "the run ended before it was read".to_owned(),
        SourceState::Read { notes: 0, .. } => "read, no notes".to_owned(),
        SourceState::Found
        | SourceState::Waiting
        | SourceState::Reading
        | SourceState::Noting
        | SourceState::Read { .. } => return None,
    })
}

fn duplicate_of(of: SourceNo, research: &Research) -> String {
    research.source(of).map_or_else(|| of.to_string(), |row| code(address(row)))
}

fn conflicts(out: &mut String, research: &Research) {
    let rows = research.compared.conflicts.iter().map(|conflict| {
        let says = |id: &NoteId, figure: &str| {
            let note = research.note(id).map(|row| &row.note);
            let title = note.map_or_else(|| label(id), |note| text(&note.title));
            format!("{title} says **{}**[^{}]", text(figure), label(id))
        };
        let left = says(&conflict.left, &conflict.left_figure);
        format!("- {left}, {}", says(&conflict.right, &conflict.right_figure))
    });
    list(out, "Contradictions", rows);
}
