//! The nouns of calls that stand in facts: who asks what of whom, the prompt, the reply, how an
//! attempt fails.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{SpanId, millis};
use super::research::SourceNo;
use super::stop::StopReason;
use super::team::Inner;
use super::visible::visible_within;
use crate::scenario::model::ScriptFaultKind;
use crate::scenario::name::{AgentName, RoleName, TaskId, ToolName};
use crate::scenario::seated::Caller;
pub use crate::scenario::tool::{ToolCall, ToolOffer};

/// What is asked of a model or tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The span it stands in.
    pub parent: SpanId,
    /// The tool's name at the gateway; `llm` for a model.
    pub tool: ToolName,
    /// On whose behalf.
    pub purpose: Purpose,
    /// What the model is shown; empty for a tool.
    #[serde(default, skip_serializing_if = "Prompt::is_empty")]
    pub prompt: Prompt,
    /// What the tool is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<Value>>,
    /// The model that is asked, in a run that asks more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// How often the model was asked the same before and its reply was refused.
    #[serde(default, skip_serializing_if = "is_first")]
    pub again: u32,
}

fn is_first(again: &u32) -> bool {
    *again == 0
}

/// On whose behalf a call is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum Purpose {
    /// A seat's contribution.
    Contribution {
        /// From 1.
        round: u32,
        /// Which seat of the sequence, from 0.
        seat: u16,
        /// Who sits there.
        role: RoleName,
    },
    /// The orchestrator's plan of tasks, or the steps of research.
    Plan,
    /// A worker's task.
    Task {
        /// Which.
        task: TaskId,
        /// Which of the plan, from 0.
        index: u32,
    },
    /// What an agent asks of a tool in one of its turns.
    Step {
        /// Which agent, from 1.
        agent: u32,
        /// Which of its turns, from 1.
        turn: u32,
        /// Which of the turn's steps, from 0.
        step: u16,
        /// How often the agent had asked the same before, because it got no answer.
        again: u32,
    },
    /// What an agent of a team says next: one call of its model.
    Say {
        /// Who.
        agent: AgentName,
        /// How often its team had it run, this time included.
        turn: u32,
        /// Which of this run's calls of the model, from 1.
        round: u32,
    },
    /// A coordinator consults a member, through the gateway like any tool.
    Member {
        /// Whom.
        agent: AgentName,
        /// How often its team had it run, this time included.
        turn: u32,
        /// The coordinator.
        by: AgentName,
        /// The call of the model that asked for it.
        said: SpanId,
        /// Which of that reply's tool calls, from 0.
        index: u16,
        /// What is shown of its own output while it works.
        inner: Inner,
    },
    /// A member of a swarm is in control, until it hands over or answers.
    Hop {
        /// Who.
        agent: AgentName,
        /// How often it has been in control, this time included.
        turn: u32,
        /// The swarm.
        swarm: AgentName,
        /// Which of the swarm's hops, from 1.
        hop: u32,
        /// Who handed over; `None`: it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<AgentName>,
    },
    /// A tool that an agent calls.
    Tool {
        /// Who calls it.
        agent: AgentName,
        /// Which tool.
        tool: ToolName,
        /// The call of the model that asked for it.
        said: SpanId,
        /// Which of that reply's tool calls, from 0.
        index: u16,
    },
    /// Sources are searched.
    Search,
    /// A source's page is read.
    Read {
        /// Which.
        source: SourceNo,
    },
    /// Notes are taken from a page.
    Notes {
        /// Of which source.
        source: SourceNo,
    },
    /// The answer is put together from notes.
    Synthesize,
    /// The text at the end.
    Finalize,
}

