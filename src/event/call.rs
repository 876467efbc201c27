//! The nouns of calls that stand in facts: who asks what of whom, the prompt, the reply, how an
//! attempt fails.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::SpanId;
use crate::scenario::name::{RoleName, ToolName};

/// What is asked of a model or tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The span it stands in.
    pub parent: SpanId,
    /// The tool's name at the gateway; `llm` for a model.
    pub tool: ToolName,
    /// On whose behalf.
    pub purpose: Purpose,
    /// What the model is shown.
    pub prompt: Prompt,
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
    /// The text at the end.
    Finalize,
}

/// What a model is shown: what this call adds to an earlier one, so that a long chain of calls
/// stays linear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The call whose prompt and reply come first, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SpanId>,
    /// The messages that are new.
    pub messages: Arc<[ChatMessage]>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub content: Arc<str>,
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
}

/// A model's reply, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    pub text: Arc<str>,
    /// Tokens, where the endpoint (or the script) counted them.
    pub usage: Option<Usage>,
    /// Milliseconds to the first token, where it was streamed.
    pub first_token_ms: Option<u64>,
    /// The model that says it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it ended, in the endpoint's words (`stop`, `length`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the prompt.
    pub prompt_tokens: u64,
    /// Of the reply.
    pub completion_tokens: u64,
}

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
    /// The part of the reply that had come; it stays with its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Arc<str>>,
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
    /// A body past its cap.
    TooLarge,
    /// A panic, contained.
    Panic,
    /// The run was stopped in the middle of it.
    Cancelled,
}

impl FailureClass {
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
            Self::TooLarge => "too_large",
            Self::Panic => "panic",
            Self::Cancelled => "cancelled",
        }
    }
}
