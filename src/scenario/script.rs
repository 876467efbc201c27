//! The rows of a scenario's script: what each needs, and which of them are never used.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::build::unknown;
use super::condition::{self, Condition};
use super::format::{FaultTable, FaultWord, File, ScriptTable};
use super::model::{Script, ScriptFault, ScriptFaultKind, ScriptRow, ScriptStep};
use super::name::RoleName;
use super::shape::{At, Prose, Reader};
use super::template::Filling;

/// The script of a file. Problems are told to `cx`.
pub(super) fn build(file: &File, filling: &Filling<'_>, cx: &mut Reader) -> Script {
    let rows = file
        .script
        .0
        .iter()
        .enumerate()
        .filter_map(|(index, table)| {
            cx.within("script", |cx| cx.item(index, |cx| row(table, file, filling, cx)))
        })
        .collect();
    never_used(file, cx);
    silent(file, cx);
    Script { rows }
}

fn row(
    row: &At<ScriptTable>,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<ScriptRow> {
    let table = &row.value;
    if let Some(role) = &table.role
        && !file.roles.has(&role.text)
    {
        cx.within("role", |cx| unknown(role, "a role", file.roles.names(), cx));
    }
    if let (Some(step), Some(role)) = (&table.step, &table.role) {
        let what = "a step of the pattern is no role's turn";
        cx.within("role", |cx| cx.error(role.at, what, "leave `role` or `step` out"));
        let _ = step;
    }
    if let (Some(_), Some(round)) = (&table.step, &table.round) {
        let what = "the step finalize belongs to no round";
        cx.within("round", |cx| cx.error(round.at, what, "leave `round` out"));
    }
    let step = table.step.as_ref().map(|step| step.value);
    let when = table.when.as_ref().map(|when| cx.within("when", |cx| compile(when, step, cx)));
    let fault = table.fault.as_ref().map(|table| cx.within("fault", |cx| fault(table, cx)));
    let answer = answer(row, filling, cx);
    Some(ScriptRow {
        role: table.role.as_ref().map(|role| RoleName::from(role.text.as_str())),
        step,
        round: table.round.as_ref().map(|round| round.value.0),
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        when: when.map_or(Some(None), |when| when.map(Some))?,
        latency: table.latency,
        fault: fault.map_or(Some(None), |fault| fault.map(Some))?,
        answer: answer?,
    })
}

fn compile(when: &Prose, step: Option<ScriptStep>, cx: &mut Reader) -> Option<Condition> {
    let names = match step {
        None => condition::CONTRIBUTION_NAMES,
        Some(ScriptStep::Finalize) => condition::FINALIZE_NAMES,
    };
    match Condition::compile(&when.text) {
        Ok(condition) => {
            let mut good = true;
            for (name, at) in condition.names_outside(names) {
                let at = cx.inside(when.at, at, at + name.len());
                cx.error(
                    at,
                    format!("`{name}` is not shown here"),
                    format!("names: {}", names.join(", ")),
                );
                good = false;
            }
            good.then_some(condition)
        }
        Err(error) => {
            let at = match error.offset() {
                Some(at) => cx.inside(when.at, at, at + 1),
                None => when.at,
            };
            cx.error(at, error.to_string(), "");
            None
        }
    }
}

fn fault(fault: &At<FaultTable>, cx: &mut Reader) -> Option<ScriptFault> {
    let table = &fault.value;
    if let (None, Some(wait)) = (&table.status, &table.retry_after_s) {
        let what = "only an answer with a status has a Retry-After";
        cx.within("retry_after_s", |cx| cx.error(wait.at, what, "add `status`, such as 429"));
    }
    let kind = match (table.status, table.kind) {
        (Some(status), None) => ScriptFaultKind::Status {
            status: u16::try_from(status.0).ok()?,
            retry_after: table.retry_after_s.as_ref().map(|wait| wait.value.0),
        },
        (None, Some(word)) => match word {
            FaultWord::Hang => ScriptFaultKind::Hang,
            FaultWord::Refused => ScriptFaultKind::Refused,
            FaultWord::Reset => ScriptFaultKind::Reset,
            FaultWord::BadResponse => ScriptFaultKind::BadResponse,
        },
        (given, _) => {
            let what = match given {
                Some(_) => "a fault is a status or a kind, not both",
                None => "the fault does not say what goes wrong",
            };
            cx.error(fault.at, what, "status = 503, or kind = \"hang\"");
            return None;
        }
    };
    Some(ScriptFault { kind, times: table.times.0 })
}

fn answer(row: &At<ScriptTable>, filling: &Filling<'_>, cx: &mut Reader) -> Option<Arc<str>> {
    let table = &row.value;
    match (&table.reply, &table.raw, &table.text) {
        (Some(reply), None, None) => {
            let fields = cx.within("reply", |cx| {
                reply
                    .value
                    .0
                    .json(&mut |text, at| filling.value_of(text, at, cx))
                    .unwrap_or_default()
            });
            let mut whole = Map::new();
            if let Some(role) = &table.role
                && !fields.contains_key("agent")
            {
                whole.insert("agent".to_owned(), Value::String(role.text.clone()));
            }
            whole.extend(fields);
            Some(Value::Object(whole).to_string().into())
        }
        (None, Some(raw), None) => {
            Some(cx.within("raw", |cx| filling.text(&raw.text, raw.at, cx)).into())
        }
        (None, None, Some(text)) => {
            Some(cx.within("text", |cx| filling.text(&text.text, text.at, cx)).into())
        }
        (None, None, None) => {
            cx.error(row.at, "the row says nothing", "one of `reply`, `raw` and `text`");
            None
        }
        _ => {
            cx.error(
                row.at,
                "the row says more than one thing",
                "one of `reply`, `raw` and `text`",
            );
            None
        }
    }
}

/// Rows that no call can come to.
fn never_used(file: &File, cx: &mut Reader) {
    let rows = &file.script.0;
    for (index, row) in rows.iter().enumerate() {
        let why = if let Some(earlier) =
            rows[..index].iter().position(|earlier| covers(&earlier.value, &row.value))
        {
            Some((row.at, format!("script[{earlier}] stands before it and takes every call of it")))
        } else {
            out_of_reach(&row.value, file)
        };
        if let Some((at, help)) = why {
            cx.within("script", |cx| {
                cx.item(index, |cx| cx.warn(at, "this row can never be used", help));
            });
        }
    }
}

/// Whether every call that a row could answer is answered by an earlier one.
fn covers(earlier: &ScriptTable, row: &ScriptTable) -> bool {
    fn wider<T, V: PartialEq>(
        earlier: &Option<T>,
        row: &Option<T>,
        value: impl Fn(&T) -> V,
    ) -> bool {
        match (earlier, row) {
            (None, _) => true,
            (Some(earlier), Some(row)) => value(earlier) == value(row),
            (Some(_), None) => false,
        }
    }
    let step = |row: &ScriptTable| row.step.as_ref().map(|step| step.value);
    let same_when = match (&earlier.when, &row.when) {
        (None, _) => true,
        (Some(earlier), Some(row)) => earlier.text == row.text,
        (Some(_), None) => false,
    };
    same_when
        && step(earlier) == step(row)
        && wider(&earlier.role, &row.role, |role| role.text.clone())
        && wider(&earlier.round, &row.round, |round| round.value.0)
        && wider(&earlier.attempt, &row.attempt, |attempt| attempt.value.0)
}

fn out_of_reach(row: &ScriptTable, file: &File) -> Option<(super::tree::Span, String)> {
    let rounds = file.budget.as_ref()?.max_rounds.value.0;
    if let Some(round) = &row.round
        && round.value.0 > rounds
    {
        return Some((round.at, format!("budget.max_rounds is {rounds}")));
    }
    let attempts = file.tools.as_ref()?.llm.as_ref()?.retries.as_ref()?.max_attempts.value.0;
    if let Some(attempt) = &row.attempt
        && attempt.value.0 > attempts
    {
        return Some((attempt.at, format!("tools.llm.retries.max_attempts is {attempts}")));
    }
    let sequence = &file.collaboration.as_ref()?.sequence.as_ref()?.value.0;
    let role = row.role.as_ref()?;
    let speaks = sequence.iter().any(|seat| seat.text == role.text);
    (!speaks && file.roles.has(&role.text))
        .then(|| (role.at, format!("`{}` is not in collaboration.sequence", role.text)))
}

/// Roles and steps that offline would have nothing to say.
fn silent(file: &File, cx: &mut Reader) {
    let Some(table) = &file.collaboration else { return };
    let rows = &file.script.0;
    for entry in &file.roles.entries {
        let sits = table
            .sequence
            .as_ref()
            .is_some_and(|sequence| sequence.value.0.iter().any(|seat| seat.text == entry.name));
        let speaks = rows.iter().any(|row| {
            let row = &row.value;
            row.step.is_none() && row.role.as_ref().is_none_or(|role| role.text == entry.name)
        });
        if sits && !speaks {
            cx.within(&format!("roles.{}", entry.name), |cx| {
                let what = format!("offline `{}` would have nothing to say", entry.name);
                cx.warn(entry.at, what, "give it a row in [[script]]");
            });
        }
    }
    if let Some(prompt) = &table.finalize_prompt
        && !rows.iter().any(|row| row.value.step.is_some())
    {
        cx.within("collaboration.finalize_prompt", |cx| {
            let what = "offline there would be no launch brief";
            cx.warn(prompt.at, what, "give it a row in [[script]] with step = \"finalize\"");
        });
    }
}
