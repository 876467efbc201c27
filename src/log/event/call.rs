//! The parts of events about calls: the prompt and the reply.

use crate::base::worded;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::SpanId;
use super::purpose::Purpose;
use super::stop::StopReason;
use crate::base::name::ToolName;
use crate::scenario::spec::SpendingLimits;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// A call to a tool or model, as it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// The prompt of a model call, as the part that is new since an earlier call, so that the log of a
/// long conversation grows linearly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prompt {
    /// The call whose prompt and reply come first, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SpanId>,
    /// The number of those messages that come first; `None`: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// The number of messages that are left out after the first new one, because the prompt of a watched program was too
    /// long.
    #[serde(default, skip_serializing_if = "is_first")]
    pub left_out: u32,
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
        Self { messages, ..Self::default() }
    }
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The parts of the model's own reply in the provider's format, to be sent back unchanged.
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
        let text = Arc::clone(&reply.text);
        if reply.calls_to_make().len() < reply.tool_calls.len() {
            // Models refuse calls without results.
            return Self::assistant(text, Arc::default());
        }
        let calls = Arc::clone(&reply.tool_calls);
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

worded! { MessageRole {
    System = "system", User = "user", Assistant = "assistant", Tool = "tool",
} }

/// A complete reply of a model, or result of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Whether it took longer than the breaker's `slow_call_ms`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slow: bool,
    /// Name of the model, as the endpoint reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Why the reply ended, in the endpoint's words (`stop`, `length`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Arc<str>>,
    /// How the reply ended; absent: it is whole.
    #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
    pub end: ReplyEnd,
    /// The parts of the reply in the provider's own format, if some have to be sent back unchanged.
    /// The `host` and the `model` that sent them, and of Messages all blocks as the `content`, if there was
    /// signed thinking; of Chat completions the fields that are not of the API, those of the `message` and
    /// those of its `calls`. Only the same model gets them. A redacted log leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Arc<Value>>,
    /// Names of the answer's fields that were not of the API and were ignored, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Arc<str>>,
    /// Whether a former owner of the run got it, after it had lost the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// What it cost in US dollars, as an agent of another program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
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
            slow: false,
            model: None,
            finish: None,
            end: ReplyEnd::Stop,
            blocks: None,
            ignored: None,
            adopted: false,
            cost_usd: None,
        }
    }

    /// The tool calls to carry out: none of a reply that is not whole, because its last call may be
    /// cut, and the model may have wanted to say something else about the others.
    pub(crate) fn calls_to_make(&self) -> &[ToolCall] {
        if self.end.is_whole() { &self.tool_calls } else { &[] }
    }
}

/// A call of a tool that an agent of another program makes itself, or an action that it has roundtable carry
/// out. Its texts are made visible, and cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentStep {
    /// The agent's id of it.
    pub id: Arc<str>,
    /// What it does, in one line.
    pub title: Arc<str>,
    /// How far it is.
    pub state: StepState,
    /// Its arguments where it starts, its result where it ends; may be empty.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Arc<str>,
    /// Whether roundtable carries it out for the agent. Of other steps only the agent says that they happen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carried_out: bool,
}

/// How far a step of an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It has started.
    Started,
    /// It has ended.
    Done,
    /// It has failed.
    Failed,
}

worded! { StepState { Started = "started", Done = "done", Failed = "failed" } }

/// A reply that did not match its contract, or was empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
        /// Whether it is the limit of a day, `limits.day.total_tokens` of the configuration.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_day: bool,
    },
    /// `budget.max_cost_usd`.
    Cost {
        /// The limit in US dollars.
        limit: f64,
        /// US dollars spent so far, estimated.
        spent: f64,
        /// Most US dollars that the call could cost.
        estimate: f64,
        /// Whether it is the limit of a day, `limits.day.cost_usd` of the configuration.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_day: bool,
    },
}

impl BudgetReached {
    /// By how many times its own size the limit has to be extended until the call fits; `limits`: those
    /// at the start of the run.
    pub(crate) fn missing_sizes(&self, limits: SpendingLimits) -> u32 {
        let sizes = match *self {
            Self::Tokens { limit, spent, estimate, .. } => {
                let missing = spent.saturating_add(estimate).saturating_sub(limit);
                let size = limits.max_total_tokens.unwrap_or(limit).max(1);
                u32::try_from(missing.div_ceil(size)).unwrap_or(u32::MAX)
            }
            Self::Cost { limit, spent, estimate, .. } => {
                let size = limits.max_cost_usd.unwrap_or(limit).max(f64::MIN_POSITIVE);
                ((spent + estimate - limit) / size).ceil() as u32
            }
        };
        sizes.max(1)
    }

    /// Why a run stops there.
    pub fn reason(&self) -> StopReason {
        match self {
            Self::Tokens { .. } => StopReason::MaxTokensBudget,
            Self::Cost { .. } => StopReason::MaxCostBudget,
        }
    }

    /// Whether it is the limit of a day.
    pub fn is_of_day(&self) -> bool {
        let (Self::Tokens { of_day, .. } | Self::Cost { of_day, .. }) = self;
        *of_day
    }

    /// The event as a sentence that names the setting of the limit.
    pub fn sentence(&self) -> String {
        let setting = match self {
            Self::Tokens { of_day: false, .. } => "budget.max_total_tokens",
            Self::Tokens { .. } => "limits.day.total_tokens of the configuration",
            Self::Cost { of_day: false, .. } => "budget.max_cost_usd",
            Self::Cost { .. } => "limits.day.cost_usd of the configuration",
        };
        let today = if self.is_of_day() { " today" } else { "" };
        match *self {
            Self::Tokens { limit, spent, estimate, .. } => format!(
                "The next call may use {estimate} tokens, and {spent} of {limit} are used{today} ({setting})."
            ),
            Self::Cost { limit, spent, estimate, .. } => format!(
                "The next call may cost ${estimate:.4}, and an estimated ${spent:.4} of ${limit:.4} are \
                 used{today} ({setting})."
            ),
        }
    }
}

/// Tokens of one call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
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
