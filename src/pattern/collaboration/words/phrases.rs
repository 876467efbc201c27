//! Conflicts, decisions and rounds in words.

use crate::event::contribution::{Conflict, Decision};
use crate::narrate::format;
use crate::pattern::collaboration::facts::DecidedBy;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::Collaboration;

/// The names of the conflicts, or that there are none.
pub fn conflict_names(found: &[Conflict]) -> String {
    if found.is_empty() {
        return "no conflict".to_owned();
    }
    found.iter().map(|conflict| conflict.phrase()).collect::<Vec<_>>().join(", ")
}

/// What decided a round, in words.
pub fn decided_by_text(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Row(number) => format!("by row {number}"),
        DecidedBy::Veto(role) => format!("by the veto of {role}"),
    }
}

/// The decision of a closed round and what made it, or what follows without one.
pub fn decision_or_next(
    plan: &CollaborationPlan,
    round: u32,
    decision: Option<Decision>,
    by: Option<&DecidedBy>,
) -> String {
    let most = plan.max_rounds;
    match decision {
        Some(decision) => match by {
            Some(by) => format!("{} {}", decision.phrase(), decided_by_text(by)),
            None => decision.phrase().to_owned(),
        },
        None if round < most => format!("no decision, next: round {}", round + 1),
        None => "no decision".to_owned(),
    }
}

/// The number of rounds. For a run that stopped within a round: that round, and how many were
/// closed before it.
pub fn rounds_text(table: &Collaboration) -> String {
    let closed = table.rounds.iter().filter(|round| round.closed.is_some()).count() as u64;
    match table.current() {
        None => "no round".to_owned(),
        Some(round) if round.closed.is_some() => format::count_noun(closed, "round"),
        Some(round) => {
            let closed = if closed == 0 { "none".to_owned() } else { closed.to_string() };
            format!("stopped in round {}, {closed} closed", round.number)
        }
    }
}
