//! What the inspector shows of an event or a call, as lines of text: the prompt exactly as the
//! model saw it, the reply, the raw events. The times are in `times`.

use serde_json::Value;

use super::inspect::Asks;
use super::told::failure;
use super::{RunPage, tool_calls};
use crate::app::format;
use crate::event::kind::{ChatMessage, ModelLabel, Purpose, Reply, ReplyRefused, Speaker};
use crate::event::world::team::HANDED_OVER;
use crate::event::world::{Span, SpanKind};
use crate::event::{Event, EventKind, SpanId, safe_json};
use crate::scenario::integer::changed;

/// Longest line that is kept as one, in bytes; a longer one is continued on the next.
const LONGEST: usize = 4096;
/// Most of a partial reply that is laid out each time that more of it arrives, in bytes.
const COMING: usize = 64 * 1024;
/// Most calls that one prompt is put together from.
const CHAIN: usize = 1000;
/// Most events that a call's raw view shows.
const RAW_FACTS: usize = 500;

/// How a line is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
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
pub struct Line {
    /// How it is painted.
    pub look: Look,
    /// Its text, without the line end.
    pub text: String,
}

/// The text of one tab of the inspector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Its lines, from the top.
    pub lines: Vec<Line>,
}

impl Document {
    pub(super) fn add(&mut self, look: Look, text: impl Into<String>) {
        self.lines.push(Line { look, text: text.into() });
    }

    pub(super) fn field(&mut self, name: &str, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.len() <= LONGEST {
            return self.add(Look::Field, format!("{name}\t{text}"));
        }
        self.add(Look::Field, format!("{name}\t{}", format::bytes(text.len() as u64)));
        self.text(Look::Text, text);
    }

