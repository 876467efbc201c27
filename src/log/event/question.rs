//! Questions to people: what a run asks, what the answers are, and which answers a question takes.
//!
//! A question is an event, and so is its answer: nothing of it lives only in memory. An answer names
//! the question and its digest, so that it never answers something else.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::call::BudgetReached;
use super::kind::is_zero;
use crate::base::json_schema;
use crate::base::json_text::to_canonical_json;
use crate::base::name::{AgentName, PersonName, RoleName, ToolName};
use crate::base::sha256_of_text;
use crate::base::visible::first_bytes;
use crate::base::worded;
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::people::{Effects, Otherwise};

/// Maximum number of questions of a run that are open at the same time. The questions that an agent of
/// another program waits for after one turn are open together.
pub const MAX_OPEN_QUESTIONS: usize = 100;

/// Maximum size of an answer as JSON, in bytes: as much as the card shows of a call.
pub const MAX_ANSWER_BYTES: usize = 256 << 10;

/// Maximum length of the name of a sender, in bytes.
pub(crate) const SENDER_BYTES: usize = 200;

/// Number of a question in its run, from 1: `q1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u32);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

impl FromStr for QuestionId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('q').and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| format!("{text:?} is not the id of a question, such as q1"))
    }
}

impl Serialize for QuestionId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuestionId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for QuestionId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuestionId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^q[0-9]+$",
            "description": "Number of a question in its run, such as q1.",
        })
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionAsked {
    /// Its number in the run.
    pub id: QuestionId,
    /// Who is asked: a person of the scenario, or `operator`.
    pub who: PersonName,
    /// The agent, role or task for which it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// What the model said with the call, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// SHA-256 over the subject; an answer names it.
    pub digest: Arc<str>,
    /// The rule of the scenario that asks or answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// A rule answers at once: nobody is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
    /// When it is too late for an answer, as Unix time in milliseconds; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// What happens if nobody answers.
    pub otherwise: Otherwise,
}

impl QuestionAsked {
    /// Whether an answer that was accepted at this Unix time in milliseconds is too late: `otherwise` has
    /// happened. A question that pauses the run stays open.
    pub fn is_late(&self, at_ms: u64) -> bool {
        self.due_ms.is_some_and(|due_ms| due_ms <= at_ms) && self.otherwise != Otherwise::Pause
    }
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// Whether this call of a tool may be made.
    ToolCall {
        /// The tool.
        tool: ToolName,
        /// Its arguments, as the caller wants to send them.
        args: Arc<Value>,
        /// SHA-256 of the definition of the tool.
        definition: Arc<str>,
        /// The JSON schema of its arguments.
        parameters: Arc<Value>,
        /// What a call of the tool does.
        effects: Effects,
    },
    /// An agent asks.
    Agent {
        /// The question, as the model wrote it.
        text: Arc<str>,
        /// The answers to choose from; empty: any text.
        #[serde(default, skip_serializing_if = "no_names")]
        choices: Arc<[Arc<str>]>,
    },
    /// A person has the turn of an agent: a reply, or a handoff.
    Turn {
        /// The agent.
        agent: AgentName,
        /// What it is asked, or is handed over with.
        request: Arc<str>,
        /// The agents that it may hand over to.
        #[serde(default, skip_serializing_if = "no_agents")]
        hand_over_to: Arc<[AgentName]>,
    },
    /// A person has a seat at the table: a contribution.
    Seat {
        /// Number of the round, from 1.
        round: u32,
        /// The role of the seat.
        role: RoleName,
    },
    /// The seats of a table did not agree: a decision.
    Decision {
        /// The last stance of each role.
        stances: Arc<Value>,
        /// The conflicts of the last round, as text.
        #[serde(default, skip_serializing_if = "no_names")]
        conflicts: Arc<[Arc<str>]>,
    },
    /// A call was in flight when the run stopped: whether it is made again.
    InDoubt {
        /// The tool; `llm` for a model.
        tool: ToolName,
        /// Its arguments; `null` for a model.
        args: Arc<Value>,
    },
    /// A budget is used up: whether it is extended.
    Budget(BudgetReached),
    /// A server needs something of a person for a call that it has begun.
    Input {
        /// The server, as a tool of the run.
        tool: ToolName,
        /// What for, in its own words.
        text: Arc<str>,
        /// The JSON schema of the answer, an object.
        parameters: Arc<Value>,
    },
    /// An agent of another program wants to do something.
    Permission {
        /// What, in its own words, with all that it says about it.
        text: Arc<str>,
        /// The answers to choose from.
        choices: Arc<[Arc<str>]>,
    },
    /// The tools of a server are new to the operator, or have changed.
    Tools {
        /// The server, as a tool of the run.
        tool: ToolName,
        /// Whether they have changed since the operator saw them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
        /// The tools that it is about: their names, and what each says of itself or what has changed.
        tools: Arc<[ToolNote]>,
    },
}

