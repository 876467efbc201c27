//! The details of the calls and events of research for the inspector.

use super::source::{age_text, missing_page_reason, source_state, trust};
use crate::event::id::SourceNo;
use crate::event::kind::Purpose;
use crate::event::patterns::PatternFact;
use crate::event::world::{RunFold, SpanKind};
use crate::event::{Event, EventKind};
use crate::narrate::format;
use crate::narrate::measure::single_line;
use crate::narrate::styled::StyledText;
use crate::pattern::research::facts::ResearchFact;
use crate::pattern::research::projection::Research;

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
pub(super) fn add_event(research: &Research, event: &Event, run: &RunFold, to: &mut StyledText) {
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
