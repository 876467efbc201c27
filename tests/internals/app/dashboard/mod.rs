//! What the dashboard does, held to plain state: messages in, effects out, no terminal.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{Event, EventKind};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::CollaborationFact;
use crate::support::screen::{facts, until};

mod authoring;
mod command_line;
mod commands;
mod comparison;
mod earlier;
mod flags;
mod forks;
mod form;
mod kept;
mod keys;
mod models;
mod moving;
mod pointer;
mod quiet;
mod runs;
mod tour;

fn started(round: u32) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted { round: it, .. })) if *it == round)
}

/// A run of checkout-launch up to its second round.
fn live() -> Vec<Arc<Event>> {
    let mut events = facts("checkout-launch", &[], &[], Schedule::default());
    events.truncate(until(&events, started(2)));
    events
}
