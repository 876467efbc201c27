//! What lies behind a stop, and what can be done about it: the reason alone does not say what failed,
//! nor which limit was in the way.

use std::sync::Arc;

use super::World;
use super::last_words::Said;
use crate::event::StopReason;
use crate::event::kind::{BreakerWhy, ReplyRefused, RetryLimit, seconds};
use crate::event::stop::LlmError;
use crate::scenario::name::ToolName;

/// The name of the model at the gateway.
const LLM: &str = "llm";

impl World {
    /// What lies behind the end of a run, where a call of its model or an open breaker stopped it:
    /// what the last attempt said and which limit kept it from another, or what opened the breaker.
    pub fn stop_cause(&self) -> Option<Arc<str>> {
        let reason = &self.closed.as_ref()?.reason;
        match reason {
            StopReason::CircuitOpen(tool) => self.opened_by(tool),
            StopReason::MaxTokensBudget | StopReason::MaxCostBudget => {
                self.budget_reached.map(|reached| reached.sentence().into())
            }
            _ => {
                let most = self.tools.get(LLM).map(|row| row.head.limits.max_attempts);
                self.last_words.of(reason).map(|said| said.cause(most))
            }
        }
    }

    /// The reply of a model that stopped the run because it was refused.
    pub fn stop_refusal(&self) -> Option<&Arc<ReplyRefused>> {
        self.refusals.of(&self.closed.as_ref()?.reason)
    }

    /// What a person can do about the end of a run, in one sentence; `None` for a success.
    pub fn stop_advice(&self) -> Option<&'static str> {
        let reason = &self.closed.as_ref()?.reason;
        let limit = self.last_words.of(reason).and_then(|said| said.limit);
        match (reason, limit) {
            (
                StopReason::LlmError(LlmError::RateLimited),
                Some(RetryLimit::Deadline { asked: true, .. }),
            ) => Some("Start the run again when that time is over, or give it more max_seconds."),
            // More retries reach no server that is not there.
            (
                StopReason::LlmError(LlmError::Connection) | StopReason::LlmTimeout,
                Some(RetryLimit::RetryBudget { .. }),
            ) => reason.advice(),
            (_, Some(RetryLimit::RetryBudget { .. })) => {
                Some("Start the run again later, or raise tools.llm.retry_budget.min.")
            }
            _ if self.stop_refusal().is_some_and(|refused| refused.asked_again > 0) => {
                Some("It was asked again in vain: fix the prompt, or use another model.")
            }
            _ => reason.advice(),
        }
    }

    fn opened_by(&self, tool: &ToolName) -> Option<Arc<str>> {
        let row = self.tools.get(tool.as_str())?;
        let opened =
            row.history.iter().rev().find(|it| it.opened_by.is_some() || it.by.is_some())?;
        let by = match (&opened.opened_by, opened.why) {
            (_, BreakerWhy::ByHand) | (None, _) => "by hand.",
            (Some(text), _) => &**text,
        };
        Some(format!("The breaker of {tool} was open, so it was not asked. Opened by: {by}").into())
    }
}

impl Said {
    /// What it said, the wait that it asked for, and what kept its call from another attempt, of which
    /// there may be `most`.
    fn cause(&self, most: Option<u32>) -> Arc<str> {
        let mut text = self.text.to_string();
        // A limit that the wait itself met says how long it is.
        let said = matches!(self.limit, Some(RetryLimit::Deadline { asked: true, .. }));
        if let Some(ms) = self.asked_ms.filter(|ms| *ms > 0 && !said) {
            text.push_str(&format!(" It asked to wait {}.", seconds(ms)));
        }
        let made = self.attempts - self.adapted.min(self.attempts);
        match (&self.refused, &self.limit) {
            (Some((attempt, reason)), _) => {
                text.push_str(&format!(" Attempt {attempt} was not made: {reason}."));
            }
            (None, Some(limit)) => {
                text.push(' ');
                text.push_str(&limit.sentence(&ToolName::from(LLM)));
            }
            (None, None) if made > 1 && most == Some(made) => {
                text.push_str(&format!(" {made} attempts (tools.{LLM}.retries.max_attempts)."));
            }
            (None, None) if self.attempts > 1 => {
                text.push_str(&format!(" {} attempts.", self.attempts));
            }
            (None, None) => {}
        }
        text.into()
    }
}
