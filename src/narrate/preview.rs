//! What the preview of a run shows in every pattern.

use super::badges;
use super::style_role::StyleRole;
use super::styled::{StyledLine, StyledText};
use super::verdict::{reason_id, run_lead};
use crate::event::kind::RunClosed;
use crate::event::world::RunFold;

/// How a run ended, in a few words.
pub fn end_line(run: &RunFold, closed: &RunClosed) -> StyledLine {
    StyledLine::new(badges::ended(closed.reason.class()).role, run_lead(run, closed))
}

/// Adds how the run ended, and what to do about it.
pub fn add_end(run: &RunFold, to: &mut StyledText) {
    let Some(closed) = &run.progress.closed else { return };
    add_stop(run, run_lead(run, closed), closed, to);
}

/// Adds how the run ended in these words, the identifier of its stop reason, and what to do about it.
pub fn add_stop(run: &RunFold, lead: String, closed: &RunClosed, to: &mut StyledText) {
    match closed.reason.is_success() {
        true => to.item("ended", StyleRole::Text, lead),
        false => to.error("stopped", lead),
    }
    for more in [reason_id(closed).as_deref(), run.stop_advice()].into_iter().flatten() {
        to.item("", StyleRole::Dim, more);
    }
}
