//! The format of a scenario file: agents, the teams and swarms that they make, and the tool calls of
//! scripts.

use serde_json::{Map, Value, json};

use super::agent::{HistoryScope, InnerText, MAX_REJECTIONS, MAX_TOOL_ROUNDS, SwarmLimits};
use super::amount::Wait;
use super::format_patterns::Switch;
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::shape::{At, Free, List, Prose, Shape, Text, Whole};
use super::tree::{Node, Tree};

record! {
    /// Whom a person talks to, and what about.
    struct RootTable => {
        /// The agent that a person talks to: of a team a coordinator (it has members), of a swarm an
        /// agent with members and an entry.
        root: Prose = needed,
        /// What the session goes on with once the goal is answered, one message after another.
        /// `{{input}}` is filled in.
        follow_ups: List<Prose, 0, 100> = default(List(Vec::new())),
    }
}

record! {
    /// An agent. With `members` it is a coordinator and its team, with `entry` too a swarm, without
    /// either a model with tools.
    struct AgentTable rule kinds() => {
        /// What it does, for people and for the agents that may ask it or hand over to it.
        description: Prose = needed,
        /// Its system prompt. `{{input}}` is filled in. A swarm has none: its members speak.
        instruction: Prose = optional,
        /// The tools that it may call, by their names in [tools]. A swarm has none.
        tools: At<List<Prose, 0, 100>> = default(At::nowhere(List(Vec::new()))),
        /// Replies with tool calls that are carried out before its loop is stopped.
        max_tool_rounds: At<Whole<1, 10_000>> = default(At::nowhere(Whole(MAX_TOOL_ROUNDS))),
        /// The model that speaks, such as anthropic/claude-haiku-4-5. Without it: that of [model].
        model: Prose = optional,
        /// Whom a coordinator may consult, or who hands over to whom in a swarm (model agents only).
        members: Members = optional,
        /// Coordinator: whether the calls of one reply run at once: true, false, or `{{input}}` of
        /// one that is.
        parallel_tools: At<Switch> = default(At::nowhere(Switch::Set(false))),
        /// Coordinator: what members see, and what is seen of them.
        member_tools: At<MemberToolsTable> = optional,
        /// Swarm: the member that starts.
        entry: Start = optional,
        /// Swarm: hand-offs at most. 0: any number.
        max_handoffs: At<Whole<0, 1_000_000>> = default(At::nowhere(Whole(LIMITS.max_handoffs))),
        /// Swarm: how many of the last targets are looked at. 0: none.
        repetitive_handoff_window: At<Whole<0, 10_000>>
            = default(At::nowhere(Whole(LIMITS.repetitive_handoff_window))),
        /// Swarm: how many different names must be among them. 0: any number.
        repetitive_handoff_min_unique: At<Whole<0, 10_000>>
            = default(At::nowhere(Whole(LIMITS.repetitive_handoff_min_unique))),
        /// Swarm: refused hand-offs after which the run stops. 0: never.
        max_rejections: At<Whole<0, 10_000>> = default(At::nowhere(Whole(MAX_REJECTIONS))),
        /// Swarm: seconds that a member may take which was handed over to. Without it, or 0: any time.
        node_timeout_s: At<Wait> = optional,
        /// Swarm: whether the next message of a session starts at the member that gave the last
        /// answer, not at the entry.
        cross_request_transfer: At<bool> = default(At::nowhere(false)),
        /// Swarm: whether members other than the entry see only their own turns.
        independent_history: At<bool> = default(At::nowhere(false)),
        /// Swarm: what the target of a hand-off is given, with {root_input}, {parent_input}, {from},
        /// {to} and {message} in it. Without it: the message or, where there is none, what the agent
        /// that hands over was given itself.
        handoff_input: Prose = optional,
    }
}

/// The limits of a swarm that says nothing.
const LIMITS: SwarmLimits = SwarmLimits::USUAL;

/// What only an agent that speaks has.
pub(super) const SPEAKER_KEYS: [&str; 4] = ["instruction", "tools", "max_tool_rounds", "model"];
/// What only a coordinator has, beside its members.
pub(super) const COORDINATOR_KEYS: [&str; 2] = ["parallel_tools", "member_tools"];
/// What only a swarm has, beside its members and its entry.
pub(super) const SWARM_KEYS: [&str; 8] = [
    "max_handoffs",
    "repetitive_handoff_window",
    "repetitive_handoff_min_unique",
    "max_rejections",
    "node_timeout_s",
    "cross_request_transfer",
    "independent_history",
    "handoff_input",
];

/// What every agent has, and what makes a team or swarm of one.
const OTHER_KEYS: [&str; 3] = ["description", "members", "entry"];

/// Whose a key of an agent is, for who wrote it in the wrong place; `None`: it is none.
pub(super) fn whose(key: &str) -> Option<&'static str> {
    if SWARM_KEYS.contains(&key) {
        Some("the swarm's agent")
    } else if COORDINATOR_KEYS.contains(&key) {
        Some("the coordinator's agent")
    } else if SPEAKER_KEYS.contains(&key) || OTHER_KEYS.contains(&key) {
        Some("an agent")
    } else {
        None
    }
}

