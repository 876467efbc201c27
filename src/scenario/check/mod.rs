//! From the tables of a file to a checked [`Scenario`](crate::scenario::Scenario): what belongs
//! together, what is missing, what can never have an effect. Keys of another pattern are reported
//! and removed first, so that they cause no further errors.

pub mod condition;
pub mod instant;
pub mod script;
pub mod tools;

use std::sync::Arc;

use serde_json::Value;

use super::patterns;
use super::patterns::ROWS;
use super::patterns::row::{ModelKey, PatternRow, Spec};
use super::people;
use super::read::amount::Number;
use super::read::format::{BudgetTable, InputTable, KindWord, ModelTable, ScenarioFile};
use super::read::names::NamedEntry;
use super::read::shape::{FreeTable, IntegerField, NonBlankString};
use super::read::template::TemplateScope;
use super::read::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};
use super::read::{ReadContext, suggest_name};
use super::spec::policy::UnsetLlmKeys;
use super::spec::{
    Flag, InputKind, JsonMode, ModelAssignment, ModelSettings, OnLimit, Prepared, Prices,
    REPLY_TOKENS, RESERVED, Scenario, ScenarioInput, ScenarioOrigin, ScenarioWarnings, SourceText,
    Tuning,
};
use crate::base::name::{FlagName, InputName, ScenarioName};
use crate::base::time::Day;

/// Builds the scenario from a file, as far as possible. Problems are reported to `cx`.
pub(crate) fn build(
    file: ScenarioFile,
    own: &PatternRow,
    name: ScenarioName,
    origin: ScenarioOrigin,
    source: SourceText,
    cx: &mut ReadContext,
) -> Option<Scenario> {
    let inputs: Vec<ScenarioInput> = cx.at_key("inputs", |cx| {
        file.inputs.entries.iter().filter_map(|entry| input(entry, cx)).collect()
    });
    // An invalid input is reported once; texts may still name it.
    let scope = TemplateScope {
        inputs: file
            .inputs
            .names()
            .map(|name| {
                let value = inputs.iter().find(|input| input.name.as_str() == name);
                (name, value.map_or(Value::Null, |input| input.value.clone()))
            })
            .collect(),
        flags: file.flags.names().collect(),
        facts: None,
        when_names: Vec::new(),
    };
    let flags: Vec<Flag> = file
        .flags
        .entries
        .iter()
        .filter_map(|entry| {
            let flag = entry.value.as_ref()?;
            let label = flag
                .label
                .as_ref()
                .map_or_else(|| label_from_name(&entry.name), |l| l.text.clone());
            Some(Flag { name: FlagName::from(entry.name.as_str()), label, default: flag.default })
        })
        .collect();
    let goal =
        file.goal.as_ref().map(|goal| cx.at_key("goal", |cx| scope.text(&goal.text, goal.at, cx)));
    let facts = cx.at_key("facts", |cx| {
        file.facts.table.json(&mut |text, at| scope.value_of(text, at, cx)).unwrap_or_default()
    });
    let spec = patterns::build(own.pattern, &file, &scope, cx);
    let when_names = patterns::names_of_calls(own);
    let scope = TemplateScope { facts: Some(&facts), when_names, ..scope };
    let mut tools = tools::tools(&file, own, &scope, cx);
    if let Some(spec) = &spec {
        tools::add_outside_agents(&mut tools, &spec.get().outside_callers(), &file);
    }
    let people = people::build(&file, &scope, cx);
    let seated = seat_models(&file, own);
    let script = script::build(&file, own, &scope, cx);
    let cites = spec.as_ref().is_some_and(|spec| spec.get().cites());
    let expectations = condition::build_expectations(&file, own, &tools, cites, &scope, cx);
    check_extended_cost(&file, cx);
    warn_of_low_token_limit(&file, cx);
    if let Some(spec) = &spec {
        warn_of_unread_flags(&file, spec.get(), cx);
    }
    let llm = file
        .tools
        .as_ref()
        .and_then(|tools| tools.llm.as_ref())
        .and_then(|llm| tools::llm(llm, cx));
    let (llm, llm_unset, llm_faults) = llm?;
    // Everything is checked even where `pattern` is not a known pattern.
    file.pattern?;
    Some(Scenario {
        name,
        origin,
        hash: source.digest(),
        source: Arc::new(source),
        title: file.title?.text,
        about: file.about.map(|about| about.text).unwrap_or_default(),
        goal: goal?.into(),
        inputs,
        flags,
        facts: Arc::new(Value::Object(facts)),
        pattern: spec?,
        on_limit: file.budget.as_ref().map(|budget| budget.on_limit).unwrap_or_default(),
        spending: file.budget.as_ref().map(BudgetTable::spending).unwrap_or_default(),
        model: cx.at_key("model", |cx| model(file.model?, llm_unset, cx))?,
        model_assignments: seated,
        llm: Arc::new(llm),
        llm_faults,
        tools,
        alerts: tools::alerts(&file.alerts?),
        script,
        expectations,
        seed: u64::from(file.seed.0),
        in_doubt: file.in_doubt,
        people: Arc::new(people?),
        warnings: ScenarioWarnings::default(),
        prepared: Prepared::default(),
    })
}

