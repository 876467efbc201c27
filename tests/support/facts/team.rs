//! Logs of facts by hand of a coordinator team and of a swarm: who was asked, who handed over, what
//! was said, as a test wants it, without an engine.
#![allow(dead_code, reason = "a bench uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use roundtable::bench::{
    AgentHead, FlagAt, HANDED_OVER, HandoffRefusal, HistoryEntry, LoopGuard, MemberOutput,
    PatternPlan, Prompt, SessionHead, SwarmHead, TeamPlan,
};
use roundtable::{
    AgentFact, AgentName, ChatMessage, EventKind, MessageRole, PatternFact, Purpose, Reply, RunId,
    RunStarted, SpanId, ToolCall, ToolOffer, Usage,
};
use serde_json::{Value, json};

use super::builder::LogBuilder;

/// A log of agents that is being written. An event is added to the last open run of the agent with its
/// name.
pub type TeamFacts = LogBuilder<TeamStory>;

/// What the builder knows of agents.
pub struct TeamStory {
    /// The runs of agents that are open, by name: call and attempt.
    runs: BTreeMap<String, (SpanId, SpanId)>,
    /// Model and tool calls that are open, by who calls.
    asks: BTreeMap<String, (SpanId, SpanId)>,
    /// The last model call of each agent's run.
    said: BTreeMap<String, SpanId>,
    rounds: BTreeMap<String, u32>,
    turns: BTreeMap<String, u32>,
    hops: u32,
    handoffs: u32,
    rejections: u32,
    targets: Vec<String>,
}

fn agent(name: &str, about: &str, kind: &str) -> AgentHead {
    AgentHead {
        name: name.into(),
        description: about.to_owned(),
        kind: kind.to_owned(),
        person: None,
        members: Vec::new(),
        instruction: Arc::default(),
        tools: Vec::new(),
        max_tool_rounds: Some(16),
        parallel_tools: false,
        member_tools: None,
        swarm: None,
    }
}

fn limits(entry: &str) -> SwarmHead {
    SwarmHead {
        entry: entry.into(),
        max_handoffs: 6,
        repetitive_handoff_window: 4,
        repetitive_handoff_min_unique: 2,
        max_rejections: 3,
        node_timeout_ms: 0,
        cross_request_transfer: false,
        independent_history: false,
        handoff_input: None,
    }
}

fn names(all: &[&str]) -> Vec<AgentName> {
    all.iter().map(|name| (*name).into()).collect()
}

/// The head of a session in its first run.
pub fn session(text: &str, starts: &str) -> SessionHead {
    SessionHead {
        message: 1,
        text: text.into(),
        previous_run: None,
        first_run: None,
        history: [].into(),
        owner: None,
        first_agent: starts.into(),
    }
}

/// What a person wants of the support desk.
pub const CHARGED: &str = "I was charged twice for order 8841 and want my money back.";

