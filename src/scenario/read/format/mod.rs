//! The format of a scenario file, table by table and field by field. The reader, the JSON schema
//! and the reference page are built from these tables; checks across fields are in `check/`.

pub mod tools;

use std::time::Duration;

use serde_json::{Map, Value, json};

use self::tools::{AlertsTable, FaultTable, ToolsTable};
use super::ReadContext;
use super::amount::{Clamped, Dollars, Number, Seconds, WholeSeconds};
use super::names::{ActorName, DomainName, IdentName, NamedEntries};
use super::shape::{
    BoundedList, FormatShape, FreeTable, IntegerField, NonBlankString, ObjectSchema, Positioned,
    Requirement, StringField, join_doc_lines, record, words,
};
use super::tree::{TextSpan, TomlNode, TomlValue};
use crate::base::seeded_random::Latency;
use crate::scenario::patterns::agents::table::{AgentTable, CallTable, RootTable};
use crate::scenario::patterns::collaboration::{CollaborationTable, RoleTable};
use crate::scenario::patterns::orchestrator::{OrchestratorTable, WorkerTable};
use crate::scenario::patterns::research::{ResearchTable, SourceTable};
use crate::scenario::patterns::resilience::ResilienceTable;
use crate::scenario::patterns::router::RouterTable;
use crate::scenario::people::{ApproveReply, PeopleTables, RuleTable};
use crate::scenario::spec::script::{ReplyEnd, ScriptStep, ScriptedTokens};
use crate::scenario::spec::{InDoubt, JsonMode, OnLimit, Repair, Repairs, SpendingLimits};
use crate::scenario::tools::mcp::{McpTable, ServerName};

