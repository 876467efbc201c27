//! The rows of a scenario's script: builds them with their steps and failures, and reports rows
//! that are never used and names that are not defined. A row may break the contract of its step on
//! purpose, to show how a run stops, so that is a warning.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::condition;
use super::condition::ConditionScope;
use crate::base::name::{AgentName, RoleName};
use crate::scenario::patterns;
use crate::scenario::patterns::agents::script;
use crate::scenario::patterns::row::{PatternRow, Speakers};
use crate::scenario::read::format::tools::{FaultTable, FaultWord};
use crate::scenario::read::format::{ScenarioFile, ScriptTable};
use crate::scenario::read::shape::{NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};
use crate::scenario::read::{ReadContext, closest_name};
use crate::scenario::spec::script::{Script, ScriptRow, ScriptStep, TextFill};
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind};

/// Builds the script of a file. Problems are reported to `cx`.
pub(crate) fn build(
    file: &ScenarioFile,
    own: &PatternRow,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Script {
    if let (Speakers::Nobody, Some((_, first))) = (own.speakers, file.model_rows().next()) {
        let what = format!("the pattern {} does not call the model", own.name);
        cx.at_key("script", |cx| cx.error(first.at, what, "remove [[script]]"));
        return Script::default();
    }
    let rows = file
        .model_rows()
        .filter_map(|(index, table)| {
            cx.at_key("script", |cx| cx.at_index(index, |cx| row(table, file, own, scope, cx)))
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
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ScriptRow> {
    let table = &row.value;
    let step = table.step.as_ref().map(|step| step.value);
    for (key, at) in table.keys_of_people() {
        let what = format!("`{key}` is for answers of people");
        cx.at_key(key, |cx| cx.error(at, what, "add person = \"NAME\""));
    }
    // In a pattern of agents that has steps, too, a row with a step is not an agent's.
    if own.has_agents() && (step.is_none() || own.steps.is_empty()) {
        script::check_agent_row(row, file, cx);
    } else {
        check_row_without_agent(row, file, own, cx);
    }
    let names = patterns::condition_names(own, step);
    let shown = ConditionScope { names, file, scope, of_run: false };
    // For an unknown step, the names that its condition may use are unknown, too.
    let unknown = step.is_some_and(|step| !own.has_step(step));
    let lost = match own.has_agents() {
        true => unknown && !own.steps.is_empty(),
        false => !own.checks_unknown_steps && (step.is_none() || unknown),
    };
    let when = table
        .when
        .as_ref()
        .filter(|_| !lost)
        .map(|when| cx.at_key("when", |cx| condition::compile_condition(when, &shown, cx)));
    let fault = table.fault.as_ref().map(|table| cx.at_key("fault", |cx| build_fault(table, cx)));
    let later: Vec<&str> = names.iter().copied().filter(|it| !is_fixed_name(it)).collect();
    let answer = answer(row, own, file, scope, &later, cx);
    let calls = table.calls.as_ref().map(|calls| script::calls(table, calls, file, scope, cx));
    let (reply_text, fills) = answer?;
    Some(ScriptRow {
        role: table.role.as_ref().map(|role| RoleName::from(role.text.as_str())),
        agent: table.agent.as_ref().map(|agent| AgentName::from(agent.text.as_str())),
        message: table.message.as_ref().map(|message| message.value.0),
        turn: table.turn.as_ref().map(|turn| turn.value.0),
        calls: calls.unwrap_or_default(),
        end: table.end,
        usage: table.usage.as_ref().map(|usage| usage.value.tokens()),
        step,
        round: table.round.as_ref().map(|round| round.value.0),
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        again: table.again.as_ref().map(|again| again.value.0),
        nth: table.nth.as_ref().map(|nth| nth.value.0),
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
        Speakers::Agents | Speakers::Steps(_) | Speakers::Nobody => step_help(own),
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
                    cx.error(step.at, what, step_help(own));
                }
            }
        }),
        (None, Speakers::Steps(no_roles)) if !cx.at_key("step", |cx| cx.has_error_here()) => {
            let what = format!("`step` is missing: {no_roles}");
            cx.error(row.at, what, step_help(own));
        }
        _ => {}
    }
}

/// Whether a name has the same value in every call: it is filled in when the file is read.
fn is_fixed_name(name: &str) -> bool {
    matches!(name, "facts" | "inputs")
}

/// The text of the reply, and the values that are filled into it later.
fn answer(
    row: &Positioned<ScriptTable>,
    own: &PatternRow,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
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
                    .json(&mut |text, at| scope.value_of(text, at, cx))
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
            Some(cx.at_key("raw", |cx| scope.scripted_text(&raw.text, raw.at, later, cx)))
        }
        (None, None, Some(text)) => {
            Some(cx.at_key("text", |cx| scope.scripted_text(&text.text, text.at, later, cx)))
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
    let failed = failed_rows(file.script.0.len(), cx);
    for (index, row) in file.model_rows().filter(|(index, _)| !failed[*index]) {
        let covers = |(at, earlier): &(usize, &Positioned<ScriptTable>)| {
            !failed[*at] && covers(&earlier.value, &row.value)
        };
        let mut before = file.model_rows().take_while(|(at, _)| *at < index);
        let why = if let Some((earlier, _)) = before.find(covers) {
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
        && wider(&earlier.nth, &row.nth, |nth| nth.value.0)
        && wider(&earlier.again, &row.again, |again| again.value.0)
}

/// The allowed steps of a pattern, as a help text.
fn step_help(own: &PatternRow) -> String {
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
    let mut rows = file.model_rows();
    if rows.all(|(_, row)| row.value.step.as_ref().is_none_or(|it| it.value != step)) {
        let help = format!("add a row in [[script]] with step = \"{}\"", step.word());
        let what = format!("there is no scripted {what} for offline runs");
        cx.at_key(place, |cx| cx.warn_no_reply(at, what, &help, step.begins_runs()));
    }
}

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

/// Builds the failure of a row, of the script or of a fixture.
pub(crate) fn build_fault(
    fault: &Positioned<FaultTable>,
    cx: &mut ReadContext,
) -> Option<ScriptFault> {
    let table = &fault.value;
    if let (None, Some(wait)) = (&table.status, &table.retry_after_s) {
        let what = "only a failure with a status can have a Retry-After";
        cx.at_key("retry_after_s", |cx| cx.error(wait.at, what, "add `status`, such as 429"));
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
            FaultWord::Resolve => ScriptFaultKind::Resolve,
            FaultWord::Tls => ScriptFaultKind::Tls,
            FaultWord::Tool => ScriptFaultKind::Tool,
            FaultWord::TooLarge => ScriptFaultKind::TooLarge,
            FaultWord::Denied => ScriptFaultKind::Denied,
            FaultWord::Rejected => ScriptFaultKind::Rejected,
        },
        (None, None) if cx.has_error_here() => return None,
        (given, _) => {
            let what = match given {
                Some(_) => "a fault has a status or a kind, not both",
                None => "the fault has no status and no kind",
            };
            cx.error(fault.at, what, "write status = 503, or kind = \"hang\"");
            return None;
        }
    };
    let text = table.text.as_ref().map(|text| Arc::from(text.text.as_str()));
    Some(ScriptFault { kind, times: table.times.0, text, retry: table.retry })
}

/// Reports a name that the scenario does not define.
pub(crate) fn report_unknown_name<'n>(
    name: &NonBlankString,
    wanted: &str,
    known: impl Iterator<Item = &'n str>,
    cx: &mut ReadContext,
) {
    let help = cx.suggest(&name.text, known);
    cx.error(name.at, format!("`{}` is not {wanted} of this scenario", name.text), help);
}

/// The text of a value, if the file shows it.
pub(crate) enum ScriptedText<'n> {
    /// This text, trimmed.
    Text(&'n str),
    /// An input or a fact will be filled in.
    FilledIn,
    /// Not a string, or an empty one.
    Missing,
}

pub(crate) fn text(node: &TomlNode) -> ScriptedText<'_> {
    match &node.value {
        TomlValue::Text(text) if text.contains("{{") => ScriptedText::FilledIn,
        TomlValue::Text(text) if !text.trim().is_empty() => ScriptedText::Text(text.trim()),
        _ => ScriptedText::Missing,
    }
}

