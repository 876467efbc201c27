//! The pattern `router` in a file: its settings, their format and cross-checks (routes are agents,
//! the fallback is a route), its boundaries, its scripted classifications, and the fields of the
//! outcome that expectations may use.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::name::{AgentName, FlagName, InputName, ToolName};
use crate::scenario::check::script::{
    ScriptedText, each_item, expect_text, is_filled_in, report_silent_step, report_unknown_name,
    require_keys, text, warn_wrong_type, with_key,
};
use crate::scenario::patterns::agents::boundary::TeamAgents;
use crate::scenario::patterns::agents::check::{
    agents, models as agent_models, tool_use, warn_of_orphans,
};
use crate::scenario::patterns::agents::script::{AGENT_NAMES, report_silent_agents};
use crate::scenario::patterns::agents::table::key_owner;
use crate::scenario::patterns::agents::{AgentsSpec, boundary};
use crate::scenario::patterns::row::{
    BoundaryForm, LabelledText, LimitField, ModelKey, OutcomeField, PatternRow, Speakers, Spec,
};
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Number;
use crate::scenario::read::format::{Pattern, ScenarioFile, ScriptTable};
use crate::scenario::read::names::{ActorName, NamedEntries, NamedEntry};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, NonBlankString, ObjectSchema, Positioned, Requirement,
    join_doc_lines, record,
};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::{PromptTemplate, ScriptStep};
use crate::scenario::spec::tool::ToolSpec;

/// `pattern = "router"`: one model call classifies the request, policy picks the route, and the
/// agent behind it answers.
#[derive(Debug)]
pub struct RouterSpec {
    /// The classifier's prompt.
    pub prompt: PromptTemplate,
    /// The inputs that the classifier sees with the goal.
    pub echo: Vec<InputName>,
    /// The routes, in the scenario's order: the policy list.
    pub routes: Vec<RouteSpec>,
    /// The route where the classifier's cannot be taken.
    pub fallback: Option<AgentName>,
    /// The confidence, from 0 to 1, that the classifier's route needs.
    pub min_confidence: f64,
    /// Every agent: the routes, and the members of those that are teams or swarms.
    pub agents: AgentsSpec,
    /// Time limit of the run; pauses are not counted.
    pub max_seconds: Duration,
}

/// A route: the agent that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// The agent's name, which is the route's.
    pub agent: AgentName,
    /// The flag that takes the route off the execution list while it is off.
    pub flag: Option<FlagName>,
}

/// Default of `min_confidence`.
pub const MIN_CONFIDENCE: f64 = 0.6;

impl Spec for RouterSpec {
    fn name(&self) -> &'static str {
        "router"
    }

    fn max_time(&self) -> Duration {
        self.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.routes.len() as u64, "route")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![LimitField::max_seconds(self.max_seconds)]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let seconds = self.max_seconds.as_secs();
        let fallback = match &self.fallback {
            Some(route) => format!("fallback {route}"),
            None => "no fallback".to_owned(),
        };
        let least = self.min_confidence;
        let limits = format!("{seconds} s, {fallback} below a confidence of {least}");
        let routes = self.routes.iter().filter_map(|route| {
            let agent = self.agents.get(&route.agent)?;
            let flag = route.flag.as_ref().map(|flag| format!(" (flag {flag})"));
            let flag = flag.unwrap_or_default();
            Some(format!("{} {}{flag}: {}", agent.kind.word(), agent.name, agent.description))
        });
        let mut lines = vec![LabelledText::new("limits", limits)];
        lines.extend(LabelledText::list("routes", routes));
        lines
    }

    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let routes: Vec<&AgentName> = self.routes.iter().map(|route| &route.agent).collect();
        check_boundary(&routes, &self.agents, at)
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        let mut callers = vec![ModelCaller::Step(ScriptStep::Classify)];
        callers.extend(self.agents.model_callers());
        callers
    }

    fn agents(&self) -> Option<&AgentsSpec> {
        Some(&self.agents)
    }
}

