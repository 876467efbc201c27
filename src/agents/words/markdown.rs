//! The hops of agents as Markdown.

use std::fmt::Write as _;

use crate::agents::projection::{AgentsFold, HopKind, HopState};
use crate::narrate::export::escape::table_cell;
use crate::narrate::format;

/// Adds the hops of a team: who handed over to or consulted whom.
pub fn add_hops(agents: &AgentsFold, out: &mut String) {
    /// Most hops that are listed; further ones are only counted.
    const MOST: usize = 500;
    if agents.hops.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Hops\n\n| # | from | to | how | why |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
    for (nth, hop) in agents.hops.iter().take(MOST).enumerate() {
        let from = hop.from.as_ref().map_or("you", |from| from.as_str());
        let how = match (&hop.state, hop.kind) {
            (HopState::Refused(_), _) => "refused",
            (_, HopKind::Consult) => "consults",
            (_, HopKind::Start | HopKind::Handoff) => "hands over",
        };
        let why = match &hop.state {
            HopState::Refused(why) => why.to_string(),
            HopState::Failed(reason) => reason.phrase().into_owned(),
            HopState::Degraded { by, reason } => {
                format!("{}; {}", reason.phrase(), by.word())
            }
            _ => table_cell(hop.message.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(out, "| {} | {from} | {} | {how} | {why} |", nth + 1, hop.to);
    }
    if let Some(more) = agents.hops.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "\nAnd {}.", format::count_noun(more as u64, "more hop"));
    }
}
