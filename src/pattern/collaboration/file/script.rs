//! The rows of roles in scripts.

use crate::scenario::check::script_limits;
use crate::scenario::check::script_steps::report_silent_step;
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::script::ScriptStep;

/// Names bound in a condition on a role's contribution.
pub(crate) const CONTRIBUTION_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "role",
    "round",
    "attempt",
    "flags",
    "recent_rounds",
    "open_conflicts",
];

/// Names bound in a condition on the launch brief.
pub(crate) const FINALIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "final_decision", "history"];

/// Why no call matches a row: it is for a round past the limit, an attempt past a limit, or a role
/// without a seat.
pub(super) fn unreachable(row: &ScriptTable, file: &ScenarioFile) -> Option<(TextSpan, String)> {
    // A limit from an override holds for this run only; the rows may be for others.
    let limit = &file.budget.as_ref()?.max_rounds;
    let rounds = limit.value.0;
    if let Some(round) = &row.round
        && round.value.0 > rounds
        && limit.at.text == 0
    {
        return Some((round.at, format!("budget.max_rounds is {rounds}")));
    }
    let unseated = || {
        let sequence = &file.collaboration.as_ref()?.sequence.as_ref()?.value.0;
        let role = row.role.as_ref()?;
        let speaks = sequence.iter().any(|seat| seat.text == role.text);
        (!speaks && file.roles.has(&role.text))
            .then(|| (role.at, format!("`{}` is not in collaboration.sequence", role.text)))
    };
    script_limits::unreachable(row, file).or_else(unseated)
}

/// Reports roles, and the launch brief, without a scripted reply.
pub(super) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let rows = &file.script.0;
    let sequence = file.collaboration.as_ref().and_then(|table| table.sequence.as_ref());
    for entry in &file.roles.entries {
        let sits = sequence
            .is_some_and(|sequence| sequence.value.0.iter().any(|seat| seat.text == entry.name));
        let speaks = rows.iter().any(|row| {
            let row = &row.value;
            row.step.is_none() && row.role.as_ref().is_none_or(|role| role.text == entry.name)
        });
        if sits && !speaks {
            let certain = is_always_called(&entry.name, file);
            cx.at_key(&format!("roles.{}", entry.name), |cx| {
                let what = format!("`{}` has no scripted reply for offline runs", entry.name);
                cx.warn_no_reply(entry.at, what, "add a row in [[script]] for it", certain);
            });
        }
    }
    let prompt = file.collaboration.as_ref().and_then(|table| table.finalize_prompt.as_ref());
    if let Some(prompt) = prompt {
        let place = "collaboration.finalize_prompt";
        report_silent_step(file, ScriptStep::Finalize, place, prompt.at, "launch brief", cx);
    }
}

/// Whether the first round always reaches the seat of a role: it has no flag, and nothing before it
/// can stop the run.
fn is_always_called(role: &str, file: &ScenarioFile) -> bool {
    let seats = file.collaboration.iter().flat_map(|table| &table.sequence);
    let mut seats = seats.flat_map(|sequence| &sequence.value.0);
    let place = seats.clone().position(|seat| seat.text == role);
    let messages = file.budget.as_ref().map_or(0, |budget| budget.max_messages.value.0);
    if place.is_none_or(|place| place as u64 >= u64::from(messages)) {
        return false;
    }
    // A row without `reply` may be there to break the contract.
    let all_good = |name: &str| {
        file.script.0.iter().all(|row| {
            let table = &row.value;
            let is_its = table.role.as_ref().is_none_or(|role| role.text == name);
            !is_its || table.step.is_some() || (table.reply.is_some() && table.fault.is_none())
        })
    };
    let flagged = |name: &str| {
        let entry = file.roles.entries.iter().find(|entry| entry.name == name);
        entry.and_then(|entry| entry.value.as_ref()).is_none_or(|table| table.flag.is_some())
    };
    let before = seats.by_ref().take_while(|seat| seat.text != role);
    !flagged(role) && before.into_iter().all(|seat| !flagged(&seat.text) && all_good(&seat.text))
}
