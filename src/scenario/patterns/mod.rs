//! The patterns in a scenario file, each with the same name as in the layers above: its tables, its
//! settings and its checks. This is also the registry through which other code asks a pattern without
//! matching it. The format of a file belongs to this layer, as the format of events belongs to the
//! log, so a pattern's part of it is here too.

pub mod agents;
pub mod collaboration;
pub mod observed;
pub mod orchestrator;
pub mod research;
pub mod resilience;
pub mod router;
pub mod row;
pub mod team;

use serde_json::{Map, Value, json};

use self::collaboration::CollaborationSpec;
use self::observed::ObservedSpec;
use self::orchestrator::OrchestratorSpec;
use self::research::ResearchSpec;
use self::resilience::ResilienceSpec;
use self::router::RouterSpec;
use self::row::{PatternRow, Spec};
use self::team::TeamSpec;
use super::read::format::{Pattern, ScenarioFile};
use super::read::template::TemplateScope;
use super::read::{ReadContext, format};
use super::spec::script::ScriptStep;

/// The settings of the pattern.
#[derive(Debug)]
pub enum PatternSpec {
    /// Collaboration source document: roles with stances, in rounds.
    Collaboration(CollaborationSpec),
    /// Orchestrator source document: a plan of tasks, dispatched in parallel.
    Orchestrator(OrchestratorSpec),
    /// Teams source document: a coordinator and its members, or a swarm.
    Team(TeamSpec),
    /// Cascading failures source document: many agents that call flaky tools.
    Resilience(ResilienceSpec),
    /// Research source document: an answer from sources, with citations.
    Research(ResearchSpec),
    /// A classifier, and the agents that it routes requests to.
    Router(RouterSpec),
    /// Another program, which is only watched. No file has it.
    Observed(ObservedSpec),
}

impl PatternSpec {
    /// The pattern, to ask it questions.
    pub fn get(&self) -> &dyn Spec {
        match self {
            Self::Collaboration(spec) => spec,
            Self::Orchestrator(spec) => spec,
            Self::Team(spec) => spec,
            Self::Resilience(spec) => spec,
            Self::Research(spec) => spec,
            Self::Router(spec) => spec,
            Self::Observed(spec) => spec,
        }
    }
}

/// The rows of all patterns.
pub(crate) static ROWS: [PatternRow; 7] = [
    collaboration::check::ROW,
    orchestrator::check::ROW,
    team::TEAM,
    team::SWARM,
    resilience::ROW,
    research::check::ROW,
    router::ROW,
];

/// Builds the pattern of a file. Problems are reported to `cx`.
pub(crate) fn build(
    pattern: Pattern,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<PatternSpec> {
    match pattern {
        Pattern::Collaboration => {
            collaboration::check::collaboration(file, scope, cx).map(PatternSpec::Collaboration)
        }
        Pattern::Orchestrator => {
            orchestrator::check::orchestrator(file, scope, cx).map(PatternSpec::Orchestrator)
        }
        Pattern::Team => team::team(file, scope, cx).map(PatternSpec::Team),
        Pattern::Swarm => team::swarm(file, scope, cx).map(PatternSpec::Team),
        Pattern::Resilience => resilience::resilience(file, scope, cx).map(PatternSpec::Resilience),
        Pattern::Research => research::check::research(file, scope, cx).map(PatternSpec::Research),
        Pattern::Router => router::router(file, scope, cx).map(PatternSpec::Router),
    }
}

/// Whether some pattern has boundaries with ids of this form.
pub(crate) fn is_boundary(id: &str) -> bool {
    ROWS.iter().flat_map(|row| row.boundaries).any(|form| form.fits(id))
}

/// Whether this pattern has boundaries with ids of this form.
pub(crate) fn has_boundary(pattern: &str, id: &str) -> bool {
    // No file has this pattern.
    if pattern == "observed" {
        return observed::BOUNDARY.fits(id);
    }
    let of_pattern = ROWS.iter().filter(|row| row.name == pattern);
    of_pattern.flat_map(|row| row.boundaries).any(|form| form.fits(id))
}

/// Names that the condition of a row may use. The step may be one that the pattern does not have.
pub(super) fn condition_names(
    own: &PatternRow,
    step: Option<ScriptStep>,
) -> &'static [&'static str] {
    let Some(step) = step.filter(|step| !own.has_agents() || own.has_step(*step)) else {
        let mut names = ROWS.iter().map(|row| row.reply_names);
        return match own.reply_names {
            [] => names.next().unwrap_or_default(),
            own => own,
        };
    };
    let steps = own.steps.iter().chain(ROWS.iter().flat_map(|row| row.steps));
    steps.into_iter().find(|(known, _)| *known == step).map_or(&[], |(_, names)| *names)
}

/// The names in the conditions of a pattern's rows whose values differ from call to call.
pub(super) fn names_of_calls(own: &PatternRow) -> Vec<&'static str> {
    let of_steps = own.steps.iter().flat_map(|(_, names)| *names);
    let names = own.reply_names.iter().chain(of_steps).copied();
    names.filter(|name| !["facts", "inputs", "goal"].contains(name)).collect()
}

/// The JSON schema of a scenario file, for editors: descriptions, allowed words, ranges, required
/// keys, and which table belongs to which pattern.
pub fn schema() -> Value {
    let mut schema = format::schema();
    if let Value::Object(fields) = &mut schema {
        fields.insert("allOf".to_owned(), rules());
    }
    schema
}

/// The rules of the JSON schema on which key belongs to which pattern.
fn rules() -> Value {
    let rules = ROWS.iter().map(|own| {
        let others = || ROWS.iter().filter(|other| other.pattern != own.pattern);
        let mut properties: Map<String, Value> = others()
            .flat_map(|other| [other.name].into_iter().chain(other.tables.iter().copied()))
            .filter(|table| !own.has(table))
            .map(|name| (name.to_owned(), Value::Bool(false)))
            .collect();
        let foreign: Map<String, Value> = others()
            .flat_map(|other| other.budget.iter())
            .map(|key| ((*key).to_owned(), Value::Bool(false)))
            .collect();
        properties.insert("budget".to_owned(), json!({ "properties": foreign }));
        let mut required = vec![own.name];
        required.extend(own.required);
        json!({
            "if": { "properties": { "pattern": { "const": own.name } }, "required": ["pattern"] },
            "then": { "required": required, "properties": properties },
        })
    });
    rules.collect()
}
