//! What an agent waits for in the middle of a turn, as questions to a person, and the answers as the
//! agent reads them.
//!
//! Protocol 1.0 ends the run with an outcome that has interrupts, and reads `resume`. LangGraph's own
//! form is the custom event `on_interrupt`, and reads `forwardedProps.command.resume`
//! (`ag_ui_langgraph/agent.py`).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::events::{FinishedEvent, Interrupt, InterruptEvent, Outcome, content_text, parsed};
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
    Draft(Box<Interrupt>),
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

/// Who is asked.
struct People<'a> {
    /// The agent that asks.
    from: &'a str,
    host: &'a dyn AttemptHost,
    redactor: &'a Redactor,
}

impl People<'_> {
    async fn ask(&self, question: &InterruptQuestion) -> InputReply {
        let text = self.redactor.redact_known(&question.text).into_owned();
        let schema = redact_json(question.schema.clone(), self.redactor);
        self.host.ask(InputRequest { from: self.from.to_owned(), text, schema }).await
    }
}

impl Waiting {
    /// What the agent waits for after this end of a run; `None`: for nothing.
    pub(super) fn after(mut end: FinishedEvent, turn: &mut AgentTurn<'_>) -> Option<Self> {
        let mut values = turn.take_interrupts();
        if values.is_empty()
            && let Some(interrupt) = end.draft_interrupt()
        {
            return Some(Self::Draft(Box::new(interrupt)));
        }
        // LangGraph may send one of several twice.
        let mut seen = BTreeSet::new();
        let mut is_new = |id: Option<&str>| id.is_none_or(|id| seen.insert(id.to_owned()));
        let waits = |outcome: &Outcome| outcome.kind == "interrupt";
        match end.outcome {
            Some(mut outcome) if outcome.kind == "interrupt" && !outcome.interrupts.is_empty() => {
                let id = |it: &Interrupt| Some(it.id.clone()).filter(|id| !id.is_empty());
                outcome.interrupts.retain(|interrupt| is_new(id(interrupt).as_deref()));
                Some(Self::Outcome(outcome.interrupts))
            }
            outcome if !values.is_empty() && outcome.as_ref().is_none_or(waits) => {
                values.retain(|event| is_new(event.id()));
                Some(Self::LangGraph(values))
            }
            _ => None,
        }
    }

    /// How many answers it waits for: one interrupt can be about many calls.
    pub(super) fn len(&self) -> usize {
        let calls = |value: Option<&Value>| {
            let calls = value.and_then(|value| value.get("action_requests")?.as_array());
            calls.map_or(1, Vec::len)
        };
        match self {
            Self::Outcome(interrupts) => interrupts.iter().map(|it| calls(raw_value(it))).sum(),
            Self::Draft(interrupt) => calls(raw_value(interrupt)),
            Self::LangGraph(events) => {
                events.iter().map(|it| calls(Some(&parsed(it.value.clone())))).sum()
            }
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
        let people = People { from, host, redactor };
        match self {
            Self::Outcome(interrupts) => {
                let mut entries = Vec::new();
                for interrupt in &interrupts {
                    let schema = interrupt.response_schema.as_ref();
                    let raw = raw_value(interrupt);
                    if let Some(review) = raw.and_then(|raw| Review::of(raw, schema)) {
                        entries.push((interrupt, Some(review.ask(&people).await)));
                        continue;
                    }
                    let question = question_of(interrupt, turn);
                    let reply = people.ask(&question).await;
                    let is_answer = is_langgraph(interrupt) || reply != InputReply::Cancel;
                    let answer = is_answer.then(|| payload(reply, question.says_approved));
                    entries.push((interrupt, answer));
                }
                resume_of(entries)
            }
            Self::Draft(interrupt) => {
                let question = question_of(&interrupt, turn);
                let answer = payload(people.ask(&question).await, question.says_approved);
                let mut resume = json!({ "payload": answer });
                if !interrupt.id.is_empty() {
                    resume["interruptId"] = interrupt.id.into();
                }
                ResumeInput { resume: Some(resume), forwarded: Map::new() }
            }
            Self::LangGraph(events) => {
                let mut answers = Vec::new();
                for event in events {
                    let id = event.id().map(str::to_owned);
                    let value = parsed(event.value);
                    let answer = match Review::of(&value, None) {
                        Some(review) => review.ask(&people).await,
                        None => {
                            let question = question_of_value(&value);
                            payload(people.ask(&question).await, question.says_approved)
                        }
                    };
                    answers.push((id, answer));
                }
                command_of(answers)
            }
        }
    }
}

fn is_langgraph(interrupt: &Interrupt) -> bool {
    interrupt.metadata.as_ref().is_some_and(|metadata| metadata.get("langgraph").is_some())
}

/// The value of an interrupt of LangGraph, in the form of the protocol.
fn raw_value(interrupt: &Interrupt) -> Option<&Value> {
    interrupt.metadata.as_ref()?.get("langgraph")?.get("raw")
}

/// The calls that LangChain's `HumanInTheLoopMiddleware` shows to a person
/// (`langchain/agents/middleware/human_in_the_loop.py`): each is a question.
struct Review {
    calls: Vec<ReviewedCall>,
    /// One interrupt is about all of them, and has a list of decisions.
    is_batch: bool,
}

struct ReviewedCall {
    question: InterruptQuestion,
    /// The person answers in place of the tool, and cannot approve.
    responds: bool,
}

/// The field of a person who answers in place of a tool.
const MESSAGE: &str = "message";

impl Review {
    /// `None`: the interrupt is something else.
    fn of(value: &Value, schema: Option<&Value>) -> Option<Self> {
        let word = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).is_some();
        let is_call = |call: &Value| word(call, "name") && call.get("args").is_some();
        if value.get("type").is_some_and(|it| it == "tool_approval") && is_call(value) {
            // The schema has a decision in each branch.
            let offers = |decision: &str| {
                schema.is_none_or(|schema| schema.to_string().contains(&format!("\"{decision}\"")))
            };
            let responds = !offers("approve") && offers("respond");
            return Some(Self { calls: vec![ReviewedCall::new(value, responds)], is_batch: false });
        }
        let calls = value.get("action_requests")?.as_array()?;
        let configs = value.get("review_configs")?.as_array()?;
        if calls.is_empty() || !calls.iter().all(is_call) {
            return None;
        }
        let responds = |call: &Value| {
            let config = configs.iter().find(|it| it.get("action_name") == call.get("name"));
            let allowed = config.and_then(|it| it.get("allowed_decisions")?.as_array());
            let offers = |decision: &str| {
                allowed.is_none_or(|allowed| allowed.iter().any(|it| it == decision))
            };
            !offers("approve") && offers("respond")
        };
        let calls = calls.iter().map(|call| ReviewedCall::new(call, responds(call))).collect();
        Some(Self { calls, is_batch: true })
    }

