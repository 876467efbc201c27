//! Cross-checks between the fields of a scenario, and the conversion of the file's tables to the
//! [`Scenario`] that a run uses.

use std::sync::Arc;

use serde_json::Value;

use super::build_models::{self, Requests};
use super::build_policy;
use super::build_tools;
use super::expect;
use super::input::{input, label};
use super::script;
use crate::base::name::{FlagName, ScenarioName};
use crate::scenario::file::format::{ModelTable, ScenarioFile};
use crate::scenario::file::format_budget::BudgetTable;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::pattern_row::PatternRow;
use crate::scenario::patterns;
use crate::scenario::spec::model::{
    Flag, ModelSettings, Prices, Scenario, ScenarioInput, ScenarioOrigin, ScenarioWarnings,
};
use crate::scenario::spec::pattern::Spec;
use crate::scenario::spec::policy::UnsetLlmKeys;
use crate::scenario::spec::prepared::Prepared;
use crate::scenario::spec::source_text::SourceText;
use crate::scenario::spec::tuning::REPLY_TOKENS;

/// Builds the scenario from a file, as far as possible. Problems are reported to `cx`.
pub(crate) fn scenario(
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
    let filling = TemplateScope {
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
            let label = flag.label.as_ref().map_or_else(|| label(&entry.name), |l| l.text.clone());
            Some(Flag { name: FlagName::from(entry.name.as_str()), label, default: flag.default })
        })
        .collect();
    let goal = file
        .goal
        .as_ref()
        .map(|goal| cx.at_key("goal", |cx| filling.text(&goal.text, goal.at, cx)));
    let facts = cx.at_key("facts", |cx| {
        file.facts.table.json(&mut |text, at| filling.value_of(text, at, cx)).unwrap_or_default()
    });
    let spec = patterns::build(own.pattern, &file, &filling, cx);
    let when_names = patterns::names_of_calls(own);
    let filling = TemplateScope { facts: Some(&facts), when_names, ..filling };
    let tools = build_tools::tools(&file, own, &filling, cx);
    let seated = build_models::seated(&file, own);
    let script = script::build(&file, own, &filling, cx);
    let cites = spec.as_ref().is_some_and(|spec| spec.get().cites());
    let expectations = expect::build(&file, own, &tools, cites, &filling, cx);
    warn_of_low_token_limit(&file, cx);
    if let Some(spec) = &spec {
        warn_of_unread_flags(&file, spec.get(), cx);
    }
    let llm = file
        .tools
        .as_ref()
        .and_then(|tools| tools.llm.as_ref())
        .and_then(|llm| build_policy::llm(llm, cx));
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
        spending: file.budget.as_ref().map(BudgetTable::spending).unwrap_or_default(),
        model: cx.at_key("model", |cx| model(file.model?, llm_unset, cx))?,
        model_assignments: seated,
        llm: Arc::new(llm),
        llm_faults,
        tools,
        alerts: build_tools::alerts(&file.alerts?),
        script,
        expectations,
        seed: u64::from(file.seed.0),
        in_doubt: file.in_doubt,
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
    let tuning = build_models::tuning(requests, cx);
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
