//! The rows of a scenario's script: what each needs, and which of them are never used.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::build::unknown;
use super::condition::{self, Condition};
use super::format::{FaultTable, FaultWord, File, ScriptTable};
use super::model::{Script, ScriptFault, ScriptFaultKind, ScriptRow, ScriptStep};
use super::name::RoleName;
use super::reader::{Reader, among};
use super::shape::{At, Prose};
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
    if let (Some(_), Some(role)) = (&table.step, &table.role) {
        let what = "a step of the pattern is no role's turn";
        cx.within("role", |cx| cx.error(role.at, what, "leave `role` or `step` out"));
    }
    if let (Some(_), Some(round)) = (&table.step, &table.round) {
        let what = "the step finalize belongs to no round";
        cx.within("round", |cx| cx.error(round.at, what, "leave `round` out"));
    }
    let step = table.step.as_ref().map(|step| step.value);
    let shown = Known { file, filling };
    let when =
        table.when.as_ref().map(|when| cx.within("when", |cx| compile(when, step, &shown, cx)));
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
        unsigned: table.step.is_none()
            && table.role.is_none()
            && table.reply.as_ref().is_some_and(|reply| reply.value.table.get("agent").is_none()),
    })
}

fn compile(
    when: &Prose,
    step: Option<ScriptStep>,
    shown: &Known<'_>,
    cx: &mut Reader,
) -> Option<Condition> {
    let names = match step {
        None => condition::CONTRIBUTION_NAMES,
        Some(ScriptStep::Plan) => condition::PLAN_NAMES,
        Some(ScriptStep::Finalize) => condition::FINALIZE_NAMES,
    };
    let condition = match Condition::compile(&when.text) {
        Ok(condition) => condition,
        Err(error) => {
            let at = match error.offset() {
                Some(at) => cx.inside(when.at, at, at + 1),
                None => when.at,
            };
            let help = "a condition is CEL, such as facts.alerts >= 3 && inputs.region == 'EU'";
            cx.error(at, error.to_string(), help);
            return None;
        }
    };
    let mut good = true;
    for name in condition.names() {
        let at = cx.inside(when.at, name.at, name.at + name.path.join(".").len());
        match name.path[..] {
            [first, ..] if !names.contains(&first) => {
                let help = among(first, names.iter().copied());
                let at = cx.inside(when.at, name.at, name.at + first.len());
                cx.error(at, format!("`{first}` is not shown to this condition"), help);
                good = false;
            }
            ["inputs", field, ..] if !shown.file.inputs.has(field) => {
                cx.error(
                    at,
                    format!("`{field}` is no input"),
                    among(field, shown.file.inputs.names()),
                );
                good = false;
            }
            ["flags", field, ..] if !shown.file.flags.has(field) => {
                cx.error(
                    at,
                    format!("`{field}` is no flag"),
                    among(field, shown.file.flags.names()),
                );
                good = false;
            }
            ["facts", ref fields @ ..] if !name.guarded => {
                if let Some(help) = shown.missing_fact(fields) {
                    let what = format!("there is no fact `{}`", name.path.join("."));
                    cx.warn(at, what, help);
                }
            }
            _ => {}
        }
    }
    good.then_some(condition)
}

/// What the conditions of a file are shown.
struct Known<'f> {
    file: &'f File,
    filling: &'f Filling<'f>,
}

impl Known<'_> {
    /// What was meant, where one of these nested fields is not among the facts.
    fn missing_fact(&self, fields: &[&str]) -> Option<String> {
        let mut facts = self.filling.facts.filter(|_| !self.file.facts.broken)?;
        for field in fields {
            match facts.get(*field) {
                None => return Some(among(field, facts.keys().map(String::as_str))),
                Some(Value::Object(inner)) => facts = inner,
                // Fields of what is no table are an error of their own, told when it runs.
                Some(_) => return None,
            }
        }
        None
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
        (None, None) if cx.failed_here() => return None,
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
                    .table
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
        (None, None, None) if cx.failed_here() => None,
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

/// Which rows are not as they should be: nothing more is said of them.
fn failed_rows(rows: usize, cx: &mut Reader) -> Vec<bool> {
    cx.within("script", |cx| (0..rows).map(|index| cx.item(index, |cx| cx.failed_here())).collect())
}

/// Rows that no call can come to.
fn never_used(file: &File, cx: &mut Reader) {
    let rows = &file.script.0;
    let failed = failed_rows(rows.len(), cx);
    for (index, row) in rows.iter().enumerate().filter(|(index, _)| !failed[*index]) {
        let covers = |(at, earlier): (usize, &At<ScriptTable>)| {
            !failed[at] && covers(&earlier.value, &row.value)
        };
        let why = if let Some(earlier) = rows[..index].iter().enumerate().position(covers) {
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
    // A limit that an override sets is for this run alone: the rows are for others.
    let limit = &file.budget.as_ref()?.max_rounds;
    let rounds = limit.value.0;
    if let Some(round) = &row.round
        && round.value.0 > rounds
        && limit.at.text == 0
    {
        return Some((round.at, format!("budget.max_rounds is {rounds}")));
    }
    let limit = &file.tools.as_ref()?.llm.as_ref()?.retries.as_ref()?.max_attempts;
    let attempts = limit.value.0;
    if let Some(attempt) = &row.attempt
        && attempt.value.0 > attempts
        && limit.at.text == 0
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
    if cx.within("script", |cx| cx.failed_here()) {
        return;
    }
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
