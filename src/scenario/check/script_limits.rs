//! Limits of a file that make rows of the script unreachable.

use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::tree::TextSpan;

/// Why no call matches a row: it is for an attempt past a limit. A limit from an override holds for
/// this run only; the rows may be for others.
pub(crate) fn unreachable(row: &ScriptTable, file: &ScenarioFile) -> Option<(TextSpan, String)> {
    if let Some(again) = &row.again
        && let Some(model) = &file.model
    {
        let limit = model.ask_again.as_ref();
        let times = limit.map_or(0, |limit| limit.value.0);
        if again.value.0 > times && limit.is_none_or(|limit| limit.at.text == 0) {
            return Some((again.at, format!("model.ask_again is {times}")));
        }
    }
    let limit = &file.tools.as_ref()?.llm.as_ref()?.retries.as_ref()?.max_attempts;
    let attempts = limit.value.0;
    let attempt = row.attempt.as_ref()?;
    (attempt.value.0 > attempts && limit.at.text == 0)
        .then(|| (attempt.at, format!("tools.llm.retries.max_attempts is {attempts}")))
}
