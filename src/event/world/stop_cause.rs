//! What lies behind a stop, and what can be done about it: the reason alone does not say what failed,
//! nor which limit was in the way.

use std::sync::Arc;

use super::World;
use super::last_words::Said;
use crate::event::StopReason;
use crate::event::kind::{BreakerWhy, RetryLimit};
use crate::event::stop::LlmError;
use crate::scenario::name::ToolName;

impl World {
    /// What lies behind the end of a run, where a call of its model or an open breaker stopped it:
    /// what the last attempt said and which limit kept it from another, or what opened the breaker.
    pub fn stop_cause(&self) -> Option<Arc<str>> {
        let reason = &self.closed.as_ref()?.reason;
        match reason {
            StopReason::CircuitOpen(tool) => self.opened_by(tool),
            _ => self.last_words.of(reason).map(Said::cause),
        }
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
            (_, Some(RetryLimit::RetryBudget { .. })) => {
                Some("Start the run again later, or raise tools.llm.retry_budget.min.")
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
    /// What it said, and what kept its call from another attempt.
    fn cause(&self) -> Arc<str> {
        let text = &self.text;
        let more = match (&self.refused, &self.limit) {
            (Some((attempt, reason)), _) => format!("Attempt {attempt} was not made: {reason}."),
            (None, Some(limit)) => limit.sentence(&ToolName::from("llm")),
            (None, None) if self.attempts > 1 => format!("{} attempts.", self.attempts),
            (None, None) => return Arc::clone(text),
        };
        format!("{text} {more}").into()
    }
}