record! {
    /// A scenario of roundtable: everything that a run needs, in one file.
    struct ScenarioFile => {
        /// Title in one line, for lists and headers.
        title: NonBlankString = needed,
        /// The pattern of the runs.
        pattern: Pattern = needed,
        /// What the scenario shows, in one sentence.
        about: StringField = optional,
        /// The task of the run. `{{input}}` is replaced by the value of an input.
        goal: NonBlankString = needed,
        /// Seed of all random numbers of a run: the same seed gives the same numbers.
        seed: IntegerField<0, { u32::MAX }> = default(IntegerField(42)),
        /// What a resumed run does with a call that was in flight when the run stopped, if its tool
        /// is not idempotent (`idempotent = false`). Default: `ask` in the dashboard, `stop`
        /// elsewhere. All other calls are made again.
        in_doubt: InDoubt = optional,
        /// People who may be asked, by name.
        people: PeopleTables = default(NamedEntries::default()),
        /// Rules about calls of tools, before any of them is made. A rule that denies comes first, then
        /// one that asks, then one that allows.
        approve: BoundedList<Positioned<RuleTable>, 0, 200> = default(BoundedList(Vec::new())),
        /// Inputs by name, shown in the launch form. `--set inputs.NAME=VALUE` sets one.
        inputs: NamedEntries<InputTable, IdentName> = default(NamedEntries::default()),
        /// Flags by name. `--flag NAME=on` switches one on at the start; a running run can switch
        /// them, too.
        flags: NamedEntries<FlagTable, IdentName> = default(NamedEntries::default()),
        /// Limits of the run.
        budget: BudgetTable = table,
        /// Facts that every role sees, unchanged. `{{input}}` is replaced by the value of an input;
        /// a string that is only `{{input}}` takes the value with its type.
        facts: FreeTable = default(FreeTable::default()),
        /// Settings of the pattern `collaboration`.
        collaboration: CollaborationTable = optional,
        /// The roles at the table, by name.
        roles: NamedEntries<RoleTable, ActorName> = default(NamedEntries::default()),
        /// Settings of the pattern `orchestrator`.
        orchestrator: OrchestratorTable = optional,
        /// The workers that the planner may give tasks to, by name.
        workers: NamedEntries<WorkerTable, ActorName> = default(NamedEntries::default()),
        /// Settings of the pattern `team`.
        team: RootTable = optional,
        /// Settings of the pattern `swarm`.
        swarm: RootTable = optional,
        /// Settings of the pattern `router`.
        router: RouterTable = optional,
        /// The agents of a team, a swarm or a router, by name.
        agents: NamedEntries<AgentTable, ActorName> = default(NamedEntries::default()),
        /// Settings of the pattern `resilience`.
        resilience: ResilienceTable = optional,
        /// Settings of the pattern `research`.
        research: ResearchTable = optional,
        /// Trust and flags of domains, by host.
        sources: NamedEntries<SourceTable, DomainName> = default(NamedEntries::default()),
        /// Settings of the model and its requests.
        model: ModelTable = table,
        /// The gateway's policies and the tools, by name; `llm` is the model.
        tools: ToolsTable = table,
        /// MCP servers, by name. Agents call their tools as NAME.TOOL.
        mcp: NamedEntries<McpTable, ServerName> = default(NamedEntries::default()),
        /// When the operator is alerted during the run.
        alerts: AlertsTable = table,
        /// The model's replies in an offline run. The first row whose conditions hold is used.
        script: BoundedList<Positioned<ScriptTable>, 0, 2_000> = default(BoundedList(Vec::new())),
        /// What has to hold when a run has ended. `roundtable test` checks it.
        expect: BoundedList<Positioned<ExpectTable>, 0, 200> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// What has to hold when a run has ended. `roundtable test` checks it.
    struct ExpectTable => {
        /// A CEL condition. It may use outcome (the object that `run --format json` prints), its
        /// fields status, stop_reason, degraded and elapsed_ms, and answer (text or null), tokens,
        /// cost_usd (null without prices), live (whether a live model was called), inputs, facts,
        /// flags (at the end), and events (the objects that `run --format jsonl` prints).
        /// calls("NAME") is the number of calls of a tool, or of the model for "llm", or of what
        /// "tool:NAME", "agent:NAME" or "model:NAME" says; failed("NAME") holds if one of them failed;
        /// order("A", "B") holds if these roles, workers or agents took control in this order,
        /// others may come between; cites("HOST") holds if the answer cites a page of this host;
        /// asked("PERSON") is how often a person was asked, approved("TOOL") holds if a call of a tool
        /// was approved, waited_ms is how long people took for all their answers. A condition that cannot be evaluated fails.
        that: NonBlankString = needed,
        /// What it means, in one sentence, shown where it does not hold.
        message: NonBlankString = optional,
    }
}

/// All patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    Collaboration,
    Orchestrator,
    Team,
    Swarm,
    Resilience,
    Research,
    Router,
}

words! { Pattern:
    "collaboration" => Pattern::Collaboration, "Roles give their stance in rounds until they agree.";
    "orchestrator" => Pattern::Orchestrator, "Workers do the tasks of a plan in parallel.";
    "team" => Pattern::Team, "A coordinator consults its members.";
    "swarm" => Pattern::Swarm, "Agents hand over to each other.";
    "resilience" => Pattern::Resilience, "Many agents call tools that fail.";
    "research" => Pattern::Research, "An answer from sources, with citations.";
    "router" => Pattern::Router, "A classifier picks the agent that answers.";
}

record! {
    /// An input: set in the launch form, used as `{{name}}` and `inputs.name`.
    struct InputTable => {
        /// Its default value.
        value: Scalar = needed,
        /// Its label in the launch form.
        label: NonBlankString = optional,
        /// Which values are allowed. Default: one of `choices` if there are any, else the type of
        /// `value`.
        kind: Positioned<KindWord> = optional,
        /// The values to choose from.
        choices: Positioned<BoundedList<NonBlankString, 1, 100>> = optional,
    }
}

/// The kinds of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindWord {
    Text,
    Date,
    Integer,
    Number,
    Bool,
    Choice,
}

words! { InDoubt:
    "retry" => InDoubt::Retry, "The call is made again.";
    "ask" => InDoubt::Ask, "The operator is asked: make the call again, take this result, or stop.";
    "stop" => InDoubt::Stop, "The run stops with in_doubt:<tool>.";
}

