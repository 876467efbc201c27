//! The parts of events about calls: what a call is for, its prompt, its reply, and how an attempt
//! fails.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{SpanId, millis};
use super::stop::StopReason;
use crate::agents::facts::MemberOutput;
use crate::base::name::{AgentName, RoleName, TaskId, ToolName};
use crate::base::visible::visible_within;
use crate::pattern::research::facts::SourceNo;
use crate::scenario::spec::model::ScriptFaultKind;
use crate::scenario::spec::model_assignment::ModelCaller;
pub use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// A call to a tool or model, as it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The span that the call belongs to.
    pub parent: SpanId,
    /// The tool's name at the gateway; `llm` for a model.
    pub tool: ToolName,
    /// What the call is for.
    pub purpose: Purpose,
    /// The prompt of a model; empty for a tool.
    #[serde(default, skip_serializing_if = "Prompt::is_empty")]
    pub prompt: Prompt,
    /// The arguments of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<Value>>,
    /// Name of the model that is called, if the run uses more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// How many earlier replies to this request were refused: the model is asked again.
    #[serde(default, skip_serializing_if = "is_first")]
    pub repeat: u32,
}

fn is_first(again: &u32) -> bool {
    *again == 0
}

/// What a call is for, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum Purpose {
    /// A model gives a seat's contribution.
    Contribution {
        /// Number of the round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: u16,
        /// The role of the seat.
        role: RoleName,
    },
    /// The model makes the orchestrator's plan of tasks, or the steps of research.
    Plan,
    /// A worker does a task.
    Task {
        /// Id of the task.
        task: TaskId,
        /// Index of the task in the plan, from 0.
        index: u32,
    },
    /// An agent of a resilience run calls a tool.
    AgentStep {
        /// Number of the agent, from 1.
        agent: u32,
        /// Number of its turn, from 1.
        turn: u32,
        /// Index of the step within the turn, from 0.
        step: u16,
        /// How often the agent made the same call before and got no result.
        repeat: u32,
    },
    /// An agent of a team calls its model.
    ModelCall {
        /// The agent.
        agent: AgentName,
        /// How often the team has started this agent, this time included.
        turn: u32,
        /// Number of the model call within this turn of the agent, from 1.
        round: u32,
    },
    /// A coordinator consults a member, through the gateway like any tool.
    Member {
        /// The member.
        agent: AgentName,
        /// How often the team has started this member, this time included.
        turn: u32,
        /// The coordinator.
        by: AgentName,
        /// The model call that requested it.
        requested_by: SpanId,
        /// Index of the tool call within that reply, from 0.
        index: u16,
        /// How much of the member's own output is shown while it works.
        member_output: MemberOutput,
    },
    /// A member of a swarm is in control, until it hands over or answers.
    SwarmTurn {
        /// The member.
        agent: AgentName,
        /// How often it has been in control, this time included.
        turn: u32,
        /// The swarm.
        swarm: AgentName,
        /// Number of the swarm's hop, from 1.
        hop: u32,
        /// The agent that handed over; `None`: the swarm began with this member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<AgentName>,
    },
    /// An agent calls a tool.
    Tool {
        /// The agent.
        agent: AgentName,
        /// Name of the tool.
        tool: ToolName,
        /// The model call that requested it.
        requested_by: SpanId,
        /// Index of the tool call within that reply, from 0.
        index: u16,
    },
    /// A tool searches for sources.
    Search,
    /// A tool reads a source's page.
    Read {
        /// Number of the source.
        source: SourceNo,
    },
    /// The model takes notes from a page.
    Notes {
        /// Number of the source.
        source: SourceNo,
    },
    /// The model writes the answer from the notes.
    Synthesize,
    /// The model writes the answer or the report at the end.
    Finalize,
}

/// What a call asks for its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A model, whose tokens count.
    Model,
    /// A tool.
    Tool,
    /// An agent, which makes calls of its own.
    Agent,
}

impl Purpose {
    /// What the call asks: a model, a tool or another agent.
    pub fn asks(&self) -> Asks {
        match self {
            Self::Contribution { .. }
            | Self::Plan
            | Self::ModelCall { .. }
            | Self::Notes { .. }
            | Self::Synthesize
            | Self::Finalize => Asks::Model,
            Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::Tool { .. }
            | Self::Search
            | Self::Read { .. } => Asks::Tool,
            Self::Member { .. } | Self::SwarmTurn { .. } => Asks::Agent,
        }
    }

