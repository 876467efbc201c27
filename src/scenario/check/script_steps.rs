//! The steps of patterns in scripts, and warnings about steps without a row.

use crate::pattern::research::spec::StepMode;
use crate::scenario::file::format::{Pattern, ScenarioFile};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::model::ScriptStep;

/// The word for a step in files.
pub(crate) fn word(step: ScriptStep) -> &'static str {
    match step {
        ScriptStep::Plan => "plan",
        ScriptStep::Notes => "notes",
        ScriptStep::Synthesize => "synthesize",
        ScriptStep::Finalize => "finalize",
    }
}

/// The steps of a pattern that the model does.
pub(crate) fn model_steps(pattern: Pattern) -> &'static [ScriptStep] {
    match pattern {
        Pattern::Collaboration => &[ScriptStep::Finalize],
        Pattern::Orchestrator => &[ScriptStep::Plan, ScriptStep::Finalize],
        Pattern::Research => &[ScriptStep::Plan, ScriptStep::Notes, ScriptStep::Synthesize],
        Pattern::Team | Pattern::Swarm | Pattern::Resilience => &[],
    }
}

/// The allowed steps of a pattern, as a help text.
pub(crate) fn step_help(pattern: Pattern) -> String {
    let words: Vec<String> =
        model_steps(pattern).iter().map(|step| format!("step = \"{}\"", word(*step))).collect();
    words.join(" or ")
}

/// The key that says who does a step of research, with its value.
pub(crate) fn step_mode_key(
    file: &ScenarioFile,
    step: ScriptStep,
) -> Option<(&'static str, &Positioned<StepMode>)> {
    let table = file.research.as_ref()?;
    match step {
        ScriptStep::Plan => Some(("plan", &table.plan)),
        ScriptStep::Notes => Some(("notes", &table.notes)),
        ScriptStep::Synthesize => Some(("answer", &table.answer)),
        ScriptStep::Finalize => None,
    }
}

/// Reports steps without a scripted reply.
pub(crate) fn report_silent_steps(file: &ScenarioFile, cx: &mut ReadContext) {
    let (brief, report) = (file.collaboration.as_ref(), file.orchestrator.as_ref());
    let steps = [
        (
            ScriptStep::Finalize,
            "collaboration.finalize_prompt",
            "launch brief",
            brief.map(|it| &it.finalize_prompt),
        ),
        (ScriptStep::Plan, "orchestrator.plan_prompt", "plan", report.map(|it| &it.plan_prompt)),
        (
            ScriptStep::Finalize,
            "orchestrator.finalize_prompt",
            "report",
            report.map(|it| &it.finalize_prompt),
        ),
    ];
    for (step, place, what, prompt) in steps {
        let Some(Some(prompt)) = prompt else { continue };
        report_silent_step(file, step, place, prompt.at, what, cx);
    }
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

/// Reports a step if no row has a reply for it.
fn report_silent_step(
    file: &ScenarioFile,
    step: ScriptStep,
    place: &str,
    at: TextSpan,
    what: &str,
    cx: &mut ReadContext,
) {
    let rows = &file.script.0;
    if rows.iter().all(|row| row.value.step.as_ref().is_none_or(|it| it.value != step)) {
        let help = format!("add a row in [[script]] with step = \"{}\"", word(step));
        // Every run begins with the plan.
        let certain = step == ScriptStep::Plan;
        let what = format!("there is no scripted {what} for offline runs");
        cx.at_key(place, |cx| cx.warn_no_reply(at, what, &help, certain));
    }
}
