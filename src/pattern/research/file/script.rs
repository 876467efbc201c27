//! The steps of research in scripts.

use crate::pattern::research::spec::StepMode;
use crate::scenario::check::script_limits;
use crate::scenario::check::script_steps::report_silent_step;
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::script::ScriptStep;

/// Names bound in a condition on a research plan.
pub(crate) const STEPS_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "max_steps"];

/// Names bound in a condition on the notes of a page.
pub(crate) const NOTES_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "attempt",
    "flags",
    "question",
    "url",
    "domain",
    "title",
    "body",
    "published_at",
    "notes",
];

/// Names bound in a condition on the answer of research.
pub(crate) const SYNTHESIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "notes"];

/// The key that says who does a step, with its value.
fn step_mode_key(
    file: &ScenarioFile,
    step: ScriptStep,
) -> Option<(&'static str, &Positioned<StepMode>)> {
    let table = file.research.as_ref()?;
    match step {
        ScriptStep::Plan => Some(("plan", &table.plan)),
        ScriptStep::Notes => Some(("notes", &table.notes)),
        ScriptStep::Synthesize => Some(("answer", &table.answer)),
        _ => None,
    }
}

/// Why no call matches a row: a rule does its step, or it is for an attempt past a limit.
pub(super) fn unreachable(row: &ScriptTable, file: &ScenarioFile) -> Option<(TextSpan, String)> {
    if let Some(step) = &row.step
        && let Some((key, by)) = step_mode_key(file, step.value)
        && by.value != StepMode::Model
        && by.at.text == 0
    {
        return Some((step.at, format!("research.{key}: a rule does it in an offline run")));
    }
    script_limits::unreachable(row, file)
}

/// Reports steps of the model without a scripted reply.
pub(super) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let steps = [
        (ScriptStep::Plan, "plan"),
        (ScriptStep::Notes, "note"),
        (ScriptStep::Synthesize, "answer"),
    ];
    for (step, what) in steps {
        let Some((key, by)) =
            step_mode_key(file, step).filter(|(_, by)| by.value == StepMode::Model)
        else {
            continue;
        };
        if cx.at_key(&format!("research.{key}"), |cx| cx.has_error_here()) {
            continue;
        }
        let question = file.research.as_ref().and_then(|table| table.question.as_ref());
        // A step that the file does not set is reported at the question.
        let at = if by.at.end > 0 { Some(by.at) } else { question.map(|question| question.at) };
        if let Some(at) = at {
            report_silent_step(file, step, &format!("research.{key}"), at, what, cx);
        }
    }
}
