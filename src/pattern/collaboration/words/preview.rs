//! The state of a collaboration in the preview of its run.

use super::badges::seat_badge;
use crate::event::world::RunFold;
use crate::narrate::preview::add_end;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;
use crate::narrate::{badges, format};
use crate::pattern::collaboration::projection::Collaboration;

/// Adds how the run ended, its current round and its messages.
pub(super) fn add_state(table: &Collaboration, run: &RunFold, to: &mut StyledText) {
    if let Some(closed) = &run.progress.closed {
        match table.decision() {
            Some(decision) if closed.reason.is_success() => {
                to.signed("decision", badges::decision(decision), decision.phrase());
            }
            _ => add_end(run, to),
        }
    }
    if let Some(round) = table.current() {
        let text = format!("{} of {}", round.number, table.plan.max_rounds);
        to.item("round", StyleRole::Text, text);
        for seat in &round.seats {
            let (badge, text) = match &seat.contribution {
                Some(said) => {
                    let stated = format::confidence(said.confidence);
                    (badges::stance(said.stance), format!("{} {} {stated}", seat.role, said.stance))
                }
                None => {
                    let badge = seat_badge(seat.state);
                    (badge, format!("{} {}", seat.role, badge.word))
                }
            };
            to.signed("", badge, text);
        }
        if !round.conflicts.is_empty() {
            let words: Vec<_> = round.conflicts.iter().map(|it| it.phrase()).collect();
            to.item("conflicts", StyleRole::Text, words.join(", "));
        }
    }
    let messages = format!("{} of {}", table.messages, table.plan.max_messages);
    to.item("messages", StyleRole::Text, messages);
}