    /// The agent of the call: the one that speaks, is consulted, is in control or calls a tool.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::ModelCall { agent, .. }
            | Self::Member { agent, .. }
            | Self::SwarmTurn { agent, .. }
            | Self::Tool { agent, .. } => Some(agent),
            Self::Contribution { .. }
            | Self::Plan
            | Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::Search
            | Self::Read { .. }
            | Self::Notes { .. }
            | Self::Synthesize
            | Self::Finalize => None,
        }
    }

    /// The agent that is called: a member that is consulted, or that is in control. `None` for calls
    /// of models and of other tools.
    pub(crate) fn called_agent(&self) -> Option<&AgentName> {
        match self {
            Self::Member { agent, .. } | Self::SwarmTurn { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// The name that rows of a script use for this call: the role or agent, or the step (`plan`,
    /// `notes`, `synthesize`, `finalize`). `None` for calls of tools.
    pub fn script_step(&self) -> Option<&str> {
        match self {
            Self::Contribution { role, .. } => Some(role.as_str()),
            Self::ModelCall { agent, .. } => Some(agent.as_str()),
            Self::Plan => Some("plan"),
            Self::Notes { .. } => Some("notes"),
            Self::Synthesize => Some("synthesize"),
            Self::Finalize => Some("finalize"),
            Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::Member { .. }
            | Self::SwarmTurn { .. }
            | Self::Tool { .. }
            | Self::Search
            | Self::Read { .. } => None,
        }
    }

    /// The caller whose model is called; `None` if the call is not to a model.
    pub fn caller(&self) -> Option<ModelCaller> {
        Some(match self {
            Self::Contribution { role, .. } => ModelCaller::Role(role.clone()),
            Self::ModelCall { agent, .. } => ModelCaller::Agent(agent.clone()),
            Self::Plan => ModelCaller::Plan,
            Self::Notes { .. } => ModelCaller::Notes,
            Self::Synthesize => ModelCaller::Answer,
            Self::Finalize => ModelCaller::Finalize,
            Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::Member { .. }
            | Self::SwarmTurn { .. }
            | Self::Tool { .. }
            | Self::Search
            | Self::Read { .. } => return None,
        })
    }

    /// Whether this caller's model is called.
    pub fn is_called_by(&self, caller: &ModelCaller) -> bool {
        match (caller, self) {
            (ModelCaller::Role(own), Self::Contribution { role, .. }) => own == role,
            (ModelCaller::Agent(own), Self::ModelCall { agent, .. }) => own == agent,
            (ModelCaller::Plan, Self::Plan)
            | (ModelCaller::Notes, Self::Notes { .. })
            | (ModelCaller::Answer, Self::Synthesize)
            | (ModelCaller::Finalize, Self::Finalize) => true,
            _ => false,
        }
    }

    /// Whether it repeats a call that got no result: such a call counts as an attempt, not as a new
    /// call.
    pub fn is_repeat(&self) -> bool {
        matches!(self, Self::AgentStep { repeat: 1.., .. })
    }
}

/// The prompt of a model call, as the part that is new since an earlier call, so that the log of a
/// long conversation grows linearly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The call whose prompt and reply come first, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SpanId>,
    /// The new messages.
    pub messages: Arc<[ChatMessage]>,
    /// The tools that are offered; `None`: those of the earlier call, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[ToolOffer]>>,
}

impl Prompt {
    /// Whether there is no prompt.
    pub fn is_empty(&self) -> bool {
        self.after.is_none() && self.messages.is_empty()
    }

    /// A complete prompt without tools.
    pub fn complete(messages: Arc<[ChatMessage]>) -> Self {
        Self { after: None, messages, tools: None }
    }
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Role of the message's author.
    pub role: MessageRole,
    /// Text of the message.
    pub content: Arc<str>,
    /// The tool calls of the model in this message.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub tool_calls: Arc<[ToolCall]>,
    /// Id of the tool call that this message is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// The model's own [`Reply::blocks`], to be sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Arc<Value>>,
}

impl ChatMessage {
    /// A message of text only.
    pub fn new(role: MessageRole, content: impl Into<Arc<str>>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Arc::default(),
            tool_call_id: None,
            blocks: None,
        }
    }

    /// A message of the model: its text, and the tool calls it makes.
    pub fn assistant(content: impl Into<Arc<str>>, tool_calls: Arc<[ToolCall]>) -> Self {
        Self { tool_calls, ..Self::new(MessageRole::Assistant, content) }
    }

    /// A reply, as the message that the same model gets in its next prompt.
    pub fn from_reply(reply: &Reply) -> Self {
        let (text, calls) = (Arc::clone(&reply.text), Arc::clone(&reply.tool_calls));
        Self { blocks: reply.blocks.clone(), ..Self::assistant(text, calls) }
    }

    /// The result of a tool call.
    pub fn tool_result(call: &ToolCall, content: impl Into<Arc<str>>) -> Self {
        Self { tool_call_id: Some(Arc::clone(&call.id)), ..Self::new(MessageRole::Tool, content) }
    }
}

