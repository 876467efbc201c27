//! The part of a running pattern that commands change.

use crate::event::Command;

/// What the operator may change in a pattern while it runs. The registry of patterns makes it before
/// the run starts.
pub trait LiveControl: Send + Sync {
    /// Takes a command; returns one that is not its own.
    fn take(&self, command: Command) -> Option<Command>;

    /// The run has ended: nothing changes any more.
    fn end(&self);
}
