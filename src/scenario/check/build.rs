//! Cross-checks between the fields of a scenario, and the conversion of the file's tables to the
//! [`Scenario`] that a run uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::build_models::{self, Requests};
use super::build_policy;
use super::build_tools;
use super::input::{input, label};
use super::script;
use crate::base::name::{FlagName, InputName, RoleName, ScenarioName};
use crate::pattern::orchestrator::file::orchestrator;
use crate::pattern::research::file::research;
use crate::pattern::resilience::file::resilience;
use crate::pattern::team::file::team;
use crate::scenario::file::format::{ModelTable, Pattern, ScenarioFile};
use crate::scenario::file::format_patterns::{
    BudgetTable, CollaborationTable, Escalation, RoleTable,
};
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::model::{
    CollaborationBudget, CollaborationSpec, Flag, ModelSettings, PatternSpec, Prices, RoleFlag,
    RoleSpec, Scenario, ScenarioInput, ScenarioOrigin, SpendingLimits, WhenOff,
};
use crate::scenario::spec::prepared::Prepared;
use crate::scenario::spec::tuning::REPLY_TOKENS;

/// Builds the scenario from a file, as far as possible. Problems are reported to `cx`.
pub(crate) fn scenario(
    file: ScenarioFile,
    pattern: Pattern,
    name: ScenarioName,
    origin: ScenarioOrigin,
    hash: String,
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
        facts: None,
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
    let spec = match pattern {
        Pattern::Collaboration => {
            collaboration(&file, &filling, cx).map(PatternSpec::Collaboration)
        }
        Pattern::Orchestrator => orchestrator(&file, &filling, cx).map(PatternSpec::Orchestrator),
        Pattern::Team | Pattern::Swarm => team(&file, pattern, &filling, cx).map(PatternSpec::Team),
        Pattern::Resilience => resilience(&file, &filling, cx).map(PatternSpec::Resilience),
        Pattern::Research => research(&file, &filling, cx).map(PatternSpec::Research),
    };
    let filling = TemplateScope { facts: Some(&facts), ..filling };
    let tools = build_tools::tools(&file, pattern, &filling, cx);
    let seated = build_models::seated(&file);
    let script = script::build(&file, pattern, &filling, cx);
    warn_of_low_token_limit(&file, cx);
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
        hash,
        title: file.title?.text,
        about: file.about.map(|about| about.text).unwrap_or_default(),
        goal: goal?,
        inputs,
        flags,
        facts: Arc::new(Value::Object(facts)),
        pattern: spec?,
        spending: file.budget.as_ref().map(BudgetTable::spending).unwrap_or_default(),
        model: cx.at_key("model", |cx| model(file.model?, cx))?,
        model_assignments: seated,
        llm,
        llm_unset,
        llm_faults,
        tools,
        alerts: build_tools::alerts(&file.alerts?),
        script,
        seed: u64::from(file.seed.0),
        warnings: Vec::new(),
        offline_warnings: Vec::new(),
        prepared: Prepared::default(),
    })
}

fn collaboration(
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<CollaborationSpec> {
    let roles = cx.at_key("roles", |cx| {
        let mut roles = BTreeMap::new();
        for entry in &file.roles.entries {
            if let Some(role) = role(entry, file, filling, cx) {
                roles.insert(RoleName::from(entry.name.as_str()), role);
            }
        }
        roles
    });
    let table = file.collaboration.as_ref()?;
    // `escalate_after_blocks` allows only one value: no escalation.
    let Escalation = table.escalate_after_blocks;
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
        cx.at_key("collaboration.finalize_prompt", |cx| filling.text(&prompt.text, prompt.at, cx))
    });
    let budget = file.budget.as_ref()?;
    Some(CollaborationSpec {
        budget: CollaborationBudget {
            max_rounds: budget.max_rounds.value.0,
            max_messages: budget.max_messages.value.0,
            max_seconds: budget.max_seconds(40),
            min_go_votes: budget.min_go_votes.value.0,
        },
        sequence: sequence?,
        concurrency: table.concurrency,
        roles,
        finalize_prompt: Arc::from(finalize?),
        summary_inputs: table
            .summary
            .0
            .iter()
            .map(|input| InputName::from(input.text.as_str()))
            .collect(),
    })
}

impl BudgetTable {
    /// The spending limits of a run.
    fn spending(&self) -> SpendingLimits {
        SpendingLimits {
            max_total_tokens: self.max_total_tokens.as_ref().map(|it| it.value.0.into()),
            max_cost_usd: self.max_cost_usd.as_ref().map(|cost| cost.value.0),
        }
    }

    /// Time limit of the whole run; `otherwise` is the pattern's default, in seconds.
    pub fn max_seconds(&self, otherwise: u32) -> Duration {
        let seconds = self.max_seconds.map_or(otherwise, |seconds| seconds.0);
        Duration::from_secs(u64::from(seconds))
    }
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

/// Warns of limits that keep the run from ending with a decision.
fn warn_of_odd_limits(seats: usize, sequence: TextSpan, file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(budget) = &file.budget else { return };
    let seats = u32::try_from(seats).unwrap_or(u32::MAX);
    let help = format!("seats in collaboration.sequence: {seats}");
    // A limit that the file does not set is reported at the list of seats.
    let place = |at: TextSpan| if at.end > 0 { at } else { sequence };
    let (messages, votes) = (&budget.max_messages, &budget.min_go_votes);
    if messages.value.0 < seats {
        cx.at_key("budget.max_messages", |cx| {
            let what = format!("{} is too few messages for one round", messages.value.0);
            cx.warn(place(messages.at), what, &help);
        });
    }
    if votes.value.0 > seats {
        cx.at_key("budget.min_go_votes", |cx| {
            let what =
                format!("{} votes for go are needed, but there are fewer seats", votes.value.0);
            cx.warn(place(votes.at), what, &help);
        });
    }
}

fn role(
    entry: &NamedEntry<RoleTable>,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<RoleSpec> {
    cx.at_key(&entry.name, |cx| {
        let sits = file.collaboration.as_ref().and_then(|table| table.sequence.as_ref());
        if sits.is_some_and(|seats| seats.value.0.iter().all(|seat| seat.text != entry.name)) {
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
        let prompt = table.prompt.as_ref()?;
        let text = cx.at_key("prompt", |cx| filling.text(&prompt.text, prompt.at, cx));
        let behind = table.flag.as_ref().map(|flag| RoleFlag {
            flag: FlagName::from(flag.text.as_str()),
            when_off: table.when_off.as_ref().map_or(WhenOff::Skip, |when_off| when_off.value),
        });
        Some(RoleSpec { prompt: text.into(), role_flag: behind })
    })
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

fn model(table: ModelTable, cx: &mut ReadContext) -> Option<ModelSettings> {
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
        ask_again: table.ask_again.value.0,
        prices,
    })
}
