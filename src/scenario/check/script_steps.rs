//! The steps of patterns in scripts, and warnings about steps without a row.

use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::pattern_row::PatternRow;
use crate::scenario::spec::script::ScriptStep;

/// The allowed steps of a pattern, as a help text.
pub(crate) fn step_help(own: &PatternRow) -> String {
    let words = own.steps.iter().map(|(step, _)| format!("step = \"{}\"", step.word()));
    words.collect::<Vec<_>>().join(" or ")
}

/// Reports a step if no row has a reply for it.
pub(crate) fn report_silent_step(
    file: &ScenarioFile,
    step: ScriptStep,
    place: &str,
    at: TextSpan,
    what: &str,
    cx: &mut ReadContext,
) {
    let rows = &file.script.0;
    if rows.iter().all(|row| row.value.step.as_ref().is_none_or(|it| it.value != step)) {
        let help = format!("add a row in [[script]] with step = \"{}\"", step.word());
        let what = format!("there is no scripted {what} for offline runs");
        cx.at_key(place, |cx| cx.warn_no_reply(at, what, &help, step.begins_runs()));
    }
}
