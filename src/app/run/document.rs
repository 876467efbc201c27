//! What the inspector shows of an event or a call, as lines of text: the prompt exactly as the
//! model saw it, the reply, the raw events. The times are in `times`.

use serde_json::Value;

use super::inspect::CalleeKind;
use super::{RunPage, tool_calls};
use crate::agents::projection::HANDED_OVER;
use crate::base::big_integer::first_changed_integer;
use crate::event::kind::{
    ChatMessage, CollaborationFact, MessageRole, ModelLabel, PatternFact, Purpose, Reply,
    ReplyRefused,
};
use crate::event::world::{Span, SpanKind};
use crate::event::{Event, EventKind, SpanId, safe_json};
use crate::narrate::event_line::failure_name;
use crate::narrate::format;

/// Longest line that is kept as one, in bytes; a longer one is continued on the next.
const MAX_LINE_BYTES: usize = 4096;
/// How much of a partial reply is wrapped into lines each time that more of it arrives, in bytes.
const MAX_PARTIAL_BYTES: usize = 64 * 1024;
/// Most calls that one prompt is put together from.
const MAX_PROMPT_CALLS: usize = 1000;
/// Most events that a call's raw view shows.
const MAX_RAW_EVENTS: usize = 500;

/// How a line is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Text exactly as it was received.
    Text,
    /// Heading of a part.
    Head,
    /// A name and its value, separated by the first tab.
    Field,
    /// Secondary text.
    Dim,
    /// Something that succeeded.
    Done,
    /// Something that failed.
    Failed,
    /// Something still running.
    Running,
}

/// A line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLine {
    /// How it is painted.
    pub style: LineStyle,
    /// Its text, without the line end.
    pub text: String,
}

/// The text of one tab of the inspector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDocument {
    /// Its lines, from the top.
    pub lines: Vec<DocumentLine>,
}

impl TextDocument {
    pub(super) fn add(&mut self, look: LineStyle, text: impl Into<String>) {
        self.lines.push(DocumentLine { style: look, text: text.into() });
    }

    pub(super) fn field(&mut self, name: &str, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.len() <= MAX_LINE_BYTES {
            return self.add(LineStyle::Field, format!("{name}\t{text}"));
        }
        self.add(LineStyle::Field, format!("{name}\t{}", format::bytes(text.len() as u64)));
        self.text(LineStyle::Text, text);
    }

    pub(super) fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.add(LineStyle::Text, "");
        }
    }

    /// Adds a value as indented JSON.
    pub(super) fn json(&mut self, value: &Value) {
        self.text(LineStyle::Text, &serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Adds a text line by line; lines longer than `LONGEST` are broken.
    pub(super) fn text(&mut self, look: LineStyle, text: &str) {
        for line in text.split('\n') {
            let mut rest = line.strip_suffix('\r').unwrap_or(line);
            while rest.len() > MAX_LINE_BYTES {
                let mut cut = MAX_LINE_BYTES;
                while !rest.is_char_boundary(cut) {
                    cut -= 1;
                }
                self.add(look, &rest[..cut]);
                rest = &rest[cut..];
            }
            self.add(look, rest);
        }
    }

    /// The lines as plain text, with two spaces for a tab.
    pub fn to_text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| line.text.replace('\t', "  ")).collect();
        lines.join("\n") + "\n"
    }
}

/// Indents a JSON object or list if that loses no digits; any other text stays as it is. The flag
/// says whether it was indented.
fn pretty_json(text: &str) -> (String, bool) {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_)))
            if first_changed_integer(text, &value).is_none() =>
        {
            (serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()), true)
        }
        _ => (text.to_owned(), false),
    }
}

fn role_name(role: MessageRole) -> &'static str {
    match role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    }
}

impl RunPage {
    /// The messages of a call exactly as the model saw them, those of earlier calls included.
    pub fn prompt(&self, call: SpanId) -> Vec<ChatMessage> {
        self.prompt_in_memory(call).0
    }

