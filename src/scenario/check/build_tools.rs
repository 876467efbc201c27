//! Builds the tools: the implementation and the policy of each; reports tools that no run calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::build_implementation::{self, AttemptLimit, DeclaredImplementation};
use super::build_policy::{faults, tool_policy};
use super::fixture_contract::KnownArguments;
use crate::agents::spec::TRANSFER;
use crate::base::name::ToolName;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::format_tools::{AlertsTable, LLM, ToolTable, fill_table};
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::TextOrTable;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::pattern_row::{PatternRow, ToolUse};
use crate::scenario::spec::alert::AlertLimits;
use crate::scenario::spec::tool::{ResultContract, ToolOffer, ToolSpec};

/// The tools of a file, workers first. Problems are reported to `cx`.
pub(crate) fn tools(
    file: &ScenarioFile,
    own: &PatternRow,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> BTreeMap<ToolName, ToolSpec> {
    report_name_clashes(file, cx);
    let mut tools = BTreeMap::new();
    for spec in (own.own_tools)(file, filling, cx) {
        tools.insert(spec.name.clone(), spec);
    }
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    for entry in named.filter(|entry| !file.workers.names().any(|name| name == entry.name)) {
        let spec = cx.at_key(&format!("tools.{}", entry.name), |cx| {
            let spec = tool(entry, own, file, filling, cx);
            if !cx.has_error_here() {
                warn_if_unused(entry, spec.as_ref(), own, file, cx);
            }
            spec
        });
        if let Some(spec) = spec {
            tools.insert(spec.name.clone(), spec);
        }
    }
    (own.check_tools)(&tools, file, cx);
    tools
}

/// Reports clashes: roles, workers, agents and tools share one namespace, in which `llm` is the
/// model.
fn report_name_clashes(file: &ScenarioFile, cx: &mut ReadContext) {
    let mut taken = |place: &str, name: &str, at: TextSpan| {
        let what = match name {
            LLM => "`llm` is reserved for calls of the model",
            // In a file with agents `transfer_to_agent` is reserved.
            TRANSFER if !file.agents.entries.is_empty() => {
                "`transfer_to_agent` is reserved for the tool that hands over"
            }
            _ => return,
        };
        cx.at_key(&format!("{place}.{name}"), |cx| cx.error(at, what, "choose another name"));
    };
    file.roles.entries.iter().for_each(|it| taken("roles", &it.name, it.at));
    file.workers.entries.iter().for_each(|it| taken("workers", &it.name, it.at));
    file.agents.entries.iter().for_each(|it| taken("agents", &it.name, it.at));
    let tools = || file.tools.iter().flat_map(|tools| &tools.named.entries);
    tools().for_each(|it| taken("tools", &it.name, it.at));
    for entry in tools() {
        if file.roles.names().any(|role| role == entry.name) {
            let what = format!("`{}` is already the name of a role", entry.name);
            cx.at_key(&format!("tools.{}", entry.name), |cx| {
                cx.error(entry.at, what, "choose another name");
            });
        }
    }
}

fn tool(
    entry: &NamedEntry<ToolTable>,
    own: &PatternRow,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let table = entry.value.as_ref()?;
    if file.agents.names().any(|agent| agent == entry.name) {
        return build_agent_tool(entry, table, file, filling, cx);
    }
    let policy = tool_policy(table, file, filling, cx);
    let offer = offer(entry, table, own, filling, cx);
    let mut attempts =
        AttemptLimit::from_retries(&format!("tools.{}", entry.name), table.retries.as_ref()?);
    attempts.raise_to((own.most_attempts)(file)?);
    let answers = DeclaredImplementation::from_tool(table);
    let names: Vec<&str> = table.args.value.names().collect();
    let known = file.agents.entries.is_empty() || cx.at_key("args", |cx| cx.has_error_here());
    let fixed = (own.tool_args)(&entry.name);
    let args = fixed.or_else(|| (!known).then_some(&names[..]));
    let args = KnownArguments { names: args, certain: fixed.is_some() };
    let kind = build_implementation::kind(&answers, &args, &attempts, filling, cx);
    let faults = faults(&table.faults, cx);
    let kind = kind?;
    Some(ToolSpec {
        name: ToolName::from(entry.name.as_str()),
        kind,
        policy: policy?,
        contract: answers.contract(),
        shared: table.shared,
        faults: faults?,
        offer: offer?,
    })
}

/// The gateway's policy for a consulted agent. The agent is the implementation.
fn build_agent_tool(
    entry: &NamedEntry<ToolTable>,
    table: &ToolTable,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let answers = DeclaredImplementation::from_tool(table);
    let given = [
        ("description", table.description.as_ref().map(|text| text.at)),
        ("args", Some(table.args.at).filter(|at| at.end > 0)),
    ];
    for (key, at) in given {
        if let Some(at) = at {
            let what = format!("`{}` is an agent and has no `{key}` here", entry.name);
            cx.at_key(key, |cx| cx.error(at, what, "move it to [agents]"));
        }
    }
    if let Some(at) = answers.first() {
        let what = format!("`{}` is an agent and needs no implementation", entry.name);
        cx.error(at, what, "remove it, or choose another name");
    }
    let policy = tool_policy(table, file, filling, cx);
    let faults = faults(&table.faults, cx);
    let mut policy = policy?;
    if let Some(kept) = &table.safe_mode.as_ref()?.cache_ttl_s {
        policy.safe_mode.cache_ttl = None;
        let help = "a reply depends on the conversation; set `fallback` instead";
        cx.at_key("safe_mode.cache_ttl_s", |cx| {
            cx.warn(kept.at, "replies of an agent are not cached", help);
        });
    }
    // A failed attempt of an agent may have had effects, and its own calls are retried already.
    if table.retries.as_ref()?.max_attempts.at.end == 0 {
        policy.max_attempts = 1;
    }
    Some(ToolSpec {
        name: ToolName::from(entry.name.as_str()),
        kind: None,
        policy,
        contract: answers.contract(),
        shared: table.shared,
        faults: faults?,
        offer: ToolOffer::bare(&entry.name),
    })
}

/// The description of a tool for the agents that may call it.
fn offer(
    entry: &NamedEntry<ToolTable>,
    table: &ToolTable,
    own: &PatternRow,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolOffer> {
    if !own.has_agents() {
        let given = [
            ("description", table.description.as_ref().map(|text| text.at)),
            ("args", Some(table.args.at).filter(|at| at.end > 0)),
        ];
        for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
            let what = format!("this `{key}` is not used");
            cx.at_key(key, |cx| cx.warn(at, what, "only agents read descriptions of tools"));
        }
        return Some(ToolOffer::bare(&entry.name));
    }
    let description = table
        .description
        .as_ref()
        .map(|text| cx.at_key("description", |cx| filling.text(&text.text, text.at, cx)));
    let properties: Vec<Option<(String, Value)>> = cx.at_key("args", |cx| {
        let args = table.args.value.entries.iter();
        let properties = args.map(|arg| {
            cx.at_key(&arg.name, |cx| {
                let schema = match arg.value.as_ref()? {
                    TextOrTable::Text(text) => json!({
                        "type": "string",
                        "description": filling.text(&text.text, text.at, cx),
                    }),
                    TextOrTable::Table(schema) => {
                        fill_table(schema, &mut |text, at| filling.value_of(text, at, cx)).into()
                    }
                };
                Some((arg.name.clone(), schema))
            })
        });
        properties.collect()
    });
    let properties: Map<String, Value> = properties.into_iter().collect::<Option<_>>()?;
    let required: Vec<&String> = properties.keys().collect();
    let parameters = json!({ "type": "object", "required": required, "properties": properties });
    Some(ToolOffer {
        name: entry.name.as_str().into(),
        description: description.unwrap_or_default().into(),
        parameters: Arc::new(parameters),
    })
}

/// Warns of a tool that the pattern never calls, or that has no implementation.
fn warn_if_unused(
    entry: &NamedEntry<ToolTable>,
    spec: Option<&ToolSpec>,
    own: &PatternRow,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let help = match (own.tool_use)(file, &entry.name) {
        ToolUse::Checked => return,
        ToolUse::Never(help) => help,
        how @ (ToolUse::Called | ToolUse::Offered) => {
            if spec.is_some_and(|spec| spec.kind.is_none()) {
                let what = format!("`{}` has no implementation", entry.name);
                cx.warn(entry.at, what, "add one of fixture, http and command");
            }
            if matches!(how, ToolUse::Offered)
                && spec.is_some_and(|spec| spec.offer.description.is_empty())
            {
                let what = format!("`{}` has no description for agents", entry.name);
                cx.warn(entry.at, what, "add `description`");
            }
            return;
        }
    };
    cx.warn(entry.at, format!("`{}` is never called", entry.name), help);
}

/// Builds the alert thresholds.
pub(crate) fn alerts(table: &AlertsTable) -> AlertLimits {
    AlertLimits {
        breaker_opens_per_minute: table.breaker_opens_per_minute.map(|opens| opens.0),
        error_rate: table.error_rate.map(|rate| rate.0),
        p95_ms: table.p95_ms.map(|ms| u64::from(ms.0)),
    }
}

impl DeclaredImplementation<'_> {
    /// The contract of its results.
    pub fn contract(&self) -> ResultContract {
        let required = self.contract.entries.iter();
        ResultContract {
            required: required
                .filter_map(|entry| Some((entry.name.clone(), entry.value?)))
                .collect(),
        }
    }
}
