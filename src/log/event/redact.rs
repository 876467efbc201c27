//! A log whose texts are replaced by their lengths and digests, so that people who may not read the
//! texts can see the log. Names of the structure, numbers and times stay, so it folds as before.
//!
//! An event is redacted as JSON. Each string is replaced unless [`rule`] lists its field, so a field
//! that is added is redacted until it is listed.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Event, EventKind, LineError, StopReason};
use crate::base::keyed_digest;
use crate::scenario::spec::script::ScriptStep;

/// Hexadecimal digits of a digest in a marker.
const DIGITS: usize = 8;

/// Longest word of the program or an endpoint that stays as it is, in bytes.
const MAX_WORD: usize = 32;

/// How a field is redacted.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// A text: replaced.
    Text,
    /// An id, a word of the program, or a name that the program has checked: stays.
    Keep,
    /// A name that the setup of the run declares: stays, here and wherever it is a name.
    Declare,
    /// A name that a model may have given: stays if it is declared.
    Name,
    /// A word that an endpoint or a tool may have given: stays if it is a short identifier.
    Word,
    /// The id of a boundary, in which a task or a name may be a text.
    Boundary,
    /// A stop reason, in which a name may be a text.
    Reason,
    /// A value of any shape: replaced by one marker, because its numbers are content too.
    Content,
    /// Only the provider reads it: removed.
    Remove,
}

/// How the strings of a field are redacted.
fn rule(kind: &str, field: &str) -> Rule {
    match (kind, field) {
        (_, "blocks") => Rule::Remove,
        ("call.started", "args") | ("attempt.answered", "result") | ("call.degraded", "value") => {
            Rule::Content
        }
        (_, "aggregate" | "details" | "parameters" | "raw") => Rule::Content,
        ("question.asked" | "question.answered" | "command.taken", "args")
        | ("question.asked", "stances")
        | ("question.answered" | "command.taken", "contribution" | "result") => Rule::Content,
        ("run.started", "name" | "sequence" | "steps" | "tools")
        | ("call.started", "name" | "tool")
        | ("tools.listed", "name") => Rule::Declare,
        (_, "name")
        | ("question.asked", "hand_over_to" | "who")
        | ("question.answered" | "command.taken", "to")
        | ("route.proposed", "route")
        | ("tool_call.refused", "tool") => Rule::Name,
        ("attempt.answered", "finish")
        | ("reply.repaired", "repair")
        | ("source.closed", "reason") => Rule::Word,
        (_, "boundary" | "boundaries")
        | ("command.taken", "at")
        | ("run.started", "flags" | "pauses") => Rule::Boundary,
        ("route.proposed", "reason") => Rule::Text,
        (
            "handoff.refused" | "note.refused" | "reading.closed" | "sources.deduped"
            | "tool_call.refused",
            "reason",
        ) => Rule::Keep,
        ("span.text", "stream") => Rule::Keep,
        ("span.opened" | "span.closed", "agent" | "model" | "to") => Rule::Name,
        (_, "reason") => Rule::Reason,
        (
            _,
            "agent" | "by" | "cause" | "decision" | "end" | "fallback" | "fault" | "flag" | "kind"
            | "model" | "parent" | "role" | "route" | "run" | "scenario" | "swarm" | "tool"
            | "veto" | "worker",
        )
        | (
            "run.started",
            "answer_by" | "answered_by" | "answerers" | "as_of" | "counts" | "entry"
            | "first_agent" | "first_run" | "from" | "handoff_input" | "history_scope"
            | "inner_text" | "members" | "misquotes" | "mode" | "notes_by" | "owner" | "pattern"
            | "plan_by" | "previous_run" | "root" | "same_page" | "sections" | "share" | "source"
            | "summary_inputs" | "to" | "vetoes",
        )
        | ("agent.step", "state")
        | ("answer.cited", "citations")
        | ("attempt.answered", "ignored")
        | ("attempt.failed", "adapted" | "class")
        | ("breaker.changed", "to")
        | ("budget.reached", "budget")
        | ("call.started", "from" | "member_output" | "purpose")
        | ("command.taken", "command" | "hand" | "limit" | "members" | "roster" | "value")
        | ("condition.failed", "place")
        | ("contribution.accepted" | "contribution.unused", "stance")
        | ("handoff.made" | "handoff.refused", "from" | "to")
        | ("limits.changed", "counts" | "limit" | "mode" | "value")
        | ("note.taken", "id")
        | ("notes.compared", "left" | "right" | "unconfirmed")
        | ("notes.truncated" | "retry.refused", "limit")
        | ("notes.verified", "issue" | "note")
        | ("question.asked", "about" | "budget" | "effects" | "id" | "otherwise")
        | ("question.answered" | "command.taken", "answer" | "id")
        | ("question.withdrawn" | "approval.withdrawn", "id" | "why")
        | ("request.adapted", "parameter")
        | ("roster.changed", "members" | "roster")
        | ("round.closed", "conflicts")
        | ("round.started", "status")
        | ("run.closed", "phase")
        | ("source.closed", "result")
        | ("stepped", "step")
        | ("steps.accepted", "action") => Rule::Keep,
        _ => Rule::Text,
    }
}

/// Replaces the texts of events. Equal texts get equal markers under one key. Without the key a short
/// text cannot be found by trying texts.
pub struct TextRedactor {
    key: [u8; 32],
    /// Names that the run's setup declares. A model's reply may contain others.
    names: HashSet<String>,
}

impl TextRedactor {
    /// A redactor with this key.
    pub fn new(key: [u8; 32]) -> Self {
        let steps = [
            ScriptStep::Plan,
            ScriptStep::Notes,
            ScriptStep::Synthesize,
            ScriptStep::Classify,
            ScriptStep::Finalize,
        ];
        let names = steps.iter().map(|step| step.word().into()).chain(["llm".into()]).collect();
        Self { key, names }
    }

