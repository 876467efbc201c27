//! Builds the tools with the gateway's policies for calls of the model, of tools and of workers;
//! reports tools that no run calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::base::name::ToolName;
use crate::scenario::patterns::row::{PatternRow, ToolUse};
use crate::scenario::people::{ApproveKey, Asking, tool_approval};
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Seconds;
use crate::scenario::read::format::ScenarioFile;
use crate::scenario::read::format::tools::{
    AlertsTable, BreakerTable, BulkheadTable, InjectedTable, LLM, LlmTable, RetriesTable,
    RetryBudgetTable, SafeModeTable, fill_table,
};
use crate::scenario::read::names::NamedEntry;
use crate::scenario::read::shape::{BoundedList, FormatShape, Positioned, TextOrTable};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TextSpan, TomlNode};
use crate::scenario::spec::AlertLimits;
use crate::scenario::spec::policy::{
    BreakerLimits, BreakerMode, BulkheadLimits, CallPolicy, Rate, RetryBudgetLimits, SafeMode,
    UnsetLlmKeys, WindowLimits,
};
use crate::scenario::spec::tool::{
    FaultKind, InjectedFault, ResultContract, TRANSFER, ToolOffer, ToolSpec,
};
use crate::scenario::tools::agent as outside_agent;
use crate::scenario::tools::agent::OutsideCaller;
use crate::scenario::tools::mcp::{McpServerSpec, McpSpec, build_server, full_name, split_name};
use crate::scenario::tools::{
    AttemptLimit, DeclaredImplementation, KnownArguments, ToolKind, ToolTable, tool_kind,
};

