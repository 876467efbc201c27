//! The file format of agents, of the teams and swarms that they form, and of tool calls in scripts.

use serde_json::{Map, Value, json};

use super::{MAX_REJECTIONS, MAX_TOOL_ROUNDS, SwarmLimits};
use crate::scenario::patterns::agents::{HistoryScope, InnerText};
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::DurationOrZero;
use crate::scenario::read::format::BoolOrInput;
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, IntegerField, NonBlankString, ObjectSchema, Positioned,
    Requirement, StringField, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TomlNode, TomlValue};
use crate::scenario::tools::agent::{AcpTable, AgUiTable};

record! {
    /// The root agent and the messages of the session.
    struct RootTable => {
        /// The agent that the user talks to: of a team a coordinator (an agent with members), of a
        /// swarm an agent with members and an entry.
        root: NonBlankString = needed,
        /// Messages that follow the goal in the session, one after another. `{{input}}` is filled
        /// in.
        follow_ups: BoundedList<NonBlankString, 0, 100> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// An agent. With `members` it is a coordinator and its team, with `members` and `entry` a
    /// swarm, with neither a model with tools.
    struct AgentTable rule kinds() => {
        /// What it does, shown to the operator and to the agents that may consult it or hand over
        /// to it.
        description: NonBlankString = needed,
        /// Its system prompt. `{{input}}` is filled in. A swarm has none: its members call the
        /// model.
        instruction: NonBlankString = optional_or_file,
        /// The tools that it may call, by their names in [tools]. A swarm has none.
        tools: Positioned<BoundedList<NonBlankString, 0, 100>> = default(Positioned::not_in_file(BoundedList(Vec::new()))),
        /// Maximum number of replies with tool calls; one more stops its loop.
        max_tool_rounds: Positioned<IntegerField<1, 10_000>> = default(Positioned::not_in_file(IntegerField(MAX_TOOL_ROUNDS))),
        /// The model of this agent, such as anthropic/claude-haiku-4-5. Default: that of [model].
        model: NonBlankString = optional,
        /// The people that it may ask, by their names in [people]: each is a tool `ask_NAME`.
        people: Positioned<BoundedList<NonBlankString, 0, 20>> = default(Positioned::not_in_file(BoundedList(Vec::new()))),
        /// The person of [people] who is this agent: no model is called. The person answers, or
        /// hands over in a swarm.
        person: NonBlankString = optional,
        /// A coding agent of another program, which speaks ACP, answers in place of a model. It has tools of
        /// its own; those of `tools`, `people` and `members` it calls by a text that is one JSON object.
        acp: Positioned<AcpTable> = optional,
        /// An agent that is a server and speaks AG-UI answers in place of a model. It has tools of its own,
        /// and may call those of `tools`, `people` and `members`.
        ag_ui: Positioned<AgUiTable> = optional,
        /// The agents that a coordinator may consult, or the members of a swarm (model agents and
        /// people).
        members: Members = optional,
        /// Coordinator: whether the tool calls of one reply run in parallel: true, false, or
        /// `{{input}}` with a boolean input.
        parallel_tools: Positioned<BoolOrInput> = default(Positioned::not_in_file(BoolOrInput::Set(false))),
        /// Coordinator: what members see of the conversation, and what is shown of their output.
        member_tools: Positioned<MemberToolsTable> = optional,
        /// Swarm: the member that starts.
        entry: EntryMember = optional,
        /// Swarm: maximum number of handoffs. 0: no limit.
        max_handoffs: Positioned<IntegerField<0, 1_000_000>> = default(Positioned::not_in_file(IntegerField(LIMITS.max_handoffs))),
        /// Swarm: how many of the latest targets the loop guard checks. 0: no loop guard.
        repetitive_handoff_window: Positioned<IntegerField<0, 10_000>>
            = default(Positioned::not_in_file(IntegerField(LIMITS.repetitive_handoff_window))),
        /// Swarm: how many different names must be among them. 0: any number.
        repetitive_handoff_min_unique: Positioned<IntegerField<0, 10_000>>
            = default(Positioned::not_in_file(IntegerField(LIMITS.repetitive_handoff_min_unique))),
        /// Swarm: refused handoffs after which the run stops. 0: never.
        max_rejections: Positioned<IntegerField<0, 10_000>> = default(Positioned::not_in_file(IntegerField(MAX_REJECTIONS))),
        /// Swarm: timeout in seconds for a member that received a handoff. Default, and 0: no
        /// limit.
        node_timeout_s: Positioned<DurationOrZero> = optional,
        /// Swarm: whether the next message of a session starts at the member that gave the last
        /// answer, not at the entry.
        cross_request_transfer: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Swarm: whether members other than the entry see only their own turns.
        independent_history: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Swarm: template for the input of a handoff's target, with {root_input}, {parent_input},
        /// {from}, {to} and {message}. Default: the message or, without one, the input of the agent
        /// that hands over.
        handoff_input: NonBlankString = optional,
    }
}

/// Defaults of a swarm's limits.
const LIMITS: SwarmLimits = SwarmLimits::SOURCE_DEFAULTS;

/// Keys of agents that call a model themselves.
pub(super) const SPEAKER_KEYS: [&str; 8] = [
    "instruction",
    "instruction_file",
    "tools",
    "max_tool_rounds",
    "model",
    "people",
    "acp",
    "ag_ui",
];
/// Keys of coordinators only, apart from `members`.
pub(super) const COORDINATOR_KEYS: [&str; 2] = ["parallel_tools", "member_tools"];
/// Keys of swarms only, apart from `members` and `entry`.
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

/// Keys of every agent, and those that make an agent a team or swarm.
const OTHER_KEYS: [&str; 4] = ["description", "members", "entry", "person"];

/// The kind of agent that a key belongs to, for a key in the wrong table; `None` if no agent has
/// it.
pub(crate) fn key_owner(key: &str) -> Option<&'static str> {
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
    /// The keys in this table that not every kind of agent has, with their positions.
    pub fn keys(&self) -> Vec<(&'static str, crate::scenario::read::tree::TextSpan)> {
        let keys = [
            ("instruction", self.instruction.as_ref().map(|it| it.at)),
            ("tools", Some(self.tools.at)),
            ("max_tool_rounds", Some(self.max_tool_rounds.at)),
            ("model", self.model.as_ref().map(|it| it.at)),
            ("people", Some(self.people.at)),
            ("acp", self.acp.as_ref().map(|it| it.at)),
            ("ag_ui", self.ag_ui.as_ref().map(|it| it.at)),
            ("members", self.members.as_ref().map(|Members(list)| list.at)),
            ("entry", self.entry.as_ref().map(|EntryMember(entry)| entry.at)),
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
        // A value that is not in the file has an empty span.
        let given = keys.into_iter().filter_map(|(key, at)| Some((key, at?)));
        given.filter(|(_, at)| at.end > 0).collect()
    }
}

/// The JSON schema's rules about keys that go together.
fn kinds() -> Value {
    let not = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().map(|key| ((*key).to_owned(), Value::Bool(false))).collect()
    };
    let of_a_model = SPEAKER_KEYS.into_iter().chain(COORDINATOR_KEYS).chain(SWARM_KEYS);
    let of_no_person = of_a_model.chain(["members", "entry"]).collect::<Vec<_>>();
    let of_a_team = SPEAKER_KEYS.into_iter().chain(COORDINATOR_KEYS).collect::<Vec<_>>();
    json!({
        "if": { "required": ["person"] },
        "then": { "properties": not(&of_no_person) },
        "else": {
            "if": { "required": ["entry"] },
            "then": { "required": ["members"], "properties": not(&of_a_team) },
            "else": {
                "properties": not(&SWARM_KEYS),
                "if": { "not": { "required": ["members"] } },
                "then": { "properties": not(&COORDINATOR_KEYS) },
            },
        },
    })
}