    pub(super) fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.add(Look::Text, "");
        }
    }

    /// Adds a value as indented JSON.
    pub(super) fn json(&mut self, value: &Value) {
        self.text(Look::Text, &serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Adds a text line by line; lines longer than `LONGEST` are broken.
    pub(super) fn text(&mut self, look: Look, text: &str) {
        for line in text.split('\n') {
            let mut rest = line.strip_suffix('\r').unwrap_or(line);
            while rest.len() > LONGEST {
                let mut cut = LONGEST;
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
fn laid_out(text: &str) -> (String, bool) {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) if changed(text, &value).is_none() => {
            (serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()), true)
        }
        _ => (text.to_owned(), false),
    }
}

fn speaker(role: Speaker) -> &'static str {
    match role {
        Speaker::System => "system",
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
        Speaker::Tool => "tool",
    }
}

impl RunPage {
    /// The messages of a call exactly as the model saw them, those of earlier calls included.
    pub fn prompt(&self, call: SpanId) -> Vec<ChatMessage> {
        self.prompt_held(call).0
    }

    /// The messages of a call, and whether the first of them were dropped with their events.
    fn prompt_held(&self, call: SpanId) -> (Vec<ChatMessage>, bool) {
        let mut cut = false;
        let mut parts: Vec<Vec<ChatMessage>> = Vec::new();
        let mut next = Some(call);
        while let Some(call) = next.take()
            && parts.len() < CHAIN
        {
            let Some(Event { kind: EventKind::CallStarted(started), .. }) = self.opening(call)
            else {
                cut = self.log().gone() > 0;
                break;
            };
            let mut part = started.prompt.messages.to_vec();
            // An earlier call is part of the prompt together with its reply.
            let before = !parts.is_empty();
            if let Some(reply) = self.reply(call).filter(|_| before) {
                part.push(ChatMessage::reply(reply));
            }
            parts.push(part);
            next = started.prompt.after.filter(|before| *before != call);
        }
        (parts.into_iter().rev().flatten().collect(), cut)
    }

    /// The event that opened a span.
    pub fn opening(&self, span: SpanId) -> Option<&Event> {
        self.fact(self.world().spans.get(span)?.opened_by)
    }

    /// The event that closed a span.
    pub fn closing(&self, span: SpanId) -> Option<&Event> {
        self.fact(self.world().spans.get(span)?.closed_by?)
    }

    /// The model that a call uses: its own, else the model of the whole run.
    pub(super) fn call_model(&self, call: SpanId, purpose: &Purpose) -> Option<String> {
        if let Some(Event { kind: EventKind::CallStarted(started), .. }) = self.opening(call)
            && let Some(model) = &started.model
        {
            return Some(model.to_string());
        }
        let world = self.world();
        let of_caller = world.models.of(purpose).map(str::to_owned);
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
        match &self.closing(attempt.id)?.kind {
            EventKind::AttemptAnswered(reply) => Some(reply),
            _ => None,
        }
    }

    pub(super) fn prompt_document(&self, call: Option<SpanId>) -> Document {
        let mut document = Document::default();
        let Some(call) = call else {
            document.add(Look::Dim, "This event belongs to no call, so it has no prompt.");
            document.add(Look::Dim, "c jumps to its cause.");
            return document;
        };
        if let Some(Event { kind: EventKind::CallStarted(started), .. }) = self.opening(call)
            && let Some(args) = &started.args
        {
            document.add(Look::Head, format!("arguments of {}", started.tool));
            document.json(args);
            return document;
        }
        // The turn of an agent is many calls: the prompt of its last one is shown.
        let call = self.prompt_call(call);
        let (messages, cut) = self.prompt_held(call);
        if cut {
            document.add(Look::Dim, "The first messages of this prompt are missing.");
            document.add(Look::Dim, self.dropped());
        } else if messages.is_empty() {
            document.add(Look::Dim, "The log has no prompt for this call.");
        }
        for (nth, message) in messages.iter().enumerate() {
            document.gap();
            let (text, json) = laid_out(&message.content);
            let how = if json { ", pretty-printed (as sent: 3 Raw)" } else { "" };
            let size = format::bytes(message.content.len() as u64);
            let of = tool_calls::result_of(message, &messages[..nth]);
            document.add(Look::Head, format!("{}{of}, {size}{how}", speaker(message.role)));
            if !text.is_empty() || message.tool_calls.is_empty() {
                document.text(Look::Text, &text);
            }
            tool_calls::calls(&mut document, &message.tool_calls);
        }
        self.tools_offered(&mut document, call);
        document
    }

    pub(super) fn reply_document(&self, call: Option<SpanId>) -> Document {
        let mut document = Document::default();
        let Some(call) = call else {
            document.add(Look::Dim, "This event belongs to no call, so it has no reply.");
            return document;
        };
        let attempts: Vec<_> = self.world().spans.children(call).collect();
        let many = attempts.len() > 1;
        for attempt in attempts {
            let SpanKind::Attempt(nth) = attempt.what else { continue };
            if many {
                document.gap();
                document.add(Look::Head, format!("attempt {nth}"));
            }
            self.attempt_reply(&mut document, attempt);
        }
        self.refusals(&mut document, call);
        if document.lines.is_empty() {
            document.add(Look::Dim, "No attempt yet.");
        }
        self.stand_in(&mut document, call);
        self.verdict(&mut document, call);
        if let Some(refused) = self.refused_reply(call) {
            document.gap();
            document.text(Look::Failed, &format!("refused: {}", refused.reason));
            document.text(Look::Text, &format!("{}.", refused.detail));
            match (refused.again, refused.reason.advice()) {
                (Some(nth), _) => {
                    document.add(Look::Dim, format!("The model was asked again ({nth})."))
                }
                (None, Some(advice)) => document.add(Look::Dim, advice),
                (None, None) => {}
            }
        }
        document
    }

    fn attempt_reply(&self, document: &mut Document, attempt: &Span) {
        match self.closing(attempt.id).map(|event| &event.kind) {
            Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
                Some(result) => document.json(result),
                None => {
                    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
                        document.text(Look::Text, &laid_out(&reply.text).0);
                    }
                    tool_calls::calls(document, &reply.tool_calls);
                    if reply.finish.as_deref() == Some(HANDED_OVER) {
                        document.add(Look::Dim, "It handed over: the next hop continues.");
                    }
                }
            },
            Some(EventKind::AttemptFailed(failed)) => {
                let short = failure(failed.class, failed.status);
                document.text(Look::Failed, &format!("{short}: {}", failed.text));
                if let Some(partial) = &failed.partial {
                    document.add(Look::Dim, "partial reply before the failure:");
                    document.text(Look::Text, partial);
                }
            }
            _ => match self.live(attempt.id) {
                Some(live) => {
                    let from = super::words::tail_from(&live.text, COMING);
                    if from > 0 {
                        let before = format::bytes(from as u64);
                        document.add(
                            Look::Dim,
                            format!("{before} above, shown when the reply is complete"),
                        );
                    }
                    document.text(Look::Running, &live.text[from..]);
                }
                None => document.add(Look::Running, "Waiting for the first token."),
            },
        }
    }

    /// Lists the attempts that a policy refused, with the reasons.
    fn refusals(&self, document: &mut Document, call: SpanId) {
        for event in self.call_facts(call).0 {
            let EventKind::AttemptRefused { attempt, reason, .. } = &event.kind else { continue };
            document.gap();
            let text = format!("attempt {attempt} was not made: {reason}");
            document.text(Look::Failed, &text);
            if let Some(advice) = reason.advice() {
                document.add(Look::Dim, advice);
            }
        }
    }

    /// Shows the fallback that a tool's call returned, or why the call failed.
    fn stand_in(&self, document: &mut Document, call: SpanId) {
        let Some(event) = self.closing(call) else { return };
        match &event.kind {
            EventKind::CallDegraded { reason, by, value, .. } => {
                document.gap();
                document.add(Look::Head, "fallback");
                document.field("value", super::told_tool::instead(*by));
                document.field("reason", reason.to_string());
                if let Some(value) = value {
                    document.json(value);
                }
            }
            EventKind::CallFailed { reason, .. } if self.asks(Some(call)) == Asks::Tool => {
                document.gap();
                document.text(Look::Failed, &format!("failed after the last attempt: {reason}"));
                if let Some(advice) = reason.advice() {
                    document.add(Look::Dim, advice);
                }
            }
            _ => {}
        }
    }

    /// Shows how the gateway parsed a seat's reply, or why it refused it.
    fn verdict(&self, document: &mut Document, call: SpanId) {
        let world = self.world();
        let Some(SpanKind::Call(Purpose::Contribution { round, seat, .. })) =
            world.spans.get(call).map(|span| &span.what)
        else {
            return;
        };
        let seat = world
            .collaboration()
            .and_then(|(table, _)| table.round(*round)?.seats.get(usize::from(*seat)));
        let Some(seat) = seat else { return };
        if let Some(contribution) = &seat.contribution {
            document.gap();
            document.add(Look::Head, "as parsed");
            document.field("stance", contribution.stance.word());
            document.field("confidence", contribution.confidence.to_string());
            document.field("summary", contribution.summary.replace('\n', " "));
            for (nth, action) in contribution.actions.iter().enumerate() {
                document.field(&format!("action {}", nth + 1), action.replace('\n', " "));
            }
            for (dropped, noun) in [(seat.extra_keys, "key"), (seat.extra_actions, "action")] {
                if dropped > 0 {
                    let what = format::things(u64::from(dropped), noun);
                    document.field("dropped", format!("{what} beyond the contract"));
                }
            }
        }
        if let Some(reason) = seat.refused.as_ref().filter(|_| self.refused_reply(call).is_none()) {
            document.gap();
            document.text(Look::Failed, &format!("refused: {reason}"));
            if let Some(advice) = reason.advice() {
                document.add(Look::Dim, advice);
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

    pub(super) fn raw_document(&self, facts: &[&Event], left_out: usize) -> Document {
        let mut document = Document::default();
        for event in facts {
            document.gap();
            let text = event
                .to_line()
                .ok()
                .and_then(|line| serde_json::from_str::<Value>(&line).ok())
                .and_then(|value| safe_json::pretty(&value).ok())
                .unwrap_or_default();
            document.text(Look::Text, &text);
        }
        if left_out > 0 {
            document.gap();
            let facts = format::things(left_out as u64, "event");
            document.add(Look::Dim, format!("{facts} more: e exports all of them."));
        }
        document
    }

    /// The events of a call and its attempts, in order, and how many were left out.
    pub(super) fn call_facts(&self, call: SpanId) -> (Vec<&Event>, usize) {
        let Some(span) = self.world().spans.get(call) else { return (Vec::new(), 0) };
        let first = self.place(span.opened_by);
        let last = span.closed_by.map_or(self.log().len(), |last| self.place(last) + 1);
        let of_call = |event: &&Event| {
            event.span == call
                || self.world().spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        let stretch = self.log().between(first, last);
        let mut facts: Vec<_> = stretch.map(|event| &**event).filter(of_call).collect();
        if let Some(verdict) = self.verdict_fact(call) {
            facts.push(verdict);
        }
        let left_out = facts.len().saturating_sub(RAW_FACTS);
        facts.truncate(RAW_FACTS);
        (facts, left_out)
    }

    /// The event with the gateway's verdict on a call's reply; it follows within the same round.
    pub(super) fn verdict_fact(&self, call: SpanId) -> Option<&Event> {
        let span = self.world().spans.get(call)?;
        let from = self.place(span.closed_by?);
        let SpanKind::Call(purpose) = &span.what else { return None };
        let end = self.world().spans.get(span.parent).and_then(|round| round.closed_by);
        let end = end.map_or(self.log().len(), |end| self.place(end));
        self.log().between(from, end).map(|event| &**event).find(|event| {
            match (&event.kind, purpose) {
                (
                    EventKind::ContributionAccepted { round, seat, .. }
                    | EventKind::ContributionRefused { round, seat, .. },
                    Purpose::Contribution { round: of, seat: at, .. },
                ) => round == of && seat == at,
                (EventKind::AnswerComposed { .. }, Purpose::Finalize) => true,
                _ => false,
            }
        })
    }
}
