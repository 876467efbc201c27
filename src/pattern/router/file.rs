//! Cross-checks between the tables of a router: its routes are agents, its fallback is a route.

mod outcome_fields;
pub(crate) mod reply;
pub(crate) mod table;

use crate::agents::file::script::{AGENT_NAMES, report_silent_agents};
use crate::agents::file::table::key_owner;
use crate::agents::file::{agents, models as agent_models, tool_use, warn_of_orphans};
use crate::base::name::{AgentName, FlagName, InputName};
use crate::pattern::router::file::table::{RouteTable, RouterTable};
use crate::pattern::router::spec::boundary::{CLASSIFY, ROUTE};
use crate::pattern::router::spec::{MIN_CONFIDENCE, RouteSpec, RouterSpec};
use crate::scenario::check::script_steps::report_silent_step;
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::file::format::{Pattern, ScenarioFile};
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::pattern_row::{ModelKey, PatternRow, Speakers};
use crate::scenario::spec::boundary_form::BoundaryForm;
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::script::ScriptStep;

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    tables: &["agents"],
    // A route is an agent.
    required: &["agents"],
    misplaced_limit: |key| key_owner(key).map(|owner| format!("{owner}: [agents.NAME]")),
    outcome: outcome_fields::FIELDS,
    boundaries: BOUNDARIES,
    speakers: Speakers::Agents,
    reply_names: AGENT_NAMES,
    steps: &[(ScriptStep::Classify, &["facts", "inputs", "goal", "attempt", "flags", "routes"])],
    check_reply: reply::check,
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
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<RouterSpec> {
    let agents = agents(file, filling, cx);
    let table = file.router.as_ref()?;
    let (prompt, routes, fallback) = cx.at_key("router", |cx| {
        cx.at_key("echo", |cx| echo(table, file, cx));
        let prompt = table
            .prompt
            .as_ref()
            .map(|prompt| cx.at_key("prompt", |cx| filling.prompt(&prompt.text, prompt.at, cx)));
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