impl TeamFacts {
    fn begin(title: &str, goal: &str, plan: PatternPlan) -> Self {
        let mut facts = Self::new(TeamStory {
            runs: BTreeMap::new(),
            asks: BTreeMap::new(),
            said: BTreeMap::new(),
            rounds: BTreeMap::new(),
            turns: BTreeMap::new(),
            hops: 0,
            handoffs: 0,
            rejections: 0,
            targets: Vec::new(),
        });
        if let PatternPlan::Team(plan) = &plan {
            facts.runs.insert(plan.root.to_string(), (SpanId::RUN, SpanId::RUN));
        }
        let head = RunStarted {
            scenario: "a-desk".into(),
            title: title.to_owned(),
            goal: goal.to_owned(),
            flags: vec![FlagAt {
                name: "weekend".into(),
                label: "the desk is short of people".to_owned(),
                on: false,
            }],
            tools: vec![super::head::tool("llm", "model", 60_000, false)],
            ..super::head::started("r-90de", plan)
        };
        facts.add(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        facts
    }

    /// A support desk of five that has just been asked; `session` may say what came before.
    pub fn desk(session: SessionHead) -> Self {
        let goal = session.text.to_string();
        let all = ["triage", "billing", "fraud", "refunds", "tech"];
        let about = ["Sorts what comes in", "Knows bills", "Weighs fraud", "Pays back", "Mends"];
        let mut agents = vec![AgentHead {
            members: names(&all),
            swarm: Some(limits("triage")),
            ..agent("support", "The support desk", "swarm")
        }];
        agents.extend(all.iter().zip(about).map(|(name, about)| agent(name, about, "agent")));
        agents.push(agent("lawyer", "Knows the law", "agent"));
        let plan =
            TeamPlan { root: "support".into(), agents: agents.into(), max_ms: 60_000, session };
        Self::begin("Charged twice, wants refund", &goal, PatternPlan::Swarm(Arc::new(plan)))
    }

    /// A swarm of so many agents, `a1` on.
    pub fn swarm(agents: usize) -> Self {
        let all: Vec<String> = (1..=agents).map(|nth| format!("a{nth}")).collect();
        Self::swarm_of(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A swarm of these agents; the first starts.
    pub fn swarm_of(members: &[&str]) -> Self {
        let first = members.first().copied().unwrap_or_default();
        let head = limits(first);
        let mut heads = vec![AgentHead {
            members: names(members),
            swarm: Some(SwarmHead { max_handoffs: 0, repetitive_handoff_window: 0, ..head }),
            ..agent("ring", "Many", "swarm")
        }];
        heads.extend(members.iter().map(|name| agent(name, "One of many", "agent")));
        let session = session("Pass it on.", first);
        let plan = TeamPlan { root: "ring".into(), agents: heads.into(), max_ms: 60_000, session };
        Self::begin("A ring", "Pass it on.", PatternPlan::Swarm(Arc::new(plan)))
    }

    /// A coordinator with a member, a team within, and a swarm within.
    pub fn office() -> Self {
        let goal = "Write the release notes of 2.4 and have them checked.";
        let agents = vec![
            AgentHead {
                members: names(&["researcher", "dev_team", "desk"]),
                parallel_tools: true,
                ..agent("project_manager", "Plans and answers", "team")
            },
            agent("researcher", "Finds things out", "agent"),
            AgentHead {
                members: names(&["coder", "tester"]),
                ..agent("dev_team", "Builds and tests", "team")
            },
            AgentHead { tools: vec!["grep".into()], ..agent("coder", "Writes code", "agent") },
            agent("tester", "Breaks code", "agent"),
            AgentHead {
                members: names(&["front", "back"]),
                swarm: Some(limits("front")),
                ..agent("desk", "The help desk", "swarm")
            },
            agent("front", "Takes calls", "agent"),
            agent("back", "Solves them", "agent"),
        ];
        let session = session(goal, "project_manager");
        let plan = TeamPlan {
            root: "project_manager".into(),
            agents: agents.into(),
            max_ms: 60_000,
            session,
        };
        Self::begin("Release notes", goal, PatternPlan::Team(Arc::new(plan)))
    }

    fn call(
        &mut self,
        parent: SpanId,
        tool: &str,
        purpose: Purpose,
        prompt: Prompt,
        args: Option<Value>,
    ) -> (SpanId, SpanId) {
        let call = self.call_starts(parent, tool, purpose, prompt, args);
        let attempt = self.open();
        let kind = EventKind::AttemptStarted {
            parent: call,
            attempt: 1,
            timeout_ms: 60_000,
            waited_ms: 0,
            probe: false,
        };
        self.add(attempt, kind);
        (call, attempt)
    }

    fn turn(&mut self, name: &str) -> u32 {
        self.rounds.remove(name);
        self.said.remove(name);
        let turn = self.turns.entry(name.to_owned()).or_default();
        *turn += 1;
        *turn
    }

    /// A member of the outermost swarm takes control.
    pub fn hop(&mut self, name: &str, from: Option<&str>) -> &mut Self {
        self.hop_in(SpanId::RUN, "support", name, from)
    }

    /// The same in a swarm that a coordinator consults.
    pub fn hop_within(&mut self, swarm: &str, name: &str, from: Option<&str>) -> &mut Self {
        let within = self.runs[swarm].1;
        self.hop_in(within, swarm, name, from)
    }

    fn hop_in(&mut self, parent: SpanId, swarm: &str, name: &str, from: Option<&str>) -> &mut Self {
        self.hops += 1;
        let turn = self.turn(name);
        let purpose = Purpose::SwarmTurn {
            agent: name.into(),
            turn,
            swarm: swarm.into(),
            hop: self.hops,
            from: from.map(Into::into),
        };
        let run = self.call(parent, name, purpose, Prompt::default(), None);
        self.runs.insert(name.to_owned(), run);
        self
    }

    /// A coordinator consults a member.
    pub fn consults(
        &mut self,
        by: &str,
        name: &str,
        request: &str,
        inner: MemberOutput,
    ) -> &mut Self {
        let parent = self.runs[by].1;
        let said = self.said[by];
        let turn = self.turn(name);
        let purpose = Purpose::Member {
            agent: name.into(),
            turn,
            by: by.into(),
            requested_by: said,
            index: 0,
            member_output: inner,
        };
        let args = json!({ "request": request });
        let run = self.call(parent, name, purpose, Prompt::default(), Some(args));
        self.runs.insert(name.to_owned(), run);
        self
    }

    /// An agent's model is asked.
    pub fn asks(&mut self, name: &str) -> &mut Self {
        let parent = self.runs[name].1;
        let round = self.rounds.entry(name.to_owned()).or_default();
        *round += 1;
        let round = *round;
        let turn = self.turns.get(name).copied().unwrap_or(1);
        let after = self.said.get(name).copied();
        let messages: Arc<[ChatMessage]> = match after {
            Some(_) => Arc::new([ChatMessage::new(MessageRole::Tool, "done")]),
            None => Arc::new([
                ChatMessage::new(MessageRole::System, format!("You are {name}. Be brief.")),
                ChatMessage::new(MessageRole::User, CHARGED),
            ]),
        };
        let tools = after.is_none().then(|| {
            let tool = ToolOffer {
                name: "transfer_to_agent".into(),
                description: "Hands the conversation over to another agent.".into(),
                parameters: Arc::new(json!({
                    "type": "object",
                    "properties": {"agent_name": {"type": "string"}},
                })),
            };
            Arc::from([tool])
        });
        let purpose = Purpose::ModelCall { agent: name.into(), turn, round };
        let prompt = Prompt { after, messages, tools, ..Prompt::default() };
        let ask = self.call(parent, "llm", purpose, prompt, None);
        self.asks.insert(name.to_owned(), ask);
        self.said.insert(name.to_owned(), ask.0);
        self
    }

    /// It answers, with tool calls or without.
    pub fn answers(&mut self, name: &str, text: &str, calls: &[(&str, Value)]) -> &mut Self {
        let (call, attempt) = self.asks[name];
        let made = |(nth, (tool, args)): (usize, &(&str, Value))| ToolCall {
            id: format!("call_{}_{nth}", call.0).into(),
            name: (*tool).into(),
            arguments: args.to_string().into(),
        };
        let hops = u64::from(self.hops);
        let reply = Reply {
            tool_calls: calls.iter().enumerate().map(made).collect(),
            usage: Some(Usage::new(400 + 250 * hops, 40)),
            estimated: false,
            first_token_ms: Some(120),
            ..Reply::from_agent_text(text.into())
        };
        self.add(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts: 1 })
    }

    /// An agent's model is asked and answers after so many milliseconds.
    pub fn says(&mut self, name: &str, ms: u64, text: &str, calls: &[(&str, Value)]) -> &mut Self {
        self.asks(name).after(ms).answers(name, text, calls)
    }

    /// An agent calls a tool, which answers.
    pub fn tool(&mut self, name: &str, tool: &str, args: Value, result: Value) -> &mut Self {
        let (parent, said) = (self.runs[name].1, self.said[name]);
        let purpose =
            Purpose::Tool { agent: name.into(), tool: tool.into(), requested_by: said, index: 0 };
        let (call, attempt) = self.call(parent, tool, purpose, Prompt::default(), Some(args));
        let reply = Reply::from_tool_result(Arc::new(result));
        self.after(100).add(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts: 1 })
    }

    /// A run of an agent ends with its reply.
    pub fn done(&mut self, name: &str, text: &str) -> &mut Self {
        self.ends_with(name, text, None)
    }

    fn ends_with(&mut self, name: &str, text: &str, finish: Option<&str>) -> &mut Self {
        let (call, attempt) = self.runs[name];
        let finish = finish.map(Into::into);
        let reply = Reply { finish, ..Reply::from_agent_text(text.into()) };
        self.add(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts: 1 })
    }

