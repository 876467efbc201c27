//! What an agent waits for in the middle of a turn, as questions to a person, and the answers as the
//! agent reads them.
//!
//! Protocol 1.0 ends the run with an outcome that has interrupts, and reads `resume`. LangGraph's own
//! form is the custom event `on_interrupt`, and reads `forwardedProps.command.resume`
//! (`ag_ui_langgraph/agent.py`).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::events::{FinishedEvent, Interrupt, InterruptEvent, content_text, parsed};
use super::turn::AgentTurn;
use crate::model::host::{AttemptHost, InputReply, InputRequest};
use crate::net::Redactor;
use crate::tool::redact_json;

/// The field that says yes or no.
const APPROVED: &str = "approved";

/// Length of an id of LangGraph, which takes answers by ids only of this form.
const ID_DIGITS: usize = 32;

/// The reason that LangGraph's interrupts have unless the graph gives one.
const LANGGRAPH_REASON: &str = "langgraph:interrupt";

/// What an agent waits for.
pub(super) enum Waiting {
    /// Interrupts of protocol 1.0.
    Outcome(Vec<Interrupt>),
    /// Values of `on_interrupt`.
    LangGraph(Vec<InterruptEvent>),
}

/// The answers, as the next request has them.
#[derive(Default)]
pub(super) struct ResumeInput {
    /// `resume`; `None`: it is left out.
    pub(super) resume: Option<Value>,
    /// `forwardedProps`.
    pub(super) forwarded: Map<String, Value>,
}

/// A question to a person.
struct InterruptQuestion {
    text: String,
    /// The schema of its form.
    schema: Value,
    /// Whether the answer must say `approved` next to the fields of the form.
    says_approved: bool,
}

impl Waiting {
    /// What the agent waits for after this end of a run; `None`: for nothing.
    pub(super) fn after(end: FinishedEvent, turn: &mut AgentTurn<'_>) -> Option<Self> {
        let mut values = turn.take_interrupts();
        // LangGraph may send one of several twice.
        let mut seen = BTreeSet::new();
        let mut is_new = |id: Option<&str>| id.is_none_or(|id| seen.insert(id.to_owned()));
        match end.outcome {
            Some(mut outcome) if outcome.kind == "interrupt" && !outcome.interrupts.is_empty() => {
                outcome.interrupts.retain(|interrupt| is_new(Some(&interrupt.id)));
                Some(Self::Outcome(outcome.interrupts))
            }
            None if !values.is_empty() => {
                values.retain(|event| is_new(event.id()));
                Some(Self::LangGraph(values))
            }
            _ => None,
        }
    }

    /// Asks one question for each, in their order.
    pub(super) async fn ask(
        self,
        from: &str,
        turn: &AgentTurn<'_>,
        host: &dyn AttemptHost,
        redactor: &Redactor,
    ) -> ResumeInput {
        let ask = async |question: &InterruptQuestion| {
            let text = redactor.redact_known(&question.text).into_owned();
            let (from, schema) = (from.to_owned(), redact_json(question.schema.clone(), redactor));
            host.ask(InputRequest { from, text, schema }).await
        };
        match self {
            Self::Outcome(interrupts) => {
                let mut entries = Vec::new();
                for interrupt in &interrupts {
                    let question = question_of(interrupt, turn);
                    let reply = ask(&question).await;
                    entries.push((interrupt, reply, question.says_approved));
                }
                resume_of(entries)
            }
            Self::LangGraph(events) => {
                let mut answers = Vec::new();
                for event in events {
                    let id = event.id().map(str::to_owned);
                    let question = question_of_value(&parsed(event.value));
                    let reply = ask(&question).await;
                    answers.push((id, payload(reply, question.says_approved)));
                }
                command_of(answers)
            }
        }
    }
}

fn resume_of(entries: Vec<(&Interrupt, InputReply, bool)>) -> ResumeInput {
    let is_langgraph = |interrupt: &Interrupt| {
        interrupt.metadata.as_ref().is_some_and(|metadata| metadata.get("langgraph").is_some())
    };
    if entries.iter().all(|(interrupt, ..)| is_langgraph(interrupt)) {
        // What it makes of `resume` is wrong where more than one interrupt is open.
        let answers = entries.into_iter().map(|(interrupt, reply, says_approved)| {
            (Some(interrupt.id.clone()), payload(reply, says_approved))
        });
        return command_of(answers.collect());
    }
    let entries = entries.into_iter().map(|(interrupt, reply, says_approved)| match reply {
        InputReply::Cancel => json!({ "interruptId": interrupt.id, "status": "cancelled" }),
        reply => json!({
            "interruptId": interrupt.id,
            "status": "resolved",
            "payload": payload(reply, says_approved),
        }),
    });
    ResumeInput { resume: Some(entries.collect()), forwarded: Map::new() }
}

