//! How a connection to another program ends, such as an MCP server or a coding agent, and the texts of its
//! failures.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::base::visible::visible_within;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::Redactor;
use crate::tool;

/// Most characters of a program's name that a message quotes.
const NAME_CHARS: usize = 40;

/// Makes the failures of one program.
#[derive(Debug)]
pub(crate) struct LinkFailures {
    /// What it is, such as `the MCP server`.
    noun: &'static str,
    name: String,
    /// Redacts the values that came from the environment.
    pub(crate) redactor: Redactor,
}

impl LinkFailures {
    pub(crate) fn new(noun: &'static str, name: &str, redactor: Redactor) -> Self {
        Self { noun, name: visible_within(name, NAME_CHARS), redactor }
    }

    /// Its name in the scenario, visible.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it is, with its name in the scenario, visible: `the MCP server files`.
    pub(crate) fn subject(&self) -> String {
        format!("{} {}", self.noun, self.name)
    }

    /// A failure: the program, `what` it did or is, and what to do about it.
    pub(crate) fn failure(
        &self,
        class: FailureClass,
        what: &str,
        advice: &str,
    ) -> Box<AttemptFailed> {
        let what = format!("{} {}", self.subject(), self.redactor.redact(what));
        AttemptFailed::with_advice(class, &what, advice)
    }

    /// Text of the program, ready to quote.
    pub(crate) fn quoted(&self, text: &str) -> String {
        tool::quoted_text(text, &self.redactor)
    }

    /// The failure of an attempt when the run has ended.
    pub(crate) fn ended(&self) -> Box<AttemptFailed> {
        self.failure(FailureClass::Cancelled, "has ended", "Its run has ended.")
    }
}

/// The state of a connection, shared by its transport, its tasks and the calls that wait for results.
#[derive(Debug)]
pub(crate) struct ProgramLink {
    phase: watch::Sender<LinkPhase>,
    /// The lines of standard output that were no messages.
    stray: Mutex<StrayLines>,
    /// The last error of a stream that did not end the connection.
    last_error: Mutex<Option<Box<AttemptFailed>>>,
}

/// Most bytes of a line that is no message that are kept to be quoted.
const STRAY_BYTES: usize = 2_000;

#[derive(Debug, Default)]
struct StrayLines {
    count: u64,
    first: String,
}

#[derive(Clone, Debug)]
enum LinkPhase {
    Open,
    /// The run has ended. The program has a short time to end.
    Ending,
    /// Every attempt that still waits fails with this.
    Closed(Box<AttemptFailed>),
}

impl ProgramLink {
    pub(crate) fn new() -> Arc<Self> {
        let phase = watch::Sender::new(LinkPhase::Open);
        Arc::new(Self { phase, stray: Mutex::default(), last_error: Mutex::default() })
    }

    /// Closes the connection. Only the first reason counts.
    pub(crate) fn close(&self, failed: Box<AttemptFailed>) {
        self.phase.send_if_modified(|phase| {
            let is_open = !matches!(phase, LinkPhase::Closed(_));
            if is_open {
                *phase = LinkPhase::Closed(failed);
            }
            is_open
        });
    }

    /// Closes the connection in a way that lets the program end by itself.
    pub(crate) fn end(&self) {
        self.phase.send_if_modified(|phase| {
            let is_open = matches!(phase, LinkPhase::Open);
            if is_open {
                *phase = LinkPhase::Ending;
            }
            is_open
        });
    }

    /// Whether no request can be sent any more.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(*self.phase.borrow(), LinkPhase::Open)
    }

    pub(crate) fn is_ending(&self) -> bool {
        matches!(*self.phase.borrow(), LinkPhase::Ending)
    }

    /// Why the connection is closed, if it is.
    pub(crate) fn failure(&self) -> Option<Box<AttemptFailed>> {
        match &*self.phase.borrow() {
            LinkPhase::Closed(failed) => Some(failed.clone()),
            LinkPhase::Open | LinkPhase::Ending => None,
        }
    }

    /// Completes when the connection is closed.
    pub(crate) async fn closed(&self) -> Box<AttemptFailed> {
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
    pub(crate) async fn over(&self) {
        let mut phase = self.phase.subscribe();
        let _ = phase.wait_for(|phase| !matches!(phase, LinkPhase::Open)).await;
    }

    /// Counts a line of standard output that is no message. Returns how many there were.
    pub(crate) fn add_stray(&self, line: &[u8]) -> u64 {
        let mut stray = self.stray.lock().unwrap_or_else(PoisonError::into_inner);
        if stray.count == 0 {
            let kept = line.get(..STRAY_BYTES).unwrap_or(line);
            stray.first = String::from_utf8_lossy(kept).into_owned();
        }
        stray.count += 1;
        stray.count
    }

    /// What a failure says of these lines, after a semicolon; empty if there were none.
    pub(crate) fn stray_note(&self, failures: &LinkFailures) -> String {
        let stray = self.stray.lock().unwrap_or_else(PoisonError::into_inner);
        let first = failures.quoted(&stray.first);
        match stray.count {
            0 => String::new(),
            1 => format!("; a line of its standard output is no message: {first}"),
            count => {
                format!(
                    "; {count} lines of its standard output are no messages, the first: {first}"
                )
            }
        }
    }

    /// Keeps an error that a later failure can name as its cause.
    pub(crate) fn note(&self, failed: Box<AttemptFailed>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
    }

    /// The error that was kept last.
    pub(crate) fn noted(&self) -> Option<Box<AttemptFailed>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Closes the connection when it is dropped, unless the program is ending by itself.
pub(crate) struct LinkGuard {
    pub(crate) link: Arc<ProgramLink>,
    pub(crate) failures: Arc<LinkFailures>,
}

impl Drop for LinkGuard {
    fn drop(&mut self) {
        if !self.link.is_ending() {
            self.link.close(self.failures.ended());
        }
    }
}
