//! The script of a scenario: the model's replies in an offline run.
//!
//! A prompt of a scenario. Its inputs are filled in already; the positions of flags are filled in
//! when it is sent, because a flag may change during a run.

use crate::base::worded;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::{ScriptFault, ToolCall};
use crate::base::name::{AgentName, FlagName, RoleName};
use crate::base::seeded_random::Latency;
use crate::scenario::cel::{CelBindings, Condition};
use crate::scenario::read::template::plain_text;

/// The model's replies in an offline run: the first row whose conditions hold is used.
#[derive(Debug, Default)]
pub struct Script {
    /// The rows in the file's order.
    pub rows: Vec<ScriptRow>,
}

impl Script {
    /// Whether a reply depends on how often the run made the same call before.
    pub fn counts_calls(&self) -> bool {
        self.rows.iter().any(|row| row.nth.is_some())
    }
}

/// One `[[script]]` of a scenario.
#[derive(Debug)]
pub struct ScriptRow {
    /// Only for this role; `None`: any.
    pub role: Option<RoleName>,
    /// Only for this agent of a team; `None`: any.
    pub agent: Option<AgentName>,
    /// Only for this message of a session, from 1.
    pub message: Option<u32>,
    /// Only for the nth turn of the agent, from 1.
    pub turn: Option<u32>,
    /// Only for this step; `None`: a role's contribution, or an agent's reply.
    pub step: Option<ScriptStep>,
    /// Only in this round: of a collaboration, or of an agent's tool calls.
    pub round: Option<u32>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// Only for the nth repeat after a reply that did not match the required format, from 1; 0 is
    /// the first attempt.
    pub again: Option<u32>,
    /// Only for the nth call of the run with the same role or agent, turn, round, step and repeat.
    pub nth: Option<u32>,
    /// Only if this condition holds.
    pub when: Option<Condition>,
    /// How long the reply takes.
    pub latency: Latency,
    /// A failure before the reply, if any.
    pub fault: Option<ScriptFault>,
    /// The reply: `reply` as JSON, `raw` and `text` unchanged. Use [`ScriptRow::reply_for`].
    pub reply_text: Arc<str>,
    /// Values that are filled into the text when the row replies, in order.
    pub fills: Vec<TextFill>,
    /// The tools that the model calls in this reply.
    pub calls: Arc<[ToolCall]>,
    pub end: ReplyEnd,
    /// The tokens of the reply; `None`: its words and those of the prompt are counted.
    pub usage: Option<ScriptedTokens>,
    /// The row is for any role, and its `reply` has no `agent`.
    pub lacks_agent: bool,
}

/// Tokens that a row says its reply has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptedTokens {
    /// Those of the prompt; `None`: no tokens are known.
    pub prompt: Option<u64>,
    /// Those of the reply.
    pub completion: u64,
    /// Those of the prompt that were read from a cache.
    pub cached: u64,
    /// Those of the prompt that were written to a cache.
    pub cache_write: u64,
    /// Those of the reply that were spent on reasoning.
    pub reasoning: u64,
}

/// A value that is filled into a scripted text when it is said: `{{results.t1.rate}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFill {
    /// Byte offset in the text without the values.
    pub at: usize,
    /// A name of the conditions of the row, with fields: `results.t1.rate`.
    pub path: String,
}

impl ScriptRow {
    /// The text with its values filled in; and the paths that have no value, which stay empty.
    pub fn filled(&self, shown: &CelBindings) -> (Arc<str>, Vec<&str>) {
        let (mut text, mut missing, mut from) = (String::new(), Vec::new(), 0);
        for TextFill { at, path } in &self.fills {
            text.push_str(&self.reply_text[from..*at]);
            from = *at;
            match shown.value_at(path) {
                // As prompts say it.
                Some(Value::Bool(on)) if path.starts_with("flags.") => {
                    text.push_str(if *on { "on" } else { "off" });
                }
                Some(value) => text.push_str(&plain_text(value)),
                None => missing.push(path.as_str()),
            }
        }
        text.push_str(&self.reply_text[from..]);
        (text.into(), missing)
    }

    /// The reply for a role: if a `reply` has no `agent`, the role's name is added.
    pub fn reply_for(&self, role: Option<&RoleName>) -> Arc<str> {
        let Some(role) = role.filter(|_| self.lacks_agent) else {
            return Arc::clone(&self.reply_text);
        };
        let agent = Value::from(role.as_str());
        match self.reply_text.strip_prefix('{') {
            Some("}") => format!("{{\"agent\":{agent}}}").into(),
            Some(rest) => format!("{{\"agent\":{agent},{rest}").into(),
            None => Arc::clone(&self.reply_text),
        }
    }
}

