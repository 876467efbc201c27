//! The result of one tool call of a model, whatever the call was: a consultation, a call of a tool,
//! a handoff.

use std::sync::Arc;

use crate::agents::agent_call::Halt;
use crate::agents::facts::{AgentFact, CallFault};
use crate::agents::policy::TRANSFER;
use crate::agents::runner::AgentRunner;
use crate::agents::turn::{AgentRole, AgentRun, ModelReply};
use crate::base::name::ToolName;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::event::kind::{ReplyEnd, ToolCall};
use crate::event::result_text;
use crate::gateway::CallFailed;

/// The result of one call.
pub(super) struct ToolCallResult {
    pub text: Arc<str>,
    pub ok: bool,
    /// The text is the reply of a member.
    pub member: bool,
    /// How that reply ended.
    pub end: ReplyEnd,
}

impl ToolCallResult {
    pub fn error(why: impl std::fmt::Display) -> Self {
        Self::without_result(result_text::error_text(why))
    }

    /// A call without a result; `text` says why.
    fn without_result(text: Arc<str>) -> Self {
        Self { ok: false, ..Self::of_tool(text) }
    }

    /// The result of a tool or of a handoff.
    pub fn of_tool(text: Arc<str>) -> Self {
        Self { text, ok: true, member: false, end: ReplyEnd::Stop }
    }

    /// The text that the calling agent reads: it says when the reply of a member is not whole.
    pub fn shown(&self) -> Arc<str> {
        result_text::marked_text(&self.text, self.end)
    }
}

pub(super) fn is_transfer(talk: &AgentRun<'_>, call: &ToolCall) -> bool {
    matches!(talk.role, AgentRole::Member(..)) && &*call.name == TRANSFER
}

/// A name from a model, shortened and with control characters made visible.
pub(super) fn visible_name(name: &str) -> String {
    visible_within(name, REASON_CHARS)
}

pub(super) fn listed(what: &str, names: &[&str]) -> String {
    format!("{what}: {}", names.join(", "))
}

pub(super) fn call_index(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

impl AgentRunner<'_> {
    /// Refuses a call: reports it to the log and to the model.
    pub(super) fn refuse(
        &self,
        talk: &AgentRun<'_>,
        said: ModelReply,
        index: usize,
        call: &ToolCall,
        why: CallFault,
        text: &str,
    ) -> ToolCallResult {
        let result = ToolCallResult::error(text);
        let fact = AgentFact::ToolCallRefused {
            agent: talk.name.clone(),
            index: call_index(index),
            tool: visible_name(&call.name),
            reason: why,
            text: result.text.to_string(),
        };
        self.cx.publish(said.call, fact);
        result
    }

    /// The result that the calling agent receives for a call that failed for good; an error if the
    /// run requires the tool.
    pub(super) fn failed_call_result(
        &self,
        tool: &ToolName,
        failed: &CallFailed,
    ) -> Result<ToolCallResult, Box<Halt>> {
        if failed.unavailable && self.cx.requires(tool) {
            return Err(Halt::by_failed_call(failed).fatal());
        }
        let last = failed.last.as_ref().map(|last| &*last.text);
        Ok(ToolCallResult::without_result(result_text::failure_text(&failed.reason, last)))
    }
}
