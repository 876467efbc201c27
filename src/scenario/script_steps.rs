//! The steps of patterns in scripts, and warnings about steps without a row.

use super::format::{File, Pattern};
use super::model::ScriptStep;
use super::reader::Reader;
use super::research::Who;
use super::shape::At;
use super::tree::Span;

/// The word for a step in files.
pub(super) fn word(step: ScriptStep) -> &'static str {
    match step {
        ScriptStep::Plan => "plan",
        ScriptStep::Notes => "notes",
        ScriptStep::Synthesize => "synthesize",
        ScriptStep::Finalize => "finalize",
    }
}

/// The steps of a pattern that the model does.
pub(super) fn of(pattern: Pattern) -> &'static [ScriptStep] {
    match pattern {
        Pattern::Collaboration => &[ScriptStep::Finalize],
        Pattern::Orchestrator => &[ScriptStep::Plan, ScriptStep::Finalize],
        Pattern::Research => &[ScriptStep::Plan, ScriptStep::Notes, ScriptStep::Synthesize],
        Pattern::Team | Pattern::Swarm | Pattern::Resilience => &[],
    }
}

/// The allowed steps of a pattern, as a help text.
pub(super) fn help(pattern: Pattern) -> String {
    let words: Vec<String> =
        of(pattern).iter().map(|step| format!("step = \"{}\"", word(*step))).collect();
    words.join(" or ")
}

/// The key that says who does a step of research, with its value.
pub(super) fn done_by(file: &File, step: ScriptStep) -> Option<(&'static str, &At<Who>)> {
    let table = file.research.as_ref()?;
    match step {
        ScriptStep::Plan => Some(("plan", &table.plan)),
        ScriptStep::Notes => Some(("notes", &table.notes)),
        ScriptStep::Synthesize => Some(("answer", &table.answer)),
        ScriptStep::Finalize => None,
    }
}

/// Reports steps without a scripted reply.
pub(super) fn silent(file: &File, cx: &mut Reader) {
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
        nothing_said(file, step, place, prompt.at, what, cx);
    }
    let steps = [
        (ScriptStep::Plan, "plan"),
        (ScriptStep::Notes, "note"),
        (ScriptStep::Synthesize, "answer"),
    ];
    for (step, what) in steps {
        let Some((key, by)) = done_by(file, step).filter(|(_, by)| by.value == Who::Model) else {
            continue;
        };
        if cx.within(&format!("research.{key}"), |cx| cx.failed_here()) {
            continue;
        }
        let question = file.research.as_ref().and_then(|table| table.question.as_ref());
        // A step that the file does not set is reported at the question.
        let at = if by.at.end > 0 { Some(by.at) } else { question.map(|question| question.at) };
        if let Some(at) = at {
            nothing_said(file, step, &format!("research.{key}"), at, what, cx);
        }
    }
}

/// Reports a step if no row has a reply for it.
fn nothing_said(file: &File, step: ScriptStep, place: &str, at: Span, what: &str, cx: &mut Reader) {
    let rows = &file.script.0;
    if rows.iter().all(|row| row.value.step.as_ref().is_none_or(|it| it.value != step)) {
        let help = format!("add a row in [[script]] with step = \"{}\"", word(step));
        // Every run begins with the plan.
        let certain = step == ScriptStep::Plan;
        let what = format!("there is no scripted {what} for offline runs");
        cx.within(place, |cx| cx.silent(at, what, &help, certain));
    }
}