/// Whether an input or a fact will be filled in.
pub(crate) fn is_filled_in(node: &TomlNode) -> bool {
    matches!(text(node), ScriptedText::FilledIn)
}

/// Warns of a value that is not a text, with the consequence.
pub(crate) fn expect_text(node: &TomlNode, stop: &str, cx: &mut ReadContext) {
    if matches!(text(node), ScriptedText::Missing) {
        warn_wrong_type(node, "a string that is not empty", stop, cx);
    }
}

/// Warns of a value of the wrong type, with the consequence.
pub(crate) fn warn_wrong_type(node: &TomlNode, wanted: &str, stop: &str, cx: &mut ReadContext) {
    cx.warn(node.at, format!("expected {wanted}, found {}: {stop}", node.describe()), "");
}

/// Reads the value under a key, if there is one.
pub(crate) fn with_key(
    table: &TomlTable,
    key: &str,
    cx: &mut ReadContext,
    read: impl FnOnce(&TomlNode, &mut ReadContext),
) {
    if let Some(node) = table.get(key) {
        cx.at_key(key, |cx| read(node, cx));
    }
}

/// Reads the items of a list that must not be empty.
pub(crate) fn each_item(
    node: &TomlNode,
    stop: &str,
    cx: &mut ReadContext,
    mut read: impl FnMut(&TomlNode, &mut ReadContext),
) {
    match &node.value {
        TomlValue::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                cx.at_index(index, |cx| read(item, cx));
            }
        }
        _ if is_filled_in(node) => {}
        TomlValue::List(_) => cx.warn(node.at, format!("the list is empty: {stop}"), ""),
        _ => warn_wrong_type(node, "a list", stop, cx),
    }
}

/// Warns of missing keys, with the consequence: at a key that may be a typing mistake, else at `at`.
pub(crate) fn require_keys(
    table: &TomlTable,
    at: TextSpan,
    keys: &[&str],
    stop: &str,
    cx: &mut ReadContext,
) {
    for key in keys.iter().filter(|key| table.get(key).is_none()) {
        let (at, help) = match misspelt_key(table, key, keys) {
            Some(wrong) => (wrong.at, format!("rename `{}`", wrong.text)),
            None => (at, String::new()),
        };
        cx.at_key(key, |cx| cx.warn(at, format!("`{key}` is missing: {stop}"), help));
    }
}

/// The key of a table that is probably meant to be this one; `known` are those that belong there.
pub(crate) fn misspelt_key<'n>(
    table: &'n TomlTable,
    key: &str,
    known: &[&str],
) -> Option<&'n TomlKey> {
    let others = || table.entries.iter().map(|(other, _)| other);
    let others = || others().filter(|other| !known.contains(&other.text.as_str()));
    let near = closest_name(key, others().map(|other| other.text.as_str()))?;
    others().find(|other| other.text == near)
}
