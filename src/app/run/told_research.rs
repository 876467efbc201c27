//! The lines of the events of research (research source document).

use super::told::{Told, Tone};
use crate::app::format;
use crate::event::EventKind;
use crate::event::kind::{DropReason, ReadingEnd, SourceCame};

/// Most items that one line names.
const TOLD: usize = 4;

/// Fills the line of an event of research.
pub(super) fn tell<'a>(told: &mut Told<'a>, kind: &'a EventKind) {
    let things = |count: usize, what| format::things(count as u64, what);
    match kind {
        EventKind::StepsAccepted { steps } => {
            let actions: Vec<&str> = steps.iter().map(|step| &*step.action).collect();
            told.what = actions.join(", ").into();
            told.tone = Tone::Done;
        }
        EventKind::SourcesFound(found) => {
            let left: u64 = found.left_out.values().sum();
            let mut what = format!("{} for {}", things(found.sources.len(), "source"), found.query);
            if left > 0 {
                what.push_str(&format!(", {} left out", format::things(left, "document")));
            }
            told.what = what.into();
            told.tone = Tone::Done;
        }
        EventKind::SourcesDeduped(deduped) => {
            let mut what = format!("{} kept", deduped.kept.len());
            for it in deduped.dropped.iter().take(TOLD) {
                let reason = match it.reason {
                    DropReason::Duplicate { of } => format!("duplicate of {of}"),
                    reason => reason.word().to_owned(),
                };
                what.push_str(&format!(", {} {reason}", it.source));
            }
            if let Some(more @ 1..) = deduped.dropped.len().checked_sub(TOLD) {
                what.push_str(&format!(", {more} more dropped"));
            }
            told.what = what.into();
            told.tone = Tone::Done;
        }
        EventKind::PageRead(page) => {
            let dated = if page.published_at.is_empty() { "undated" } else { &page.published_at };
            told.what = format!("{}, {dated}, {}", page.title, things_of(page.chars)).into();
            told.tone = Tone::Done;
        }
        EventKind::NoteTaken { note, .. } => {
            told.what = format!("{}: {}", note.id, note.claim).into();
            told.tone = Tone::Done;
        }
        EventKind::NoteRefused(note) => {
            told.what = format!("{}: {}", note.reason, note.quote).into();
            told.tone = Tone::Refused;
        }
        EventKind::NotesCut(cut) => {
            let (proposed, kept) = (u64::from(cut.proposed), cut.proposed.saturating_sub(cut.cut));
            told.what = format!(
                "{} proposed, first {kept} checked ({})",
                format::things(proposed, "note"),
                cut.limit.word()
            )
            .into();
            told.tone = Tone::Alert;
        }
        EventKind::SourceClosed(came) => source_closed(told, came),
        EventKind::ReadingClosed { why } => {
            told.what = match why {
                ReadingEnd::NoMoreSources => "no more sources",
                ReadingEnd::MaxReadPages => "max_read_pages reached",
                ReadingEnd::MaxNotes => "max_notes reached",
            }
            .into();
        }
        EventKind::NotesCompared(compared) => {
            let pairs = compared.conflicts.iter().map(|it| {
                format!("{} {} against {} {}", it.left, it.left_says, it.right, it.right_says)
            });
            let pairs: Vec<String> = pairs.take(TOLD).collect();
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
            told.what = what.into();
            told.tone = if compared.conflicts.is_empty() { Tone::Plain } else { Tone::Alert };
        }
        EventKind::NotesVerified(verified) => {
            let issues = verified.issues.iter().map(|it| format!("{} {}", it.note, it.issue));
            let issues: Vec<String> = issues.collect();
            let checked = format::things(u64::from(verified.checked), "note");
            (told.what, told.tone) = if issues.is_empty() {
                (format!("{checked}, no issue").into(), Tone::Done)
            } else {
                (format!("{checked}: {}", issues.join(", ")).into(), Tone::Refused)
            };
        }
        EventKind::AnswerCited(cited) => {
            let ids: Vec<&str> = cited.citations.iter().map(|id| id.as_str()).collect();
            let sentences = things(cited.sentences.len(), "sentence");
            let uncited = cited.sentences.iter().filter(|it| it.citations.is_empty()).count();
            let mut what = format!("{sentences}, cites {}", ids.join(" "));
            if uncited > 0 {
                what.push_str(&format!(", {uncited} uncited"));
            }
            told.what = what.into();
            told.tone = Tone::Done;
        }
        EventKind::AnswerRefused(refused) => {
            told.what = refused.reason.to_string().into();
            told.tone = Tone::Refused;
        }
        _ => {}
    }
}

fn source_closed<'a>(told: &mut Told<'a>, came: &'a SourceCame) {
    match came {
        SourceCame::Denied { reason, location } => {
            told.what = match location {
                Some(location) => format!("{} at {location}", reason.word()).into(),
                None => reason.word().into(),
            };
            told.tone = Tone::Refused;
        }
        SourceCame::Skipped { reason, text } => {
            told.what = format!("{reason}: {text}").into();
            told.tone = Tone::Failed;
        }
        SourceCame::Read { notes, refused } => {
            let mut what = format::things(u64::from(*notes), "note");
            if *refused > 0 {
                what.push_str(&format!(", {refused} refused"));
            }
            told.what = what.into();
            told.tone = Tone::Done;
        }
        SourceCame::Cancelled => {
            told.what = "cancelled".into();
            told.tone = Tone::Failed;
        }
    }
}

fn things_of(chars: u64) -> String {
    format::things(chars, "character")
}
