//! Teams and swarms for tests: agents in a line each, a model whose answers each test writes, and
//! runs that are read to their end.

#[allow(unused_imports, reason = "each test binary uses a part")]
pub use super::table::{engine, read, until};

use super::table;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::base::name::AgentName;
use roundtable::engine::{Launch, ModelChoice, RunHandle};
use roundtable::log::event::{
    ChatMessage, Event, FailureClass, MessageRole, ModelLabel, Purpose, Reply, Seq, Usage, World,
};
use roundtable::model::{ChatModel, ChatRequest, Failure, Listener, failure};
use roundtable::scenario::Scenario;
use roundtable::scenario::patterns::PatternSpec;
use roundtable::scenario::patterns::agents::{
    AgentKind, AgentSpec, CoordinatorTeam, MemberTools, ModelAgent, Swarm, SwarmLimits,
};
use roundtable::scenario::patterns::team::TeamSpec;
use roundtable::scenario::spec::tool::ToolCall;
use serde_json::Value;
use tokio::time::Instant;

/// A model agent whose instruction is `I am NAME.`
pub fn agent(name: &str) -> AgentSpec {
    described(name, AgentKind::Model(model(name)))
}

fn model(name: &str) -> ModelAgent {
    ModelAgent {
        outside: None,
        people: Vec::new(),
        instruction: format!("I am {name}.").into(),
        tools: Vec::new(),
        max_tool_rounds: 16,
    }
}

fn described(name: &str, kind: AgentKind) -> AgentSpec {
    AgentSpec { name: name.into(), description: format!("What {name} does.").into(), kind }
}

fn names(names: &[&str]) -> Vec<AgentName> {
    names.iter().map(|name| AgentName::from(*name)).collect()
}

/// A model agent with tools.
pub fn with_tools(name: &str, tools: &[&str]) -> AgentSpec {
    let tools = tools.iter().map(|tool| (*tool).into()).collect();
    described(name, AgentKind::Model(ModelAgent { tools, ..model(name) }))
}

/// A coordinator team.
pub fn team(name: &str, members: &[&str], change: impl FnOnce(&mut CoordinatorTeam)) -> AgentSpec {
    let mut team = CoordinatorTeam {
        coordinator: model(name),
        members: names(members),
        parallel_tools: false,
        member_tools: MemberTools::default(),
    };
    change(&mut team);
    described(name, AgentKind::Team(team))
}

/// A swarm that starts at its first member.
pub fn swarm(name: &str, members: &[&str], change: impl FnOnce(&mut Swarm)) -> AgentSpec {
    let mut swarm = Swarm {
        members: names(members),
        entry: members[0].into(),
        limits: SwarmLimits::default(),
        max_rejections: 3,
        node_timeout: None,
        cross_request_transfer: false,
        independent_history: false,
        handoff_input: None,
    };
    change(&mut swarm);
    described(name, AgentKind::Swarm(swarm))
}

const HEAD: &str = r#"
title = "A team"
pattern = "resilience"
about = "For tests."
goal = "The goal."
[budget]
max_seconds = 600
[resilience]
agents = 1
turns = 1
steps = ["look"]
pool = 1
[tools.llm]
retries = { max_attempts = 1 }
[[tools.look.fixture.rows]]
latency = "1s"
result = { seen = 3 }
"#;

/// The scenario of these agents, the first of which the person talks to. It has a tool `look` that
/// takes a second; `more` is added to the file's text.
pub fn scenario(agents: Vec<AgentSpec>, more: &str) -> Arc<Scenario> {
    let read = table::read(&format!("{HEAD}{more}"), &[]);
    let mut scenario = Arc::try_unwrap(read).expect("nobody else has it");
    scenario.pattern = PatternSpec::Team(TeamSpec {
        root: agents[0].name.clone(),
        agents: agents.into_iter().collect(),
        follow_ups: Vec::new(),
        max_seconds: Duration::from_secs(600),
    });
    Arc::new(scenario)
}

/// What an agent's model was asked.
#[derive(Clone, Debug)]
pub struct Heard {
    pub agent: String,
    pub turn: u32,
    pub round: u32,
    /// The messages: `system: …`, `user: …`, `assistant: … [tool {args}]`, `tool: …`.
    pub messages: Vec<String>,
    /// What it was offered.
    pub offers: Vec<String>,
    /// The last message.
    pub last: String,
    pub request: ChatRequest,
}

/// What an agent's model says.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub text: String,
    pub calls: Vec<(String, String)>,
    pub after: Duration,
    pub fails: Option<FailureClass>,
}

/// It says a text.
pub fn says(text: &str) -> Line {
    Line { text: text.to_owned(), ..Line::default() }
}

/// It calls a tool.
pub fn calls(tool: &str, args: Value) -> Line {
    says("").and(tool, args)
}

/// It consults a member.
pub fn consults(member: &str, request: &str) -> Line {
    calls(member, serde_json::json!({ "request": request }))
}

/// It hands over.
pub fn hands(to: &str, message: Option<&str>) -> Line {
    let mut args = serde_json::json!({ "agent_name": to });
    if let Some(message) = message {
        args["message"] = message.into();
    }
    calls("transfer_to_agent", args)
}

