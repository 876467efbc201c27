//! Builds the tools: the implementation and the policy of each; reports tools that no run calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::build_implementation;
use super::build_implementation::{AttemptLimit, DeclaredImplementation, KnownArguments};
use super::build_lookup::SEARCHED;
use super::build_policy::{faults, own_policy, tool_policy};
use super::fixture_contract;
use crate::agents::spec::TRANSFER;
use crate::base::name::ToolName;
use crate::pattern::research::file;
use crate::pattern::research::spec::{READ, SEARCH};
use crate::scenario::file::format::{Pattern, ScenarioFile};
use crate::scenario::file::format_patterns::WorkerTable;
use crate::scenario::file::format_tools::{AlertsTable, LLM, ToolTable, fill_table};
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::{ReadContext, closest_name, suggest_name};
use crate::scenario::file::shape::TextOrTable;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::alert::AlertLimits;
use crate::scenario::spec::tool::{ResultContract, ToolOffer, ToolSpec};

/// The tools of a file, workers first. Problems are reported to `cx`.
pub(crate) fn tools(
    file: &ScenarioFile,
    pattern: Pattern,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> BTreeMap<ToolName, ToolSpec> {
    report_name_clashes(file, cx);
    let mut tools = BTreeMap::new();
    for entry in &file.workers.entries {
        if let Some(spec) = worker(entry, file, filling, cx) {
            tools.insert(spec.name.clone(), spec);
        }
    }
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    for entry in named.filter(|entry| !file.workers.names().any(|name| name == entry.name)) {
        let spec = cx.at_key(&format!("tools.{}", entry.name), |cx| {
            let spec = tool(entry, pattern, file, filling, cx);
            if !cx.has_error_here() {
                warn_if_unused(entry, spec.as_ref(), pattern, file, cx);
            }
            spec
        });
        if let Some(spec) = spec {
            tools.insert(spec.name.clone(), spec);
        }
    }
    if pattern == Pattern::Research {
        file::tools(&tools, file, cx);
        fixture_contract::check_envelopes(file, cx);
        file::warn_of_slow_pages(&tools, file, cx);
    }
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

fn worker(
    entry: &NamedEntry<WorkerTable>,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let name = ToolName::from(entry.name.as_str());
    let tools = file.tools.as_ref()?;
    let guarded = tools.named.entries.iter().find(|tool| tool.name == entry.name);
    let limits = match guarded {
        Some(tool) => Some(tool.value.as_ref()?),
        None => None,
    };
    let place = format!("tools.{}", entry.name);
    let policy = match limits {
        Some(table) => cx.at_key(&place, |cx| tool_policy(table, file, filling, cx))?,
        None => own_policy(file),
    };
    let attempts = match limits {
        Some(table) => AttemptLimit::from_retries(&place, table.retries.as_ref()?),
        None => AttemptLimit::from_orchestrator(file.budget.as_ref()?),
    };
    let table = entry.value.as_ref()?;
    let answers = DeclaredImplementation::from_worker(table);
    if let Some(second) = limits.map(DeclaredImplementation::from_tool)
        && answers.has_implementation()
        && let Some(at) = second.first()
    {
        let what = format!("`workers.{}` already has an implementation", entry.name);
        cx.at_key(&place, |cx| cx.error(at, what, "remove one of the two"));
    }
    let (place, answers) = match limits.map(DeclaredImplementation::from_tool) {
        Some(second) if !answers.has_implementation() && second.has_implementation() => {
            (place.clone(), second)
        }
        _ => (format!("workers.{}", entry.name), answers),
    };
    let declared: Vec<&str> =
        table.args.table.entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let args = (!table.args.broken).then_some(&declared[..]);
    let args = KnownArguments { names: args, certain: true };
    let kind = cx
        .at_key(&place, |cx| build_implementation::kind(&answers, &args, &attempts, filling, cx))?;
    if kind.is_none() && !cx.at_key(&place, |cx| cx.has_error_here()) {
        cx.at_key(&format!("workers.{}", entry.name), |cx| {
            let what = format!(
                "`{}` has no implementation: its tasks fail with worker_missing",
                entry.name
            );
            cx.warn(entry.at, what, "add one of fixture, http and command");
        });
    }
    Some(ToolSpec {
        name,
        kind,
        policy,
        contract: answers.contract(),
        shared: limits.is_some_and(|table| table.shared),
        faults: match limits {
            Some(table) => {
                cx.at_key(&format!("tools.{}", entry.name), |cx| faults(&table.faults, cx))?
            }
            None => Vec::new(),
        },
        offer: ToolOffer::bare(&entry.name),
    })
}

fn tool(
    entry: &NamedEntry<ToolTable>,
    pattern: Pattern,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let table = entry.value.as_ref()?;
    if file.agents.names().any(|agent| agent == entry.name) {
        return build_agent_tool(entry, table, file, filling, cx);
    }
    let policy = tool_policy(table, file, filling, cx);
    let offer = offer(entry, table, pattern, filling, cx);
    let mut attempts =
        AttemptLimit::from_retries(&format!("tools.{}", entry.name), table.retries.as_ref()?);
    if pattern == Pattern::Resilience {
        attempts.allow_naive_retries(file.resilience.as_ref()?);
    }
    let answers = DeclaredImplementation::from_tool(table);
    let names: Vec<&str> = table.args.value.names().collect();
    let known = file.agents.entries.is_empty() || cx.at_key("args", |cx| cx.has_error_here());
    let args = match (pattern, entry.name.as_str()) {
        (Pattern::Research, SEARCH) => Some(&SEARCHED[..]),
        (Pattern::Research, READ) => Some(&["url"][..]),
        _ => (!known).then_some(&names[..]),
    };
    let args = KnownArguments { names: args, certain: pattern == Pattern::Research };
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
    pattern: Pattern,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolOffer> {
    if !matches!(pattern, Pattern::Team | Pattern::Swarm) {
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
        let told = args.map(|arg| {
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
        told.collect()
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

/// The tools that research calls.
const RESEARCH: [&str; 2] = [SEARCH, READ];

/// Warns of a tool that the pattern never calls, or that has no implementation.
fn warn_if_unused(
    entry: &NamedEntry<ToolTable>,
    spec: Option<&ToolSpec>,
    pattern: Pattern,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let steps = || file.resilience.iter().flat_map(|it| &it.steps).flat_map(|steps| &steps.0);
    let vain = |cx: &mut ReadContext| {
        if spec.is_some_and(|spec| spec.kind.is_none()) {
            let what = format!("`{}` has no implementation", entry.name);
            cx.warn(entry.at, what, "add one of fixture, http and command");
        }
    };
    let help = match pattern {
        Pattern::Collaboration => "a collaboration calls only llm".to_owned(),
        Pattern::Orchestrator => match closest_name(&entry.name, file.workers.names()) {
            Some(_) => suggest_name(&entry.name, file.workers.names()),
            None => "an orchestrator calls its workers and llm".to_owned(),
        },
        Pattern::Research => match closest_name(&entry.name, RESEARCH) {
            Some(name) if name == entry.name => return,
            Some(_) => suggest_name(&entry.name, RESEARCH),
            None => format!("research calls {} and llm", RESEARCH.join(", ")),
        },
        Pattern::Resilience if steps().any(|step| step.text == entry.name) => {
            vain(cx);
            return;
        }
        Pattern::Resilience => "it is not in resilience.steps".to_owned(),
        Pattern::Team | Pattern::Swarm => match name_use(entry, file) {
            NameUse::Agent => return,
            NameUse::Tool => {
                vain(cx);
                if spec.is_some_and(|spec| spec.offer.description.is_empty()) {
                    let what = format!("`{}` has no description for agents", entry.name);
                    cx.warn(entry.at, what, "add `description`");
                }
                return;
            }
            NameUse::Root => "only the user talks to the root agent".to_owned(),
            NameUse::Unused => "add it to the `tools` of an agent".to_owned(),
        },
    };
    cx.warn(entry.at, format!("`{}` is never called", entry.name), help);
}

/// How the name of a `[tools]` table is used in the file.
enum NameUse {
    Agent,
    Tool,
    Root,
    Unused,
}

fn name_use(entry: &NamedEntry<ToolTable>, file: &ScenarioFile) -> NameUse {
    let name = entry.name.as_str();
    let mut tables = file.agents.entries.iter().flat_map(|agent| &agent.value);
    let mut roots = [&file.team, &file.swarm].into_iter().flatten().flat_map(|it| &it.root);
    if roots.any(|root| root.text == name) {
        NameUse::Root
    } else if file.agents.names().any(|agent| agent == name) {
        NameUse::Agent
    } else if tables.any(|agent| agent.tools.value.0.iter().any(|tool| tool.text == name)) {
        NameUse::Tool
    } else {
        NameUse::Unused
    }
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
    fn contract(&self) -> ResultContract {
        let required = self.contract.entries.iter();
        ResultContract {
            required: required
                .filter_map(|entry| Some((entry.name.clone(), entry.value?)))
                .collect(),
        }
    }
}