/// Checks `classify`, `route`, and the boundaries of the agent behind a route, whose path begins
/// with `router/ROUTE.1`.
pub(crate) fn check_boundary(
    routes: &[&AgentName],
    agents: &AgentsSpec,
    at: &str,
) -> Result<(), String> {
    let examples = || {
        let first = routes.first().map_or("AGENT", |route| route.as_str());
        format!("{CLASSIFY}, {ROUTE}, ask:1:{CALLER}/{first}.1")
    };
    if matches!(at, CLASSIFY | ROUTE) {
        return Ok(());
    }
    let mut parts = at.splitn(3, ':');
    let (word, nth) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let path = parts.next().unwrap_or_default();
    let below = path.strip_prefix(CALLER).and_then(|rest| rest.strip_prefix('/'));
    let (first, rest) = match below.map(|below| below.split_once('/').unwrap_or((below, ""))) {
        Some(steps) if matches!(word, "ask" | "handoff") => steps,
        _ => return Err(format!("never reached here; use {}", examples())),
    };
    let route = first.strip_suffix(".1").map(AgentName::from);
    let route = route.filter(|name| routes.contains(&name));
    let Some(route) = route else {
        return Err(format!("never reached here: {first} is not a route; use {}", examples()));
    };
    // The agent behind the route is the outermost one of its own team or swarm.
    let inner = match (word, rest) {
        (_, "") => route.to_string(),
        ("handoff", to) if !to.contains('/') => to.to_owned(),
        (_, below) => format!("{route}/{below}"),
    };
    let team = TeamAgents { root: &route, all: agents };
    boundary::check_boundary(team, &format!("{word}:{nth}:{inner}"), &examples)
}

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    tables: &["agents"],
    // A route is an agent.
    required: &["agents"],
    misplaced_limit: |key| key_owner(key).map(|owner| format!("{owner}: [agents.NAME]")),
    outcome: OUTCOME_FIELDS,
    boundaries: BOUNDARIES,
    speakers: Speakers::Agents,
    reply_names: AGENT_NAMES,
    steps: &[(ScriptStep::Classify, &["facts", "inputs", "goal", "attempt", "flags", "routes"])],
    check_reply: check_scripted_reply,
    report_silent,
    models,
    tool_use,
    ..PatternRow::new(Pattern::Router, "router")
};

/// The ids of its boundaries: its own steps, and those of agents.
const BOUNDARIES: &[BoundaryForm] = &[
    BoundaryForm::Word(CLASSIFY),
    BoundaryForm::Word(ROUTE),
    BoundaryForm::Named("ask"),
    BoundaryForm::Named("handoff"),
];

fn models(file: &ScenarioFile) -> Vec<ModelKey<'_>> {
    let Some(table) = &file.router else { return Vec::new() };
    let mut keys =
        vec![ModelKey::new(ModelCaller::Step(ScriptStep::Classify), "router.model", &table.model)];
    keys.extend(agent_models(file));
    keys
}

fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    if let Some(prompt) = file.router.as_ref().and_then(|table| table.prompt.as_ref()) {
        let (step, place) = (ScriptStep::Classify, "router.prompt");
        report_silent_step(file, step, place, prompt.at, "classification", cx);
    }
    report_silent_agents(file, None, cx);
}