/// The answers for LangGraph: by the ids of its interrupts, because others may be open too.
fn command_of(mut answers: Vec<(Option<String>, Value)>) -> ResumeInput {
    let is_id = |id: &str| id.len() == ID_DIGITS && id.bytes().all(|it| it.is_ascii_hexdigit());
    let value = if answers.iter().all(|(id, _)| id.as_deref().is_some_and(is_id)) {
        answers.into_iter().filter_map(|(id, answer)| Some((id?, answer))).collect()
    } else if answers.len() == 1 {
        answers.pop().map(|(_, answer)| answer).unwrap_or_default()
    } else {
        answers.into_iter().map(|(_, answer)| answer).collect()
    };
    let forwarded = [("command".to_owned(), json!({ "resume": value }))];
    ResumeInput { resume: None, forwarded: forwarded.into_iter().collect() }
}

/// The answer of a person as the agent reads it.
fn payload(reply: InputReply, says_approved: bool) -> Value {
    match reply {
        InputReply::Accept(Value::Object(mut fields)) => {
            if says_approved || fields.is_empty() {
                fields.insert(APPROVED.to_owned(), true.into());
            }
            Value::Object(fields)
        }
        InputReply::Accept(_) => json!({ APPROVED: true }),
        InputReply::Decline | InputReply::Cancel => json!({ APPROVED: false }),
    }
}

fn question_of(interrupt: &Interrupt, turn: &AgentTurn<'_>) -> InterruptQuestion {
    let raw = interrupt.metadata.as_ref().and_then(|it| it.get("langgraph")?.get("raw"));
    let message = interrupt.message.as_deref().filter(|message| !message.trim().is_empty());
    let mut text = match (message, raw, &*interrupt.reason) {
        (Some(message), ..) => message.to_owned(),
        (None, Some(raw), LANGGRAPH_REASON) => readable(raw),
        (None, _, "") => "The agent waits for an answer.".to_owned(),
        (None, _, reason) => reason.to_owned(),
    };
    // A person who approves a call sees it.
    let call = interrupt.tool_call_id.as_ref().and_then(|id| turn.call_text(id));
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let is_new = |arguments: &str| !bare(&text).contains(&bare(arguments));
    if let Some((name, arguments)) = call.filter(|(_, arguments)| is_new(arguments)) {
        text.push_str(&format!("\n\n{name}({arguments})"));
    }
    with_form(text, interrupt.response_schema.as_ref())
}

fn question_of_value(value: &Value) -> InterruptQuestion {
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    let schema = value.get("responseSchema").or_else(|| value.get("response_schema"));
    let text = match word("message").filter(|_| schema.is_some()) {
        Some(message) => message.to_owned(),
        None => readable(value),
    };
    with_form(text, schema)
}

/// A value as a person reads it: a line for each field of an object.
fn readable(value: &Value) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let line =
                |(name, value): (&String, &Value)| format!("{name}: {}", content_text(value));
            fields.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        Value::Null => "The agent waits for an answer.".to_owned(),
        other => content_text(other),
    }
}

/// The form has the plain fields of the schema, and not `approved`, which a person says by approving. A
/// schema that needs other fields has no form.
fn with_form(text: String, schema: Option<&Value>) -> InterruptQuestion {
    let none = json!({ "type": "object", "properties": {} });
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let Some(properties) = properties else {
        return InterruptQuestion { text, schema: none, says_approved: false };
    };
    let is_boolean = |field: &Value| field.get("type").is_some_and(|it| it == "boolean");
    let says_approved = properties.get(APPROVED).is_some_and(is_boolean);
    let plain: Map<String, Value> = properties
        .iter()
        .filter(|(name, field)| is_plain(field) && !(says_approved && *name == APPROVED))
        .map(|(name, field)| (name.clone(), field.clone()))
        .collect();
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let is_shown = |name: &&str| plain.contains_key(*name);
    let is_given = |name: &&str| is_shown(name) || (says_approved && *name == APPROVED);
    let schema = match required.iter().all(is_given) {
        false => none,
        true => {
            let required: Vec<&str> = required.into_iter().filter(is_shown).collect();
            json!({ "type": "object", "properties": plain, "required": required })
        }
    };
    InterruptQuestion { text, schema, says_approved }
}

fn is_plain(field: &Value) -> bool {
    let kind = field.get("type").and_then(Value::as_str);
    matches!(kind, Some("string" | "number" | "integer" | "boolean"))
}