fn no_calls(calls: &Arc<[ToolCall]>) -> bool {
    calls.is_empty()
}

/// Role of a message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// The instructions.
    System,
    /// The user, or the caller of the model.
    User,
    /// The model.
    Assistant,
    /// A tool, with the result of a call.
    Tool,
}

impl MessageRole {
    /// The word in JSON and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A complete reply of a model, or result of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Text of a model; empty for a tool.
    #[serde(default)]
    pub text: Arc<str>,
    /// The tool calls of the model.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub tool_calls: Arc<[ToolCall]>,
    /// The result of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<Value>>,
    /// Tokens, as the endpoint (or the script) counted them, or as estimated.
    pub usage: Option<Usage>,
    /// Whether the tokens are estimated, at 4 bytes each, because the endpoint did not count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Milliseconds until the first token, if the reply was streamed.
    pub first_token_ms: Option<u64>,
    /// Name of the model, as the endpoint reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Why the reply ended, in the endpoint's words (`stop`, `length`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Arc<str>>,
    /// The parts of the reply in the provider's own format, if some have to be sent back unchanged
    /// (signed thinking). Only the same provider understands them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Arc<Value>>,
}

impl Reply {
    /// The result of a tool.
    pub fn from_tool_result(result: Arc<Value>) -> Self {
        Self { result: Some(result), ..Self::from_agent_text(Arc::default()) }
    }

    /// The final reply of an agent. It counts no tokens: the agent's own calls have counted them.
    pub fn from_agent_text(text: Arc<str>) -> Self {
        Self {
            text,
            tool_calls: Arc::default(),
            result: None,
            usage: None,
            estimated: false,
            first_token_ms: None,
            model: None,
            finish: None,
            blocks: None,
        }
    }
}

/// A reply that did not match its contract, or was empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRefused {
    /// The stop reason it leads to, in the source document's words.
    pub reason: StopReason,
    /// What is wrong with it, in one sentence; control characters made visible, length limited.
    pub detail: Box<str>,
    /// The beginning of the reply; control characters made visible, length limited. Its attempt has
    /// the whole reply.
    pub preview: Box<str>,
    /// The model is asked again with this explanation: number of the repeat, from 1. `None`: it is
    /// not asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// How many repeats there were before.
    #[serde(default, skip_serializing_if = "is_first")]
    pub repeats: u32,
}

/// A model call that was not made because it would exceed the run's budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "budget", rename_all = "snake_case")]
pub enum BudgetReached {
    /// `budget.max_total_tokens`.
    Tokens {
        /// The limit.
        limit: u64,
        /// Tokens used so far.
        spent: u64,
        /// Most tokens that the call could use.
        estimate: u64,
    },
    /// `budget.max_cost_usd`.
    Cost {
        /// The limit in US dollars.
        limit: f64,
        /// US dollars spent so far, estimated.
        spent: f64,
        /// Most US dollars that the call could cost.
        estimate: f64,
    },
}

impl BudgetReached {
    /// The event as a sentence that names the setting of the limit.
    pub fn sentence(&self) -> String {
        match *self {
            Self::Tokens { limit, spent, estimate } => format!(
                "The next call may use {estimate} tokens, and {spent} of {limit} are used \
                 (budget.max_total_tokens)."
            ),
            Self::Cost { limit, spent, estimate } => format!(
                "The next call may cost ${estimate:.4}, and an estimated ${spent:.4} of ${limit:.4} are \
                 used (budget.max_cost_usd)."
            ),
        }
    }
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the prompt, including those read from or written to the provider's cache.
    pub prompt_tokens: u64,
    /// All tokens of the reply, including its reasoning.
    pub completion_tokens: u64,
    /// Tokens of the prompt that were read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cached_tokens: u64,
    /// Tokens of the prompt that were written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_write_tokens: u64,
    /// Tokens of the reply for reasoning that is not shown.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// A prompt and a reply of this many tokens; all else is 0.
    pub const fn new(prompt_tokens: u64, completion_tokens: u64) -> Self {
        Self {
            prompt_tokens,
            completion_tokens,
            cached_tokens: 0,
            cache_write_tokens: 0,
            reasoning_tokens: 0,
        }
    }

