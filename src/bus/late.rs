//! Answers to attempts that were in flight when a former owner of the run lost it.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::Bus;
use crate::event::SpanId;
use crate::event::kind::Reply;

/// Knows what a former owner of a run was answered after it had lost the run.
pub trait LateAnswers: Send + Sync {
    /// The answer to an attempt that is in doubt; waits as long as one may arrive.
    fn answer(&self, attempt: SpanId) -> BoxFuture<'_, Option<Reply>>;
}

impl Bus {
    /// The run was taken over from another owner, which may still be answered. The first call counts.
    pub(crate) fn set_late_answers(&self, answers: Arc<dyn LateAnswers>) {
        let _ = self.0.late.set(answers);
    }

    /// What a former owner of the run was answered to an attempt in doubt.
    pub(crate) async fn late_answer(&self, attempt: SpanId) -> Option<Reply> {
        let _outside = self.clock().outside();
        self.0.late.get()?.answer(attempt).await
    }
}
