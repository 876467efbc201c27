//! The events of an AG-UI stream (protocol 1.0), with the fields that are used here. Unknown fields are
//! skipped without being kept, `rawEvent` among them.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::base::json_text::repaired;
use crate::log::event::Usage;

/// Most characters of the type of an unknown event that are kept.
const TYPE_CHARS: usize = 60;

/// The custom event with which LangGraph says that it waits for a person.
const ON_INTERRUPT: &str = "on_interrupt";

/// One event.
#[derive(Debug)]
pub(super) enum AgentEvent {
    /// A text begins, continues or ends; a chunk begins and continues it.
    Text(TextEvent),
    /// A call of a tool begins or continues.
    Call(CallEvent),
    /// The same, of a call that has no end of its own.
    CallChunk(CallEvent),
    /// The arguments of a call are complete.
    CallEnd(CallEvent),
    /// The result of a call.
    Result(ResultEvent),
    /// A step of the agent has started.
    Step(StepEvent),
    SubagentStarted(SubagentEvent),
    SubagentFinished(SubagentEvent),
    SubagentFailed(SubagentEvent),
    /// All messages of the thread.
    Snapshot(SnapshotEvent),
    /// LangGraph waits for a person.
    Interrupt(InterruptEvent),
    Finished(FinishedEvent),
    Failed(ErrorEvent),
    /// The agent is at work, with nothing that is used here.
    Alive,
    /// An event that the protocol does not have.
    Unknown(String),
}

/// `TEXT_MESSAGE_*`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextEvent {
    pub(super) message_id: Option<String>,
    pub(super) role: Option<String>,
    pub(super) delta: Option<String>,
    pub(super) subagent_run_id: Option<String>,
}

/// `TOOL_CALL_START`, `_ARGS`, `_END` and `_CHUNK`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallEvent {
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_call_name: Option<String>,
    pub(super) parent_message_id: Option<String>,
    pub(super) delta: Option<String>,
    pub(super) subagent_run_id: Option<String>,
}

/// `TOOL_CALL_RESULT`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultEvent {
    pub(super) message_id: Option<String>,
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) content: Value,
    pub(super) subagent_run_id: Option<String>,
}

/// `STEP_STARTED`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepEvent {
    pub(super) step_name: String,
}

/// `SUBAGENT_*`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubagentEvent {
    pub(super) subagent_run_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    /// What it is asked to do, or why it failed.
    #[serde(alias = "message")]
    pub(super) description: Option<String>,
    pub(super) result: Option<Value>,
    #[serde(default, deserialize_with = "outcome")]
    pub(super) outcome: Option<Outcome>,
}

/// `MESSAGES_SNAPSHOT`.
#[derive(Debug, Deserialize)]
pub(super) struct SnapshotEvent {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) messages: Vec<Value>,
}

/// `CUSTOM` with the name `on_interrupt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InterruptEvent {
    #[serde(default)]
    pub(super) value: Value,
    /// LangGraph's own form of it. Of all raw events only this one is read: its id is nowhere else.
    #[serde(default)]
    raw_event: Value,
}

impl InterruptEvent {
    /// LangGraph's id of it.
    pub(super) fn id(&self) -> Option<&str> {
        self.raw_event.get("id")?.as_str()
    }
}

/// `RUN_FINISHED`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FinishedEvent {
    #[serde(default, deserialize_with = "outcome")]
    pub(super) outcome: Option<Outcome>,
    /// What the agent waits for, in the drafts of protocol 1.0, whose outcome is a word.
    interrupt: Option<Value>,
    /// The answer of an agent that sends no message.
    pub(super) result: Option<Value>,
    #[serde(default, deserialize_with = "token_usage")]
    usage: Vec<TokenUsage>,
    metadata: Option<Value>,
}

/// `RUN_ERROR`.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorEvent {
    #[serde(default)]
    pub(super) message: Value,
    #[serde(default)]
    pub(super) code: Value,
    #[serde(default, deserialize_with = "token_usage")]
    usage: Vec<TokenUsage>,
}

/// How a run ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Outcome {
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) interrupts: Vec<Interrupt>,
    /// Whether it was a word.
    #[serde(skip)]
    is_word: bool,
}

/// `null` as if it were left out.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// An outcome, which may be a word.
fn outcome<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Outcome>, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None => Ok(None),
        Some(Value::String(kind)) => {
            Ok(Some(Outcome { kind, is_word: true, ..Outcome::default() }))
        }
        Some(other) => Outcome::deserialize(other).map(Some).map_err(serde::de::Error::custom),
    }
}

/// What an agent says that it used: a list, or one object. What cannot be read is not known.
fn token_usage<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TokenUsage>, D::Error> {
    let said = match Option::<Value>::deserialize(from)? {
        Some(Value::Array(list)) => list,
        Some(one @ Value::Object(_)) => vec![one],
        _ => Vec::new(),
    };
    Ok(said.into_iter().filter_map(|one| TokenUsage::deserialize(one).ok()).collect())
}

/// What the agent waits for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) reason: String,
    pub(super) message: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) response_schema: Option<Value>,
    pub(super) metadata: Option<Value>,
    /// What the person has to know, in the drafts of the protocol.
    pub(super) payload: Option<Value>,
}

/// What the calls of one model used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenUsage {
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    /// Not of the protocol, which keeps unknown fields.
    #[serde(alias = "cost_usd")]
    cost_usd: Option<f64>,
}