/// A tool in a question about the tools of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolNote {
    /// The server's name of it.
    pub name: Arc<str>,
    /// What it says of itself, or what has changed.
    pub text: Arc<str>,
}

fn no_names(names: &Arc<[Arc<str>]>) -> bool {
    names.is_empty()
}

fn no_agents(names: &Arc<[AgentName]>) -> bool {
    names.is_empty()
}

impl Subject {
    /// The digest that an answer has to name. `by`: the agent, role or task that asks.
    pub(crate) fn digest(&self, by: Option<&str>) -> Arc<str> {
        let value = json!({ "by": by, "subject": self });
        sha256_of_text(&to_canonical_json(&value)).into()
    }

    /// The tool that needs an approval.
    pub fn approves(&self) -> Option<&ToolName> {
        match self {
            Self::ToolCall { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// The answers to choose from by number.
    pub fn choices(&self) -> Vec<Arc<str>> {
        let words = |words: &[&str]| words.iter().map(|word| Arc::from(*word)).collect();
        match self {
            Self::Agent { choices, .. } | Self::Permission { choices, .. } => choices.to_vec(),
            Self::Decision { .. } => Decision::ALL.iter().map(|it| it.word().into()).collect(),
            Self::InDoubt { .. } => words(&[AGAIN, STOP]),
            Self::Budget(_) => words(&[EXTEND, STOP]),
            Self::Turn { hand_over_to, .. } => {
                hand_over_to.iter().map(|to| to.as_str().into()).collect()
            }
            Self::Tools { changed: false, .. } => words(&[ALLOW, ASK]),
            Self::Tools { changed: true, .. } => words(&[ACCEPT, LEAVE_OUT, STOP]),
            Self::ToolCall { .. } | Self::Seat { .. } | Self::Input { .. } => Vec::new(),
        }
    }

    /// Whether a person can say no to it.
    pub fn can_be_denied(&self) -> bool {
        matches!(self, Self::ToolCall { .. } | Self::Input { .. } | Self::Permission { .. })
    }

    /// What distinguishes the question from the others of its span.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Seat { round, role } => format!("seat {round} {role}"),
            Self::Budget(_) => "budget".to_owned(),
            Self::ToolCall { .. } => "tool_call".to_owned(),
            Self::Agent { .. } => "agent".to_owned(),
            Self::Turn { agent, .. } => format!("turn {agent}"),
            Self::Decision { .. } => "decision".to_owned(),
            Self::InDoubt { .. } => "in_doubt".to_owned(),
            Self::Input { .. } => "input".to_owned(),
            Self::Permission { .. } => "permission".to_owned(),
            Self::Tools { tool, changed, .. } => format!("tools {tool} {changed}"),
        }
    }

    /// Whether a person may give this answer to the question: its size, then its form.
    ///
    /// # Errors
    /// Why not, and which answers are possible.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        answer.check_size()?;
        self.check_form(answer)
    }

