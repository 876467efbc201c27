//! Creates the implementations of a scenario's tools before its run starts, so that missing ones
//! are reported before anything is spent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::base::name::{AgentName, ToolName};
use crate::gateway::{NO_IMPLEMENTATION, Tool, ToolSetup};
use crate::model::ChatModel;
use crate::run::servers::{NoSeenTools, SeenTools};
use crate::scenario::Scenario;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{ResultContract, ToolSpec};
use crate::scenario::tools::ToolKind;
use crate::scenario::tools::mcp::{McpServerSpec, McpSpec};
use crate::tool;
use crate::tool::documents::DocumentTools;
use crate::tool::{Environment, NotReady, ToolMaker};

/// Timeout of an attempt if neither scenario nor pattern sets one (cascading failures source
/// document).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The tools of one run.
pub struct Toolbox {
    tools: Vec<ToolSetup>,
    seen: Arc<dyn SeenTools>,
    /// The agents of other programs, with the callers for which they answer.
    agents: Vec<(ModelCaller, Arc<dyn ChatModel>)>,
}

impl Toolbox {
    /// The tools that need nothing from the environment: those that start a program or use the
    /// network are left without an implementation. `instant` skips the delays of fixtures. Folders
    /// are really searched and read, but no index of them is saved.
    pub fn offline(scenario: &Scenario, instant: bool) -> Self {
        let maker = ToolMaker::new(DocumentTools::unsaved(Arc::new(SystemTime::now)), instant);
        let made = scenario.tools.values().map(|spec| {
            let tool = spec.kind.as_ref().and_then(|kind| maker.make_local(kind));
            tool_setup(scenario, spec, tool, instant)
        });
        let tools = with_people(scenario, with_agents(scenario, made.collect()));
        Self { tools, seen: Arc::new(NoSeenTools), agents: Vec::new() }
    }

    /// The tools of a scenario, with their variables looked up in `env`. No tool is called or
    /// started.
    ///
    /// # Errors
    /// The reasons why tools cannot be called, one for each such tool.
    pub fn make(
        scenario: &Scenario,
        instant: bool,
        env: Environment<'_>,
    ) -> Result<Self, Vec<ToolNotReady>> {
        Self::with_servers(scenario, instant, env, &BTreeMap::new(), Arc::new(NoSeenTools))
    }

    /// The same, with the MCP servers of the configuration, and what the operator has seen of the tools of
    /// servers.
    pub(crate) fn with_servers(
        scenario: &Scenario,
        instant: bool,
        env: Environment<'_>,
        configured: &BTreeMap<String, Arc<McpServerSpec>>,
        seen: Arc<dyn SeenTools>,
    ) -> Result<Self, Vec<ToolNotReady>> {
        let documents = DocumentTools::for_user(Arc::new(SystemTime::now));
        let maker = ToolMaker::new(documents, instant).with_servers(configured);
        let (mut made, mut troubles) = (Vec::new(), Vec::new());
        for spec in scenario.tools.values() {
            let tool = spec.kind.as_ref().map(|kind| maker.make(kind, env)).transpose();
            match tool {
                Ok(tool) => made.push(tool_setup(scenario, spec, tool.flatten(), instant)),
                Err(reasons) => troubles.extend(reasons.into_iter().map(|why| ToolNotReady {
                    what: "tool",
                    tool: spec.name.clone(),
                    why,
                })),
            }
        }
        if troubles.is_empty() {
            let tools = with_people(scenario, with_agents(scenario, made));
            Ok(Self { tools, seen, agents: Vec::new() })
        } else {
            Err(troubles)
        }
    }

    /// The same, with the agents of other programs that answer in a live run. None is started.
    ///
    /// # Errors
    /// The reasons why agents cannot be asked, one for each such agent.
    pub fn with_agents(
        self,
        scenario: &Scenario,
        env: Environment<'_>,
    ) -> Result<Self, Vec<ToolNotReady>> {
        let agents = tool::agents::make_models(&scenario.pattern.get().outside_callers(), env);
        let not_ready = |(agent, why): (AgentName, _)| ToolNotReady {
            what: "agent",
            tool: agent.as_str().into(),
            why,
        };
        let agents = agents.map_err(|all| all.into_iter().map(not_ready).collect::<Vec<_>>())?;
        Ok(Self { agents, ..self })
    }

    /// All tools of an MCP server, which is not started yet. It ends when they are dropped.
    pub(crate) fn tools_of_server(
        server: &Arc<McpServerSpec>,
        env: Environment<'_>,
        configured: &BTreeMap<String, Arc<McpServerSpec>>,
    ) -> Result<Box<dyn Tool>, Vec<NotReady>> {
        let documents = DocumentTools::unsaved(Arc::new(SystemTime::now));
        let maker = ToolMaker::new(documents, true).with_servers(configured);
        let spec = McpSpec { server: Arc::clone(server), tool: None };
        maker.make_server(&spec, env)
    }

    /// Replaces the implementation of a tool. Does nothing if the scenario has no tool of this
    /// name.
    pub fn replace(&mut self, name: &str, tool: Box<dyn Tool>) {
        if let Some(setup) = self.tools.iter_mut().find(|setup| setup.name.as_str() == name) {
            setup.tool = Some(tool);
        }
    }

