//! How a connection to an MCP server ends, and the texts of its failures.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::base::visible::visible_within;
use crate::log::event::kind::{AttemptFailed, FailureClass};
use crate::net::Redactor;
use crate::tool;

/// Most characters of a server's name that a message quotes.
const NAME_CHARS: usize = 40;

/// Makes the failures of one server.
#[derive(Debug)]
pub(super) struct ServerFailures {
    name: String,
    /// Redacts the values that came from the environment.
    pub(super) redactor: Redactor,
}

impl ServerFailures {
    pub(super) fn new(name: &str, redactor: Redactor) -> Self {
        Self { name: visible_within(name, NAME_CHARS), redactor }
    }

    /// The server's name in the scenario, visible.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A failure: the server, `what` it did or is, and what to do about it.
    pub(super) fn failure(
        &self,
        class: FailureClass,
        what: &str,
        advice: &str,
    ) -> Box<AttemptFailed> {
        let what = format!("the MCP server {} {}", self.name, self.redactor.redact(what));
        AttemptFailed::with_advice(class, &what, advice)
    }

    /// Text of the server, ready to quote.
    pub(super) fn quoted(&self, text: &str) -> String {
        tool::quoted_text(text, &self.redactor)
    }

    /// The failure of an attempt when the run has ended.
    pub(super) fn ended(&self) -> Box<AttemptFailed> {
        self.failure(FailureClass::Cancelled, "has ended", "Its run has ended.")
    }
}

/// The state of a connection, shared by its transport, its tasks and the calls that wait for results.
#[derive(Debug)]
pub(super) struct McpLink {
    phase: watch::Sender<LinkPhase>,
    /// The last error of a stream that did not end the connection.
    last_error: Mutex<Option<Box<AttemptFailed>>>,
}

#[derive(Clone, Debug)]
enum LinkPhase {
    Open,
    /// The run has ended. The server has a short time to end.
    Ending,
    /// Every attempt that still waits fails with this.
    Closed(Box<AttemptFailed>),
}

impl McpLink {
    pub(super) fn new() -> Arc<Self> {
        let phase = watch::Sender::new(LinkPhase::Open);
        Arc::new(Self { phase, last_error: Mutex::default() })
    }

    /// Closes the connection. Only the first reason counts.
    pub(super) fn close(&self, failed: Box<AttemptFailed>) {
        self.phase.send_if_modified(|phase| {
            let is_open = !matches!(phase, LinkPhase::Closed(_));
            if is_open {
                *phase = LinkPhase::Closed(failed);
            }
            is_open
        });
    }

    /// Closes the connection in a way that lets the server end by itself.
    pub(super) fn end(&self) {
        self.phase.send_if_modified(|phase| {
            let is_open = matches!(phase, LinkPhase::Open);
            if is_open {
                *phase = LinkPhase::Ending;
            }
            is_open
        });
    }

    /// Whether no request can be sent any more.
    pub(super) fn is_over(&self) -> bool {
        !matches!(*self.phase.borrow(), LinkPhase::Open)
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(*self.phase.borrow(), LinkPhase::Ending)
    }

    /// Why the connection is closed, if it is.
    pub(super) fn failure(&self) -> Option<Box<AttemptFailed>> {
        match &*self.phase.borrow() {
            LinkPhase::Closed(failed) => Some(failed.clone()),
            LinkPhase::Open | LinkPhase::Ending => None,
        }
    }

    /// Completes when the connection is closed.
    pub(super) async fn closed(&self) -> Box<AttemptFailed> {
        let mut phase = self.phase.subscribe();
        loop {
            if let LinkPhase::Closed(failed) = &*phase.borrow_and_update() {
                return failed.clone();
            }
            if phase.changed().await.is_err() {
                // The sender is a field of this, so it lives.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Completes when the connection is to end or is closed.
    pub(super) async fn over(&self) {
        let mut phase = self.phase.subscribe();
        let _ = phase.wait_for(|phase| !matches!(phase, LinkPhase::Open)).await;
    }

    /// Keeps an error that a later failure can name as its cause.
    pub(super) fn note(&self, failed: Box<AttemptFailed>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
    }

    /// The error that was kept last.
    pub(super) fn noted(&self) -> Option<Box<AttemptFailed>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Closes the connection when it is dropped, unless the server is ending by itself.
pub(super) struct LinkGuard {
    pub(super) link: Arc<McpLink>,
    pub(super) failures: Arc<ServerFailures>,
}

impl Drop for LinkGuard {
    fn drop(&mut self) {
        if !self.link.is_ending() {
            self.link.close(self.failures.ended());
        }
    }
}
