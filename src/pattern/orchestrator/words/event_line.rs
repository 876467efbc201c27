//! The lines of the events of an orchestrator (orchestrator source document).

use crate::event::EventKind;
use crate::event::patterns::PatternFact;
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::orchestrator::facts::OrchestratorFact;

/// Fills the line of such an event; leaves other events alone.
pub(super) fn fill_line<'a>(kind: &'a EventKind, told: &mut EventLine<'a>) {
    match kind {
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { tasks })) => {
            let names: Vec<String> =
                tasks.iter().map(|task| format!("{} {}", task.id, task.worker)).collect();
            let count = format::count_noun(tasks.len() as u64, "task");
            told.text = format!("{count}: {}", names.join(", ")).into();
            told.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
            task,
            worker,
            args_hash,
            ..
        })) => {
            told.subject = task.as_str().into();
            told.text = format!("{worker}, args {args_hash}").into();
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { attempts })) => {
            told.text = format::count_noun(u64::from(*attempts), "attempt").into();
            told.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed {
            attempts,
            reason,
        })) => {
            let attempts = format::count_noun(u64::from(*attempts), "attempt");
            told.text = format!("{} after {attempts}", reason.phrase()).into();
            told.tone = StyleRole::Failed;
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
            aggregate,
            overwritten,
        })) => {
            told.text = serde_json::to_string(aggregate).unwrap_or_default().into();
            if !overwritten.is_empty() {
                let tasks: Vec<&str> = overwritten.iter().map(|task| task.as_str()).collect();
                let what = format!("{} replaced by a later task; {}", tasks.join(", "), told.text);
                told.text = what.into();
            }
            told.tone = StyleRole::Done;
        }
        _ => {}
    }
}