/// The tools of a file, workers first. Problems are reported to `cx`.
pub(crate) fn tools(
    file: &ScenarioFile,
    own: &PatternRow,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> BTreeMap<ToolName, ToolSpec> {
    report_name_clashes(file, cx);
    let mut tools = BTreeMap::new();
    for spec in (own.own_tools)(file, scope, cx) {
        tools.insert(spec.name.clone(), spec);
    }
    for spec in server_tools(file, own, scope, cx) {
        tools.insert(spec.name.clone(), spec);
    }
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    let is_limit = |name: &str| file.workers.names().chain(file.mcp.names()).any(|it| it == name);
    for entry in named.filter(|entry| !is_limit(&entry.name)) {
        let spec = cx.at_key(&format!("tools.{}", entry.name), |cx| {
            let spec = tool(entry, own, file, scope, cx);
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
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let table = entry.value.as_ref()?;
    if file.agents.names().any(|agent| agent == entry.name) {
        return build_agent_tool(entry, table, file, scope, cx);
    }
    let policy = tool_policy(&entry.name, table, file, scope, cx);
    let offer = offer(entry, table, own, scope, cx);
    let mut attempts =
        AttemptLimit::from_retries(&format!("tools.{}", entry.name), table.retries.as_ref()?);
    attempts.raise_to((own.most_attempts)(file)?);
    let answers = DeclaredImplementation::from_tool(table);
    let names: Vec<&str> = table.args.value.names().collect();
    let known = file.agents.entries.is_empty() || cx.at_key("args", |cx| cx.has_error_here());
    let fixed = (own.tool_args)(&entry.name);
    let args = fixed.or_else(|| (!known).then_some(&names[..]));
    let args = KnownArguments { names: args, certain: fixed.is_some() };
    let kind = tool_kind(&answers, &args, &attempts, file, scope, cx);
    let faults = faults(&table.faults, cx);
    let approve = tool_approval(table.approve.as_ref(), file, scope, cx);
    let kind = kind?;
    let is_of_server = kind.as_ref().is_some_and(|kind| kind.mcp().is_some());
    Some(ToolSpec {
        name: ToolName::from(entry.name.as_str()),
        asks_by_default: asks_by_default(kind.as_ref(), table.approve.as_ref()),
        kind,
        policy: policy?,
        contract: ResultContract {
            any_shape: is_of_server && own.has_agents(),
            ..answers.contract()
        },
        shared: table.shared,
        faults: faults?,
        offer: offer?,
        approve: approve?,
        effects: table.effects,
    })
}

/// Who is asked about a call that no rule decides: nobody, unless it is a tool of an MCP server, and the
/// file does not say otherwise.
pub(crate) fn asks_by_default(
    kind: Option<&ToolKind>,
    approve: Option<&Positioned<ApproveKey>>,
) -> Option<Asking> {
    (approve.is_none() && kind.is_some_and(|kind| kind.mcp().is_some())).then(Asking::nobody)
}

/// The MCP servers of a file, and the tools of them that have limits of their own.
fn server_tools(
    file: &ScenarioFile,
    own: &PatternRow,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Vec<ToolSpec> {
    let mut specs = Vec::new();
    for entry in &file.mcp.entries {
        let place = format!("mcp.{}", entry.name);
        let Some(table) = &entry.value else { continue };
        let server = cx.at_key(&place, |cx| {
            if file.tools.as_ref().is_some_and(|tools| tools.has_implementation(&entry.name)) {
                let what = format!("`{}` is already the name of a tool", entry.name);
                cx.error(entry.at, what, "choose another name");
            }
            build_server(&entry.name, table).map_err(|wrong| wrong.report(cx)).ok()
        });
        let Some(server) = server.map(Arc::new) else { continue };
        // The run itself does not start a server that only coding agents use.
        let of_agents = outside_agent::names_server(&entry.name, file);
        if of_agents
            && !is_used_by_tools(&entry.name, file)
            && !is_used_by_agents(&entry.name, file)
        {
            continue;
        }
        if !own.has_agents() && !is_used_by_tools(&entry.name, file) {
            let what = format!("no tool is of the server `{}`", entry.name);
            let help = format!("add mcp = {{ server = \"{}\", tool = \"…\" }}", entry.name);
            cx.at_key(&place, |cx| cx.warn(entry.at, what, help));
        }
        let mut add = |name: String,
                       at: TextSpan,
                       limits: Option<&ToolTable>,
                       place: &str,
                       cx: &mut ReadContext| {
            let spec =
                cx.at_key(place, |cx| server_tool(&name, &server, at, limits, file, scope, cx));
            specs.extend(spec);
        };
        let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
        let limits = named.into_iter().find(|tool| tool.name == entry.name);
        let limits = limits.and_then(|tool| tool.value.as_ref());
        add(entry.name.clone(), entry.at, limits, &format!("tools.{}", entry.name), cx);
        for tool in &table.tools.entries {
            let name = full_name(&entry.name, &tool.name);
            let place = format!("{place}.tools.{}", tool.name);
            add(name, tool.at, tool.value.as_ref(), &place, cx);
        }
    }
    specs
}

/// Whether a tool or a worker is one of this server's.
fn is_used_by_tools(server: &str, file: &ScenarioFile) -> bool {
    let tools = file.tools.iter().flat_map(|tools| &tools.named.entries);
    let tools = tools.filter_map(|tool| tool.value.as_ref()?.mcp.as_ref());
    let workers = file.workers.entries.iter().filter_map(|it| it.value.as_ref()?.mcp.as_ref());
    tools.chain(workers).any(|it| it.value.server.as_ref().is_none_or(|it| it.text == server))
}

/// Whether an agent calls tools of this server through the run.
fn is_used_by_agents(server: &str, file: &ScenarioFile) -> bool {
    let agents = file.agents.entries.iter().filter_map(|it| it.value.as_ref());
    let mut tools = agents.flat_map(|agent| &agent.tools.value.0);
    tools.any(|tool| split_name(&tool.text).is_some_and(|(of, _)| of == server))
}

/// A server, or a tool of it that has limits of its own. `limits`: its table, if the file has one.
fn server_tool(
    name: &str,
    server: &Arc<McpServerSpec>,
    at: TextSpan,
    limits: Option<&ToolTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let empty = ToolTable::read(&TomlNode::empty_table(at), cx)?;
    let table = limits.unwrap_or(&empty);
    let declared = DeclaredImplementation::from_tool(table);
    if let Some(at) = declared.kinds.first().map(|kind| kind.at()) {
        let what = format!("`{name}` is a tool of an MCP server and needs no implementation");
        cx.error(at, what, "remove it, or choose another name");
    }
    let of_server = [
        ("description", table.description.as_ref().map(|text| text.at)),
        ("args", Some(table.args.at).filter(|at| at.end > 0)),
        ("shared", table.shared.then_some(at)),
    ];
    for (key, at) in of_server.into_iter().filter_map(|(key, at)| Some((key, at?))) {
        let what = format!("a tool of an MCP server has no `{key}` here");
        cx.at_key(key, |cx| cx.error(at, what, "remove it"));
    }
    let mut policy = tool_policy(name, table, file, scope, cx)?;
    policy.timeout.get_or_insert(MCP_TIMEOUT);
    // Nobody knows here what a call does.
    policy.idempotent &= !table.idempotent.is_not_in_file();
    let kind = ToolKind::Mcp(Arc::new(McpSpec { server: Arc::clone(server), tool: None }));
    Some(ToolSpec {
        name: ToolName::from(name),
        asks_by_default: asks_by_default(Some(&kind), table.approve.as_ref()),
        kind: Some(kind),
        policy,
        contract: ResultContract { any_shape: true, ..declared.contract() },
        shared: false,
        faults: faults(&table.faults, cx)?,
        offer: ToolOffer::bare(name),
        approve: tool_approval(table.approve.as_ref(), file, scope, cx)?,
        effects: table.effects,
    })
}

/// Adds the guards of the agents of other programs. The limits of [tools.NAME] are those of the calls of
/// the program: a call of such an agent as a member contains nothing else.
pub(crate) fn add_outside_agents(
    tools: &mut BTreeMap<ToolName, ToolSpec>,
    callers: &[OutsideCaller],
    file: &ScenarioFile,
) {
    for OutsideCaller { agent, .. } in callers {
        let name = agent.guard_name();
        if tools.contains_key(&name) {
            continue;
        }
        let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
        let table = named.into_iter().find(|entry| entry.name == agent.name.as_str());
        let limits = tools.remove(&ToolName::from(agent.name.as_str()));
        let (policy, faults) = match limits {
            Some(spec) => (spec.policy, spec.faults),
            None => (CallPolicy { max_attempts: 1, ..CallPolicy::default() }, Vec::new()),
        };
        // A turn of it may have changed something.
        let is_set = |table: &ToolTable| !table.idempotent.is_not_in_file();
        let is_idempotent = table.and_then(|entry| entry.value.as_ref()).is_some_and(is_set);
        let policy = CallPolicy {
            timeout: policy.timeout.or(Some(AGENT_TIMEOUT)),
            idempotent: policy.idempotent && is_idempotent,
            ..policy
        };
        tools.insert(
            name.clone(),
            ToolSpec {
                offer: ToolOffer::bare(name.as_str()),
                name,
                kind: Some(ToolKind::Agent(Arc::clone(agent))),
                policy,
                contract: ResultContract::default(),
                shared: false,
                faults,
                approve: None,
                asks_by_default: None,
                effects: None,
            },
        );
    }
}

/// Default timeout of a turn of an agent of another program, from the last time that it said something.
const AGENT_TIMEOUT: Duration = Duration::from_secs(300);

/// Default timeout of a call of a tool of an MCP server.
const MCP_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether calls of a tool need approval, at least some of them: by its key or by a rule.
pub(crate) fn needs_approval(
    tool: &str,
    key: Option<&Positioned<ApproveKey>>,
    file: &ScenarioFile,
) -> bool {
    let by_key = key.is_some_and(|key| !matches!(key.value, ApproveKey::Always(false)));
    by_key || file.approve.0.iter().any(|rule| rule.value.asks_about(tool))
}

/// The gateway's policy for a consulted agent. The agent is the implementation.
fn build_agent_tool(
    entry: &NamedEntry<ToolTable>,
    table: &ToolTable,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let answers = DeclaredImplementation::from_tool(table);
    let given = [
        ("description", table.description.as_ref().map(|text| text.at)),
        ("args", Some(table.args.at).filter(|at| at.end > 0)),
        ("approve", table.approve.as_ref().map(|it| it.at)),
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
    let policy = tool_policy(&entry.name, table, file, scope, cx);
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
        approve: None,
        asks_by_default: None,
        effects: None,
    })
}

/// The description of a tool for the agents that may call it.
fn offer(
    entry: &NamedEntry<ToolTable>,
    table: &ToolTable,
    own: &PatternRow,
    scope: &TemplateScope<'_>,
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
        .map(|text| cx.at_key("description", |cx| scope.text(&text.text, text.at, cx)));
    let properties: Vec<Option<(String, Value)>> = cx.at_key("args", |cx| {
        let args = table.args.value.entries.iter();
        let properties = args.map(|arg| {
            cx.at_key(&arg.name, |cx| {
                let schema = match arg.value.as_ref()? {
                    TextOrTable::Text(text) => json!({
                        "type": "string",
                        "description": scope.text(&text.text, text.at, cx),
                    }),
                    TextOrTable::Table(schema) => {
                        fill_table(schema, &mut |text, at| scope.value_of(text, at, cx)).into()
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
                cx.warn(entry.at, what, "add one of fixture, http, command and mcp");
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
            any_shape: false,
        }
    }
}

/// Default of a window's `min_calls`.
const MIN_CALLS: u32 = 10;

pub(crate) fn tool_policy(
    tool: &str,
    table: &ToolTable,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<CallPolicy> {
    let read_by_model = !file.agents.entries.is_empty();
    let safe_mode = safe_mode(table.safe_mode.as_ref()?, read_by_model, scope, cx);
    let limits = PolicyTables {
        retries: table.retries.as_ref()?,
        budget: table.retry_budget.as_ref()?,
        breaker: match &table.breaker {
            Some(breaker) => limits(breaker, table.timeout_s, cx)?,
            // One breaker would cover many hosts: a few that are down say nothing about the others.
            None if table.read.as_ref().is_some_and(|read| read.value.web.value) => None,
            None => Some(BreakerLimits::default()),
        },
        bulkhead: table.bulkhead.as_ref()?,
        rate: table.rate.map(|it| it.0),
        wait: Some(Duration::ZERO),
    };
    Some(CallPolicy {
        timeout: table.timeout_s.map(|seconds| seconds.0),
        // A call that needs approval is one that must not be made twice.
        idempotent: table.idempotent.value
            && !(table.idempotent.is_not_in_file()
                && needs_approval(tool, table.approve.as_ref(), file)),
        safe_mode,
        ..limits.policy()
    })
}

/// Builds the gateway's policy for model calls, which of its settings the file leaves open, and the
/// injected faults.
pub(crate) fn llm(
    table: &LlmTable,
    cx: &mut ReadContext,
) -> Option<(CallPolicy, UnsetLlmKeys, Vec<InjectedFault>)> {
    let faults = cx.at_key("tools.llm", |cx| faults(&table.faults, cx));
    let limits = PolicyTables {
        retries: table.retries.as_ref()?,
        budget: table.retry_budget.as_ref()?,
        breaker: cx
            .at_key("tools.llm", |cx| limits(table.breaker.as_ref()?, table.timeout_s, cx))?,
        bulkhead: table.bulkhead.as_ref()?,
        rate: table.rate.map(|it| it.0),
        wait: None,
    };
    let policy = CallPolicy {
        timeout: table.timeout_s.map(|seconds| seconds.0),
        idempotent: table.idempotent,
        ..limits.policy()
    };
    let unset = UnsetLlmKeys {
        max_attempts: limits.retries.max_attempts.is_not_in_file(),
        backoff: limits.retries.backoff_ms.is_not_in_file(),
        retry_min: limits.budget.min.is_not_in_file(),
        breaker_counts: table.breaker.as_ref()?.counts.is_none(),
    };
    Some((policy, unset, faults?))
}

/// The policy and the injected faults of a model of a guarded program. It has one attempt: the client retries.
pub(crate) fn model_policy(
    breaker: Option<&BreakerTable>,
    bulkhead: Option<&BulkheadTable>,
    injected: &BoundedList<Positioned<InjectedTable>, 0, 5>,
    cx: &mut ReadContext,
) -> Option<(CallPolicy, Vec<InjectedFault>)> {
    let faults = faults(injected, cx)?;
    let breaker = breaker.map_or(Some(None), |breaker| limits(breaker, None, cx))?;
    let bulkhead = bulkhead.and_then(|it| bulkhead_limits(it, Some(Duration::ZERO)));
    let policy = CallPolicy {
        max_attempts: 1,
        retry_budget: None,
        breaker,
        bulkhead,
        ..CallPolicy::default()
    };
    Some((policy, faults))
}

/// The limits of a bulkhead; `None`: it is switched off. `wait`: the default of `max_wait_ms`.
fn bulkhead_limits(table: &BulkheadTable, wait: Option<Duration>) -> Option<BulkheadLimits> {
    let millis = |ms: u32| Duration::from_millis(u64::from(ms));
    table.enabled.then(|| BulkheadLimits {
        max_in_flight: table.max_in_flight.0,
        max_wait: table.max_wait_ms.map_or(wait, |ms| Some(millis(ms.0))),
    })
}

/// The settings that the policies of the model and of tools have in common.
struct PolicyTables<'f> {
    retries: &'f RetriesTable,
    budget: &'f RetryBudgetTable,
    breaker: Option<BreakerLimits>,
    bulkhead: &'f BulkheadTable,
    rate: Option<u32>,
    /// Default of `max_wait_ms`; `None` means no limit.
    wait: Option<Duration>,
}

impl PolicyTables<'_> {
    fn policy(&self) -> CallPolicy {
        let millis = |ms: u32| Duration::from_millis(u64::from(ms));
        let Self { retries, budget, breaker, bulkhead, rate, wait } = self;
        CallPolicy {
            max_attempts: retries.max_attempts.value.0,
            backoff: retries.backoff_ms.value.0.iter().map(|wait| millis(wait.0)).collect(),
            jitter: retries.jitter,
            retry_budget: Some(RetryBudgetLimits {
                ratio_percent: budget.percent.0,
                min: budget.min.value.0,
            }),
            breaker: *breaker,
            bulkhead: bulkhead_limits(bulkhead, *wait),
            rate: *rate,
            ..CallPolicy::default()
        }
    }
}

/// The limits of a breaker; `Some(None)`: the file switches it off. `None` after an error.
fn limits(
    breaker: &BreakerTable,
    timeout: Option<Seconds>,
    cx: &mut ReadContext,
) -> Option<Option<BreakerLimits>> {
    let window = cx.at_key("breaker", |cx| {
        let window = window(breaker, timeout, cx);
        (!cx.has_error_here()).then_some(window)
    })?;
    Some(breaker.enabled.then_some(BreakerLimits {
        fail_threshold: breaker.fail_threshold.value.0,
        open_for: breaker.open_for_s.0,
        probe_permits: breaker.probe_permits.0,
        mode: breaker.mode.value,
        counts: breaker.counts.unwrap_or_default(),
        window,
    }))
}

/// The window of a breaker, if it has one. Keys that would have no effect are errors.
fn window(
    breaker: &BreakerTable,
    timeout: Option<Seconds>,
    cx: &mut ReadContext,
) -> Option<WindowLimits> {
    let BreakerTable { size, min_calls, failure_rate, slow_call_ms, slow_rate, .. } = breaker;
    let Some(Positioned { value: kind, at }) = &breaker.window else {
        let given = [
            ("size", size.as_ref().map(|it| it.at)),
            ("min_calls", min_calls.as_ref().map(|it| it.at)),
            ("failure_rate", failure_rate.as_ref().map(|it| it.at)),
            ("slow_call_ms", slow_call_ms.as_ref().map(|it| it.at)),
            ("slow_rate", slow_rate.as_ref().map(|it| it.at)),
        ];
        if !cx.at_key("window", |cx| cx.has_error_here()) {
            for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
                let what = format!("`{key}` has no effect without a window");
                cx.at_key(key, |cx| cx.error(at, what, "add window = \"count\" or \"time\""));
            }
        }
        return None;
    };
    let threshold = &breaker.fail_threshold;
    if !threshold.is_not_in_file() {
        let what = "`fail_threshold` has no effect with a window";
        let help = "remove it, or remove window to count failures in a row";
        cx.at_key("fail_threshold", |cx| cx.error(threshold.at, what, help));
    }
    if breaker.mode.value == BreakerMode::TwoState {
        let what = "a breaker with a window needs probes";
        cx.at_key("mode", |cx| cx.error(breaker.mode.at, what, "remove mode, or window"));
    }
    let Some(size) = size else {
        let at = *at;
        cx.at_key("size", |cx| {
            if !cx.has_error_here() {
                cx.error(at, "`size` is missing", "size = 20");
            }
        });
        return None;
    };
    let mut limits = WindowLimits {
        kind: *kind,
        size: size.value.0,
        min_calls: MIN_CALLS,
        failure_rate: failure_rate.as_ref().map_or(Rate::from_share(0.5), |it| it.value),
        slow_call_ms: slow_call_ms.as_ref().map(|ms| u64::from(ms.value.0)),
        slow_rate: slow_rate.as_ref().map_or(Rate::ALL, |it| it.value),
    };
    let most = limits.max_min_calls();
    limits.min_calls = min_calls.as_ref().map_or(MIN_CALLS.min(most), |it| it.value.0);
    if let Some(min) = min_calls.as_ref().filter(|min| min.value.0 > most) {
        let what = format!("{} is more than the {most} calls of the window", min.value.0);
        cx.at_key("min_calls", |cx| cx.error(min.at, what, "such a breaker never opens"));
    }
    if let (Some(rate), None) = (slow_rate, slow_call_ms) {
        let what = "`slow_rate` has no effect without slow_call_ms";
        cx.at_key("slow_rate", |cx| cx.error(rate.at, what, "slow_call_ms = 1000"));
    }
    if let (Some(slow), Some(timeout)) = (slow_call_ms, timeout)
        && u128::from(slow.value.0) >= timeout.0.as_millis()
    {
        let what = "no attempt takes that long: its timeout ends it";
        let help = format!("less than {} ms, or a longer timeout_s", timeout.0.as_millis());
        cx.at_key("slow_call_ms", |cx| cx.error(slow.at, what, help));
    }
    Some(limits)
}

/// Builds the fallback settings. `read_by_model`: models read the tool's results, so a fallback may be a
/// string.
fn safe_mode(
    table: &SafeModeTable,
    read_by_model: bool,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> SafeMode {
    let fallback = table.fallback.as_ref().map(|fallback| {
        cx.at_key("safe_mode.fallback", |cx| match fallback {
            TextOrTable::Text(text) => {
                if !read_by_model {
                    let what = "only an agent, or a tool for agents, can have a string as fallback";
                    cx.error(text.at, what, "write a table, such as { status = \"unknown\" }");
                }
                Value::String(scope.text(&text.text, text.at, cx))
            }
            TextOrTable::Table(table) => {
                fill_table(table, &mut |text, at| scope.value_of(text, at, cx)).into()
            }
        })
    });
    SafeMode {
        enabled: table.enabled,
        allow_partial: table.allow_partial,
        cache_ttl: table.cache_ttl_s.as_ref().map(|seconds| seconds.value.0),
        fallback: fallback.map(Arc::new),
    }
}

pub(crate) fn faults(
    tables: &BoundedList<Positioned<InjectedTable>, 0, 5>,
    cx: &mut ReadContext,
) -> Option<Vec<InjectedFault>> {
    let mut faults: Vec<InjectedFault> = Vec::new();
    let mut good = true;
    for (index, table) in tables.0.iter().enumerate() {
        cx.at_key("faults", |cx| {
            cx.at_index(index, |cx| match injected(&table.value, table.at, cx) {
                Some(fault) if faults.iter().any(|had| had.kind() == fault.kind()) => {
                    let what = format!("there is already a fault `{}`", fault.kind().word());
                    cx.error(table.at, what, "use each kind once");
                    good = false;
                }
                Some(fault) => faults.push(fault),
                None => good = false,
            });
        });
    }
    good.then_some(faults)
}

fn injected(table: &InjectedTable, at: TextSpan, cx: &mut ReadContext) -> Option<InjectedFault> {
    let kind = table.kind?;
    let of = match kind {
        FaultKind::Latency => &["ms"][..],
        FaultKind::Errors => &["percent", "status", "times"],
        _ => &[],
    };
    let given = [
        ("ms", table.ms.as_ref().map(|ms| ms.at)),
        ("percent", table.percent.as_ref().map(|percent| percent.at)),
        ("status", table.status.as_ref().map(|status| status.at)),
        ("times", table.times.as_ref().map(|times| times.at)),
    ];
    for (key, at) in given {
        if let Some(at) = at.filter(|_| !of.contains(&key)) {
            let help = match of {
                [] => "it has no settings".to_owned(),
                keys => format!("it takes {}", keys.join(", ")),
            };
            cx.at_key(key, |cx| {
                cx.error(at, format!("this kind of fault has no `{key}`"), help);
            });
        }
    }
    let needs = |key: &str, help: &str, cx: &mut ReadContext| {
        if !cx.at_key(key, |cx| cx.has_error_here()) {
            cx.at_key(key, |cx| cx.error(at, format!("`{key}` is missing"), help));
        }
    };
    Some(match (kind, &table.ms, &table.percent) {
        (FaultKind::Latency, Some(ms), _) => InjectedFault::Latency { ms: u64::from(ms.value.0) },
        (FaultKind::Latency, None, _) => {
            needs("ms", "ms = 2000", cx);
            return None;
        }
        (FaultKind::Errors, _, Some(percent)) => InjectedFault::Errors {
            percent: u8::try_from(percent.value.0).ok()?,
            status: table.status.as_ref().map_or(Ok(503), |it| u16::try_from(it.value.0)).ok()?,
            times: table.times.as_ref().map(|times| times.value.0),
        },
        (FaultKind::Errors, _, None) => {
            needs("percent", "percent = 30", cx);
            return None;
        }
        (kind, ..) => InjectedFault::of(kind),
    })
}