    pub(super) fn into_setups(self) -> Vec<ToolSetup> {
        self.tools
    }

    pub(super) fn agents(&self) -> &[(ModelCaller, Arc<dyn ChatModel>)] {
        &self.agents
    }

    pub(super) fn seen_tools(&self) -> Arc<dyn SeenTools> {
        Arc::clone(&self.seen)
    }
}

/// Why a tool cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {tool}: {why}")]
pub struct ToolNotReady {
    /// `tool` or `agent`.
    pub what: &'static str,
    /// Name of the tool.
    pub tool: ToolName,
    /// The reason, and how to fix it.
    pub why: NotReady,
}

fn tool_setup(
    scenario: &Scenario,
    spec: &ToolSpec,
    tool: Option<Box<dyn Tool>>,
    instant: bool,
) -> ToolSetup {
    let pattern = scenario.pattern.get();
    let policy = pattern.tool_policy(&spec.policy);
    let timeout = pattern.attempt_time(&spec.name).unwrap_or(DEFAULT_TIMEOUT);
    ToolSetup {
        fingerprint: format!("{spec:?} {policy:?} {timeout:?} {instant}"),
        name: spec.name.clone(),
        tool,
        kind: spec.kind.as_ref().map_or(NO_IMPLEMENTATION, |kind| kind.word()),
        has_effects: spec.kind.as_ref().is_none_or(ToolKind::has_effects),
        contract: spec.contract.clone(),
        policy: Arc::new(policy),
        timeout,
        faults: spec.faults.clone(),
        shared: spec.shared,
    }
}

/// Adds the agents to the tools: members are called through the gateway too. Without a
/// `tools` table, an agent is bounded only by the whole run and is not retried: its own calls have
/// timeouts and retries.
fn with_agents(scenario: &Scenario, mut made: Vec<ToolSetup>) -> Vec<ToolSetup> {
    let pattern = scenario.pattern.get();
    let agents = pattern.agents().into_iter().flat_map(|agents| agents.values());
    let timeout = pattern.max_time();
    for agent in agents.filter(|agent| Some(&agent.name) != pattern.root()) {
        let kind = agent.kind.word();
        let named = |setup: &&mut ToolSetup| setup.name.as_str() == agent.name.as_str();
        if let Some(setup) = made.iter_mut().find(named) {
            (setup.kind, setup.timeout) = (kind, timeout);
            continue;
        }
        made.push(ToolSetup {
            name: ToolName::from(agent.name.as_str()),
            tool: None,
            kind,
            has_effects: false,
            contract: ResultContract::default(),
            policy: Arc::new(CallPolicy { max_attempts: 1, ..CallPolicy::default() }),
            timeout,
            faults: Vec::new(),
            shared: false,
            fingerprint: String::new(),
        });
    }
    made
}

/// Adds the people to the tools that have a seat or that agents may ask: they are called through the
/// gateway too. They have no limits here: a question has its own deadline.
fn with_people(scenario: &Scenario, mut made: Vec<ToolSetup>) -> Vec<ToolSetup> {
    made.extend(scenario.pattern.get().called_people().into_iter().map(|person| ToolSetup {
        name: ToolName::from(person.as_str()),
        tool: None,
        kind: "person",
        has_effects: false,
        contract: ResultContract::default(),
        policy: Arc::new(CallPolicy { max_attempts: 1, ..CallPolicy::default() }),
        timeout: scenario.pattern.get().max_time(),
        faults: Vec::new(),
        shared: false,
        fingerprint: String::new(),
    }));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ScenarioOrigin, load};

    /// For each research tool with these definitions: its name, whether it has an implementation,
    /// and its timeout.
    fn offline(search: &str, read: &str) -> Vec<(String, bool, Duration)> {
        let text = format!(
            "title = \"T\"\npattern = \"research\"\ngoal = \"G\"\n[research]\nquestion = \"Q?\"\n\
             allowed_domains_policy = [\"a.example\"]\n\
             allowed_domains_execution = [\"a.example\"]\nplan = \"rule\"\nnotes = \"rule\"\n\
             answer = \"rule\"\n[tools.search_sources]\n{search}\n[tools.read_source]\n{read}\n"
        );
        let scenario = load(&text, ScenarioOrigin::File("a.toml".into()), &[]).expect("a scenario");
        let made = Toolbox::offline(&scenario, true).into_setups().into_iter();
        made.map(|it| (it.name.to_string(), it.tool.is_some(), it.timeout)).collect()
    }

    #[test]
    fn offline_keeps_folders_and_skips_network() {
        let there = |search, read| {
            let made = offline(search, read);
            made.iter().filter(|(_, there, _)| *there).count()
        };
        let endpoint = "search = { url = \"https://a.example/?q={query}\" }";
        assert_eq!(there(endpoint, "read = { web = true }"), 0);
        assert_eq!(there("search = { folder = \"\" }", "read = { folder = \"\" }"), 2);
    }

    #[test]
    fn page_timeout_follows_run_unless_set() {
        let made = offline("search = { folder = \"\" }", "read = { web = true }");
        let of = |name: &str| made.iter().find(|it| it.0 == name).map(|it| it.2);
        assert_eq!(of("read_source"), Some(Duration::from_secs(5)), "25 s, three pages");
        assert_eq!(of("search_sources"), Some(DEFAULT_TIMEOUT));
    }
}