words! { KindWord:
    "text" => KindWord::Text, "Any text.";
    "date" => KindWord::Date, "A date as YYYY-MM-DD.";
    "integer" => KindWord::Integer, "A whole number.";
    "number" => KindWord::Number, "A number.";
    "bool" => KindWord::Bool, "true or false.";
    "choice" => KindWord::Choice, "One of the choices.";
}

/// A value that is not a list or a table.
#[derive(Debug, Clone)]
pub(crate) struct Scalar(pub TomlNode);

impl FormatShape for Scalar {
    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        if matches!(node.value, TomlValue::List(_) | TomlValue::Table(_)) {
            cx.wrong_type(node, "a string, a number, a date, true or false");
            return None;
        }
        Some(Self(node.clone()))
    }
}

record! {
    /// A flag of the scenario.
    struct FlagTable => {
        /// Whether it is on at the start.
        default: bool = default(false),
        /// What it does, shown to the operator.
        label: NonBlankString = optional,
    }
}

record! {
    /// Settings of the model. What is not set here a live run takes from the configuration
    /// (`roundtable config`), then from the provider.
    struct ModelTable => {
        /// Whether replies are streamed.
        stream: bool = default(true),
        /// Name of the model, with or without its provider: openai/gpt-4.1-mini, or gpt-4.1-mini.
        /// Default: OPENAI_MODEL, else the one in the configuration, else the provider's default.
        name: NonBlankString = optional,
        /// Base URL of the API. Default: OPENAI_BASE_URL, else OpenAI's.
        base_url: NonBlankString = optional,
        /// Which faults in a reply are repaired before it is checked: a list of fences, preface,
        /// think, case, numbers, commas, list, wrapper and encoded. Each repair is logged as an
        /// event.
        repair: RepairList = default(RepairList::default()),
        /// How often the model gets another attempt after a JSON reply that does not match the
        /// required format; the request says what is wrong. Each attempt is one more call. Default:
        /// 1 in a live run, 0 in an offline one.
        ask_again: Positioned<IntegerField<0, 10>> = optional,
        /// The sampling temperature. Without it none is sent and the provider's default applies.
        temperature: Number<0, 2> = optional,
        /// Maximum number of tokens of a reply. Without it the provider's limit applies; Anthropic
        /// requires one and gets 4096.
        max_tokens: IntegerField<1, 10_000_000> = optional,
        /// How much the model reasons before it answers, in the provider's own words, such as low
        /// or high.
        reasoning_effort: NonBlankString = optional,
        /// How a JSON reply is requested. Default: the strictest way that the endpoint supports.
        json: JsonMode = optional,
        /// More fields of the request, sent unchanged.
        extra: FreeTable = default(FreeTable::default()),
        /// One price for every model of a run. Without it a live run uses the prices of the
        /// configuration and of the shipped table, where they list its models; a scripted run has
        /// no cost.
        prices: PricesTable = optional,
    }
}

words! { JsonMode:
    "json_schema" => JsonMode::JsonSchema, "With a JSON schema of the required reply.";
    "json_object" => JsonMode::JsonObject, "As any JSON object.";
    "text" => JsonMode::Text, "Only in the prompt.";
}

words! { Repair:
    "fences" => Repair::Fences, "A Markdown code fence around the object is removed.";
    "preface" => Repair::Preface, "Text before and after the single object of a reply is removed.";
    "think" => Repair::Think, "<think>…</think> before a reply is removed, also before a final text.";
    "case" => Repair::Case, "Other spellings of names and stances are accepted: \"GO\", \"Demand Analyst\".";
    "numbers" => Repair::Numbers, "Numbers in quotes are accepted, and 11 to 100 count as per cent.";
    "commas" => Repair::Commas, "A comma after the last value of an object or a list is removed.";
    "list" => Repair::List, "A list with one object is accepted as that object.";
    "wrapper" => Repair::Wrapper, "An object inside the only key of another one is accepted: {\"response\": {…}}.";
    "encoded" => Repair::Encoded, "JSON that is written as a text inside JSON is read.";
}

