//! What the page did with an input.

use super::earlier::EarlierWish;
use crate::app::effect::Effect;

/// What the page did with an input.
#[derive(Debug)]
pub enum InputOutcome {
    /// The page handled it.
    Handled {
        /// Whether the screen must be redrawn.
        redraw: bool,
    },
    /// The page handled it; the shell has to carry out these effects.
    Emit(Vec<Effect>),
    /// The page handled it, with a message for the operator.
    Say(String),
    /// The page handled it, and needs events that left memory.
    Earlier(EarlierWish),
    /// The page has no use for it; the dashboard may.
    Ignored,
}

impl InputOutcome {
    pub(super) fn redraw() -> Self {
        Self::Handled { redraw: true }
    }
}