    /// Whether this is an answer to the question.
    pub(crate) fn check_form(&self, answer: &Answer) -> Result<(), String> {
        match (self, answer) {
            (Self::ToolCall { parameters, .. }, Answer::Approve { args: Some(args) }) => {
                check_args(parameters, args, "argument")
            }
            (Self::Input { parameters, .. }, Answer::Approve { args: Some(args) }) => {
                check_args(parameters, args, "field")
            }
            (Self::Input { parameters, .. }, Answer::Approve { args: None }) => {
                check_args(parameters, &json_schema::defaults(parameters), "field")
            }
            (Self::ToolCall { .. }, Answer::Approve { args: None })
            | (
                Self::ToolCall { .. } | Self::Input { .. } | Self::Permission { .. },
                Answer::Deny { .. },
            )
            | (Self::Turn { .. }, Answer::Text { .. })
            | (Self::Seat { .. }, Answer::Contribute { .. }) => Ok(()),
            (Self::InDoubt { args, .. }, Answer::Result { .. }) if !args.is_null() => Ok(()),
            (Self::Agent { choices, .. }, Answer::Text { .. }) if choices.is_empty() => Ok(()),
            (Self::Turn { hand_over_to, .. }, Answer::HandOver { to, .. }) => {
                match hand_over_to.contains(to) {
                    true => Ok(()),
                    false => Err(format!("`{to}` is not in the list of agents to hand over to")),
                }
            }
            (
                Self::Agent { .. }
                | Self::Decision { .. }
                | Self::InDoubt { .. }
                | Self::Budget(_)
                | Self::Permission { .. }
                | Self::Tools { .. },
                Answer::Choose { choice, .. },
            ) => {
                let choices = self.choices();
                match choices.contains(choice) {
                    true => Ok(()),
                    false => Err(format!("choose one of {}", choices.join(", "))),
                }
            }
            (Self::Permission { choices, .. }, _) => {
                Err(format!("choose one of {}, or deny it", choices.join(", ")))
            }
            _ => Err(self.expected().to_owned()),
        }
    }

    /// Which answers it takes, in one sentence.
    pub fn expected(&self) -> &'static str {
        match self {
            Self::ToolCall { .. } => "approve it or deny it",
            Self::Agent { choices, .. } if choices.is_empty() => "answer with a text",
            Self::Agent { .. } | Self::Decision { .. } | Self::Tools { .. } => {
                "choose one of the answers"
            }
            Self::Input { .. } => "fill in the form, or deny it",
            Self::Permission { .. } => "choose one of the answers, or deny it",
            Self::Turn { .. } => "answer with a text, or hand over",
            Self::Seat { .. } => "answer with a contribution",
            Self::InDoubt { .. } => "choose `again` or `stop`, or give the result",
            Self::Budget(_) => "choose `extend` or `stop`",
        }
    }
}

/// The choice to make a call in doubt again.
pub const AGAIN: &str = "again";
/// The choice to stop the run.
pub const STOP: &str = "stop";
/// The choice to make calls of tools that say they only read without asking.
pub const ALLOW: &str = "allow";
/// The choice to ask about each call.
pub const ASK: &str = "ask";
/// The choice to use tools as they are now.
pub const ACCEPT: &str = "accept";
/// The choice to use none of the tools that have changed.
pub const LEAVE_OUT: &str = "leave_out";
/// The choice to extend a budget by its own size.
pub const EXTEND: &str = "extend";

/// Checks arguments against the schema of the tool, or the fields of a form against its own: the required
/// ones, their types, bounds and formats. `noun`: what a field is called in the error.
pub(crate) fn check_args(schema: &Value, args: &Value, noun: &str) -> Result<(), String> {
    let schema = json_schema::of_object(schema).unwrap_or_else(|_| schema.clone());
    // A model gives `null` for what it leaves out.
    let given = args.as_object().map(|args| {
        let given = args.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>()
    });
    check_fields(&schema, &given.map_or_else(|| args.clone(), Value::Object), noun)?;
    let fields = args.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    for (name, value) in fields {
        let property = schema.get("properties").and_then(|all| all.get(name));
        if let Some(why) = property.and_then(|property| json_schema::misfit(property, value)) {
            return Err(format!("the {noun} `{name}` {why}"));
        }
    }
    Ok(())
}