/// What a run used, as the agent says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) usage: Option<Usage>,
    pub(super) cost_usd: Option<f64>,
    pub(super) model: Option<String>,
}

impl Spent {
    fn new(usage: &[TokenUsage], metadata: Option<&Value>) -> Self {
        let mut spent = Self::default();
        for one in usage {
            let mut tokens = Usage::new(
                one.input_tokens.unwrap_or_default(),
                one.output_tokens.unwrap_or_default(),
            );
            tokens.cached_tokens = one.cached_input_tokens.unwrap_or_default();
            tokens.cache_write_tokens = one.cache_write_input_tokens.unwrap_or_default();
            tokens.reasoning_tokens = one.reasoning_tokens.unwrap_or_default();
            let model = one.model.clone();
            spent.add(Self { usage: Some(tokens), cost_usd: sound(one.cost_usd), model });
        }
        let fields = ["costUsd", "cost_usd"].into_iter();
        let cost = fields.filter_map(|name| metadata?.get(name)?.as_f64()).next();
        spent.cost_usd = sound(cost).or(spent.cost_usd);
        spent
    }

    /// Adds what another run used.
    pub(super) fn add(&mut self, other: Self) {
        if let Some(usage) = other.usage {
            self.usage.get_or_insert_default().add(usage);
        }
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert_default() += cost;
        }
        self.model = self.model.take().or(other.model);
    }
}

/// A cost that can be one.
fn sound(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

impl FinishedEvent {
    /// What the agent waits for by the drafts of the protocol.
    pub(super) fn draft_interrupt(&mut self) -> Option<Interrupt> {
        self.outcome.as_ref().filter(|outcome| outcome.is_word && outcome.kind == "interrupt")?;
        let interrupt = self.interrupt.take().unwrap_or_default();
        Some(Interrupt::deserialize(interrupt).unwrap_or_default())
    }

    pub(super) fn spent(&self) -> Spent {
        Spent::new(&self.usage, self.metadata.as_ref())
    }
}

impl ErrorEvent {
    pub(super) fn spent(&self) -> Spent {
        Spent::new(&self.usage, None)
    }
}

#[derive(Deserialize)]
struct EventHead<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct CustomHead {
    #[serde(default)]
    name: String,
}

impl AgentEvent {
    /// An event of a kind that the protocol does not have.
    pub(super) fn unknown(kind: &str) -> Self {
        Self::Unknown(kind.chars().take(TYPE_CHARS).collect())
    }

    /// Reads the data of an event.
    pub(super) fn read(data: &str) -> Result<Self, serde_json::Error> {
        Self::read_strictly(data).or_else(|error| match repaired(data) {
            Cow::Owned(repaired) => Self::read_strictly(&repaired),
            Cow::Borrowed(_) => Err(error),
        })
    }

    fn read_strictly(data: &str) -> Result<Self, serde_json::Error> {
        fn of<T: DeserializeOwned>(data: &str) -> Result<T, serde_json::Error> {
            serde_json::from_str(data)
        }
        let head: EventHead<'_> = serde_json::from_str(data)?;
        Ok(match &*head.kind {
            "TEXT_MESSAGE_START"
            | "TEXT_MESSAGE_CONTENT"
            | "TEXT_MESSAGE_END"
            | "TEXT_MESSAGE_CHUNK" => Self::Text(of(data)?),
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" => Self::Call(of(data)?),
            "TOOL_CALL_CHUNK" => Self::CallChunk(of(data)?),
            "TOOL_CALL_END" => Self::CallEnd(of(data)?),
            "TOOL_CALL_RESULT" => Self::Result(of(data)?),
            "STEP_STARTED" => Self::Step(of(data)?),
            "SUBAGENT_STARTED" => Self::SubagentStarted(of(data)?),
            "SUBAGENT_FINISHED" => Self::SubagentFinished(of(data)?),
            "SUBAGENT_ERROR" => Self::SubagentFailed(of(data)?),
            "MESSAGES_SNAPSHOT" => Self::Snapshot(of(data)?),
            "RUN_FINISHED" => Self::Finished(of(data)?),
            "RUN_ERROR" => Self::Failed(of(data)?),
            "CUSTOM" if of::<CustomHead>(data)?.name == ON_INTERRUPT => Self::Interrupt(of(data)?),
            "CUSTOM" | "RAW" | "RUN_STARTED" | "STEP_FINISHED" => Self::Alive,
            kind if is_progress(kind) => Self::Alive,
            kind => Self::unknown(kind),
        })
    }
}

/// Events that say that the agent is at work. `THINKING_*` is what `REASONING_*` was before 1.0.
fn is_progress(kind: &str) -> bool {
    matches!(kind, "STATE_SNAPSHOT" | "STATE_DELTA" | "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA")
        || kind.starts_with("REASONING_")
        || kind.starts_with("THINKING_")
}

/// The text of a content: a string, the text parts of a list, or the value as JSON.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(|part| part.get("type").is_some()) => {
            let texts = parts.iter().map(part_text).collect::<Vec<_>>();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

fn part_text(part: &Value) -> String {
    let word = |name: &str| part.get(name).and_then(Value::as_str);
    match word("text") {
        Some(text) => text.to_owned(),
        None => format!("[{}]", word("type").unwrap_or("part")),
    }
}

/// A value of LangGraph as the JSON that it is sent as.
pub(super) fn parsed(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str::<Map<String, Value>>(text).map_or(value, Value::Object)
        }
        _ => value,
    }
}
