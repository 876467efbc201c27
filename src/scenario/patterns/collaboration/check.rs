//! The tables of a collaboration in a file: from tables to the spec, cross-checks, the rows of
//! roles in scripts and their replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    CollaborationBudget, CollaborationSpec, CollaborationTable, DecideRow, RoleFlag, RoleSpec,
    RoleTable, WhenOff,
};
use crate::base::name::{FlagName, InputName, RoleName};
use crate::scenario::cel::{CelBindings, Condition};
use crate::scenario::check::condition::ConditionScope;
use crate::scenario::check::script::{
    ScriptedText, each_item, expect_text, is_filled_in, report_silent_step, report_unknown_name,
    require_keys, text, warn_wrong_type, with_key,
};
use crate::scenario::check::{condition, script};
use crate::scenario::patterns::row::{BoundaryForm, ModelKey, PatternRow, Speakers, ToolUse};
use crate::scenario::people;
use crate::scenario::read::format::{Pattern, ScenarioFile, ScriptTable};
use crate::scenario::read::names::NamedEntry;
use crate::scenario::read::shape::{FreeTable, NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TextSpan, TomlTable, TomlValue};
use crate::scenario::read::{ReadContext, suggest_declared_name, suggest_name};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::PromptTemplate;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::tools::agent as outside_agent;
use crate::scenario::tools::agent::OutsideAgent;

/// The names that a row of `[[collaboration.decide]]` may use.
const DECIDE_NAMES: &[&str] =
    &["stances", "confidences", "round", "max_rounds", "seats", "weight", "min_go_votes"];

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    tables: &["roles", "agents"],
    budget: &["max_rounds", "max_messages", "min_go_votes"],
    outcome: super::OUTCOME_FIELDS,
    boundaries: &[
        BoundaryForm::Numbered("round"),
        BoundaryForm::Named("message"),
        BoundaryForm::Word("finalize"),
    ],
    speakers: Speakers::Roles,
    reply_names: CONTRIBUTION_NAMES,
    steps: &[(ScriptStep::Finalize, FINALIZE_NAMES)],
    refused_steps: &[(
        ScriptStep::Plan,
        "a collaboration has no plan",
        "write step = \"finalize\", or remove it for a role's contribution",
    )],
    check_reply: check_scripted_contribution,
    unreachable: unreachable_row,
    report_silent: self::report_silent,
    models,
    tool_use: |file, tool| match file.agents.names().any(|agent| agent == tool) {
        true => ToolUse::Checked,
        false => ToolUse::Never("a collaboration calls only llm".to_owned()),
    },
    ..PatternRow::new(Pattern::Collaboration, "collaboration")
};

fn models(file: &ScenarioFile) -> Vec<ModelKey<'_>> {
    let roles = file.roles.entries.iter().filter_map(|role| {
        let caller = ModelCaller::Role(RoleName::from(role.name.as_str()));
        Some(ModelKey::new(
            caller,
            format!("roles.{}.model", role.name),
            &role.value.as_ref()?.model,
        ))
    });
    let brief = file.collaboration.iter().map(|table| {
        let place = "collaboration.finalize_model";
        ModelKey::new(ModelCaller::Step(ScriptStep::Finalize), place, &table.finalize_model)
    });
    roles.chain(brief).collect()
}

