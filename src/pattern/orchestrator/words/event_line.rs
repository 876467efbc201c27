//! The lines of the events of an orchestrator (orchestrator source document).

use super::results::one_line;
use crate::event::EventKind;
use crate::event::patterns::PatternFact;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::orchestrator::facts::OrchestratorFact;

/// Fills the line of such an event; leaves other events alone.
pub(super) fn fill_line<'a>(kind: &'a EventKind, line: &mut EventLine<'a>) {
    match kind {
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { tasks })) => {
            let names: Vec<String> =
                tasks.iter().map(|task| format!("{} {}", task.id, task.worker)).collect();
            let count = format::count_noun(tasks.len() as u64, "task");
            line.text = format!("{count}: {}", names.join(", ")).into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
            task,
            worker,
            ..
        })) => {
            line.subject = task.as_str().into();
            line.text = worker.as_str().into();
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { attempts })) => {
            line.text = format::count_noun(u64::from(*attempts), "attempt").into();
            line.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed {
            attempts,
            reason,
        })) => {
            let attempts = format::count_noun(u64::from(*attempts), "attempt");
            line.text = format!("{} after {attempts}", reason.phrase()).into();
            line.tone = StyleRole::Failed;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
            aggregate,
            overwritten,
            ..
        })) => {
            line.text = one_line(aggregate).into();
            if !overwritten.is_empty() {
                let tasks: Vec<&str> = overwritten.iter().map(|task| task.as_str()).collect();
                let what = format!("{} replaced by a later task; {}", tasks.join(", "), line.text);
                line.text = what.into();
            }
            line.tone = StyleRole::Done;
        }
        _ => {}
    }
}