impl AgentTable {
    /// Where each of its keys stands that not every kind of agent has.
    pub fn keys(&self) -> Vec<(&'static str, super::tree::Span)> {
        let keys = [
            ("instruction", self.instruction.as_ref().map(|it| it.at)),
            ("tools", Some(self.tools.at)),
            ("max_tool_rounds", Some(self.max_tool_rounds.at)),
            ("parallel_tools", Some(self.parallel_tools.at)),
            ("member_tools", self.member_tools.as_ref().map(|it| it.at)),
            ("max_handoffs", Some(self.max_handoffs.at)),
            ("repetitive_handoff_window", Some(self.repetitive_handoff_window.at)),
            ("repetitive_handoff_min_unique", Some(self.repetitive_handoff_min_unique.at)),
            ("max_rejections", Some(self.max_rejections.at)),
            ("node_timeout_s", self.node_timeout_s.as_ref().map(|it| it.at)),
            ("cross_request_transfer", Some(self.cross_request_transfer.at)),
            ("independent_history", Some(self.independent_history.at)),
            ("handoff_input", self.handoff_input.as_ref().map(|it| it.at)),
        ];
        // What is not in the file stands nowhere.
        let given = keys.into_iter().filter_map(|(key, at)| Some((key, at?)));
        given.filter(|(_, at)| at.end > 0).collect()
    }
}

/// Which keys go together, for the JSON schema.
fn kinds() -> Value {
    let not = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().map(|key| ((*key).to_owned(), Value::Bool(false))).collect()
    };
    let of_a_team = SPEAKER_KEYS.into_iter().chain(COORDINATOR_KEYS).collect::<Vec<_>>();
    json!({
        "if": { "required": ["entry"] },
        "then": { "required": ["members"], "properties": not(&of_a_team) },
        "else": {
            "properties": not(&SWARM_KEYS),
            "if": { "not": { "required": ["members"] } },
            "then": { "properties": not(&COORDINATOR_KEYS) },
        },
    })
}

/// The members of a team, as they stand: what is wrong with them is told in the words of the source.
#[derive(Debug, Clone)]
pub(super) struct Members(pub At<Vec<Text>>);

impl Shape for Members {
    fn schema() -> Value {
        json!({
            "type": "array",
            "items": { "type": "string", "pattern": AGENT_NAME },
            "minItems": 1,
            "maxItems": MAX_MEMBERS,
            "uniqueItems": true,
        })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        // A list that is none leaves a team of nobody: what it was meant to be is clear.
        let items = List::<Text, 0, MAX_MEMBERS>::read(node, cx);
        Some(Self(At { at: node.at, value: items.map(|items| items.0).unwrap_or_default() }))
    }
}

/// The member of a swarm that starts, as it stands.
#[derive(Debug, Clone)]
pub(super) struct Start(pub Text);

impl Shape for Start {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": AGENT_NAME })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let nobody = Text { at: node.at, text: String::new() };
        Some(Self(Text::read(node, cx).unwrap_or(nobody)))
    }
}

/// What the name of an agent looks like: see `is_agent_name`.
const AGENT_NAME: &str = "^[a-zA-Z0-9_-]+$";

/// The most members that a team has: each is a tool of its coordinator's model.
const MAX_MEMBERS: usize = 100;

record! {
    /// What members see of their coordinator's conversation, and what is seen of them.
    struct MemberToolsTable => {
        /// Whether a member's own output is shown live inside the coordinator's.
        stream_inner: At<bool> = default(At::nowhere(false)),
        /// How much of it.
        inner_text: At<InnerText> = default(At::nowhere(InnerText::Include)),
        /// What a member sees of the coordinator's history.
        history_scope: HistoryScope = default(HistoryScope::ParentBranch),
        /// Whether the run ends with the members' replies, not with one more of the coordinator's.
        skip_summarization: bool = default(false),
    }
}

words! { InnerText:
    "include" => InnerText::Include, "All of it.";
    "exclude" => InnerText::Exclude, "Progress and tool calls, no prose.";
}

words! { HistoryScope:
    "parent_branch" => HistoryScope::ParentBranch, "The user's input, the coordinator's messages, earlier members' results.";
    "isolated" => HistoryScope::Isolated, "Only what it is asked.";
}

record! {
    /// A tool that a model calls. Without args and raw: with no arguments.
    struct CallTable rule json!({ "not": { "required": ["args", "raw"] } }) => {
        /// The tool's name: that of a tool, of a member that is consulted, or transfer_to_agent.
        tool: Prose = needed,
        /// The arguments: { request = "…" } of a member, { agent_name = "…", message = "…" } of
        /// transfer_to_agent. `{{input}}` is filled in.
        args: At<Free> = optional,
        /// The arguments as a text that is no table, good or malformed.
        raw: Text = optional,
    }
}