impl Line {
    /// And calls another.
    pub fn and(mut self, tool: &str, args: Value) -> Self {
        self.calls.push((tool.to_owned(), args.to_string()));
        self
    }
    /// And calls another with arguments as they stand.
    pub fn and_raw(mut self, tool: &str, args: &str) -> Self {
        self.calls.push((tool.to_owned(), args.to_owned()));
        self
    }
    /// Says so beside its calls.
    pub fn saying(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }
    /// After so many milliseconds.
    pub fn after(mut self, ms: u64) -> Self {
        self.after = Duration::from_millis(ms);
        self
    }
}

/// It fails.
pub fn fails(class: FailureClass) -> Line {
    Line { fails: Some(class), ..Line::default() }
}

type Script = dyn Fn(&Heard) -> Line + Send + Sync;

/// A model that speaks for all agents, as a test says.
pub struct Cast {
    script: Box<Script>,
    heard: Mutex<Vec<Heard>>,
}

impl Cast {
    pub fn new(script: impl Fn(&Heard) -> Line + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), heard: Mutex::default() })
    }

    /// Everything that was asked, in its order.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("not poisoned").clone()
    }

    /// Who was asked, in its order.
    pub fn speakers(&self) -> Vec<String> {
        self.heard().into_iter().map(|heard| heard.agent).collect()
    }

    /// The messages that an agent was shown the nth time, from 1.
    pub fn shown(&self, agent: &str, nth: usize) -> Vec<String> {
        let heard = self.heard().into_iter().filter(|heard| heard.agent == agent);
        heard.map(|heard| heard.messages).nth(nth - 1).unwrap_or_default()
    }

    /// What an agent was offered the nth time, from 1.
    pub fn offered(&self, agent: &str, nth: usize) -> Vec<String> {
        let heard = self.heard().into_iter().filter(|heard| heard.agent == agent);
        heard.map(|heard| heard.offers).nth(nth - 1).unwrap_or_default()
    }
}

fn told(message: &ChatMessage) -> String {
    let role = match message.role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    };
    let calls = message.tool_calls.iter();
    let calls: String = calls.map(|call| format!(" [{} {}]", call.name, call.arguments)).collect();
    format!("{role}: {}{calls}", message.content)
}

impl ChatModel for Cast {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "cast".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        let Purpose::ModelCall { agent, turn, round } = &request.purpose else {
            panic!("nobody asks but agents: {:?}", request.purpose);
        };
        let messages: Vec<String> = request.messages.iter().map(told).collect();
        let heard = Heard {
            agent: agent.to_string(),
            turn: *turn,
            round: *round,
            last: messages.last().cloned().unwrap_or_default(),
            messages,
            offers: request.tools.iter().map(|offer| offer.name.to_string()).collect(),
            request: request.clone(),
        };
        self.heard.lock().expect("not poisoned").push(heard.clone());
        let line = (self.script)(&heard);
        async move {
            if !line.after.is_zero() {
                tokio::time::sleep_until(Instant::now() + line.after).await;
            }
            if let Some(class) = line.fails {
                return Err(failure(class, "as told"));
            }
            listener.piece(&line.text);
            let calls = line.calls.iter().enumerate().map(|(place, (name, arguments))| ToolCall {
                id: format!("{agent}-{turn}-{round}-{place}").into(),
                name: name.as_str().into(),
                arguments: arguments.as_str().into(),
            });
            Ok(Reply {
                tool_calls: calls.collect(),
                usage: Some(Usage::new(request.messages.words(), 1)),
                ..Reply::from_agent_text(line.text.as_str().into())
            })
        }
        .boxed()
    }
}

/// What a run with this model is started with.
pub fn launch(scenario: &Arc<Scenario>, cast: &Arc<Cast>) -> Launch {
    let model = ModelChoice::Live(Arc::clone(cast).into(), Duration::from_secs(60));
    Launch { model, ..Launch::scripted(Arc::clone(scenario), false) }
}

/// The facts of a run that has ended.
pub async fn ended(run: &RunHandle) -> Vec<Arc<Event>> {
    run.wait_until_finished().await;
    assert_eq!(run.in_flight(), 0, "nothing is in flight once a run has ended");
    let mut facts = Vec::new();
    run.bus().reader(Seq(0)).take(&mut facts, usize::MAX);
    facts
}

/// The world of a run that has ended; every span of it is closed, every permit given back.
pub async fn world(run: &RunHandle) -> World {
    let world = World::from_events(ended(run).await.iter().map(|event| &**event));
    assert_eq!(world.spans.open(), 0, "every span is closed");
    for tool in run.tool_snapshots() {
        assert_eq!(tool.fill.in_flight, 0, "{} has its permits back", tool.tool);
    }
    world
}

/// Plays a scenario to its end.
pub async fn play(scenario: &Arc<Scenario>, cast: &Arc<Cast>) -> World {
    world(&engine().start(launch(scenario, cast))).await
}

/// The outcome as JSON.
pub fn outcome(world: &World) -> Value {
    serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON")
}

/// Why a run stopped.
pub fn reason(world: &World) -> String {
    outcome(world)["stop_reason"].as_str().expect("a reason").to_owned()
}

/// The answer of a run.
pub fn answer(world: &World) -> String {
    outcome(world)["answer"].as_str().unwrap_or_default().to_owned()
}