/// Warns of flags that change nothing in a live run: only the script reads them.
fn warn_of_unread_flags(file: &ScenarioFile, spec: &dyn Spec, cx: &mut ReadContext) {
    for entry in &file.flags.entries {
        if !spec.reads_flag(&FlagName::from(entry.name.as_str())) {
            let what = format!("nothing in a live run reads the flag `{}`", entry.name);
            let help = match spec.model_callers().is_empty() {
                true => "this pattern has no use for flags: remove it".to_owned(),
                false => format!("say it in an agent's instruction: {{{{flags.{}}}}}", entry.name),
            };
            cx.at_key("flags", |cx| {
                cx.at_key(&entry.name, |cx| cx.warn_live(entry.at, what, help));
            });
        }
    }
}

/// Refuses a limit of zero that is to be extended by its own size.
fn check_extended_cost(file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(budget) = file.budget.as_ref().filter(|it| it.on_limit == OnLimit::Ask) else {
        return;
    };
    if let Some(cost) = budget.max_cost_usd.as_ref().filter(|cost| cost.value.0 <= 0.0) {
        cx.at_key("budget", |cx| {
            cx.at_key("max_cost_usd", |cx| {
                let help = "set a limit above 0, or on_limit = \"stop\"";
                cx.error(cost.at, "a limit of 0 cannot be extended", help);
            });
        });
    }
}

/// Warns of a token limit that leaves no room for a single call.
fn warn_of_low_token_limit(file: &ScenarioFile, cx: &mut ReadContext) {
    let most = file.model.as_ref().and_then(|model| model.max_tokens);
    let reserved = most.map_or(REPLY_TOKENS, |tokens| tokens.0);
    let limit = file.budget.as_ref().and_then(|budget| budget.max_total_tokens.as_ref());
    if let Some(limit) = limit.filter(|limit| limit.value.0 <= reserved) {
        let what =
            format!("too small for any call: each call reserves {reserved} tokens for its reply");
        cx.at_key("budget", |cx| {
            cx.at_key("max_total_tokens", |cx| {
                cx.warn(limit.at, what, "raise it, or set a smaller model.max_tokens");
            });
        });
    }
}

fn model(
    table: ModelTable,
    unset_keys: UnsetLlmKeys,
    cx: &mut ReadContext,
) -> Option<ModelSettings> {
    let prices = table.prices.and_then(|prices| {
        Some(Prices {
            prompt_usd_per_million: prices.prompt_usd_per_million?.0,
            completion_usd_per_million: prices.completion_usd_per_million?.0,
        })
    });
    let requests = Requests {
        temperature: table.temperature,
        max_tokens: table.max_tokens,
        reasoning_effort: table.reasoning_effort,
        json: table.json,
        extra: table.extra,
    };
    let tuning = self::tuning(requests, cx);
    Some(ModelSettings {
        stream: table.stream,
        name_by_override: table.name.as_ref().is_some_and(|name| name.at.text > 0),
        name: table.name.map(|name| name.text),
        tuning,
        base_url: table.base_url.map(|url| url.text),
        repair: table.repair.0,
        ask_again: table.ask_again.map(|times| times.value.0),
        prices,
        unset_keys,
    })
}