/// Which faults are repaired: a list of words, or one word; `none` is the empty list.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepairList(pub Repairs);

impl FormatShape for RepairList {
    fn schema() -> Value {
        json!({
            "oneOf": [
                Repair::schema(),
                { "const": "none", "description": "Nothing is repaired." },
                { "type": "array", "items": Repair::schema(), "uniqueItems": true },
            ]
        })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(word) if word == "none" => Some(Self::default()),
            TomlValue::List(_) => {
                let list = BoundedList::<Repair, 0, { Repair::ALL.len() }>::read(node, cx)?;
                Some(Self(list.0.into_iter().collect()))
            }
            _ => Some(Self(Repairs::from([Repair::read(node, cx)?]))),
        }
    }
    fn default_json(&self) -> Value {
        self.0.iter().map(|repair| Value::from(repair.word())).collect()
    }
}

record! {
    /// US dollars per million tokens.
    struct PricesTable => {
        /// Tokens of the prompt.
        prompt_usd_per_million: Dollars = needed,
        /// Tokens of the reply.
        completion_usd_per_million: Dollars = needed,
    }
}

record! {
    /// One scripted reply of the model, and when it is used. Exactly one of reply, raw and text;
    /// with calls none is required. With person it is an answer of that person: exactly one of
    /// approve, choice, text, hand_over_to and reply.
    struct ScriptTable rule json!({
        "if": { "required": ["person"] },
        "then": {
            "oneOf": [
                { "required": ["approve"] },
                { "required": ["choice"] },
                { "required": ["hand_over_to"] },
                { "required": ["reply"] },
                {
                    "required": ["text"],
                    "not": { "anyOf": [
                        { "required": ["approve"] }, { "required": ["choice"] },
                        { "required": ["hand_over_to"] },
                    ] },
                },
            ],
            "properties": forbidden(&MODEL_KEYS),
        },
        "else": {
            "oneOf": [
                { "required": ["reply"] },
                { "required": ["raw"] },
                { "required": ["text"] },
                {
                    "required": ["calls"],
                    "not": { "anyOf": [
                        { "required": ["reply"] }, { "required": ["raw"] }, { "required": ["text"] },
                    ] },
                },
            ],
            "properties": forbidden(&PEOPLE_KEYS),
        },
    }) => {
        /// It is an answer of this person, by the name in [people], or of the operator.
        person: NonBlankString = optional,
        /// A person approves a call of a tool, or not; or approves it with these arguments.
        approve: Positioned<ApproveReply> = optional,
        /// A person picks this choice.
        choice: NonBlankString = optional,
        /// A person who has the turn of an agent hands over to this agent.
        hand_over_to: NonBlankString = optional,
        /// Only for this role.
        role: NonBlankString = optional,
        /// Only for this agent of a team or swarm.
        agent: NonBlankString = optional,
        /// Only for this message of a session, from 1; the goal is the first.
        message: Positioned<IntegerField<1, 1_000>> = optional,
        /// Only for the nth turn of an agent, from 1: each request or handoff to it is one.
        turn: Positioned<IntegerField<1, 100_000>> = optional,
        /// Only for this step of the pattern. Without it: the contribution of a role. Required in a
        /// row of an orchestrator or of research.
        step: Positioned<ScriptStep> = optional,
        /// Only in this round, from 1. An agent starts a round with each call of its model: in the
        /// second it sees the results of the tools that it called in the first.
        round: Positioned<IntegerField<1, 1_000>> = optional,
        /// Only for this attempt of a call, from 1.
        attempt: Positioned<IntegerField<1, 20>> = optional,
        /// Only for the nth repeat after a reply that did not match the required format, from 1; 0
        /// is the first attempt. See model.ask_again.
        again: Positioned<IntegerField<0, 10>> = optional,
        /// Only for the nth call of the run with the same role or agent, turn, round, step and repeat,
        /// from 1. A swarm that is consulted again counts the turns of its members from 1.
        nth: Positioned<IntegerField<1, 100_000>> = optional,
        /// Only if this CEL condition holds. For a role it may use facts, inputs, goal, role,
        /// round, attempt, flags, recent_rounds, open_conflicts. For a step: facts, inputs, goal,
        /// attempt, flags, and max_tasks, available_workers for a plan; final_decision, history for
        /// a launch brief; aggregate for an orchestrator's report; question, max_steps for a
        /// research plan; question, url, domain, title, body, published_at, notes (those taken
        /// before) for the notes of a page; question, notes for the answer; routes for a classification. For an agent: facts,
        /// inputs, goal, attempt, flags, agent, input (of this turn), message, turn, round, results
        /// (its tool calls so far: tool, ok, text), handoffs (how many its swarm has requested),
        /// from (the agent that consults it or handed over), members (the agents that it may
        /// consult or hand over to). For a person: about (tool_call, agent, turn, seat, decision,
        /// in_doubt, budget), tool, args, agent, question, choices, role, round, nth (how often the
        /// person was asked, from 1), flags, inputs, facts.
        when: NonBlankString = optional,
        /// How long the reply takes: `900ms`, or `900ms..1.8s` for a random time from the seed.
        latency: Latency = default(Latency::default()),
        /// A failure before the reply.
        fault: Positioned<FaultTable> = optional,
        /// The reply as a table, sent as JSON. If it has no `agent`, the role's name is added.
        reply: Positioned<FreeTable> = optional,
        /// The reply as text, sent unchanged.
        raw: StringField = optional,
        /// The reply as text. `{{input}}` and `{{facts.NAME}}` are filled in.
        text: StringField = optional,
        /// How the reply ends. Text of a reply that does not end with stop is marked wherever it is
        /// read, and its calls are not made; failed is a failed attempt, which is tried again.
        end: ReplyEnd = default(ReplyEnd::Stop),
        /// The tools that an agent calls in this reply.
        calls: Positioned<BoundedList<Positioned<CallTable>, 1, 64>> = optional,
        /// The tokens of the reply. Default: the words of the prompt and of the reply are counted.
        usage: Positioned<TokensTable> = optional,
    }
}

