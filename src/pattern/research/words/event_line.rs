//! The lines of the events of research (research source document).

use crate::event::EventKind;
use crate::event::patterns::PatternFact;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::research::facts::phrases::skip_phrase;
use crate::pattern::research::facts::{DropReason, ResearchFact, SourceOutcome};

/// Most items that one line names.
const MAX_ITEMS: usize = 4;

/// Fills the line of an event of research.
pub(crate) fn fill_line<'a>(line: &mut EventLine<'a>, kind: &'a EventKind) {
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