/// The request settings of a `[model]` table, of a scenario or of the configuration.
pub(crate) struct Requests {
    pub temperature: Option<Number<0, 2>>,
    pub max_tokens: Option<IntegerField<1, 10_000_000>>,
    pub reasoning_effort: Option<NonBlankString>,
    pub json: Option<JsonMode>,
    pub extra: FreeTable,
}

/// Builds the request settings; reports reserved keys in `extra`.
pub(crate) fn tuning(requests: Requests, cx: &mut ReadContext) -> Tuning {
    let extra = cx.at_key("extra", |cx| {
        for (key, node) in &requests.extra.table.entries {
            if RESERVED.contains(&key.text.as_str()) {
                let help = "other keys of the scenario set it";
                cx.error(node.at, format!("`{}` cannot be set here", key.text), help);
            }
        }
        requests.extra.table.json(&mut |text, _| text.into()).unwrap_or_default()
    });
    Tuning {
        temperature: requests.temperature.map(|number| number.0),
        max_tokens: requests.max_tokens.map(|tokens| tokens.0),
        reasoning_effort: requests.reasoning_effort.map(|word| word.text.trim().to_owned()),
        json: requests.json,
        extra,
    }
}

/// The callers with a model of their own, in the file's order.
fn seat_models(file: &ScenarioFile, own: &PatternRow) -> Vec<ModelAssignment> {
    let keys = (own.models)(file).into_iter();
    let assignments = keys.filter_map(|ModelKey { caller, place, model }| {
        let model = model.as_ref()?;
        let by_override = model.at.text > 0;
        Some(ModelAssignment { caller, model: model.text.trim().to_owned(), place, by_override })
    });
    assignments.collect()
}

/// Turns a name into a label: `report_date` becomes `Report date`.
fn label_from_name(name: &str) -> String {
    let mut label = name.replace('_', " ");
    if let Some(first) = label.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    label
}

pub(crate) fn input(entry: &NamedEntry<InputTable>, cx: &mut ReadContext) -> Option<ScenarioInput> {
    let table = entry.value.as_ref()?;
    cx.at_key(&entry.name, |cx| {
        let choices = table.choices.as_ref().map(|choices| {
            choices.value.0.iter().map(|choice| choice.text.clone()).collect::<Vec<_>>()
        });
        let given = table.value.as_ref()?;
        let kind = kind(table, choices, &given.0, cx)?;
        let value = cx.at_key("value", |cx| input_value(&given.0, &kind, cx))?;
        Some(ScenarioInput {
            name: InputName::from(entry.name.as_str()),
            label: table
                .label
                .as_ref()
                .map_or_else(|| label_from_name(&entry.name), |l| l.text.clone()),
            value,
            kind,
        })
    })
}

fn kind(
    table: &InputTable,
    choices: Option<Vec<String>>,
    value: &TomlNode,
    cx: &mut ReadContext,
) -> Option<InputKind> {
    let word = match (&table.kind, &choices) {
        (Some(word), Some(_)) if word.value != KindWord::Choice => {
            let help = "remove `choices`, or set kind = \"choice\"";
            cx.at_key("kind", |cx| {
                cx.error(word.at, "`choices` is only for kind = \"choice\"", help)
            });
            return None;
        }
        (Some(word), None) if word.value == KindWord::Choice => {
            let help = "add choices = [\"one\", \"other\"]";
            cx.at_key("kind", |cx| cx.error(word.at, "kind = \"choice\" needs `choices`", help));
            return None;
        }
        (Some(word), _) => word.value,
        (None, Some(_)) => KindWord::Choice,
        (None, None) => match value.value {
            TomlValue::Integer(_) => KindWord::Integer,
            TomlValue::Number(_) => KindWord::Number,
            TomlValue::Boolean(_) => KindWord::Bool,
            TomlValue::Date(_) => KindWord::Date,
            _ => KindWord::Text,
        },
    };
    Some(match word {
        KindWord::Text => InputKind::Text,
        KindWord::Date => InputKind::Date,
        KindWord::Integer => InputKind::Integer,
        KindWord::Number => InputKind::Number,
        KindWord::Bool => InputKind::Bool,
        KindWord::Choice => InputKind::Choice(choices.unwrap_or_default()),
    })
}