/// Builds the router of a file. Problems are reported to `cx`.
pub(crate) fn router(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<RouterSpec> {
    let agents = agents(file, scope, cx);
    let table = file.router.as_ref()?;
    let (prompt, routes, fallback) = cx.at_key("router", |cx| {
        cx.at_key("echo", |cx| echo(table, file, cx));
        let prompt = table
            .prompt
            .as_ref()
            .map(|prompt| cx.at_key("prompt", |cx| scope.prompt(&prompt.text, prompt.at, cx)));
        let routes = cx.at_key("routes", |cx| routes(table, file, cx));
        let fallback = cx.at_key("fallback", |cx| fallback(table, cx));
        (prompt, routes, fallback)
    });
    if let Some(routes) = &routes {
        let roots: Vec<&AgentName> = routes.iter().map(|route| &route.agent).collect();
        warn_of_orphans(file, &roots, cx);
    }
    Some(RouterSpec {
        prompt: prompt?,
        echo: table.echo.0.iter().map(|input| InputName::from(input.text.as_str())).collect(),
        routes: routes?,
        fallback: fallback?,
        min_confidence: table.min_confidence.as_ref().map_or(MIN_CONFIDENCE, |it| it.0),
        agents: agents?,
        max_seconds: file.budget.as_ref()?.max_seconds(60),
    })
}

/// The inputs that the classifier sees must exist.
fn echo(table: &RouterTable, file: &ScenarioFile, cx: &mut ReadContext) {
    for (index, input) in table.echo.0.iter().enumerate() {
        if !file.inputs.has(&input.text) {
            cx.at_index(index, |cx| {
                report_unknown_name(input, "an input", file.inputs.names(), cx);
            });
        }
    }
}

fn routes(
    table: &RouterTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<Vec<RouteSpec>> {
    if table.routes.entries.is_empty() && !cx.has_error_here() {
        let help = "add [router.routes.NAME], with the name of an agent";
        cx.error(TextSpan::new(0, 0..0), "there are no routes", help);
    }
    let routes: Vec<Option<RouteSpec>> = table
        .routes
        .entries
        .iter()
        .map(|entry| cx.at_key(&entry.name, |cx| route(entry, file, cx)))
        .collect();
    routes.into_iter().collect()
}

fn route(
    entry: &NamedEntry<RouteTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<RouteSpec> {
    let table = entry.value.as_ref()?;
    if !file.agents.has(&entry.name) {
        let help = cx.suggest(&entry.name, file.agents.names());
        cx.error(entry.at, format!("`{}` is not an agent", entry.name), help);
        return None;
    }
    if let Some(flag) = &table.flag
        && !file.flags.has(&flag.text)
    {
        cx.at_key("flag", |cx| report_unknown_name(flag, "a flag", file.flags.names(), cx));
        return None;
    }
    Some(RouteSpec {
        agent: AgentName::from(entry.name.as_str()),
        flag: table.flag.as_ref().map(|flag| FlagName::from(flag.text.as_str())),
    })
}

/// The fallback is a route. `None`: it is not; inside, `None`: there is no fallback.
fn fallback(table: &RouterTable, cx: &mut ReadContext) -> Option<Option<AgentName>> {
    let Some(name) = &table.fallback else { return Some(None) };
    if !table.routes.has(&name.text) {
        report_unknown_name(name, "a route", table.routes.names(), cx);
        return None;
    }
    Some(Some(AgentName::from(name.text.as_str())))
}

record! {
    /// The classifier, the routes, and when the fallback answers.
    struct RouterTable => {
        /// System prompt of the classifier; the required reply format is appended. `{{input}}` is
        /// filled in.
        prompt: NonBlankString = needed_or_file,
        /// The model that classifies. Default: that of [model].
        model: NonBlankString = optional,
        /// Inputs that the classifier sees with the goal.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// The routes by the name of their agent: the policy list. The agent's description tells the
        /// classifier what the route is for.
        routes: NamedEntries<RouteTable, ActorName> = default(NamedEntries::default()),
        /// The route where the classifier's is off or its confidence too low. Default: none, and
        /// the run stops with no_route.
        fallback: NonBlankString = optional,
        /// The confidence, from 0 to 1, that the classifier's route needs.
        min_confidence: Number<0, 1> = optional,
    }
}

record! {
    /// A route: the agent of this name answers.
    struct RouteTable => {
        /// A flag that takes the route off the execution list while it is off.
        flag: NonBlankString = optional,
    }
}

/// Checks the reply of a row.
pub(crate) fn check_scripted_reply(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    if row.step.as_ref().is_none_or(|step| step.value != ScriptStep::Classify) {
        return;
    }
    let table = &reply.value.table;
    cx.at_key("reply", |cx| {
        let keys = ["route", "confidence", "reason"];
        require_keys(table, reply.at, &keys, &stop("missing_keys"), cx);
        with_key(table, "route", cx, |node, cx| scripted_route(node, file, cx));
        with_key(table, "confidence", cx, |node, cx| confidence(node, "confidence_type", cx));
        with_key(table, "reason", cx, |node, cx| expect_text(node, &stop("reason"), cx));
        with_key(table, "alternatives", cx, |node, cx| {
            each_item(node, &stop("alternatives"), cx, |entry, cx| {
                let TomlValue::Table(fields) = &entry.value else {
                    return warn_wrong_type(entry, "a table", &stop("alternative"), cx);
                };
                alternative(fields, entry, cx);
            });
        });
    });
}

fn stop(fault: &str) -> String {
    format!("the run stops with invalid_route:{fault}")
}

fn scripted_route(node: &TomlNode, file: &ScenarioFile, cx: &mut ReadContext) {
    let ScriptedText::Text(name) = text(node) else {
        return expect_text(node, &stop("route"), cx);
    };
    let routes = file.router.as_ref().map(|table| &table.routes);
    if let Some(routes) = routes.filter(|routes| !routes.has(name)) {
        let help = cx.suggest(name, routes.names());
        let what = format!("`{name}` is not a route: the run stops with route_denied:{name}");
        cx.warn(node.at, what, help);
    }
}

fn alternative(fields: &TomlTable, entry: &TomlNode, cx: &mut ReadContext) {
    require_keys(fields, entry.at, &["route", "confidence"], &stop("alternative"), cx);
    with_key(fields, "route", cx, |node, cx| expect_text(node, &stop("alternative"), cx));
    with_key(fields, "confidence", cx, |node, cx| confidence(node, "alternative", cx));
}

fn confidence(node: &TomlNode, fault: &str, cx: &mut ReadContext) {
    let number = match node.value {
        TomlValue::Number(number) => number,
        TomlValue::Integer(Some(number)) => number as f64,
        _ if is_filled_in(node) => return,
        _ => return warn_wrong_type(node, "a number from 0 to 1", &stop(fault), cx),
    };
    if !(0.0..=1.0).contains(&number) {
        let what = format!("{number} is not from 0 to 1: {}", stop("confidence_range"));
        cx.warn(node.at, what, "write a number from 0 to 1");
    }
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new("route", "string|null", "The route that was taken."),
    OutcomeField::new("proposed_route", "string|null", "The route that the classifier proposed."),
    OutcomeField::new("confidence", "number", "How sure the classifier was, from 0 to 1."),
    OutcomeField::new("reason", "string", "Why it proposed that route."),
    OutcomeField::new("alternatives", "array", "The other routes with their confidence."),
    OutcomeField::new("fallback_used", "boolean", "Whether the fallback route was taken."),
    OutcomeField::new("fallback_cause", "any", "Why the fallback was taken, or no route was."),
    OutcomeField::new("answer", "string|null", "The answer of the route's agent. With success."),
    OutcomeField::new("final_agent", "string|null", "The agent that gave it. With success."),
    OutcomeField::new(
        "written_calls",
        "array",
        "Answers of agents that are a tool call written as text: `who` and `text`.",
    ),
];

/// The step in which the classifier is asked; also its boundary.
pub(crate) const CLASSIFY: &str = "classify";

/// The step in which the route is chosen; also its boundary.
pub(crate) const ROUTE: &str = "route";

/// The first step of the paths of a router's agents: `router/billing.1`.
pub(crate) const CALLER: &str = "router";