    fn guard(&mut self, to: &str) -> LoopGuard {
        self.handoffs += 1;
        self.targets.push(to.to_owned());
        let last = &self.targets[self.targets.len().saturating_sub(4)..];
        let distinct: std::collections::BTreeSet<_> = last.iter().collect();
        LoopGuard {
            handoffs: self.handoffs,
            window: last.len() as u32,
            distinct_agents: distinct.len() as u32,
        }
    }

    /// The agent in control hands over, and the other takes control.
    pub fn hands(&mut self, from: &str, to: &str, message: Option<&str>) -> &mut Self {
        let guard = self.guard(to);
        let said = self.said[from];
        let kind = EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade {
            swarm: "support".into(),
            from: from.into(),
            to: to.into(),
            message: message.map(Into::into),
            guard,
            requested_by: said,
        }));
        self.ends_with(from, "", Some(HANDED_OVER));
        self.add(SpanId::RUN, kind).hop(to, Some(from))
    }

    /// The limits refuse a hand-off.
    pub fn refused(&mut self, from: &str, to: &str, why: HandoffRefusal) -> &mut Self {
        let guard = self.guard(to);
        self.rejections += 1;
        let kind = EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffRefused {
            swarm: "support".into(),
            from: from.into(),
            to: to.into(),
            reason: why,
            guard,
            rejections: self.rejections,
            requested_by: self.said[from],
        }));
        self.add(SpanId::RUN, kind)
    }

    /// The answer is there and the run ends.
    pub fn answered(&mut self, by: &str, text: &str) -> &mut Self {
        let kind = EventKind::AnswerComposed {
            text: text.into(),
            by: Some(by.into()),
            end: Default::default(),
        };
        self.add(SpanId::RUN, kind).ends("success", None)
    }

    /// Any attempt is answered with a text.
    pub fn replies(&mut self, attempt: SpanId, text: &str) -> &mut Self {
        let reply = Reply::from_agent_text(text.into());
        self.add(attempt, EventKind::AttemptAnswered(Arc::new(reply)))
    }

    /// A hand-off to `back` in this run of a swarm: its nth.
    pub fn made_within(
        &mut self,
        swarm: &str,
        run: SpanId,
        handoffs: u32,
        said: SpanId,
    ) -> &mut Self {
        let kind = EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade {
            swarm: swarm.into(),
            from: "front".into(),
            to: "back".into(),
            message: None,
            guard: LoopGuard { handoffs, ..LoopGuard::default() },
            requested_by: said,
        }));
        self.add(run, kind)
    }

    /// A hand-off to `back` is refused in this run of a swarm: its nth, and so many refusals.
    pub fn refused_within(
        &mut self,
        swarm: &str,
        run: SpanId,
        handoffs: u32,
        rejections: u32,
        why: HandoffRefusal,
        said: SpanId,
    ) -> &mut Self {
        let kind = EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffRefused {
            swarm: swarm.into(),
            from: "front".into(),
            to: "back".into(),
            reason: why,
            guard: LoopGuard { handoffs, ..LoopGuard::default() },
            rejections,
            requested_by: said,
        }));
        self.add(run, kind)
    }

    /// The span in which an agent's last run works: its attempt.
    pub fn within(&self, name: &str) -> SpanId {
        self.runs[name].1
    }

    /// The model call of an agent that is out.
    pub fn call_of(&self, name: &str) -> SpanId {
        self.asks[name].0
    }

    /// The attempt of an agent's model call that is out.
    pub fn attempt_of(&self, name: &str) -> SpanId {
        self.asks[name].1
    }

    /// The call of an agent's last run.
    pub fn run_of(&self, name: &str) -> SpanId {
        self.runs[name].0
    }
}