/// Builds the collaboration of a file. Problems are reported to `cx`.
pub(crate) fn collaboration(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<CollaborationSpec> {
    let agents = outside_agents(file, cx);
    let roles = cx.at_key("roles", |cx| {
        let mut roles = BTreeMap::new();
        for entry in &file.roles.entries {
            if let Some(role) = role(entry, &agents, file, scope, cx) {
                roles.insert(RoleName::from(entry.name.as_str()), role);
            }
        }
        roles
    });
    let table = file.collaboration.as_ref()?;
    let sequence = cx.at_key("collaboration", |cx| {
        let sequence = cx.at_key("sequence", |cx| sequence(table, file, cx));
        cx.at_key("summary", |cx| {
            for (index, input) in table.summary.0.iter().enumerate() {
                if !file.inputs.has(&input.text) {
                    cx.at_index(index, |cx| {
                        report_unknown_name(input, "an input", file.inputs.names(), cx)
                    });
                }
            }
        });
        sequence
    });
    if let (Some(sequence), Some(list)) = (&sequence, &table.sequence) {
        warn_of_odd_limits(sequence.len(), list.at, file, cx);
    }
    let finalize = table.finalize_prompt.as_ref().map(|prompt| {
        cx.at_key("collaboration.finalize_prompt", |cx| scope.prompt(&prompt.text, prompt.at, cx))
    });
    let decide = cx.at_key("collaboration.decide", |cx| decide_rows(table, file, scope, cx));
    let on_no_decision = match &table.on_no_decision {
        Some(table) => Some(cx.at_key("collaboration.on_no_decision.ask", |cx| {
            people::declared(table.ask.as_ref()?, file, cx)
        })?),
        None => None,
    };
    let finalize_agent = match &table.finalize_agent {
        Some(named) => Some(cx.at_key("collaboration.finalize_agent", |cx| {
            let model = (table.finalize_model.as_ref(), "finalize_model");
            agent_in_place_of(model, named, &agents, file, cx)
        })?),
        None => None,
    };
    let budget = file.budget.as_ref()?;
    let spec = CollaborationSpec {
        on_no_decision,
        finalize_agent,
        budget: CollaborationBudget {
            max_rounds: budget.max_rounds.value.0,
            max_messages: budget.max_messages.value.0,
            max_seconds: budget.max_seconds(40),
            min_go_votes: budget.min_go_votes.value.0,
        },
        sequence: sequence?,
        concurrency: table.concurrency,
        share: table.share,
        decide: decide?,
        roles,
        finalize_prompt: finalize?,
        summary_inputs: table
            .summary
            .0
            .iter()
            .map(|input| InputName::from(input.text.as_str()))
            .collect(),
    };
    warn_of_unread(&spec, file, cx);
    Some(spec)
}

fn sequence(
    table: &CollaborationTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<Vec<RoleName>> {
    let sequence = &table.sequence.as_ref()?.value.0;
    for (index, role) in sequence.iter().enumerate() {
        cx.at_index(index, |cx| {
            if !file.roles.has(&role.text) {
                report_unknown_name(role, "a role", file.roles.names(), cx);
            } else if sequence[..index].iter().any(|earlier| earlier.text == role.text) {
                let what = format!("`{}` has two seats, so it votes twice", role.text);
                cx.warn(role.at, what, "");
            }
        });
    }
    Some(sequence.iter().map(|role| RoleName::from(role.text.as_str())).collect())
}

/// Warns of weights and votes that no row reads.
fn warn_of_unread(spec: &CollaborationSpec, file: &ScenarioFile, cx: &mut ReadContext) {
    for entry in &file.roles.entries {
        if let Some(weight) = entry.value.as_ref().and_then(|role| role.weight.as_ref())
            && !spec.reads("weight")
        {
            let help = "read `weight` in a condition of [[collaboration.decide]], or remove it";
            cx.at_key(&format!("roles.{}.weight", entry.name), |cx| {
                cx.warn(weight.at, format!("the weight of `{}` has no effect", entry.name), help);
            });
        }
    }
    let votes = file.budget.as_ref().map(|budget| &budget.min_go_votes);
    if let Some(votes) = votes.filter(|votes| !votes.is_not_in_file())
        && !spec.decide.is_empty()
        && !spec.reads("min_go_votes")
    {
        cx.at_key("budget.min_go_votes", |cx| {
            let what = "no row of collaboration.decide reads it, so it has no effect";
            cx.warn(votes.at, what, "read `min_go_votes` in a condition, or remove it");
        });
    }
}

fn decide_rows(
    table: &CollaborationTable,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Arc<[DecideRow]>> {
    let scope = ConditionScope { names: DECIDE_NAMES, file, scope, of_run: false };
    let mut always = None;
    let rows = table.decide.0.iter().enumerate().map(|(index, row)| {
        let when = row.when.as_ref().and_then(|when| {
            cx.at_index(index, |cx| {
                cx.at_key("when", |cx| {
                    if let Some(row) = always {
                        let what = format!(
                            "row {row} of the table always holds: this one is never reached"
                        );
                        cx.warn(when.at, what, "move it before that row, or remove it");
                    } else if when.text.trim() == "true" {
                        always = Some(index + 1);
                    }
                    let condition = condition::compile_condition(when, &scope, cx)?;
                    let is_good = check_row(&condition, when, table, cx)
                        && check_values(&condition, when, table, cx);
                    is_good.then_some(condition)
                })
            })
        });
        Some(DecideRow { when: when?, decision: row.decision? })
    });
    // All of them, so that each problem is reported.
    let rows: Vec<Option<DecideRow>> = rows.collect();
    let rows: Vec<DecideRow> = rows.into_iter().collect::<Option<_>>()?;
    Some(rows.into())
}

/// Whether the stances and roles that a row names exist. Problems are reported to `cx`.
fn check_row(
    condition: &Condition,
    when: &NonBlankString,
    table: &CollaborationTable,
    cx: &mut ReadContext,
) -> bool {
    let seats = table.sequence.iter().flat_map(|list| &list.value.0);
    let seats: Vec<&str> = seats.map(|seat| seat.text.as_str()).collect();
    let mut good = true;
    for name in condition.names() {
        let (known, wanted): (&[&str], _) = match name.path[..] {
            ["stances" | "weight", _, ..] => (&STANCES, "a stance"),
            ["confidences", _, ..] => (&seats, "a role in collaboration.sequence"),
            _ => continue,
        };
        let (first, field) = (name.path[0], name.path[1]);
        if !known.contains(&field) {
            let from = name.at + first.len() + 1;
            let at = cx.inner_span(when.at, from, from + field.len());
            let help = suggest_declared_name(first, field, known.iter().copied());
            cx.error(at, format!("`{field}` is not {wanted}"), help);
            good = false;
        }
    }
    for text in condition.texts_in(&["stances", "seats"]) {
        if !seats.contains(&text) {
            let at = when
                .text
                .find(text)
                .map_or(when.at, |at| cx.inner_span(when.at, at, at + text.len()));
            let help = suggest_name(text, seats.iter().copied());
            cx.error(at, format!("`{text}` is not a role in collaboration.sequence"), help);
            good = false;
        }
    }
    good
}

/// Whether the row has a value in some round with all seats. Otherwise it would fail in each.
fn check_values(
    condition: &Condition,
    when: &NonBlankString,
    table: &CollaborationTable,
    cx: &mut ReadContext,
) -> bool {
    let seats = table.sequence.iter().flat_map(|list| &list.value.0);
    let seats: Vec<&str> = seats.map(|seat| seat.text.as_str()).collect();
    let confidences: Map<String, Value> =
        seats.iter().map(|seat| ((*seat).to_owned(), json!(0.5))).collect();
    // A round in which all say the same; the names are those of `RoundFigures::values`.
    let fault_if_all = |said: &str| {
        let each = |of_said: Value, otherwise: Value| -> Value {
            let value = |stance: &&str| if *stance == said { &of_said } else { &otherwise }.clone();
            let fields = STANCES.iter().map(|it| ((*it).to_owned(), value(it)));
            fields.collect::<Map<_, _>>().into()
        };
        let mut shown = CelBindings::default();
        shown.bind("stances", &each(json!(seats), json!([])));
        shown.bind("weight", &each(json!(seats.len() as f64), json!(0.0)));
        shown.bind("confidences", &confidences.clone().into());
        shown.bind("seats", &json!(seats));
        for limit in ["round", "max_rounds", "min_go_votes"] {
            shown.bind(limit, &json!(1));
        }
        condition.holds(&shown).err()
    };
    let faults: Option<Vec<_>> = STANCES.iter().map(|it| fault_if_all(it)).collect();
    let Some(fault) = faults.and_then(|faults| faults.into_iter().next()) else { return true };
    let help = "write a condition that is true or false, such as size(stances.go) >= 2";
    cx.error(when.at, fault.to_string(), help);
    false
}

/// Warns of limits that keep the run from ending with a decision.
fn warn_of_odd_limits(seats: usize, sequence: TextSpan, file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(budget) = &file.budget else { return };
    let seats = u32::try_from(seats).unwrap_or(u32::MAX);
    let help = format!("seats in collaboration.sequence: {seats}");
    // A limit that the file does not set is reported at the list of seats.
    let place = |at: TextSpan| if at.end > 0 { at } else { sequence };
    let (messages, votes) = (&budget.max_messages, &budget.min_go_votes);
    let (rounds, most) = (budget.max_rounds.value.0, messages.value.0);
    let all = u64::from(seats) * u64::from(rounds);
    if u64::from(most) < all {
        cx.at_key("budget.max_messages", |cx| {
            let (what, help) = match most < seats {
                true => (format!("{most} is too few messages for one round"), help.clone()),
                false => (
                    format!("{most} messages are too few for {rounds} rounds of {seats} seats"),
                    format!("set budget.max_messages to {all}, or fewer rounds"),
                ),
            };
            cx.warn(place(messages.at), what, help);
        });
    }
    let by_rows = file.collaboration.as_ref().is_some_and(|table| !table.decide.0.is_empty());
    if votes.value.0 > seats && !by_rows {
        cx.at_key("budget.min_go_votes", |cx| {
            let what =
                format!("{} votes for go are needed, but there are fewer seats", votes.value.0);
            cx.warn(place(votes.at), what, &help);
        });
    }
}

fn role(
    entry: &NamedEntry<RoleTable>,
    agents: &OutsideAgents<'_>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<RoleSpec> {
    cx.at_key(&entry.name, |cx| {
        let has_seat = file.collaboration.as_ref().and_then(|table| table.sequence.as_ref());
        if has_seat.is_some_and(|seats| seats.value.0.iter().all(|seat| seat.text != entry.name)) {
            let what = format!("`{}` has no seat", entry.name);
            cx.warn(entry.at, what, "add it to collaboration.sequence");
        }
        let table = entry.value.as_ref()?;
        if let Some(flag) = &table.flag
            && !file.flags.has(&flag.text)
        {
            cx.at_key("flag", |cx| report_unknown_name(flag, "a flag", file.flags.names(), cx));
        }
        if let (None, Some(when_off)) = (&table.flag, &table.when_off) {
            cx.at_key("when_off", |cx| {
                let help = "add `flag`, or remove `when_off`";
                cx.error(when_off.at, "`when_off` has no effect without a flag", help);
            });
        }
        let person = match &table.person {
            Some(person) => Some(cx.at_key("person", |cx| people::declared(person, file, cx))?),
            None => None,
        };
        let given = [
            ("prompt", table.prompt.as_ref().map(|it| it.at)),
            ("model", table.model.as_ref().map(|it| it.at)),
            ("agent", table.agent.as_ref().map(|it| it.at)),
        ];
        for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
            if let Some(person) = &person {
                let what = format!("the person {person} has this seat: it has no `{key}`");
                cx.at_key(key, |cx| cx.error(at, what, "remove it, or remove `person`"));
            }
        }
        let prompt = match (&table.prompt, &person) {
            (Some(prompt), _) => {
                cx.at_key("prompt", |cx| scope.prompt(&prompt.text, prompt.at, cx))
            }
            (None, Some(_)) => PromptTemplate::default(),
            (None, None) => return None,
        };
        let agent = match table.agent.as_ref().filter(|_| person.is_none()) {
            Some(named) => Some(cx.at_key("agent", |cx| {
                agent_in_place_of((table.model.as_ref(), "model"), named, agents, file, cx)
            })?),
            None => None,
        };
        let behind = table.flag.as_ref().map(|flag| RoleFlag {
            flag: FlagName::from(flag.text.as_str()),
            when_off: table.when_off.as_ref().map_or(WhenOff::Skip, |when_off| when_off.value),
        });
        let weight = table.weight.as_ref().map_or(1.0, |weight| weight.value.0);
        Some(RoleSpec { prompt, person, agent, weight, veto: table.veto, role_flag: behind })
    })
}

/// The agents of other programs, by name.
type OutsideAgents<'f> = BTreeMap<&'f str, Arc<OutsideAgent>>;

/// The agent of another program that has a seat, or writes the brief. `model`: the model that it would have
/// without the agent, by this key.
fn agent_in_place_of(
    (model, key): (Option<&NonBlankString>, &str),
    named: &NonBlankString,
    agents: &OutsideAgents<'_>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<Arc<OutsideAgent>> {
    if model.is_some() {
        let what = format!("an agent and `{key}`");
        cx.error(named.at, what, "keep one of them: an agent has a model of its own");
        return None;
    }
    // What is wrong with an agent is reported at its table.
    if !file.agents.has(&named.text) {
        report_unknown_name(named, "an agent", file.agents.names(), cx);
    }
    agents.get(named.text.as_str()).cloned()
}

/// Builds the agents of other programs. All others are reported, and those that have no seat.
fn outside_agents<'f>(file: &'f ScenarioFile, cx: &mut ReadContext) -> OutsideAgents<'f> {
    let roles = file.roles.entries.iter().filter_map(|entry| entry.value.as_ref()?.agent.as_ref());
    let brief = file.collaboration.iter().filter_map(|table| table.finalize_agent.as_ref());
    let used: Vec<&str> = roles.chain(brief).map(|agent| agent.text.as_str()).collect();
    let mut agents = OutsideAgents::new();
    for entry in &file.agents.entries {
        let Some(table) = &entry.value else { continue };
        cx.at_key(&format!("agents.{}", entry.name), |cx| {
            let only = "an agent of a collaboration has only `description`, and `acp` or `ag_ui`";
            for (key, at) in table.keys() {
                if !matches!(key, "acp" | "ag_ui") {
                    cx.at_key(key, |cx| cx.error(at, format!("`{key}` has no effect here"), only));
                }
            }
            outside_agent::check_cost(&entry.name, table, entry.at, file, cx);
            let what = match outside_agent::build(&entry.name, table, file, cx) {
                None => return,
                Some(None) => {
                    let what = format!("`{}` is no agent of another program", entry.name);
                    return cx.error(entry.at, what, only);
                }
                Some(Some(agent)) => {
                    agents.insert(&entry.name, agent);
                    format!("`{}` has no seat", entry.name)
                }
            };
            if !used.contains(&entry.name.as_str()) {
                cx.warn(entry.at, what, format!("add agent = \"{}\" to a role", entry.name));
            }
        });
    }
    agents
}

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
pub(crate) fn unreachable_row(
    row: &ScriptTable,
    file: &ScenarioFile,
) -> Option<(TextSpan, String)> {
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
    script::unreachable(row, file).or_else(unseated)
}

