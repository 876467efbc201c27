//! Why a round was decided or not: the rows of the scenario with what their conditions saw.

use std::sync::Arc;

use crate::event::contribution::Contribution;
use crate::narrate::format;
use crate::narrate::styled::StyledText;
use crate::pattern::collaboration::facts::DecidedBy;
use crate::pattern::collaboration::policy::RoundFigures;
use crate::pattern::collaboration::projection::Collaboration;
use crate::scenario::condition::{Condition, ObservedPart};

/// The most rows that are explained, besides the one that decided.
const MAX_ROWS: usize = 8;

/// Adds the rows up to the one that decided, each with its condition and the values of its parts.
pub(super) fn add_rows(
    table: &Collaboration,
    round: u32,
    by: Option<&DecidedBy>,
    to: &mut StyledText,
) {
    let rows = &table.plan.decide;
    let (Some(closed), false) = (table.round(round), matches!(by, Some(DecidedBy::Veto(_)))) else {
        return;
    };
    let contributions: Vec<Arc<Contribution>> = closed.contributions().map(Arc::clone).collect();
    let shown = RoundFigures::new(&table.plan, round).values(&contributions);
    let decided = match by {
        Some(DecidedBy::Row(row)) => usize::try_from(*row).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let is_told = |nth: usize| nth < MAX_ROWS || nth + 1 == decided;
    for (nth, row) in rows.iter().enumerate().take(decided).filter(|(nth, _)| is_told(*nth)) {
        to.gap();
        let held = if nth + 1 == decided { "held" } else { "did not hold" };
        to.field(&format!("row {}", nth + 1), format!("{held}: {}", row.when.replace('\n', " ")));
        // The condition of a log from elsewhere may not be one.
        let Ok(condition) = Condition::compile(&row.when) else { continue };
        for ObservedPart { part, value } in condition.explain(&shown) {
            to.field("", format!("{part} = {value}"));
        }
    }
    let left_out = (0..rows.len().min(decided)).filter(|nth| !is_told(*nth)).count();
    if left_out > 0 {
        let more = format::count_noun(left_out as u64, "row");
        to.field("", format!("{more} more did not hold"));
    }
}