record! {
    /// The tokens of a scripted reply, as an endpoint would count them. Without prompt_tokens they are
    /// not known.
    struct TokensTable => {
        /// All tokens of the prompt.
        prompt_tokens: IntegerField<0, { u32::MAX }> = optional,
        /// All tokens of the reply.
        completion_tokens: IntegerField<0, { u32::MAX }> = default(IntegerField(0)),
        /// Tokens of the prompt that were read from a cache.
        cached_tokens: IntegerField<0, { u32::MAX }> = default(IntegerField(0)),
        /// Tokens of the prompt that were written to a cache.
        cache_write_tokens: IntegerField<0, { u32::MAX }> = default(IntegerField(0)),
        /// Tokens of the reply for reasoning that is not shown.
        reasoning_tokens: IntegerField<0, { u32::MAX }> = default(IntegerField(0)),
    }
}

impl TokensTable {
    /// The tokens, for the row.
    pub fn tokens(&self) -> ScriptedTokens {
        ScriptedTokens {
            prompt: self.prompt_tokens.map(|tokens| tokens.0.into()),
            completion: self.completion_tokens.0.into(),
            cached: self.cached_tokens.0.into(),
            cache_write: self.cache_write_tokens.0.into(),
            reasoning: self.reasoning_tokens.0.into(),
        }
    }
}

impl ScenarioFile {
    /// The rows of the script that are replies of models, with their places in the file.
    pub fn model_rows(&self) -> impl Iterator<Item = (usize, &Positioned<ScriptTable>)> {
        let rows = self.script.0.iter().enumerate();
        rows.filter(|(_, row)| row.value.person.is_none())
    }
}

/// The keys of a row that only replies of models may have.
const MODEL_KEYS: [&str; 13] = [
    "role", "agent", "message", "turn", "step", "round", "attempt", "again", "fault", "raw",
    "calls", "usage", "nth",
];