impl Purpose {
    /// Who acts in the call: the agent that speaks, is consulted, is in control or calls a tool.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Say { agent, .. }
            | Self::Member { agent, .. }
            | Self::Hop { agent, .. }
            | Self::Tool { agent, .. } => Some(agent),
            Self::Contribution { .. }
            | Self::Plan
            | Self::Task { .. }
            | Self::Step { .. }
            | Self::Search
            | Self::Read { .. }
            | Self::Notes { .. }
            | Self::Synthesize
            | Self::Finalize => None,
        }
    }

    /// What a row of a script says that this is: the name of the role or agent, or the step
    /// (`plan`, `notes`, `synthesize`, `finalize`). Tools have none.
    pub fn script_step(&self) -> Option<&str> {
        match self {
            Self::Contribution { role, .. } => Some(role.as_str()),
            Self::Say { agent, .. } => Some(agent.as_str()),
            Self::Plan => Some("plan"),
            Self::Notes { .. } => Some("notes"),
            Self::Synthesize => Some("synthesize"),
            Self::Finalize => Some("finalize"),
            Self::Task { .. }
            | Self::Step { .. }
            | Self::Member { .. }
            | Self::Hop { .. }
            | Self::Tool { .. }
            | Self::Search
            | Self::Read { .. } => None,
        }
    }

    /// Who asks a model in the call; `None` where no model is asked.
    pub fn caller(&self) -> Option<Caller> {
        Some(match self {
            Self::Contribution { role, .. } => Caller::Role(role.clone()),
            Self::Say { agent, .. } => Caller::Agent(agent.clone()),
            Self::Plan => Caller::Plan,
            Self::Notes { .. } => Caller::Notes,
            Self::Synthesize => Caller::Answer,
            Self::Finalize => Caller::Finalize,
            Self::Task { .. }
            | Self::Step { .. }
            | Self::Member { .. }
            | Self::Hop { .. }
            | Self::Tool { .. }
            | Self::Search
            | Self::Read { .. } => return None,
        })
    }

    /// Whether this caller asks a model in the call.
    pub fn is_of(&self, caller: &Caller) -> bool {
        match (caller, self) {
            (Caller::Role(own), Self::Contribution { role, .. }) => own == role,
            (Caller::Agent(own), Self::Say { agent, .. }) => own == agent,
            (Caller::Plan, Self::Plan)
            | (Caller::Notes, Self::Notes { .. })
            | (Caller::Answer, Self::Synthesize)
            | (Caller::Finalize, Self::Finalize) => true,
            _ => false,
        }
    }

    /// Whether the same was asked before and got no answer: such a call adds to what is attempted,
    /// not to what was asked for.
    pub fn is_repeat(&self) -> bool {
        matches!(self, Self::Step { again: 1.., .. })
    }
}

/// What a model is shown: what this call adds to an earlier one, so that a long chain of calls
/// stays linear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The call whose prompt and reply come first, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SpanId>,
    /// The messages that are new.
    pub messages: Arc<[ChatMessage]>,
    /// The tools that are offered; `None`: those of the call before, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[ToolOffer]>>,
}

impl Prompt {
    /// Whether nothing is shown.
    pub fn is_empty(&self) -> bool {
        self.after.is_none() && self.messages.is_empty()
    }

    /// A prompt that is whole, without tools.
    pub fn whole(messages: Arc<[ChatMessage]>) -> Self {
        Self { after: None, messages, tools: None }
    }
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub content: Arc<str>,
    /// The tools that the model calls with it.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub tool_calls: Arc<[ToolCall]>,
    /// The call that this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// The model's own [`Reply::blocks`], to be sent back as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Arc<Value>>,
}

impl ChatMessage {
    /// A text without more.
    pub fn new(role: Speaker, content: impl Into<Arc<str>>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Arc::default(),
            tool_call_id: None,
            blocks: None,
        }
    }

    /// What the model said, with the tools it called.
    pub fn said(content: impl Into<Arc<str>>, tool_calls: Arc<[ToolCall]>) -> Self {
        Self { tool_calls, ..Self::new(Speaker::Assistant, content) }
    }

    /// A reply, as the model that gave it is shown it again.
    pub fn reply(reply: &Reply) -> Self {
        let (text, calls) = (Arc::clone(&reply.text), Arc::clone(&reply.tool_calls));
        Self { blocks: reply.blocks.clone(), ..Self::said(text, calls) }
    }

    /// What a tool call came to.
    pub fn result(call: &ToolCall, content: impl Into<Arc<str>>) -> Self {
        Self { tool_call_id: Some(Arc::clone(&call.id)), ..Self::new(Speaker::Tool, content) }
    }
}

