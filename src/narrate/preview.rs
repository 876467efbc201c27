//! What the preview of a run shows in every pattern.

use super::badges;
use super::style_role::StyleRole;
use super::styled::{StyledLine, StyledText};
use crate::event::kind::RunClosed;
use crate::event::world::RunFold;

/// How a run ended, in a few words.
pub fn end_line(closed: &RunClosed) -> StyledLine {
    let role = badges::ended(closed.reason.class()).role;
    StyledLine::new(role, closed.reason.phrase().into_owned())
}

/// Adds how the run ended, and what to do about it.
pub fn add_end(run: &RunFold, to: &mut StyledText) {
    let Some(closed) = &run.progress.closed else { return };
    match closed.reason.is_success() {
        true => to.item("ended", StyleRole::Text, closed.reason.phrase()),
        false => to.error("ended", closed.reason.phrase()),
    }
    if let Some(advice) = closed.reason.advice() {
        to.item("", StyleRole::Dim, advice);
    }
}