fn to(agent: &str, message: &str) -> [(&'static str, Value); 1] {
    [("transfer_to_agent", json!({"agent_name": agent, "message": message}))]
}

/// The desk in the middle of its work: one hand-off was refused, refunds speaks, tech was not used.
pub fn working() -> TeamFacts {
    let mut facts = TeamFacts::desk(session(CHARGED, "triage"));
    facts.after(30).hop("triage", None);
    facts.says("triage", 900, "A charge dispute.", &to("billing", "charge dispute, order 8841"));
    facts.hands("triage", "billing", Some("charge dispute, order 8841")).asks("billing");
    facts.after(700).answers("billing", "Let me look.", &[("charges", json!({"order": 8841}))]);
    let charges =
        json!({"charges": [{"usd": 49, "at": "09:14:02"}, {"usd": 49, "at": "09:14:05"}]});
    facts.tool("billing", "charges", json!({"order": 8841}), charges);
    facts.says("billing", 800, "Two charges 3 s apart.", &to("fraud", "rule out testing"));
    facts.hands("billing", "fraud", Some("rule out testing"));
    facts.says("fraud", 1_200, "The risk is low: .08.", &to("billing", "risk .08"));
    facts.hands("fraud", "billing", Some("risk .08"));
    facts.says("billing", 500, "", &to("fraud", "once more?"));
    facts.refused("billing", "fraud", HandoffRefusal::Repetitive);
    facts.says("billing", 600, "A duplicate, then.", &to("refunds", "duplicate confirmed"));
    facts.hands("billing", "refunds", Some("duplicate confirmed")).asks("refunds").after(1_400);
    facts
}

/// The same desk once it has answered.
pub fn answered() -> TeamFacts {
    let mut facts = working();
    facts.answers("refunds", REFUNDED, &[]).done("refunds", REFUNDED);
    facts.answered("refunds", REFUNDED);
    facts
}

/// What the desk answers.
pub const REFUNDED: &str = "You were charged twice by mistake: 09:14:02 and 09:14:05, same card, same \
basket.\n\nI have refunded the second charge of $49.00; it is back on your card in three days.";

/// A second message of the same session, on its way, with what came before.
pub fn follow_up() -> TeamFacts {
    let call = |name: &str| ToolCall {
        id: "call_1".into(),
        name: name.into(),
        arguments: "{\"order\": 8841}".into(),
    };
    let history: Vec<HistoryEntry> = vec![
        HistoryEntry::Input { to: "triage".into(), from: None, text: CHARGED.into() },
        HistoryEntry::Reply {
            by: "billing".into(),
            text: "".into(),
            calls: [call("charges")].into(),
            blocks: None,
            end: Default::default(),
        },
        HistoryEntry::Result {
            by: "billing".into(),
            call: call("charges"),
            text: "two charges".into(),
        },
        HistoryEntry::Reply {
            by: "refunds".into(),
            text: REFUNDED.into(),
            calls: [].into(),
            blocks: None,
            end: Default::default(),
        },
    ];
    let text = "And when is the next bill due?";
    let mut facts = TeamFacts::desk(SessionHead {
        message: 2,
        previous_run: Some(RunId::new("r-90dd")),
        history: history.into(),
        owner: Some("refunds".into()),
        ..session(text, "refunds")
    });
    facts.after(20).hop("refunds", None).asks("refunds").after(400);
    facts
}

/// The office in the middle of its work: two members at once, a team within, one of them hidden.
pub fn office() -> TeamFacts {
    let mut facts = TeamFacts::office();
    let ask = |text: &str| json!({ "request": text });
    let calls = [("researcher", ask("What changed in 2.4?"))];
    facts.after(20).says("project_manager", 900, "First the facts.", &calls);
    facts.consults("project_manager", "researcher", "What changed in 2.4?", MemberOutput::Text);
    facts.says("researcher", 1_400, "Faster folds, a new pane.", &[]);
    facts.done("researcher", "Faster folds, a new pane.");
    let calls = [("dev_team", ask("Check the claims.")), ("desk", ask("What do people ask?"))];
    facts.says("project_manager", 700, "", &calls);
    facts.consults("project_manager", "dev_team", "Check the claims.", MemberOutput::Text);
    facts.consults("project_manager", "desk", "What do people ask?", MemberOutput::Hidden);
    facts.asks("dev_team").hop_within("desk", "front", None).asks("front").after(600);
    facts.answers("dev_team", "On it.", &[("coder", ask("Measure the folds."))]);
    facts.consults("dev_team", "coder", "Measure the folds.", MemberOutput::Text).asks("coder");
    facts.after(500).answers("coder", "", &[("grep", json!({"text": "fold"}))]);
    facts.tool("coder", "grep", json!({"text": "fold"}), json!({"hits": 12})).asks("coder");
    facts.after(700);
    facts
}

/// The office once it has answered; the tester was never asked.
pub fn office_answered() -> TeamFacts {
    let mut facts = office();
    facts.answers("coder", "Folds take half as long.", &[]);
    facts.done("coder", "Folds take half as long.").says("dev_team", 400, "All true.", &[]);
    facts.done("dev_team", "All true.").answers("front", "Mostly about keys.", &[]);
    facts.done("front", "Mostly about keys.").done("desk", "Mostly about keys.");
    let text = "2.4 folds twice as fast and has a new pane.";
    facts.says("project_manager", 900, text, &[]).answered("project_manager", text);
    facts
}

/// A swarm of so many agents that has handed over so often, round and round.
pub fn ring(agents: usize, hops: usize) -> TeamFacts {
    let mut facts = TeamFacts::swarm(agents);
    facts.after(10).hop("a1", None);
    for nth in 0..hops {
        let (from, target) =
            (format!("a{}", nth % agents + 1), format!("a{}", (nth + 1) % agents + 1));
        facts.says(&from, 10, "On it goes.", &to(&target, "your turn"));
        facts.hands(&from, &target, Some("your turn"));
    }
    facts
}

/// Desks with names as people give them.
const DESKS: [&str; 12] = [
    "intake",
    "billing",
    "fraud_desk",
    "refunds",
    "shipping",
    "returns",
    "warehouse",
    "legal",
    "privacy_office",
    "loyalty_programme",
    "escalations",
    "duty_manager",
];

/// A swarm of so many desks that has handed over so often: to a neighbour, far away, and back. One
/// handoff was refused.
pub fn desks(agents: usize, hops: usize) -> TeamFacts {
    let desks = &DESKS[..agents];
    let mut facts = TeamFacts::swarm_of(desks);
    facts.after(10).hop(desks[0], None);
    let mut from = 0;
    for nth in 0..hops {
        let target = (from + [1, agents / 2 + 1, agents - 1][nth % 3]) % agents;
        let target = if target == from { (from + 1) % agents } else { target };
        let why = format!("case {nth} is for {}", desks[target]);
        facts.says(desks[from], 40, "Not for this desk.", &to(desks[target], &why));
        if nth + 2 == hops {
            facts.refused(desks[from], desks[target], HandoffRefusal::Repetitive);
            continue;
        }
        facts.hands(desks[from], desks[target], Some(&why));
        from = target;
    }
    facts.asks(desks[from]).after(90);
    facts
}
