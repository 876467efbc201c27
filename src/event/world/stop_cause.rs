//! The cause of a stop and the advice for it: the stop reason alone does not say what failed, or
//! which limit prevented a retry.

use std::sync::Arc;

use super::fold::RunFold;
use super::last_errors::LastError;
use super::refusals::StopRefusal;
use crate::base::name::ToolName;
use crate::event::StopReason;
use crate::event::kind::{BreakerCause, RetryLimit, format_millis};
use crate::event::stop::LlmError;

/// Name of the model at the gateway.
const LLM: &str = "llm";

impl RunFold {
    /// The cause of the end of a run, if a model call or an open breaker stopped it: the last error
    /// and the limit that prevented a retry, or what opened the breaker.
    pub fn stop_cause(&self) -> Option<Arc<str>> {
        let reason = &self.progress.closed.as_ref()?.reason;
        match reason {
            StopReason::CircuitOpen(tool) => self.opened_by(tool),
            StopReason::MaxTokensBudget | StopReason::MaxCostBudget => {
                self.failures.budget_reached.map(|reached| reached.sentence().into())
            }
            _ => {
                let most = self.tools.get(LLM).map(|row| row.head.limits.max_attempts);
                self.failures.last_errors.for_reason(reason).map(|said| said.cause(most))
            }
        }
    }

    /// The refused reply that stopped the run, if one did.
    pub(crate) fn stop_refusal(&self) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(&self.progress.closed.as_ref()?.reason)
    }

    /// The refused reply with this stop reason, if there was one.
    pub(crate) fn refusal(&self, reason: &StopReason) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(reason)
    }

    /// What to do about the end of the run, in one sentence; `None` for a success.
    pub fn stop_advice(&self) -> Option<&'static str> {
        let reason = &self.progress.closed.as_ref()?.reason;
        let limit = self.failures.last_errors.for_reason(reason).and_then(|said| said.limit);
        match (reason, limit) {
            (
                StopReason::LlmError(LlmError::RateLimited),
                Some(RetryLimit::Deadline { requested: true, .. }),
            ) => Some("Start the run again after that time, or raise max_seconds."),
            // Retries do not help if the server is not there.
            (
                StopReason::LlmError(LlmError::Connection) | StopReason::LlmTimeout,
                Some(RetryLimit::RetryBudget { .. }),
            ) => reason.advice(),
            (_, Some(RetryLimit::RetryBudget { .. })) => {
                Some("Start the run again later, or raise tools.llm.retry_budget.min.")
            }
            _ if self.stop_refusal().is_some_and(|stop| stop.refused.repeats > 0) => Some(
                "Asking the model again did not help: fix the prompt, set model.repair, or use another model.",
            ),
            _ => reason.advice(),
        }
    }

    fn opened_by(&self, tool: &ToolName) -> Option<Arc<str>> {
        let row = self.tools.get(tool.as_str())?;
        let opened =
            row.history.iter().rev().find(|it| it.opened_by.is_some() || it.by.is_some())?;
        let by = match (&opened.opened_by, opened.why) {
            (_, BreakerCause::Manual) | (None, _) => "manual override.".into(),
            (Some(text), why) => match opened.counted {
                Some(_) => format!("{}. Last failure: {text}", why.description(opened.counted)),
                None => text.to_string(),
            },
        };
        Some(
            format!("The breaker of {tool} was open, so it was not called. Opened by: {by}").into(),
        )
    }
}

impl LastError {
    /// The error, the wait that the endpoint requested, and what prevented another attempt; a call
    /// may have `most` attempts.
    fn cause(&self, most: Option<u32>) -> Arc<str> {
        let mut text = self.text.to_string();
        // If the wait itself exceeded a limit, the text of that limit states it.
        let said = matches!(self.limit, Some(RetryLimit::Deadline { requested: true, .. }));
        if let Some(ms) = self.earlier_wait_ms.filter(|ms| *ms > 0 && !said) {
            text.push_str(&format!(" The endpoint asked to wait {}.", format_millis(ms)));
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