fn no_calls(calls: &Arc<[ToolCall]>) -> bool {
    calls.is_empty()
}

/// Who speaks in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The instructions.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
    /// A tool, with what a call came to.
    Tool,
}

impl Speaker {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A reply, whole: a model's text or a tool's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// A model's text; empty for a tool.
    #[serde(default)]
    pub text: Arc<str>,
    /// The tools that the model calls.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub tool_calls: Arc<[ToolCall]>,
    /// A tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<Value>>,
    /// Tokens, where the endpoint (or the script) counted them, or they were estimated.
    pub usage: Option<Usage>,
    /// The endpoint did not count them: there are 4 bytes to a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Milliseconds to the first token, where it was streamed.
    pub first_token_ms: Option<u64>,
    /// The model that says it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Why it ended, in the endpoint's words (`stop`, `length`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Arc<str>>,
    /// A list of what the reply is made of, in the provider's own form, where some of it must be
    /// sent back as it came: thinking, which is signed. Only the same provider understands it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Arc<Value>>,
}

impl Reply {
    /// The reply of a tool.
    pub fn of_tool(result: Arc<Value>) -> Self {
        Self { result: Some(result), ..Self::of_agent(Arc::default()) }
    }

    /// The final reply of an agent: its text, whose tokens its own calls have counted.
    pub fn of_agent(text: Arc<str>) -> Self {
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

/// A reply that broke its contract, or said nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRefused {
    /// The reason that it stops the run with, in the source's words.
    pub reason: StopReason,
    /// What is wrong with it, in a sentence; made visible, and bounded.
    pub detail: Box<str>,
    /// The beginning of the reply; made visible, and bounded. The whole stands in its attempt.
    pub begins: Box<str>,
    /// The model is told, and asked again: for the nth time, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u32>,
    /// How often it was asked again before.
    #[serde(default, skip_serializing_if = "is_first")]
    pub asked_again: u32,
}

/// A call of a model that was not made, because it would go beyond what the run may spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "budget", rename_all = "snake_case")]
pub enum BudgetReached {
    /// `budget.max_total_tokens`.
    Tokens {
        /// The limit.
        limit: u64,
        /// Tokens that are used.
        spent: u64,
        /// Tokens that the call would use, at most.
        estimate: u64,
    },
    /// `budget.max_cost_usd`.
    Cost {
        /// The limit, in US dollars.
        limit: f64,
        /// US dollars that are used, estimated.
        spent: f64,
        /// US dollars that the call would use, at most.
        estimate: f64,
    },
}

impl BudgetReached {
    /// It as a sentence, with the setting that states the limit.
    pub fn sentence(&self) -> String {
        match *self {
            Self::Tokens { limit, spent, estimate } => format!(
                "The next call may use {estimate} tokens, and {spent} of {limit} are used \
                 (budget.max_total_tokens)."
            ),
            Self::Cost { limit, spent, estimate } => format!(
                "The next call may cost ${estimate:.4}, and ${spent:.4} of ${limit:.4} are used, by \
                 estimate (budget.max_cost_usd)."
            ),
        }
    }
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the prompt, all of them: also those that were read from or written to the provider's cache.
    pub prompt_tokens: u64,
    /// Of the reply, all of them: also those of its reasoning.
    pub completion_tokens: u64,
    /// Of the prompt, those that were read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cached_tokens: u64,
    /// Of the prompt, those that were written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_write_tokens: u64,
    /// Of the reply, those of reasoning that is not shown.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// A prompt and a reply of so many tokens, nothing else known.
    pub const fn new(prompt_tokens: u64, completion_tokens: u64) -> Self {
        Self {
            prompt_tokens,
            completion_tokens,
            cached_tokens: 0,
            cache_write_tokens: 0,
            reasoning_tokens: 0,
        }
    }