fn input_value(node: &TomlNode, kind: &InputKind, cx: &mut ReadContext) -> Option<Value> {
    // A value given with `--set` (`inputs.campaign=2026`) is a string where a string is expected.
    let text = match &node.value {
        TomlValue::Text(text) => Some(text.clone()),
        TomlValue::Date(date) => Some(date.clone()),
        _ if node.at.text > 0 => Some(cx.raw(node.at).to_owned()),
        _ => None,
    };
    match (kind, &node.value) {
        (InputKind::Text, _) if text.is_some() => text.map(Value::String),
        (InputKind::Date, _) => match text {
            Some(text) if text.parse::<Day>().is_ok() => Some(Value::String(text)),
            _ => {
                let help = "write a date as YYYY-MM-DD, such as 2026-03-02";
                cx.error(node.at, format!("{} is not a date", node.describe()), help);
                None
            }
        },
        (InputKind::Choice(choices), _) if text.is_some() => {
            let text = text.unwrap_or_default();
            if choices.contains(&text) {
                return Some(Value::String(text));
            }
            let help = suggest_name(&text, choices.iter().map(String::as_str));
            cx.error(node.at, format!("`{text}` is not one of the choices"), help);
            None
        }
        (InputKind::Integer, TomlValue::Integer(Some(number))) => Some(Value::from(*number)),
        (InputKind::Number, TomlValue::Integer(Some(number))) => Some(Value::from(*number)),
        (InputKind::Number, TomlValue::Number(number)) if number.is_finite() => {
            Some(Value::from(*number))
        }
        (InputKind::Bool, TomlValue::Boolean(truth)) => Some(Value::Bool(*truth)),
        _ => {
            let wanted = match kind {
                InputKind::Text => "a string",
                InputKind::Choice(_) => "one of the choices",
                InputKind::Integer => "a whole number",
                InputKind::Number => "a number",
                InputKind::Bool => "true or false",
                InputKind::Date => "a date",
            };
            cx.wrong_type(node, wanted);
            None
        }
    }
}

/// Returns the pattern of a file: the one that it names or, if that is invalid, the one whose table
/// it has. Reports and removes keys of other patterns. Adds the pattern's own table if it is
/// missing, so that its required keys are reported.
pub(super) fn settle_pattern(
    file: &mut TomlTable,
    root: TextSpan,
    cx: &mut ReadContext,
) -> &'static PatternRow {
    let named = match file.get("pattern").map(|node| &node.value) {
        Some(TomlValue::Text(text)) => ROWS.iter().find(|own| own.name == text),
        _ => None,
    };
    let Some(own) = named else {
        let guess = ROWS.iter().find(|own| file.get(own.name).is_some());
        return guess.unwrap_or(&ROWS[0]);
    };
    for other in ROWS.iter().filter(|other| other.pattern != own.pattern) {
        remove_foreign_keys(file, |key| other.has(key) && !own.has(key), other, own, cx);
        if let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget") {
            cx.at_key("budget", |cx| {
                remove_foreign_keys(budget, |key| other.budget.contains(&key), other, own, cx);
            });
        }
    }
    if let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget") {
        cx.at_key("budget", |cx| remove_misplaced_limits(budget, own, cx));
    }
    if file.get(own.name).is_none() {
        let key = TomlKey { at: root, text: own.name.to_owned() };
        file.entries.push((key, TomlNode::empty_table(root)));
    }
    own
}

fn remove_foreign_keys(
    table: &mut TomlTable,
    is: impl Fn(&str) -> bool,
    other: &PatternRow,
    own: &PatternRow,
    cx: &mut ReadContext,
) {
    table.entries.retain(|(key, _)| {
        let strange = is(&key.text);
        if strange {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` belongs to the pattern {}", key.text, other.name);
                cx.error(key.at, what, format!("this scenario has pattern = \"{}\"", own.name));
            });
        }
        !strange
    });
}

/// Reports and removes limits that are set elsewhere; they are not limits of the run.
fn remove_misplaced_limits(budget: &mut TomlTable, own: &PatternRow, cx: &mut ReadContext) {
    budget.entries.retain(|(key, _)| {
        let place = (own.misplaced_limit)(&key.text);
        if let Some(place) = &place {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` is not a limit of the run", key.text);
                cx.error(key.at, what, format!("move it to {place}"));
            });
        }
        place.is_none()
    });
}