/// A step of a pattern that is not a role's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptStep {
    /// The plan: tasks of an orchestrator, or steps of research.
    Plan,
    /// The notes on a page.
    Notes,
    /// The answer of research, written from the notes.
    Synthesize,
    /// The classification of a router.
    Classify,
    /// The launch brief or report at the end.
    Finalize,
}

worded! { ScriptStep {
    Plan = "plan", Notes = "notes", Synthesize = "synthesize", Classify = "classify",
    Finalize = "finalize",
} }

impl ScriptStep {
    /// Whether every run of a pattern that has this step begins with it.
    pub fn begins_runs(self) -> bool {
        matches!(self, Self::Plan | Self::Classify)
    }
}

/// How a reply of a model ended, whatever its provider calls it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReplyEnd {
    /// The model had said everything, or calls tools.
    #[default]
    Stop,
    /// A limit cut it: of its tokens, or of the model's context window.
    Length,
    /// A filter of the provider cut it.
    Filtered,
    /// A refusal of the model cut it.
    Refused,
    /// It has not ended: the model paused, and continues when it is asked to.
    Paused,
    /// The provider failed. Such a reply is a failed attempt and never an answer.
    Failed,
}

worded! { ReplyEnd {
    Stop = "stop", Length = "length", Filtered = "filtered", Refused = "refused",
    Paused = "paused", Failed = "failed",
} }

impl ReplyEnd {
    /// Whether nothing of the reply is missing.
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::Stop
    }

    /// What happened to a reply that is not whole, for everyone who reads it; `None` if it is.
    pub(crate) fn mark(self) -> Option<&'static str> {
        Some(match self {
            Self::Stop => return None,
            Self::Length => "cut at its token limit",
            Self::Filtered => "cut by a content filter",
            Self::Refused => "cut by a refusal of the model",
            Self::Paused => "cut by a pause of the model",
            Self::Failed => "cut by a failure of the provider",
        })
    }
}

/// A prompt. It is cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTemplate {
    text: Arc<str>,
    /// The flags whose positions it says, in the order of its text.
    flags: Arc<[FlagInPrompt]>,
}

/// The place of a flag in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagInPrompt {
    /// Byte offset in the text, which is a boundary of its characters.
    pub at: usize,
    pub flag: FlagName,
}

impl PromptTemplate {
    /// A text with the places of the flags in it, in its order.
    pub(crate) fn new(text: &str, flags: Vec<FlagInPrompt>) -> Self {
        Self { text: text.into(), flags: flags.into() }
    }

    /// The text, with these positions of the flags: `on` or `off`.
    pub fn filled(&self, positions: &BTreeMap<FlagName, bool>) -> Arc<str> {
        self.with(|flag| match positions.get(flag) {
            Some(true) => "on".to_owned(),
            _ => "off".to_owned(),
        })
    }

    /// The text as the file has it: `{{flags.NAME}}` for a flag.
    pub fn written(&self) -> Arc<str> {
        self.with(|flag| format!("{{{{flags.{flag}}}}}"))
    }

    fn with(&self, said: impl Fn(&FlagName) -> String) -> Arc<str> {
        if self.flags.is_empty() {
            return Arc::clone(&self.text);
        }
        let (mut whole, mut from) = (String::with_capacity(self.text.len()), 0);
        for FlagInPrompt { at, flag } in &*self.flags {
            whole.push_str(&self.text[from..*at]);
            whole.push_str(&said(flag));
            from = *at;
        }
        whole.push_str(&self.text[from..]);
        whole.into()
    }

    /// Whether the prompt says the position of this flag.
    pub fn says(&self, flag: &FlagName) -> bool {
        self.flags.iter().any(|it| it.flag == *flag)
    }

    /// Whether the prompt says the position of any flag.
    pub fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }
}

impl From<&str> for PromptTemplate {
    fn from(text: &str) -> Self {
        Self::new(text, Vec::new())
    }
}

#[cfg(test)]
impl From<String> for PromptTemplate {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_filled_in_where_written() {
        let flag = |at, name: &str| FlagInPrompt { at, flag: name.into() };
        let prompt = PromptTemplate::new("Frøst: , ice: ", vec![flag(8, "frost"), flag(15, "ice")]);
        let positions = BTreeMap::from([("frost".into(), true)]);
        assert_eq!(&*prompt.filled(&positions), "Frøst: on, ice: off");
        assert_eq!(&*prompt.written(), "Frøst: {{flags.frost}}, ice: {{flags.ice}}");
        assert!(prompt.says(&"ice".into()) && !prompt.says(&"snow".into()));
        assert_eq!(&*PromptTemplate::from("plain").filled(&positions), "plain");
    }
}
