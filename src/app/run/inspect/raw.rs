//! The events of a call as JSON.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use serde_json::Value;

use super::InspectedRun;
use super::calls::verdict_event;
use crate::event::{Event, SpanId, safe_json};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;

/// Most events that a call's raw view shows.
const MAX_RAW_EVENTS: usize = 500;

pub(crate) fn raw_document(facts: &[&Event], left_out: usize) -> StyledText {
    let mut document = StyledText::default();
    for event in facts {
        document.gap();
        let text = event
            .to_line()
            .ok()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok())
            .and_then(|value| safe_json::pretty(&value).ok())
            .unwrap_or_default();
        document.text(StyleRole::Text, &text);
    }
    if left_out > 0 {
        document.gap();
        let facts = format::count_noun(left_out as u64, "event");
        document.add(
            StyleRole::Dim,
            format!("{facts} more: {} exports all of them.", key_of(Action::Export)),
        );
    }
    document
}

/// The events of a call and its attempts, in order, and how many were left out.
pub(crate) fn call_events<'a>(run: &InspectedRun<'a>, call: SpanId) -> (Vec<&'a Event>, usize) {
    let Some(span) = run.world.spans.get(call) else { return (Vec::new(), 0) };
    let first = run.run.place(span.opened_by);
    let last = span.closed_by.map_or(run.events, |last| run.run.place(last) + 1);
    let of_call = |event: &&Event| {
        event.span == call
            || run.world.spans.get(event.span).is_some_and(|span| span.parent == call)
    };
    let stretch = run.log().between(first, last);
    let mut facts: Vec<_> = stretch.map(|event| &**event).filter(of_call).collect();
    if let Some(verdict) = verdict_event(run, call) {
        facts.push(verdict);
    }
    let left_out = facts.len().saturating_sub(MAX_RAW_EVENTS);
    facts.truncate(MAX_RAW_EVENTS);
    (facts, left_out)
}