    /// Tokens of prompt and reply together.
    pub const fn total(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds the tokens of another call.
    pub fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

/// Most characters of a failure's text.
const TEXT_CHARS: usize = 300;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// Class of the failure.
    pub class: FailureClass,
    /// HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What happened and what to do. Keys and addresses are redacted; the length is limited.
    pub text: String,
    /// Milliseconds that `Retry-After` requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the endpoint itself recommends a retry (`x-should-retry`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The part of the reply that was received before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Arc<str>>,
    /// Tokens it is estimated to have used, at 4 bytes each, if part of a reply was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Parameters that the endpoint refused. Requests leave them out from now on, so the next
    /// attempt differs from this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Vec<String>>,
}

impl AttemptFailed {
    /// A failure with its class and text.
    pub fn new(class: FailureClass, text: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            class,
            status: None,
            text: text.into(),
            retry_after_ms: None,
            should_retry: None,
            partial: None,
            usage: None,
            adapted: None,
        })
    }

    /// A failure with advice that is never cut off. Both texts are limited in length and cleaned of
    /// control characters; the caller makes sure that they hold no secret.
    pub fn with_advice(class: FailureClass, what: &str, advice: &str) -> Box<Self> {
        let room = TEXT_CHARS.saturating_sub(advice.chars().count() + 2);
        let what = visible_within(what.trim_end_matches(['.', ' ']), room);
        Self::new(class, format!("{what}. {advice}"))
    }

    /// A failed HTTP status.
    pub fn from_status(status: u16, text: impl Into<String>) -> Box<Self> {
        let class = match status {
            429 => FailureClass::RateLimited,
            401 | 403 => FailureClass::Auth,
            _ => FailureClass::Status,
        };
        Box::new(Self { status: Some(status), ..*Self::new(class, text) })
    }

    /// The failure of a scripted fault once its delay has passed; `None`: it hangs for ever.
    /// `malformed` describes the reply if it is malformed.
    pub fn from_scripted_fault(fault: &ScriptFaultKind, malformed: &str) -> Option<Box<Self>> {
        Some(match fault {
            ScriptFaultKind::Hang => return None,
            ScriptFaultKind::Reset => {
                Self::new(FailureClass::Reset, "the connection broke halfway (scripted)")
            }
            ScriptFaultKind::Refused => {
                Self::new(FailureClass::Connect, "connection refused (scripted)")
            }
            ScriptFaultKind::BadResponse => {
                Self::new(FailureClass::BadResponse, format!("{malformed} (scripted)"))
            }
            ScriptFaultKind::Status { status, retry_after } => {
                let mut failed = Self::from_status(*status, format!("HTTP {status} (scripted)"));
                failed.retry_after_ms = retry_after.map(millis);
                failed
            }
        })
    }
}

/// Classes of failures (cascading failures source document; docs/rules/patterns.md, *Tool
/// gateway*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The attempt took longer than its timeout.
    Timeout,
    /// The host name does not resolve.
    Resolve,
    /// Connection refused, or host unreachable.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection was closed in the middle of the exchange.
    Reset,
    /// HTTP 429.
    RateLimited,
    /// HTTP 401 or 403.
    Auth,
    /// Any other HTTP status that is not a success.
    Status,
    /// A body that does not match its contract.
    BadResponse,
    /// The tool's own program or table failed: it ended with an error, or has no result.
    Tool,
    /// A body larger than its limit.
    TooLarge,
    /// Refused before the tool was called: a forbidden address, or arguments that do not fit. The
    /// caller has to change, not the tool.
    Denied,
    /// An agent was ended by its own limits (`max_tool_rounds`, `stuck`, handoffs). The tool is
    /// fine, and a retry would end the same way.
    Limit,
    /// The script of an offline run has no row for this call: the scenario has to add one.
    ScriptMissing,
    /// A panic, caught.
    Panic,
    /// The run was stopped during the attempt.
    Cancelled,
}

impl FailureClass {
    /// Every class.
    pub const ALL: [FailureClass; 16] = [
        Self::Timeout,
        Self::Resolve,
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::RateLimited,
        Self::Auth,
        Self::Status,
        Self::BadResponse,
        Self::Tool,
        Self::TooLarge,
        Self::Denied,
        Self::Limit,
        Self::ScriptMissing,
        Self::Panic,
        Self::Cancelled,
    ];

    /// The class with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    /// The word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::RateLimited => "rate_limited",
            Self::Auth => "auth",
            Self::Status => "status",
            Self::BadResponse => "bad_response",
            Self::Tool => "tool",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::ScriptMissing => "script_missing",
            Self::Panic => "panic",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a failure of this class counts for the breaker, because the tool itself failed
    /// (docs/rules/patterns.md, *Tool gateway*).
    pub fn is_failure_of_tool(self, status: Option<u16>) -> bool {
        match self {
            Self::Timeout
            | Self::Resolve
            | Self::Connect
            | Self::Tls
            | Self::Reset
            | Self::BadResponse
            | Self::Tool
            | Self::TooLarge
            | Self::Panic => true,
            Self::Status => status.is_some_and(|status| status >= 500),
            Self::RateLimited
            | Self::Auth
            | Self::Denied
            | Self::Limit
            | Self::ScriptMissing
            | Self::Cancelled => false,
        }
    }
}