    /// Of prompt and reply together.
    pub const fn total(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds another call's.
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

/// The most characters of a failure's text.
const TEXT_CHARS: usize = 300;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// Its class.
    pub class: FailureClass,
    /// Its HTTP status, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What happened and what to do; keys and addresses redacted, bounded.
    pub text: String,
    /// What `Retry-After` asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the endpoint said itself that asking again makes sense (`x-should-retry`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The part of the reply that had come; it stays with its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Arc<str>>,
    /// Tokens that it is taken to have used, at 4 bytes each: a part of its reply had come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The parameters that the endpoint refused and that requests go without from now on: the next
    /// attempt is another request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Vec<String>>,
}

impl AttemptFailed {
    /// A failure of a class with its text, nothing else known.
    pub fn of(class: FailureClass, text: impl Into<String>) -> Box<Self> {
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

    /// A failure with what to do about it, which is never cut off. Both are bounded and visible;
    /// that no secret is in them is the caller's to see to.
    pub fn advising(class: FailureClass, what: &str, advice: &str) -> Box<Self> {
        let room = TEXT_CHARS.saturating_sub(advice.chars().count() + 2);
        let what = visible_within(what.trim_end_matches(['.', ' ']), room);
        Self::of(class, format!("{what}. {advice}"))
    }

    /// An HTTP status that is no success.
    pub fn of_status(status: u16, text: impl Into<String>) -> Box<Self> {
        let class = match status {
            429 => FailureClass::RateLimited,
            401 | 403 => FailureClass::Auth,
            _ => FailureClass::Status,
        };
        Box::new(Self { status: Some(status), ..*Self::of(class, text) })
    }

    /// What a scripted fault comes to once its time has passed; `None`: it never does, it hangs.
    /// `malformed` says what came where the answer is malformed.
    pub fn scripted(fault: &ScriptFaultKind, malformed: &str) -> Option<Box<Self>> {
        Some(match fault {
            ScriptFaultKind::Hang => return None,
            ScriptFaultKind::Reset => {
                Self::of(FailureClass::Reset, "the connection broke half-way (scripted)")
            }
            ScriptFaultKind::Refused => {
                Self::of(FailureClass::Connect, "connection refused (scripted)")
            }
            ScriptFaultKind::BadResponse => {
                Self::of(FailureClass::BadResponse, format!("{malformed} (scripted)"))
            }
            ScriptFaultKind::Status { status, retry_after } => {
                let mut failed = Self::of_status(*status, format!("HTTP {status} (scripted)"));
                failed.retry_after_ms = retry_after.map(millis);
                failed
            }
        })
    }
}

/// Classes of failures (source `003`; spec section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The attempt's whole time was up.
    Timeout,
    /// The name does not resolve.
    Resolve,
    /// Connection refused or unreachable.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection broke in the middle.
    Reset,
    /// HTTP 429.
    RateLimited,
    /// HTTP 401 or 403.
    Auth,
    /// Any other HTTP status that is no success.
    Status,
    /// A body that breaks the contract.
    BadResponse,
    /// The tool's own program or table failed: it ended with an error, or has no answer.
    Tool,
    /// A body past its cap.
    TooLarge,
    /// Refused before the tool was asked: an address that it may not reach, or arguments that do
    /// not fit. What asks for it has to change, not the tool.
    Denied,
    /// An agent was ended by limits of its own (`max_tool_rounds`, `stuck`, hand-offs): nothing is
    /// wrong with it, and asking again would come to the same.
    Limit,
    /// The script of an offline run has no row for what was asked: the scenario lacks it.
    ScriptMissing,
    /// A panic, contained.
    Panic,
    /// The run was stopped in the middle of it.
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

    /// The class of this word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    /// Its word on the screen and in files.
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

    /// What a failure of this class tells the breaker: whether the tool itself failed (spec section
    /// 5, "What counts as a failure").
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