/// The keys of a row that only answers of people may have.
const PEOPLE_KEYS: [&str; 3] = ["approve", "choice", "hand_over_to"];

/// Properties of a JSON schema that must not be there.
fn forbidden(keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), Value::Bool(false))).collect::<Map<_, _>>().into()
}

impl ScriptTable {
    /// The keys of the row that only replies of models may have.
    pub fn keys_of_models(&self) -> Vec<(&'static str, TextSpan)> {
        let at = [
            self.role.as_ref().map(|it| it.at),
            self.agent.as_ref().map(|it| it.at),
            self.message.as_ref().map(|it| it.at),
            self.turn.as_ref().map(|it| it.at),
            self.step.as_ref().map(|it| it.at),
            self.round.as_ref().map(|it| it.at),
            self.attempt.as_ref().map(|it| it.at),
            self.again.as_ref().map(|it| it.at),
            self.fault.as_ref().map(|it| it.at),
            self.raw.as_ref().map(|it| it.at),
            self.calls.as_ref().map(|it| it.at),
            self.usage.as_ref().map(|it| it.at),
            self.nth.as_ref().map(|it| it.at),
        ];
        MODEL_KEYS.into_iter().zip(at).filter_map(|(key, at)| Some((key, at?))).collect()
    }

    /// The keys of the row that only answers of people may have.
    pub fn keys_of_people(&self) -> Vec<(&'static str, TextSpan)> {
        let at = [
            self.approve.as_ref().map(|it| it.at),
            self.choice.as_ref().map(|it| it.at),
            self.hand_over_to.as_ref().map(|it| it.at),
        ];
        PEOPLE_KEYS.into_iter().zip(at).filter_map(|(key, at)| Some((key, at?))).collect()
    }
}

words! { ReplyEnd:
    "stop" => ReplyEnd::Stop, "The reply is whole.";
    "length" => ReplyEnd::Length, "Cut at the limit of its tokens or of the context window.";
    "filtered" => ReplyEnd::Filtered, "Cut by a content filter of the provider.";
    "refused" => ReplyEnd::Refused, "Cut by a refusal of the model.";
    "paused" => ReplyEnd::Paused, "The model pauses, and is asked to continue.";
    "failed" => ReplyEnd::Failed, "The provider failed.";
}

words! { ScriptStep:
    "plan" => ScriptStep::Plan, "The plan: tasks of an orchestrator, or steps of research.";
    "notes" => ScriptStep::Notes, "The notes on one page of research.";
    "synthesize" => ScriptStep::Synthesize, "The answer of research, written from the notes.";
    "classify" => ScriptStep::Classify, "The classification of a router.";
    "finalize" => ScriptStep::Finalize, "The launch brief or report at the end.";
}

/// The JSON schema of the tables: descriptions, allowed words, ranges and required keys.
pub(crate) fn schema() -> Value {
    let mut schema = ScenarioFile::schema();
    if let Value::Object(fields) = &mut schema {
        let mut whole = serde_json::Map::new();
        whole.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
        whole.insert("title".into(), "roundtable scenario".into());
        whole.append(fields);
        *fields = whole;
    }
    schema
}

