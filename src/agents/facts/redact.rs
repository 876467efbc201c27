//! The texts of the previous messages of a session.

use std::sync::Arc;

use super::{HistoryEntry, SessionHead};
use crate::event::redact::TextRedactor;

impl SessionHead {
    /// Replaces the message and what was said before.
    pub(crate) fn redact(&mut self, by: &TextRedactor) {
        let Self { message: _, text, previous_run: _, history, owner: _, first_agent: _ } = self;
        by.text(text);
        Arc::make_mut(history).iter_mut().for_each(|entry| entry.redact(by));
    }
}

impl HistoryEntry {
    fn redact(&mut self, by: &TextRedactor) {
        match self {
            Self::Input { to: _, from: _, text } => by.text(text),
            Self::Reply { by: _, text, calls, blocks, end: _ } => {
                by.text(text);
                by.calls(calls);
                // Only the provider reads it.
                *blocks = None;
            }
            Self::Result { by: _, call, text } => {
                by.call(call);
                by.text(text);
            }
        }
    }
}
