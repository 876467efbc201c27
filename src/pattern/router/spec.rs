//! A router as a scenario declares it.

pub(crate) mod boundary;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agents::spec::AgentsSpec;
use crate::base::name::{AgentName, FlagName, InputName, ToolName};
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::pattern::{LabelledText, LimitField, Spec};
use crate::scenario::spec::prompt::PromptTemplate;
use crate::scenario::spec::script::ScriptStep;
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
        boundary::check(&routes, &self.agents, at)
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