record! {
    /// Limits of the run. They depend on the pattern.
    struct BudgetTable => {
        /// Collaboration: maximum number of rounds.
        max_rounds: Positioned<IntegerField<1, 1_000>> = default(Positioned::not_in_file(IntegerField(3))),
        /// Collaboration: maximum number of contributions.
        max_messages: Positioned<IntegerField<1, 100_000>> = default(Positioned::not_in_file(IntegerField(12))),
        /// Time limit of the run in seconds; pauses are not counted. Default: 40 for a
        /// collaboration, 25 for an orchestrator and for research, 60 for resilience and for each
        /// message of a team or swarm.
        max_seconds: WholeSeconds<1, 86_400> = optional,
        /// Maximum number of tokens of the run, prompts and replies together. Each call first
        /// reserves its estimate: its prompt, and model.max_tokens or 4096.
        max_total_tokens: Positioned<IntegerField<1, { u32::MAX }>> = optional,
        /// Maximum cost of the run in US dollars, estimated from prices. Each call first reserves
        /// its estimate.
        max_cost_usd: Positioned<Dollars> = optional,
        /// What happens when the next call would exceed max_total_tokens or max_cost_usd: the run
        /// stops, or asks the operator, who may extend the limit by its own size.
        on_limit: OnLimit = default(OnLimit::Stop),
        /// Collaboration: how many go votes make a `go`, or a `go_with_caution` where somebody says caution.
        /// Two blocks make a `no_go`; one block, or fewer votes, lead to the next round.
        min_go_votes: Positioned<IntegerField<1, 64>> = default(Positioned::not_in_file(IntegerField(2))),
        /// Orchestrator: maximum number of tasks in a plan.
        max_tasks: IntegerField<1, 100_000> = default(IntegerField(4)),
        /// Orchestrator: maximum number of concurrent tasks.
        max_parallel: IntegerField<1, 1_024> = default(IntegerField(3)),
        /// Orchestrator: retries of a task after a timeout.
        max_retries_per_task: Positioned<IntegerField<0, 19>> = default(Positioned::not_in_file(IntegerField(1))),
        /// Orchestrator: maximum number of attempts, all tasks together.
        max_dispatches: IntegerField<1, 1_000_000> = default(IntegerField(8)),
        /// Orchestrator: timeout of one attempt, in seconds.
        task_timeout_seconds: Seconds = default(Seconds::from_whole_seconds(2)),
        /// Research: maximum number of steps in a plan. Every plan has five.
        max_steps: Positioned<IntegerField<1, 1_000>> = default(Positioned::not_in_file(IntegerField(8))),
        /// Research: maximum number of sources that are kept, 1 to 20. The search requests twice as
        /// many.
        max_urls: Clamped<1, 20> = default(Clamped(6)),
        /// Research: maximum number of pages that are read, 1 to 10.
        max_read_pages: Clamped<1, 10> = default(Clamped(3)),
        /// Research: maximum number of notes, 1 to 20.
        max_notes: Clamped<1, 20> = default(Clamped(6)),
        /// Research: maximum length of the answer in characters, 120 to 2000.
        max_answer_chars: Clamped<120, 2_000> = default(Clamped(850)),
    }
}

words! { OnLimit:
    "stop" => OnLimit::Stop, "The run stops.";
    "ask" => OnLimit::Ask, "The operator is asked.";
}

impl BudgetTable {
    /// The spending limits of a run.
    pub fn spending(&self) -> SpendingLimits {
        SpendingLimits {
            max_total_tokens: self.max_total_tokens.as_ref().map(|it| it.value.0.into()),
            max_cost_usd: self.max_cost_usd.as_ref().map(|cost| cost.value.0),
        }
    }

    /// Time limit of the whole run; `otherwise` is the pattern's default, in seconds.
    pub fn max_seconds(&self, otherwise: u32) -> Duration {
        let seconds = self.max_seconds.map_or(otherwise, |seconds| seconds.0);
        Duration::from_secs(u64::from(seconds))
    }
}

/// `true`, `false`, or a string that names a boolean input.
#[derive(Debug, Clone)]
pub(crate) enum BoolOrInput {
    Set(bool),
    Named(NonBlankString),
}

impl FormatShape for BoolOrInput {
    fn schema() -> Value {
        json!({ "oneOf": [
            { "type": "boolean" },
            { "type": "string", "pattern": r"^\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}$" },
        ] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Set(*truth)),
            TomlValue::Text(text) => {
                Some(Self::Named(NonBlankString { at: node.at, text: text.clone() }))
            }
            _ => {
                cx.wrong_type(node, "true, false, or \"{{input}}\"");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        match self {
            Self::Set(truth) => Value::Bool(*truth),
            Self::Named(text) => text.text.as_str().into(),
        }
    }
}