    /// The messages of a call, and whether the first of them were dropped with their events.
    fn prompt_in_memory(&self, call: SpanId) -> (Vec<ChatMessage>, bool) {
        let mut cut = false;
        let mut parts: Vec<Vec<ChatMessage>> = Vec::new();
        let mut next = Some(call);
        while let Some(call) = next.take()
            && parts.len() < MAX_PROMPT_CALLS
        {
            let Some(Event { kind: EventKind::CallStarted(started), .. }) =
                self.opening_event(call)
            else {
                cut = self.log().dropped_count() > 0;
                break;
            };
            let mut part = started.prompt.messages.to_vec();
            // An earlier call is part of the prompt together with its reply.
            let before = !parts.is_empty();
            if let Some(reply) = self.reply(call).filter(|_| before) {
                part.push(ChatMessage::from_reply(reply));
            }
            parts.push(part);
            next = started.prompt.after.filter(|before| *before != call);
        }
        (parts.into_iter().rev().flatten().collect(), cut)
    }

    /// The event that opened a span.
    pub fn opening_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world().spans.get(span)?.opened_by)
    }

    /// The event that closed a span.
    pub fn closing_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world().spans.get(span)?.closed_by?)
    }

    /// The model that a call uses: its own, else the model of the whole run.
    pub(super) fn call_model(&self, call: SpanId, purpose: &Purpose) -> Option<String> {
        if let Some(Event { kind: EventKind::CallStarted(started), .. }) = self.opening_event(call)
            && let Some(model) = &started.model
        {
            return Some(model.to_string());
        }
        let world = self.world();
        let of_caller = world.models.for_purpose(purpose).map(str::to_owned);
        of_caller.or_else(|| match &world.head.as_ref()?.model {
            ModelLabel::Scripted => Some("scripted".to_owned()),
            // The opening event was dropped, so nothing tells which of several models it was.
            ModelLabel::Live { name, .. } if world.models.is_empty() => Some(name.clone()),
            ModelLabel::Live { .. } => None,
        })
    }

    /// The reply of a call's last attempt.
    fn reply(&self, call: SpanId) -> Option<&Reply> {
        let attempt = self.world().spans.last_child(call)?;
        match &self.closing_event(attempt.id)?.kind {
            EventKind::AttemptAnswered(reply) => Some(reply),
            _ => None,
        }
    }

    pub(super) fn prompt_document(&self, call: Option<SpanId>) -> TextDocument {
        let mut document = TextDocument::default();
        let Some(call) = call else {
            document.add(LineStyle::Dim, "This event belongs to no call, so it has no prompt.");
            document.add(LineStyle::Dim, "c jumps to its cause.");
            return document;
        };
        if let Some(Event { kind: EventKind::CallStarted(started), .. }) = self.opening_event(call)
            && let Some(args) = &started.args
        {
            document.add(LineStyle::Head, format!("arguments of {}", started.tool));
            document.json(args);
            return document;
        }
        // The turn of an agent is many calls: the prompt of its last one is shown.
        let call = self.prompt_call(call);
        let (messages, cut) = self.prompt_in_memory(call);
        if cut {
            document.add(LineStyle::Dim, "The first messages of this prompt are missing.");
            document.add(LineStyle::Dim, self.dropped_notice());
        } else if messages.is_empty() {
            document.add(LineStyle::Dim, "The log has no prompt for this call.");
        }
        for (nth, message) in messages.iter().enumerate() {
            document.gap();
            let (text, json) = pretty_json(&message.content);
            let how = if json { ", pretty-printed (as sent: 3 Raw)" } else { "" };
            let size = format::bytes(message.content.len() as u64);
            let of = tool_calls::result_label(message, &messages[..nth]);
            document.add(LineStyle::Head, format!("{}{of}, {size}{how}", role_name(message.role)));
            if !text.is_empty() || message.tool_calls.is_empty() {
                document.text(LineStyle::Text, &text);
            }
            tool_calls::add_tool_calls(&mut document, &message.tool_calls);
        }
        self.add_offered_tools(&mut document, call);
        document
    }

    pub(super) fn reply_document(&self, call: Option<SpanId>) -> TextDocument {
        let mut document = TextDocument::default();
        let Some(call) = call else {
            document.add(LineStyle::Dim, "This event belongs to no call, so it has no reply.");
            return document;
        };
        let attempts: Vec<_> = self.world().spans.children(call).collect();
        let many = attempts.len() > 1;
        for attempt in attempts {
            let SpanKind::Attempt(nth) = attempt.kind else { continue };
            if many {
                document.gap();
                document.add(LineStyle::Head, format!("attempt {nth}"));
            }
            self.add_attempt_reply(&mut document, attempt);
        }
        self.add_refusals(&mut document, call);
        if document.lines.is_empty() {
            document.add(LineStyle::Dim, "No attempt yet.");
        }
        self.add_fallback(&mut document, call);
        self.add_verdict(&mut document, call);
        if let Some(refused) = self.refused_reply(call) {
            document.gap();
            document.text(LineStyle::Failed, &format!("refused: {}", refused.reason.phrase()));
            document.text(LineStyle::Text, &format!("{}.", refused.detail));
            match (refused.repeat, refused.reason.advice()) {
                (Some(nth), _) => {
                    document.add(LineStyle::Dim, format!("The model was asked again ({nth})."))
                }
                (None, Some(advice)) => document.add(LineStyle::Dim, advice),
                (None, None) => {}
            }
        }
        document
    }

    fn add_attempt_reply(&self, document: &mut TextDocument, attempt: &Span) {
        match self.closing_event(attempt.id).map(|event| &event.kind) {
            Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
                Some(result) => document.json(result),
                None => {
                    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
                        document.text(LineStyle::Text, &pretty_json(&reply.text).0);
                    }
                    tool_calls::add_tool_calls(document, &reply.tool_calls);
                    if reply.finish.as_deref() == Some(HANDED_OVER) {
                        document.add(LineStyle::Dim, "It handed over: the next hop continues.");
                    }
                }
            },
            Some(EventKind::AttemptFailed(failed)) => {
                let short = failure_name(failed.class, failed.status);
                document.text(LineStyle::Failed, &format!("{short}: {}", failed.text));
                if let Some(partial) = &failed.partial {
                    document.add(LineStyle::Dim, "partial reply before the failure:");
                    document.text(LineStyle::Text, partial);
                }
            }
            _ => match self.live(attempt.id) {
                Some(live) => {
                    let from = super::subject_text::tail_start(&live.text, MAX_PARTIAL_BYTES);
                    if from > 0 {
                        let before = format::bytes(from as u64);
                        document.add(
                            LineStyle::Dim,
                            format!("{before} above, shown when the reply is complete"),
                        );
                    }
                    document.text(LineStyle::Running, &live.text[from..]);
                }
                None => document.add(LineStyle::Running, "Waiting for the first token."),
            },
        }
    }

    /// Lists the attempts that a policy refused, with the reasons.
    fn add_refusals(&self, document: &mut TextDocument, call: SpanId) {
        for event in self.call_events(call).0 {
            let EventKind::AttemptRefused { attempt, reason, .. } = &event.kind else { continue };
            document.gap();
            let text = format!("attempt {attempt} was not made: {}", reason.phrase());
            document.text(LineStyle::Failed, &text);
            if let Some(advice) = reason.advice() {
                document.add(LineStyle::Dim, advice);
            }
        }
    }

    /// Shows the fallback that a tool's call returned, or why the call failed.
    fn add_fallback(&self, document: &mut TextDocument, call: SpanId) {
        let Some(event) = self.closing_event(call) else { return };
        match &event.kind {
            EventKind::CallDegraded { reason, by, value, .. } => {
                document.gap();
                document.add(LineStyle::Head, "fallback");
                document.field("value", crate::narrate::event_line_tool::fallback_text(*by));
                document.field("reason", reason.phrase());
                if let Some(value) = value {
                    document.json(value);
                }
            }
            EventKind::CallFailed { reason, .. }
                if self.callee_kind(Some(call)) == CalleeKind::Tool =>
            {
                document.gap();
                let text = format!("failed after the last attempt: {}", reason.phrase());
                document.text(LineStyle::Failed, &text);
                if let Some(advice) = reason.advice() {
                    document.add(LineStyle::Dim, advice);
                }
            }
            _ => {}
        }
    }

    /// Shows how the gateway parsed a seat's reply, or why it refused it.
    fn add_verdict(&self, document: &mut TextDocument, call: SpanId) {
        let world = self.world();
        let Some(SpanKind::Call(Purpose::Contribution { round, seat, .. })) =
            world.spans.get(call).map(|span| &span.kind)
        else {
            return;
        };
        let seat = world
            .collaboration()
            .and_then(|table| table.round(*round)?.seats.get(usize::from(*seat)));
        let Some(seat) = seat else { return };
        if let Some(contribution) = &seat.contribution {
            document.gap();
            document.add(LineStyle::Head, "as parsed");
            document.field("stance", contribution.stance.word());
            document.field("confidence", contribution.confidence.to_string());
            document.field("summary", contribution.summary.replace('\n', " "));
            for (nth, action) in contribution.actions.iter().enumerate() {
                document.field(&format!("action {}", nth + 1), action.replace('\n', " "));
            }
            for (dropped, noun) in [(seat.extra_keys, "key"), (seat.extra_actions, "action")] {
                if dropped > 0 {
                    let what = format::count_noun(u64::from(dropped), noun);
                    document.field("dropped", format!("{what} beyond the contract"));
                }
            }
        }
        if let Some(reason) = seat.refused.as_ref().filter(|_| self.refused_reply(call).is_none()) {
            document.gap();
            document.text(LineStyle::Failed, &format!("refused: {}", reason.phrase()));
            if let Some(advice) = reason.advice() {
                document.add(LineStyle::Dim, advice);
            }
        }
    }

    /// Why the reply of a call was refused; that event follows the end of the call.
    fn refused_reply(&self, call: SpanId) -> Option<&ReplyRefused> {
        /// Most events of other branches that may come in between.
        const BETWEEN: usize = 1_000;
        let from = self.place(self.world().spans.get(call)?.closed_by?);
        let facts = self.log().between(from, self.log().len().min(from + BETWEEN));
        facts.filter(|event| event.span == call).find_map(|event| match &event.kind {
            EventKind::ReplyRefused(refused) => Some(&**refused),
            _ => None,
        })
    }

    pub(super) fn raw_document(&self, facts: &[&Event], left_out: usize) -> TextDocument {
        let mut document = TextDocument::default();
        for event in facts {
            document.gap();
            let text = event
                .to_line()
                .ok()
                .and_then(|line| serde_json::from_str::<Value>(&line).ok())
                .and_then(|value| safe_json::pretty(&value).ok())
                .unwrap_or_default();
            document.text(LineStyle::Text, &text);
        }
        if left_out > 0 {
            document.gap();
            let facts = format::count_noun(left_out as u64, "event");
            document.add(LineStyle::Dim, format!("{facts} more: e exports all of them."));
        }
        document
    }

    /// The events of a call and its attempts, in order, and how many were left out.
    pub(super) fn call_events(&self, call: SpanId) -> (Vec<&Event>, usize) {
        let Some(span) = self.world().spans.get(call) else { return (Vec::new(), 0) };
        let first = self.place(span.opened_by);
        let last = span.closed_by.map_or(self.log().len(), |last| self.place(last) + 1);
        let of_call = |event: &&Event| {
            event.span == call
                || self.world().spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        let stretch = self.log().between(first, last);
        let mut facts: Vec<_> = stretch.map(|event| &**event).filter(of_call).collect();
        if let Some(verdict) = self.verdict_event(call) {
            facts.push(verdict);
        }
        let left_out = facts.len().saturating_sub(MAX_RAW_EVENTS);
        facts.truncate(MAX_RAW_EVENTS);
        (facts, left_out)
    }

    /// The event with the gateway's verdict on a call's reply; it follows within the same round.
    pub(super) fn verdict_event(&self, call: SpanId) -> Option<&Event> {
        let span = self.world().spans.get(call)?;
        let from = self.place(span.closed_by?);
        let SpanKind::Call(purpose) = &span.kind else { return None };
        let end = self.world().spans.get(span.parent).and_then(|round| round.closed_by);
        let end = end.map_or(self.log().len(), |end| self.place(end));
        self.log().between(from, end).map(|event| &**event).find(|event| {
            match (&event.kind, purpose) {
                (
                    EventKind::Pattern(PatternFact::Collaboration(
                        CollaborationFact::ContributionAccepted { round, seat, .. },
                    ))
                    | EventKind::Pattern(PatternFact::Collaboration(
                        CollaborationFact::ContributionRefused { round, seat, .. },
                    )),
                    Purpose::Contribution { round: of, seat: at, .. },
                ) => round == of && seat == at,
                (EventKind::AnswerComposed { .. }, Purpose::Finalize) => true,
                _ => false,
            }
        })
    }
}