/// Reports roles, and the launch brief, without a scripted reply.
pub(crate) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let sequence = file.collaboration.as_ref().and_then(|table| table.sequence.as_ref());
    for entry in &file.roles.entries {
        let has_seat = sequence
            .is_some_and(|sequence| sequence.value.0.iter().any(|seat| seat.text == entry.name));
        if entry.value.as_ref().is_some_and(|role| role.person.is_some()) {
            continue;
        }
        let speaks = file.model_rows().any(|(_, row)| {
            let row = &row.value;
            row.step.is_none() && row.role.as_ref().is_none_or(|role| role.text == entry.name)
        });
        if has_seat && !speaks {
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
        file.model_rows().all(|(_, row)| {
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

/// The three stances (collaboration source document).
const STANCES: [&str; 3] = ["go", "caution", "block"];

/// Checks the reply of a row.
fn check_scripted_contribution(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    if row.step.is_none() {
        cx.at_key("reply", |cx| contribution(row, &reply.value.table, reply.at, file, cx));
    }
}

fn contribution(
    row: &ScriptTable,
    table: &TomlTable,
    at: TextSpan,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let stop = |fault: &str| format!("the run stops with invalid_contribution:{fault}");
    require_keys(
        table,
        at,
        &["stance", "summary", "confidence", "actions"],
        &stop("missing_keys"),
        cx,
    );
    with_key(table, "agent", cx, |node, cx| match (text(node), &row.role) {
        (ScriptedText::Text(agent), Some(role)) if agent != role.text && file.roles.has(agent) => {
            let stop = stop(&format!("agent_mismatch:{}", role.text));
            cx.warn(node.at, format!("the row is for `{}`: {stop}", role.text), "remove `agent`");
        }
        (ScriptedText::Text(agent), _) if !file.roles.has(agent) => {
            let stop = stop(&format!("agent_not_allowed:{agent}"));
            let help = cx.suggest(agent, file.roles.names());
            cx.warn(node.at, format!("`{agent}` is not a role: {stop}"), help);
        }
        (ScriptedText::Missing, _) => {
            warn_wrong_type(node, "the name of a role", &stop("agent"), cx)
        }
        _ => {}
    });
    with_key(table, "stance", cx, |node, cx| match text(node) {
        ScriptedText::Text(stance) if !STANCES.contains(&stance) => {
            let help = cx.suggest(stance, STANCES);
            cx.warn(node.at, format!("`{stance}` is not a stance: {}", stop("stance")), help);
        }
        ScriptedText::Missing => warn_wrong_type(node, "go, caution or block", &stop("stance"), cx),
        _ => {}
    });
    with_key(table, "summary", cx, |node, cx| expect_text(node, &stop("summary"), cx));
    with_key(table, "confidence", cx, |node, cx| match node.value {
        TomlValue::Integer(Some(0 | 1)) => {}
        TomlValue::Number(number) if (0.0..=1.0).contains(&number) => {}
        TomlValue::Integer(_) | TomlValue::Number(_) => {
            warn_wrong_type(node, "a number from 0 to 1", &stop("confidence_range"), cx);
        }
        _ if is_filled_in(node) => {}
        _ => warn_wrong_type(node, "a number from 0 to 1", &stop("confidence_type"), cx),
    });
    with_key(table, "actions", cx, |node, cx| {
        each_item(node, &stop("actions"), cx, |action, cx| {
            expect_text(action, &stop("action_item"), cx)
        });
    });
}
