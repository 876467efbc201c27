//! Answers to attempts that were in flight when a former owner of the run lost it.

use std::sync::{Arc, OnceLock};

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
    /// What knows the answers to a former owner of the run, if it was taken over from one.
    pub(crate) fn late_answers(&self) -> &OnceLock<Arc<dyn LateAnswers>> {
        &self.0.late
    }
}

/// What a former owner of the run was answered to an attempt in doubt.
pub(crate) async fn late_answer(bus: &Bus, attempt: SpanId) -> Option<Reply> {
    let _outside = bus.clock().outside();
    bus.late_answers().get()?.answer(attempt).await
}
