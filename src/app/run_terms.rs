//! The words of the filter of the list of runs, and whether a run has them.

use super::run::RunPage;
use crate::event::run_row::{RunRow, RunStatus, StatusFilter};
use crate::narrate::kept::{run_result, run_state};
use crate::narrate::verdict::stop_lead;

/// Whether a row has this term, in lower case; `text` is what is searched.
pub(super) fn row_has(row: &RunRow, text: &str, term: &str) -> bool {
    if let Some(status) = term.strip_prefix("status:") {
        return status.is_empty()
            || StatusFilter::new(status).has(&row.status)
            || run_state(&row.status).word.to_lowercase().starts_with(status);
    }
    if let Some(name) = term.strip_prefix("scenario:") {
        return row.scenario.to_lowercase().contains(name);
    }
    text.contains(term)
}

pub(super) fn text_of_row(row: &RunRow) -> String {
    let RunRow { id, scenario, title, pattern, status, result, .. } = row;
    let (state, result) = (run_state(status).word, run_result(status, result.as_deref()));
    let pinned = if row.pinned { " pinned" } else { "" };
    let reason = status.word();
    format!("{id} {scenario} {title} {pattern} {state} {reason} {result}{pinned}").to_lowercase()
}

/// Whether a run of this session has all of these terms.
pub(super) fn page_has(page: &RunPage, terms: &[String]) -> bool {
    let world = page.world();
    let Some(head) = &world.head else { return false };
    let status = match &world.progress.closed {
        Some(closed) => RunStatus::Ended(closed.reason.to_string()),
        None => RunStatus::Running,
    };
    let (id, scenario, title) = (page.id(), &head.scenario, &head.title);
    let reason = status.word();
    let result = match &world.progress.closed {
        Some(closed) if !closed.reason.is_success() => stop_lead(world, closed),
        _ => run_result(&status, world.progress.result.as_deref()),
    };
    let pattern = head.plan.name();
    let state = if reason == "running" { "live" } else { run_state(&status).word };
    let text = format!("{id} {scenario} {title} {pattern} {state} {reason} {result}");
    let text = text.to_lowercase();
    terms.iter().all(|term| match (term.strip_prefix("status:"), term.strip_prefix("scenario:")) {
        (Some(wanted), _) => {
            StatusFilter::new(wanted).has(&status) || state.to_lowercase().starts_with(wanted)
        }
        (_, Some(name)) => scenario.as_str().to_lowercase().contains(name),
        _ => text.contains(term.as_str()),
    })
}