    /// The event without its texts. Events have to be passed in the order of the log, because the
    /// first ones declare the names that stay.
    pub fn redact(&mut self, event: Event) -> Event {
        let mut kind = match self.redacted(&event) {
            Ok(redacted) => redacted.kind,
            Err(_) => EventKind::Unknown { kind: event.kind.name().into(), fields: Arc::default() },
        };
        match &mut kind {
            EventKind::RunStarted(head) => Arc::make_mut(head).redacted = true,
            EventKind::CommandTaken { by, .. } => "somebody".clone_into(by),
            // Which of its fields are texts is not known.
            EventKind::Unknown { fields, .. } => *fields = Arc::default(),
            _ => {}
        }
        Event { kind, ..event }
    }

    fn redacted(&mut self, event: &Event) -> Result<Event, LineError> {
        let mut line: Value = serde_json::from_str(&event.to_line()?)?;
        self.value(event.kind.name(), "", &mut line);
        Event::from_line(&line.to_string())
    }

    fn value(&mut self, kind: &str, field: &str, value: &mut Value) {
        match (rule(kind, field), value) {
            (Rule::Remove, value) => *value = Value::Null,
            (Rule::Content, value) => self.content(value),
            (rule, Value::String(text)) => self.string(rule, text),
            (_, Value::Array(items)) => {
                items.iter_mut().for_each(|item| self.value(kind, field, item));
            }
            (_, Value::Object(fields)) => match (kind, field) {
                ("run.started", "inputs" | "prompt_files")
                | ("plan.accepted", "args")
                | ("sources.found", "unsearched") => {
                    let entries = std::mem::take(fields).into_iter();
                    *fields = entries.map(|(name, value)| self.entry(field, name, value)).collect();
                }
                _ => {
                    // The name in a tool call is the model's.
                    let is_call = fields.contains_key("arguments");
                    for (name, value) in fields {
                        match value {
                            Value::String(text) if is_call && name == "name" => {
                                self.string(Rule::Name, text);
                            }
                            value => self.value(kind, name, value),
                        }
                    }
                }
            },
            _ => {}
        }
    }

    /// An entry of a map whose names are not those of the log's format.
    fn entry(&mut self, field: &str, mut name: String, mut value: Value) -> (String, Value) {
        match field {
            "inputs" => self.string(Rule::Declare, &mut name),
            // Counts by reason; a tool may have given the reason.
            "unsearched" => {
                self.string(Rule::Word, &mut name);
                return (name, value);
            }
            _ => self.string(Rule::Name, &mut name),
        }
        self.content(&mut value);
        (name, value)
    }

    /// Replaces a string by its rule. An empty one and a marker stay, so a redacted log stays as it is.
    fn string(&mut self, rule: Rule, text: &mut String) {
        if text.is_empty() || is_marker(text) {
            return;
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let in_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/#[]@".contains(c);
        let stays = match rule {
            Rule::Keep => true,
            Rule::Declare => {
                self.names.insert(text.clone());
                true
            }
            Rule::Name => self.names.contains(text),
            Rule::Word => text.len() <= MAX_WORD && text.bytes().all(is_word),
            Rule::Boundary if text.starts_with("dispatch:") => {
                return self.tail(2, Rule::Text, text);
            }
            Rule::Boundary => text.chars().all(in_name),
            Rule::Reason => return self.reason(text),
            Rule::Text | Rule::Content | Rule::Remove => false,
        };
        if !stays {
            *text = self.marker(text);
        }
    }

    /// Redacts what follows this many colons.
    fn tail(&mut self, colons: usize, rule: Rule, text: &mut String) {
        let at = text.match_indices(':').nth(colons - 1).map_or(0, |(at, _)| at + 1);
        let mut tail = text.split_off(at);
        self.string(rule, &mut tail);
        text.push_str(&tail);
    }

    /// Redacts the name in a stop reason: it follows the first colon after which any text is read.
    fn reason(&mut self, text: &mut String) {
        let is_known = |text: &str| !matches!(StopReason::from(text), StopReason::Other(_));
        if !is_known(text) {
            return self.string(Rule::Text, text);
        }
        if let StopReason::ToolError(tool, class) = StopReason::from(text.as_str()) {
            let mut name = tool.to_string();
            self.string(Rule::Name, &mut name);
            *text = StopReason::ToolError(name.as_str().into(), class).to_string();
            return;
        }
        let ends = text.match_indices(':').map(|(at, _)| at + 1);
        if let Some(colons) = ends.clone().position(|end| is_known(&format!("{}x", &text[..end]))) {
            self.tail(colons + 1, Rule::Name, text);
        }
    }

    /// Replaces a value of any shape by one marker.
    fn content(&self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() || is_marker(text) => {}
            Value::String(text) => *text = self.marker(text),
            other => *other = Value::String(self.marker(&other.to_string())),
        }
    }

    fn marker(&self, text: &str) -> String {
        let digest = keyed_digest(&self.key, text);
        let digest = digest.get(..DIGITS).unwrap_or_default();
        format!("‹{} chars digest:{digest}›", text.chars().count())
    }
}

/// Whether a text is exactly a marker.
pub(crate) fn is_marker(text: &str) -> bool {
    let parts = text
        .strip_prefix('‹')
        .and_then(|rest| rest.strip_suffix('›'))
        .and_then(|rest| rest.split_once(" chars digest:"));
    parts.is_some_and(|(chars, digest)| {
        (1..=20).contains(&chars.len())
            && chars.bytes().all(|byte| byte.is_ascii_digit())
            && digest.len() == DIGITS
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
