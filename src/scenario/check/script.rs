//! The rows of a scenario's script: builds them, and reports rows that are never used.

use serde_json::{Map, Value};

use super::condition_check;
use super::condition_check::ConditionScope;
use super::fault::fault;
use super::script_steps;
use super::unknown_name::report_unknown_name;
use crate::agents::file::script;
use crate::base::name::{AgentName, RoleName};
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::pattern_row::{PatternRow, Speakers};
use crate::scenario::patterns;
use crate::scenario::spec::script::{Script, ScriptRow, TextFill};

/// Builds the script of a file. Problems are reported to `cx`.
pub(crate) fn build(
    file: &ScenarioFile,
    own: &PatternRow,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Script {
    if let (Speakers::Nobody, Some(first)) = (own.speakers, file.script.0.first()) {
        let what = format!("the pattern {} does not call the model", own.name);
        cx.at_key("script", |cx| cx.error(first.at, what, "remove [[script]]"));
        return Script::default();
    }
    let rows = file
        .script
        .0
        .iter()
        .enumerate()
        .filter_map(|(index, table)| {
            cx.at_key("script", |cx| cx.at_index(index, |cx| row(table, file, own, filling, cx)))
        })
        .collect();
    warn_of_unused_rows(file, own, cx);
    if !cx.at_key("script", |cx| cx.has_error_here()) {
        (own.report_silent)(file, cx);
    }
    Script { rows }
}

fn row(
    row: &Positioned<ScriptTable>,
    file: &ScenarioFile,
    own: &PatternRow,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ScriptRow> {
    let table = &row.value;
    let step = table.step.as_ref().map(|step| step.value);
    // In a pattern of agents that has steps, too, a row with a step is not an agent's.
    if own.has_agents() && (step.is_none() || own.steps.is_empty()) {
        script::check_agent_row(row, file, cx);
    } else {
        check_row_without_agent(row, file, own, cx);
    }
    let names = patterns::condition_names(own, step);
    let shown = ConditionScope { names, file, filling, of_run: false };
    // For an unknown step, the names that its condition may use are unknown, too.
    let unknown = step.is_some_and(|step| !own.has_step(step));
    let lost = match own.has_agents() {
        true => unknown && !own.steps.is_empty(),
        false => !own.checks_unknown_steps && (step.is_none() || unknown),
    };
    let when =
        table.when.as_ref().filter(|_| !lost).map(|when| {
            cx.at_key("when", |cx| condition_check::compile_condition(when, &shown, cx))
        });
    let fault = table.fault.as_ref().map(|table| cx.at_key("fault", |cx| fault(table, cx)));
    let later: Vec<&str> = names.iter().copied().filter(|it| !is_fixed_name(it)).collect();
    let answer = answer(row, own, file, filling, &later, cx);
    let calls = table.calls.as_ref().map(|calls| script::calls(table, calls, file, filling, cx));
    let (reply_text, fills) = answer?;
    Some(ScriptRow {
        role: table.role.as_ref().map(|role| RoleName::from(role.text.as_str())),
        agent: table.agent.as_ref().map(|agent| AgentName::from(agent.text.as_str())),
        message: table.message.as_ref().map(|message| message.value.0),
        turn: table.turn.as_ref().map(|turn| turn.value.0),
        calls: calls.unwrap_or_default(),
        end: table.end,
        step,
        round: table.round.as_ref().map(|round| round.value.0),
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        again: table.again.as_ref().map(|again| again.value.0),
        when: when.map_or(Some(None), |when| when.map(Some))?,
        latency: table.latency,
        fault: fault.map_or(Some(None), |fault| fault.map(Some))?,
        reply_text: reply_text.into(),
        fills,
        lacks_agent: table.step.is_none()
            && table.role.is_none()
            && table.reply.as_ref().is_some_and(|reply| reply.value.table.get("agent").is_none()),
    })
}

/// Checks the role and the step of a row that is not an agent's.
fn check_row_without_agent(
    row: &Positioned<ScriptTable>,
    file: &ScenarioFile,
    own: &PatternRow,
    cx: &mut ReadContext,
) {
    let table = &row.value;
    let help = match own.speakers {
        Speakers::Roles => "write role = \"NAME\"".to_owned(),
        Speakers::Agents | Speakers::Steps(_) | Speakers::Nobody => script_steps::step_help(own),
    };
    script::report_agent_row_keys(table, &help, cx);
    if let Some(role) = &table.role
        && own.speakers == Speakers::Roles
        && !file.roles.has(&role.text)
    {
        cx.at_key("role", |cx| report_unknown_name(role, "a role", file.roles.names(), cx));
    }
    if let (Some(_), Some(role)) = (&table.step, &table.role) {
        let what = "a step of the pattern is not a role's turn";
        cx.at_key("role", |cx| cx.error(role.at, what, "remove `role` or `step`"));
    }
    if let (Some(step), Some(round)) = (&table.step, &table.round) {
        let what = format!("the step {} belongs to no round", step.value.word());
        cx.at_key("round", |cx| cx.error(round.at, what, "remove `round`"));
    }
    match (&table.step, own.speakers) {
        (Some(step), _) if !own.has_step(step.value) => cx.at_key("step", |cx| {
            let refused = own.refused_steps.iter().find(|(refused, ..)| *refused == step.value);
            match refused {
                Some((_, what, help)) => cx.error(step.at, *what, *help),
                None => {
                    let word = step.value.word();
                    let what = format!("the pattern has no step {word}");
                    cx.error(step.at, what, script_steps::step_help(own));
                }
            }
        }),
        (None, Speakers::Steps(no_roles)) if !cx.at_key("step", |cx| cx.has_error_here()) => {
            let what = format!("`step` is missing: {no_roles}");
            cx.error(row.at, what, script_steps::step_help(own));
        }
        _ => {}
    }
}

/// Whether a name has the same value in every call: it is filled in when the file is read.
fn is_fixed_name(name: &str) -> bool {
    matches!(name, "facts" | "inputs")
}

/// The text of the reply, and what is filled into it later.
fn answer(
    row: &Positioned<ScriptTable>,
    own: &PatternRow,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    later: &[&str],
    cx: &mut ReadContext,
) -> Option<(String, Vec<TextFill>)> {
    let table = &row.value;
    match (&table.reply, &table.raw, &table.text) {
        (Some(reply), None, None) => {
            let fields = cx.at_key("reply", |cx| {
                reply
                    .value
                    .table
                    .json(&mut |text, at| filling.value_of(text, at, cx))
                    .unwrap_or_default()
            });
            if !cx.at_key("reply", |cx| cx.has_error_here()) {
                (own.check_reply)(table, reply, file, cx);
            }
            let mut whole = Map::new();
            if let Some(role) = &table.role
                && !fields.contains_key("agent")
            {
                whole.insert("agent".to_owned(), Value::String(role.text.clone()));
            }
            whole.extend(fields);
            Some((Value::Object(whole).to_string(), Vec::new()))
        }
        (None, Some(raw), None) => {
            Some(cx.at_key("raw", |cx| filling.scripted_text(&raw.text, raw.at, later, cx)))
        }
        (None, None, Some(text)) => {
            Some(cx.at_key("text", |cx| filling.scripted_text(&text.text, text.at, later, cx)))
        }
        (None, None, None) if table.calls.is_some() => Some((String::new(), Vec::new())),
        (None, None, None) if cx.has_error_here() => None,
        (None, None, None) => {
            let help = match own.has_agents() {
                true => "write one of `reply`, `raw` and `text`, or `calls`",
                false => "write one of `reply`, `raw` and `text`",
            };
            cx.error(row.at, "the row has no reply", help);
            None
        }
        _ => {
            cx.error(
                row.at,
                "the row has more than one reply",
                "keep one of `reply`, `raw` and `text`",
            );
            None
        }
    }
}

/// The rows that have errors; nothing else is reported about them.
fn failed_rows(rows: usize, cx: &mut ReadContext) -> Vec<bool> {
    cx.at_key("script", |cx| {
        (0..rows).map(|index| cx.at_index(index, |cx| cx.has_error_here())).collect()
    })
}

/// Warns of rows that match no call.
fn warn_of_unused_rows(file: &ScenarioFile, own: &PatternRow, cx: &mut ReadContext) {
    let rows = &file.script.0;
    let failed = failed_rows(rows.len(), cx);
    for (index, row) in rows.iter().enumerate().filter(|(index, _)| !failed[*index]) {
        let covers = |(at, earlier): (usize, &Positioned<ScriptTable>)| {
            !failed[at] && covers(&earlier.value, &row.value)
        };
        let why = if let Some(earlier) = rows[..index].iter().enumerate().position(covers) {
            Some((
                row.at,
                format!("script[{earlier}] comes first and matches every call of this row"),
            ))
        } else {
            (own.unreachable)(&row.value, file)
        };
        if let Some((at, help)) = why {
            cx.at_key("script", |cx| {
                cx.at_index(index, |cx| cx.warn(at, "this row can never be used", help));
            });
        }
    }
}

/// Whether an earlier row matches every call that this row matches.
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
        && wider(&earlier.agent, &row.agent, |agent| agent.text.clone())
        && wider(&earlier.message, &row.message, |message| message.value.0)
        && wider(&earlier.turn, &row.turn, |turn| turn.value.0)
        && wider(&earlier.round, &row.round, |round| round.value.0)
        && wider(&earlier.attempt, &row.attempt, |attempt| attempt.value.0)
        && wider(&earlier.again, &row.again, |again| again.value.0)
}