/// The unchecked members of a team: their faults are reported with the texts of the source
/// document.
#[derive(Debug, Clone)]
pub(crate) struct Members(pub Positioned<Vec<StringField>>);

impl FormatShape for Members {
    fn schema() -> Value {
        json!({
            "type": "array",
            "items": { "type": "string", "pattern": AGENT_NAME },
            "minItems": 1,
            "maxItems": MAX_MEMBERS,
            "uniqueItems": true,
        })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        // An invalid list is read as empty: the agent is still meant to be a team.
        let items = BoundedList::<StringField, 0, MAX_MEMBERS>::read(node, cx);
        Some(Self(Positioned {
            at: node.at,
            value: items.map(|items| items.0).unwrap_or_default(),
        }))
    }
}

/// The unchecked name of the member of a swarm that starts.
#[derive(Debug, Clone)]
pub(crate) struct EntryMember(pub StringField);

impl FormatShape for EntryMember {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": AGENT_NAME })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let nobody = StringField { at: node.at, text: String::new() };
        Some(Self(StringField::read(node, cx).unwrap_or(nobody)))
    }
}

/// Pattern of an agent's name: see `is_agent_name`.
const AGENT_NAME: &str = "^[a-zA-Z0-9_-]+$";

/// Maximum number of members of a team: each is a tool of its coordinator's model.
const MAX_MEMBERS: usize = 100;

record! {
    /// What members see of their coordinator's conversation, and what is shown of their output.
    struct MemberToolsTable => {
        /// Whether a member's output is streamed inside the coordinator's.
        stream_inner: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Which parts of that output are shown.
        inner_text: Positioned<InnerText> = default(Positioned::not_in_file(InnerText::Include)),
        /// What a member sees of the coordinator's history.
        history_scope: HistoryScope = default(HistoryScope::ParentBranch),
        /// Whether the run ends with the members' replies, without a final reply of the
        /// coordinator.
        skip_summarization: bool = default(false),
    }
}

words! { InnerText:
    "include" => InnerText::Include, "All of it.";
    "exclude" => InnerText::Exclude, "Progress and tool calls only.";
}

words! { HistoryScope:
    "parent_branch" => HistoryScope::ParentBranch, "The user's input, the coordinator's messages, earlier members' results.";
    "isolated" => HistoryScope::Isolated, "Only the request.";
}

record! {
    /// A tool call of a model. Without args and raw it has no arguments.
    struct CallTable rule json!({ "not": { "required": ["args", "raw"] } }) => {
        /// Name of the tool: a tool's, a consulted member's, or transfer_to_agent.
        tool: NonBlankString = needed,
        /// The arguments: { request = "…" } for a member, { agent_name = "…", message = "…" } for
        /// transfer_to_agent. `{{input}}` is filled in.
        args: Positioned<FreeTable> = optional,
        /// The arguments as text, valid JSON or not.
        raw: StringField = optional,
    }
}