/// Checks an object against its schema: the required fields, and their types. `noun`: what a field is
/// called in the error.
pub(crate) fn check_fields(schema: &Value, fields: &Value, noun: &str) -> Result<(), String> {
    let Some(fields) = fields.as_object() else {
        return Err(format!("the {noun}s are not a JSON object"));
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Err(format!("the {noun} `{name}` is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in fields {
        let Some(property) = properties.and_then(|all| all.get(name)) else { continue };
        let types: Vec<&str> = match property.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|word| has_type(value, word)) {
            return Err(format!("the {noun} `{name}` is not of type {}", types.join(" or ")));
        }
        let allowed = property.get("enum").and_then(Value::as_array);
        if allowed.is_some_and(|allowed| !allowed.contains(value)) {
            return Err(format!("the {noun} `{name}` is not one of the allowed values"));
        }
    }
    Ok(())
}

/// Whether a value has this type of a JSON schema.
fn has_type(value: &Value, word: &str) -> bool {
    match word {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionAnswered {
    /// The question.
    pub id: QuestionId,
    /// The digest of the question, which tells what was answered.
    pub digest: Arc<str>,
    /// Who or what answered.
    #[serde(flatten)]
    pub by: AnsweredBy,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
    /// How long the clock of the run was stopped before, because all its branches waited for people, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stood_ms: u64,
    /// Equal calls of the same agent, tool and definition are approved in this run from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
    /// When it was accepted, as Unix time in milliseconds, by the clock of what stored it: the process of the
    /// run, or the cluster. Only of a question with a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
}

impl QuestionAnswered {
    /// An answer to the question with this number and digest. The run adds the rest.
    pub fn new(id: QuestionId, digest: Arc<str>, by: AnsweredBy, answer: Answer) -> Self {
        Self { id, digest, by, answer, stood_ms: 0, remember: false, at_ms: None }
    }

    /// The answer as one that came from another process or machine: its author is a person, whatever it says,
    /// and its time is that of its arrival. `by`: who sent it.
    pub(crate) fn received_from(mut self, by: &str, at_ms: u64) -> Self {
        let cut = |name: &str| Arc::from(first_bytes(name, SENDER_BYTES));
        self.by = match &self.by {
            AnsweredBy::Person { name, host } => {
                AnsweredBy::Person { name: cut(name), host: cut(host) }
            }
            _ => AnsweredBy::Person { name: cut(by), host: "an unknown machine".into() },
        };
        self.at_ms = Some(at_ms);
        self
    }

    /// Whether nobody had answered at the deadline of the question, so that `otherwise` happened.
    pub fn is_overdue(&self, asked: &QuestionAsked) -> bool {
        self.by == AnsweredBy::Nobody && self.at_ms.is_some_and(|at_ms| asked.is_late(at_ms))
    }

    /// Whether it approves a call though nobody answered. Only an edited log says so.
    pub(crate) fn is_approval_by_nobody(&self) -> bool {
        self.by == AnsweredBy::Nobody && matches!(self.answer, Answer::Approve { .. })
    }
}

/// Who or what answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person: the name and the host of the program with which they answered, which nobody has
    /// checked.
    Person {
        /// The name of the account.
        name: Arc<str>,
        /// The name of the machine.
        host: Arc<str>,
    },
    /// A rule of the scenario, or a remembered approval.
    Rule,
    /// The script of the scenario.
    Script,
    /// Nobody: what the question says for that case happened.
    Nobody,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The call may be made.
    Approve {
        /// Other arguments to call it with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Arc<Value>>,
    },
    /// The call may not be made.
    Deny {
        /// The reason, which the model reads; may be empty.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        text: Arc<str>,
    },
    /// One of the choices.
    Choose {
        /// The choice.
        choice: Arc<str>,
        /// A reason; may be empty.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        text: Arc<str>,
    },
    /// A text.
    Text {
        /// The text.
        text: Arc<str>,
    },
    /// Another agent takes over.
    HandOver {
        /// The agent.
        to: AgentName,
        /// What it should know or do; may be empty.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        text: Arc<str>,
    },
    /// The contribution of a seat.
    Contribute {
        /// Stance, confidence, summary and actions, as a model would write them.
        contribution: Arc<Value>,
    },
    /// The result of a call in doubt, which is not made again.
    Result {
        /// The result.
        result: Arc<Value>,
    },
    /// Nobody answered, and the run stops.
    Stop,
}

impl Answer {
    /// Whether it is small enough.
    pub(crate) fn check_size(&self) -> Result<(), String> {
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        match bytes > MAX_ANSWER_BYTES {
            true => Err(format!(
                "the answer has {} KiB, and at most {} KiB are allowed",
                bytes.div_ceil(1 << 10),
                MAX_ANSWER_BYTES >> 10,
            )),
            false => Ok(()),
        }
    }

    /// What was answered, in a few words.
    pub fn phrase(&self) -> String {
        match self {
            Self::Approve { args: None } => "approved".to_owned(),
            Self::Approve { args: Some(_) } => "approved with other arguments".to_owned(),
            Self::Deny { .. } => "denied".to_owned(),
            Self::Choose { choice, .. } => format!("chose {choice}"),
            Self::Text { .. } => "answered".to_owned(),
            Self::HandOver { to, .. } => format!("handed over to {to}"),
            Self::Contribute { .. } => "contributed".to_owned(),
            Self::Result { .. } => "gave the result".to_owned(),
            Self::Stop => "stopped the run".to_owned(),
        }
    }

    /// The text that a person wrote with it, if any.
    pub fn text(&self) -> Option<&str> {
        let text = match self {
            Self::Deny { text }
            | Self::Choose { text, .. }
            | Self::Text { text }
            | Self::HandOver { text, .. } => &**text,
            Self::Approve { .. } | Self::Contribute { .. } | Self::Result { .. } | Self::Stop => "",
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

/// What the caller of a tool reads if its call was not approved: by a person, by a rule, or because
/// nobody answered.
pub(crate) fn denial_text(asked: &QuestionAsked, answered: &QuestionAnswered) -> Arc<str> {
    let what = denial(asked, answered);
    super::result_text::error_text(format_args!(
        "{what}. Do not try to reach the same result in another way."
    ))
}

/// Who did not allow a call, and why: `manager denied this call: too much`.
pub(crate) fn denial(asked: &QuestionAsked, answered: &QuestionAnswered) -> String {
    let who = &asked.who;
    match (&answered.by, answered.answer.text()) {
        (AnsweredBy::Rule, _) => "a rule of this run does not allow this call".to_owned(),
        (AnsweredBy::Nobody, _) => {
            format!("{who} was asked to approve this call and did not answer")
        }
        (_, Some(reason)) => format!("{who} denied this call: {}", reason.trim_end_matches('.')),
        (_, None) => format!("{who} denied this call"),
    }
}

/// What the caller of a tool reads below the result if the call was approved with other arguments.
pub(crate) fn changed_text(asked: &QuestionAsked, answered: &QuestionAnswered) -> Option<Arc<str>> {
    match &answered.answer {
        Answer::Approve { args: Some(args) } => {
            let who = &asked.who;
            Some(format!("[{who} approved this call with other arguments: {args}]").into())
        }
        _ => None,
    }
}

/// Why a question is not open any more, though nobody answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// Its branch was cancelled, or the run ended.
    Cancelled,
    /// The definition of the tool has changed since.
    Changed,
}

worded! { Withdrawal { Cancelled = "cancelled", Changed = "changed" } }

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_call() -> Subject {
        Subject::ToolCall {
            tool: "refund".into(),
            args: Arc::new(json!({ "amount_usd": 49.9 })),
            definition: "d".into(),
            parameters: Arc::new(json!({
                "type": "object",
                "required": ["amount_usd"],
                "properties": { "amount_usd": { "type": "number" }, "to": { "enum": ["card"] } },
            })),
            effects: Effects::Write,
        }
    }

    #[test]
    fn changed_arguments_fit_the_schema() {
        let check = |args| tool_call().check(&Answer::Approve { args: Some(Arc::new(args)) });
        assert_eq!(check(json!({ "amount_usd": 10 })), Ok(()));
        assert_eq!(check(json!({ "amount_usd": 10, "to": "card" })), Ok(()));
        for (args, why) in [
            (json!([1]), "the arguments are not a JSON object"),
            (json!({}), "the argument `amount_usd` is missing"),
            (json!({ "amount_usd": "10" }), "the argument `amount_usd` is not of type number"),
            (
                json!({ "amount_usd": 1, "to": "x" }),
                "the argument `to` is not one of the allowed values",
            ),
        ] {
            assert_eq!(check(args), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_question_takes_its_answers_only() {
        let text = || Answer::Text { text: "yes".into() };
        assert_eq!(tool_call().check(&text()), Err("approve it or deny it".to_owned()));
        let asks = |choices: &[&str]| Subject::Agent {
            text: "Which?".into(),
            choices: choices.iter().map(|it| Arc::from(*it)).collect(),
        };
        assert_eq!(asks(&[]).check(&text()), Ok(()));
        let choose = |choice: &str| Answer::Choose { choice: choice.into(), text: "".into() };
        assert_eq!(asks(&["a", "b"]).check(&choose("b")), Ok(()));
        let wrong = asks(&["a", "b"]).check(&choose("c"));
        assert_eq!(wrong, Err("choose one of a, b".to_owned()));
        assert!(asks(&["a"]).check(&text()).is_err());
        assert!(asks(&[]).check(&Answer::Stop).is_err());
    }

    #[test]
    fn digest_covers_agent_arguments_and_definition() {
        let digest = tool_call().digest(Some("billing"));
        assert_eq!(digest, tool_call().digest(Some("billing")));
        assert_ne!(digest, tool_call().digest(Some("fraud")));
        let changed = |change: &dyn Fn(&mut Subject)| {
            let mut subject = tool_call();
            change(&mut subject);
            subject.digest(Some("billing"))
        };
        assert_ne!(
            digest,
            changed(&|it| {
                if let Subject::ToolCall { args, .. } = it {
                    *args = Arc::new(json!({ "amount_usd": 4990 }));
                }
            })
        );
        assert_ne!(
            digest,
            changed(&|it| {
                if let Subject::ToolCall { definition, .. } = it {
                    *definition = "other".into();
                }
            })
        );
    }

    #[test]
    fn nobody_approves_nothing() {
        let answered = |by, answer| QuestionAnswered::new(QuestionId(1), "d".into(), by, answer);
        let approve = || Answer::Approve { args: None };
        assert!(answered(AnsweredBy::Nobody, approve()).is_approval_by_nobody());
        assert!(!answered(AnsweredBy::Script, approve()).is_approval_by_nobody());
        let deny = Answer::Deny { text: "".into() };
        assert!(!answered(AnsweredBy::Nobody, deny).is_approval_by_nobody());
    }

    #[test]
    fn senders_elsewhere_are_people() {
        let by = |by| {
            let answer = Answer::Approve { args: None };
            let answered = QuestionAnswered::new(QuestionId(1), "d".into(), by, answer);
            let QuestionAnswered { by, at_ms, .. } = answered.received_from("ann", 7);
            assert_eq!(at_ms, Some(7));
            match by {
                AnsweredBy::Person { name, .. } => name.to_string(),
                other => panic!("{other:?}"),
            }
        };
        for other in [AnsweredBy::Rule, AnsweredBy::Script, AnsweredBy::Nobody] {
            assert_eq!(by(other), "ann");
        }
        assert_eq!(by(AnsweredBy::Person { name: "bob".into(), host: "b".into() }), "bob");
        let long = AnsweredBy::Person { name: "x".repeat(1 << 20).into(), host: "b".into() };
        assert_eq!(by(long).len(), SENDER_BYTES);
    }

    #[test]
    fn answers_have_a_size_limit() {
        let text = |bytes: usize| Answer::Text { text: "x".repeat(bytes).into() };
        let asks = Subject::Agent { text: "Why?".into(), choices: [].into() };
        assert_eq!(asks.check(&text(MAX_ANSWER_BYTES - 100)), Ok(()));
        let why = asks.check(&text(2 << 20)).expect_err("too large");
        assert_eq!(why, "the answer has 2049 KiB, and at most 256 KiB are allowed");
        // A recorded one counts: it was accepted by the rules of its time.
        assert_eq!(asks.check_form(&text(2 << 20)), Ok(()));
    }

    #[test]
    fn ids_read_back() {
        assert_eq!("q12".parse(), Ok(QuestionId(12)));
        assert_eq!(QuestionId(12).to_string(), "q12");
        assert!("12".parse::<QuestionId>().is_err() && "qx".parse::<QuestionId>().is_err());
    }
}
