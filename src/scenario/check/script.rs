//! The rows of a scenario's script: builds them, and reports rows that are never used.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::build::report_unknown_name;
use super::condition_check;
use super::condition_check::ConditionScope;
use super::script_contract;
use super::script_steps;
use crate::agents::file::script;
use crate::base::name::{AgentName, RoleName};
use crate::pattern::research::spec::StepMode;
use crate::scenario::condition;
use crate::scenario::file::format::{FaultTable, FaultWord, Pattern, ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::model::{Script, ScriptFault, ScriptFaultKind, ScriptRow, ScriptStep};

/// Builds the script of a file. Problems are reported to `cx`.
pub(crate) fn build(
    file: &ScenarioFile,
    pattern: Pattern,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Script {
    if let (Pattern::Resilience, Some(first)) = (pattern, file.script.0.first()) {
        let what = "the pattern resilience does not call the model";
        cx.at_key("script", |cx| cx.error(first.at, what, "remove [[script]]"));
        return Script::default();
    }
    let rows = file
        .script
        .0
        .iter()
        .enumerate()
        .filter_map(|(index, table)| {
            cx.at_key("script", |cx| {
                cx.at_index(index, |cx| row(table, file, pattern, filling, cx))
            })
        })
        .collect();
    warn_of_unused_rows(file, pattern, cx);
    report_silent_roles(file, cx);
    script::report_silent_agents(file, pattern, cx);
    Script { rows }
}

fn row(
    row: &Positioned<ScriptTable>,
    file: &ScenarioFile,
    pattern: Pattern,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ScriptRow> {
    let table = &row.value;
    if matches!(pattern, Pattern::Team | Pattern::Swarm) {
        script::check_agent_row(row, file, cx);
    } else {
        script::report_agent_row_keys(table, pattern, cx);
    }
    if let Some(role) = &table.role
        && pattern == Pattern::Collaboration
        && !file.roles.has(&role.text)
    {
        cx.at_key("role", |cx| report_unknown_name(role, "a role", file.roles.names(), cx));
    }
    let steps = !matches!(pattern, Pattern::Team | Pattern::Swarm);
    if let (Some(_), Some(role), true) = (&table.step, &table.role, steps) {
        let what = "a step of the pattern is not a role's turn";
        cx.at_key("role", |cx| cx.error(role.at, what, "remove `role` or `step`"));
    }
    if let (Some(step), Some(round), true) = (&table.step, &table.round, steps) {
        let what = format!("the step {} belongs to no round", script_steps::word(step.value));
        cx.at_key("round", |cx| cx.error(round.at, what, "remove `round`"));
    }
    let step = table.step.as_ref().map(|step| step.value);
    match (pattern, &table.step) {
        (Pattern::Orchestrator, None) if !cx.at_key("step", |cx| cx.has_error_here()) => {
            let what = "`step` is missing: an orchestrator has no roles";
            cx.error(row.at, what, script_steps::step_help(pattern));
        }
        (Pattern::Collaboration, Some(Positioned { at, value: ScriptStep::Plan })) => {
            let help = "write step = \"finalize\", or remove it for a role's contribution";
            cx.at_key("step", |cx| cx.error(*at, "a collaboration has no plan", help));
        }
        (Pattern::Research, None) if !cx.at_key("step", |cx| cx.has_error_here()) => {
            let what = "`step` is missing: research has no roles";
            cx.error(row.at, what, script_steps::step_help(pattern));
        }
        (Pattern::Collaboration | Pattern::Orchestrator | Pattern::Research, Some(step))
            if !script_steps::model_steps(pattern).contains(&step.value) =>
        {
            let what = format!("the pattern has no step {}", script_steps::word(step.value));
            cx.at_key("step", |cx| cx.error(step.at, what, script_steps::step_help(pattern)));
        }
        _ => {}
    }
    let names = match (step, pattern) {
        (_, Pattern::Team | Pattern::Swarm) => condition::AGENT_NAMES,
        (None, _) => condition::CONTRIBUTION_NAMES,
        (Some(ScriptStep::Plan), Pattern::Research) => condition::STEPS_NAMES,
        (Some(ScriptStep::Plan), _) => condition::PLAN_NAMES,
        (Some(ScriptStep::Finalize), Pattern::Orchestrator) => condition::REPORT_NAMES,
        (Some(ScriptStep::Finalize), _) => condition::FINALIZE_NAMES,
        (Some(ScriptStep::Notes), _) => condition::NOTES_NAMES,
        (Some(ScriptStep::Synthesize), _) => condition::SYNTHESIZE_NAMES,
    };
    let shown = ConditionScope { names, file, filling };
    // For an unknown step, the names that its condition may use are unknown, too.
    let lost = pattern == Pattern::Research
        && step.is_none_or(|it| !script_steps::model_steps(pattern).contains(&it));
    let when =
        table.when.as_ref().filter(|_| !lost).map(|when| {
            cx.at_key("when", |cx| condition_check::compile_condition(when, &shown, cx))
        });
    let fault = table.fault.as_ref().map(|table| cx.at_key("fault", |cx| fault(table, cx)));
    let answer = answer(row, pattern, file, filling, cx);
    let calls = table.calls.as_ref().map(|calls| script::calls(table, calls, file, filling, cx));
    Some(ScriptRow {
        role: table.role.as_ref().map(|role| RoleName::from(role.text.as_str())),
        agent: table.agent.as_ref().map(|agent| AgentName::from(agent.text.as_str())),
        message: table.message.as_ref().map(|message| message.value.0),
        turn: table.turn.as_ref().map(|turn| turn.value.0),
        calls: calls.unwrap_or_default(),
        step,
        round: table.round.as_ref().map(|round| round.value.0),
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        again: table.again.as_ref().map(|again| again.value.0),
        when: when.map_or(Some(None), |when| when.map(Some))?,
        latency: table.latency,
        fault: fault.map_or(Some(None), |fault| fault.map(Some))?,
        reply_text: answer?,
        lacks_agent: table.step.is_none()
            && table.role.is_none()
            && table.reply.as_ref().is_some_and(|reply| reply.value.table.get("agent").is_none()),
    })
}

/// Builds the failure of a row, of the script or of a fixture.
pub(crate) fn fault(fault: &Positioned<FaultTable>, cx: &mut ReadContext) -> Option<ScriptFault> {
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
    Some(ScriptFault { kind, times: table.times.0 })
}

fn answer(
    row: &Positioned<ScriptTable>,
    pattern: Pattern,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Arc<str>> {
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
                script_contract::check_reply(table, reply, pattern, file, cx);
            }
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
            Some(cx.at_key("raw", |cx| filling.text(&raw.text, raw.at, cx)).into())
        }
        (None, None, Some(text)) => {
            Some(cx.at_key("text", |cx| filling.text(&text.text, text.at, cx)).into())
        }
        (None, None, None) if table.calls.is_some() => Some(Arc::from("")),
        (None, None, None) if cx.has_error_here() => None,
        (None, None, None) => {
            let help = match pattern {
                Pattern::Team | Pattern::Swarm => {
                    "write one of `reply`, `raw` and `text`, or `calls`"
                }
                _ => "write one of `reply`, `raw` and `text`",
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
fn warn_of_unused_rows(file: &ScenarioFile, pattern: Pattern, cx: &mut ReadContext) {
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
            unreachable_reason(&row.value, pattern, file)
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

fn unreachable_reason(
    row: &ScriptTable,
    pattern: Pattern,
    file: &ScenarioFile,
) -> Option<(TextSpan, String)> {
    if let Some(step) = &row.step
        && let Some((key, by)) = script_steps::step_mode_key(file, step.value)
        && by.value != StepMode::Model
        && by.at.text == 0
    {
        return Some((step.at, format!("research.{key}: a rule does it in an offline run")));
    }
    // A limit from an override holds for this run only; the rows may be for others.
    let limit = &file.budget.as_ref()?.max_rounds;
    let rounds = limit.value.0;
    if let Some(round) = &row.round
        && pattern == Pattern::Collaboration
        && round.value.0 > rounds
        && limit.at.text == 0
    {
        return Some((round.at, format!("budget.max_rounds is {rounds}")));
    }
    if let Some(again) = &row.again
        && let Some(limit) = file.model.as_ref().map(|model| &model.ask_again)
        && again.value.0 > limit.value.0
        && limit.at.text == 0
    {
        return Some((again.at, format!("model.ask_again is {}", limit.value.0)));
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

/// Reports roles and steps without a scripted reply.
fn report_silent_roles(file: &ScenarioFile, cx: &mut ReadContext) {
    if cx.at_key("script", |cx| cx.has_error_here()) {
        return;
    }
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
    script_steps::report_silent_steps(file, cx);
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
