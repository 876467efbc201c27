//! The steps of an orchestrator in scripts.

use crate::scenario::check::script_steps::report_silent_step;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::spec::script::ScriptStep;

/// Names bound in a condition on an orchestrator's plan.
pub(crate) const PLAN_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "max_tasks", "available_workers"];

/// Names bound in a condition on an orchestrator's report.
pub(crate) const REPORT_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "aggregate", "results"];

/// Reports a plan and a report without a scripted reply.
pub(super) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(table) = &file.orchestrator else { return };
    let steps = [
        (ScriptStep::Plan, "orchestrator.plan_prompt", "plan", &table.plan_prompt),
        (ScriptStep::Finalize, "orchestrator.finalize_prompt", "report", &table.finalize_prompt),
    ];
    for (step, place, what, prompt) in steps {
        if let Some(prompt) = prompt {
            report_silent_step(file, step, place, prompt.at, what, cx);
        }
    }
}
