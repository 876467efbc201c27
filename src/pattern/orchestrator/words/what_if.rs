//! The effect of a flag change in an orchestrator, shown before it is made.

use crate::base::name::FlagName;
use crate::event::world::{RunFold, RunState};
use crate::pattern::orchestrator::projection::{Orchestrator, TaskState};

/// The effects of switching `flag` to `on` now, one per line. A flag allows or denies workers
/// (orchestrator source document: read before each attempt).
pub(super) fn effects(
    orchestrator: &Orchestrator,
    flag: &FlagName,
    on: bool,
    run: &RunFold,
) -> Vec<String> {
    let plan = &*orchestrator.plan;
    let mut lines = vec![match &run.progress.stage {
        RunState::Paused { at, .. } if !at.is_empty() => {
            let first = at[0].display_name();
            format!("Takes effect when the run resumes, at {first}.")
        }
        _ if orchestrator.finalize.is_some() => {
            "Too late: nothing left for it to affect.".to_owned()
        }
        _ => "Takes effect before the next attempt, or at finalize.".to_owned(),
    }];
    let workers: Vec<_> = plan
        .workers
        .iter()
        .filter(|worker| worker.flag.as_ref() == Some(flag))
        .map(|worker| &worker.name)
        .collect();
    if workers.is_empty() {
        lines.push("No worker depends on it: only the script reads it.".to_owned());
        return lines;
    }
    for worker in workers {
        let open = orchestrator.tasks.iter().filter(|row| row.task.worker == *worker);
        let open: Vec<_> = open.filter(|row| !row.has_ended()).collect();
        lines.push(match (on, open.is_empty()) {
            (_, true) if orchestrator.tasks.is_empty() => {
                let may = if on { "may be dispatched" } else { "would be denied" };
                format!("{worker} {may}, if the plan names it.")
            }
            (_, true) => format!("No task of {worker} is open: nothing changes."),
            (true, false) => format!("{worker} may be dispatched again."),
            (false, false) => {
                let ids: Vec<&str> = open.iter().map(|row| row.task.id.as_str()).collect();
                let ids = ids.join(", ");
                format!("The next attempt of {ids} would be refused: {worker} switched off.")
            }
        });
        if !on && open.iter().any(|row| row.task.critical) {
            lines.push("The run would stop, since a required task would fail.".to_owned());
        }
        if !on && open.iter().any(|row| row.state == TaskState::Running) {
            lines.push("A running attempt continues, and counts.".to_owned());
        }
    }
    lines
}