    /// Asks about each call, in their order. Returns what the agent reads.
    async fn ask(self, people: &People<'_>) -> Value {
        let mut decisions = Vec::new();
        for call in &self.calls {
            decisions.push(call.decision(people.ask(&call.question).await));
        }
        match self.is_batch {
            true => json!({ "decisions": decisions }),
            false => decisions.pop().unwrap_or_default(),
        }
    }
}

impl ReviewedCall {
    fn new(call: &Value, responds: bool) -> Self {
        let word = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
        let args = call.get("args").map(Value::to_string).unwrap_or_default();
        // A person who approves a call sees it, whatever it says about itself.
        let (name, description) = (word("name"), word("description"));
        let mut text = format!("{name}({args})");
        // The default description repeats the call.
        let repeated = description.find(&format!("Tool: {name}\nArgs: "));
        let description = description[..repeated.unwrap_or(description.len())].trim();
        if !description.is_empty() {
            text.push_str(&format!("\n\n{description}"));
        }
        let schema = match responds {
            true => json!({
                "type": "object",
                "properties": { MESSAGE: { "type": "string" } },
                "required": [MESSAGE],
            }),
            false => json!({ "type": "object", "properties": {} }),
        };
        let question = InterruptQuestion { text, schema, says_approved: false };
        Self { question, responds }
    }

    fn decision(&self, reply: InputReply) -> Value {
        match reply {
            InputReply::Accept(fields) if self.responds => {
                json!({ "type": "respond", MESSAGE: fields.get(MESSAGE) })
            }
            InputReply::Accept(_) => json!({ "type": "approve" }),
            InputReply::Decline | InputReply::Cancel => json!({ "type": "reject" }),
        }
    }
}

/// The answers to interrupts of the protocol; one without an answer was cancelled.
fn resume_of(entries: Vec<(&Interrupt, Option<Value>)>) -> ResumeInput {
    if entries.iter().all(|(interrupt, _)| is_langgraph(interrupt)) {
        // What LangGraph makes of `resume` is wrong where more than one interrupt is open.
        let answers = entries
            .into_iter()
            .map(|(interrupt, answer)| (Some(interrupt.id.clone()), answer.unwrap_or_default()));
        return command_of(answers.collect());
    }
    let entries = entries.into_iter().map(|(interrupt, answer)| match answer {
        None => json!({ "interruptId": interrupt.id, "status": "cancelled" }),
        Some(answer) => {
            json!({ "interruptId": interrupt.id, "status": "resolved", "payload": answer })
        }
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
    let raw = raw_value(interrupt);
    let message = interrupt.message.as_deref().filter(|message| !message.trim().is_empty());
    let mut text = match (message, raw, &*interrupt.reason) {
        (Some(message), ..) => message.to_owned(),
        (None, Some(raw), LANGGRAPH_REASON) => readable(raw),
        (None, None, reason) if interrupt.payload.is_some() => {
            let payload = interrupt.payload.as_ref().map(readable).unwrap_or_default();
            [reason, &payload].join("\n").trim().to_owned()
        }
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
