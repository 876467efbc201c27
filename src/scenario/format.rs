//! The format of a scenario file, field by field. Everything that reads the file or describes it
//! stands on these tables; what one field says about another is checked in `build`.

use serde_json::{Value, json};

use super::amount::{Dollars, Number, Wait};
use super::domain::DomainName;
use super::format_patterns::{
    BudgetTable, CollaborationTable, OrchestratorTable, ResilienceTable, RoleTable, WorkerTable,
};
use super::format_research::{ResearchTable, SourceTable};
use super::format_team::{AgentTable, CallTable, RootTable};
use super::format_tools::{AlertsTable, ToolsTable};
use super::model::{Latency, ScriptStep};
use super::named::{Actor, Ident, Named};
use super::pattern;
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::repair::{Repair, Repairs};
use super::shape::{At, Free, List, Prose, Shape, Text, Whole};
use super::tree::{Node, Tree};
use super::tuning::JsonRung;

record! {
    /// A scenario of roundtable: everything that a run needs, in one file.
    struct File rule pattern::rules() => {
        /// One line for lists and headers.
        title: Prose = needed,
        /// The pattern that is run.
        pattern: Pattern = needed,
        /// What it shows, in a sentence.
        about: Text = optional,
        /// What the run is asked. `{{input}}` stands for the value of an input.
        goal: Prose = needed,
        /// Start of every random number of a run: the same seed draws the same.
        seed: Whole<0, { u32::MAX }> = default(Whole(42)),
        /// What is asked for in the launch form, by name. `--set inputs.NAME=VALUE` sets one.
        inputs: Named<InputTable, Ident> = default(Named::default()),
        /// Switches, by name. `--flag NAME=on` sets one at the start; they can be turned live.
        flags: Named<FlagTable, Ident> = default(Named::default()),
        /// Limits of the run.
        budget: BudgetTable = table,
        /// What every role is shown, unchanged. `{{input}}` stands for the value of an input; a
        /// text that is nothing else takes the value with its type.
        facts: Free = default(Free::default()),
        /// What the pattern `collaboration` alone needs.
        collaboration: CollaborationTable = optional,
        /// Who sits at the table, by name.
        roles: Named<RoleTable, Actor> = default(Named::default()),
        /// What the pattern `orchestrator` alone needs.
        orchestrator: OrchestratorTable = optional,
        /// Whom the orchestrator's planner may give tasks, by name.
        workers: Named<WorkerTable, Actor> = default(Named::default()),
        /// What the pattern `team` alone needs.
        team: RootTable = optional,
        /// What the pattern `swarm` alone needs.
        swarm: RootTable = optional,
        /// The agents of a team or swarm, by name.
        agents: Named<AgentTable, Actor> = default(Named::default()),
        /// What the pattern `resilience` alone needs.
        resilience: ResilienceTable = optional,
        /// What the pattern `research` alone needs.
        research: ResearchTable = optional,
        /// What is said of domains, by their hosts.
        sources: Named<SourceTable, DomainName> = default(Named::default()),
        /// How the model is asked.
        model: ModelTable = table,
        /// What the gateway does with calls, by the name of the tool; `llm` is the model.
        tools: ToolsTable = table,
        /// When a person is alerted while the run goes on.
        alerts: AlertsTable = table,
        /// What the model says offline. The first row whose conditions hold is used.
        script: List<At<ScriptTable>, 0, 2_000> = default(List(Vec::new())),
    }
}

/// The patterns there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Collaboration,
    Orchestrator,
    Team,
    Swarm,
    Resilience,
    Research,
}

words! { Pattern:
    "collaboration" => Pattern::Collaboration, "Roles with stances speak in rounds until they agree.";
    "orchestrator" => Pattern::Orchestrator, "A plan of tasks, done by workers at the same time.";
    "team" => Pattern::Team, "A coordinator consults its members.";
    "swarm" => Pattern::Swarm, "Agents hand over to each other.";
    "resilience" => Pattern::Resilience, "Many agents ask tools that fail.";
    "research" => Pattern::Research, "An answer from sources, with citations.";
}

record! {
    /// An input: asked for in the launch form, used as `{{name}}` and `inputs.name`.
    struct InputTable => {
        /// Its value, unless another is given.
        value: Scalar = needed,
        /// What the form says beside it.
        label: Prose = optional,
        /// What may be given. Without it: a choice where there are choices, else what the value is.
        kind: At<KindWord> = optional,
        /// The values there are.
        choices: At<List<Prose, 1, 100>> = optional,
    }
}

/// What kind of input it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KindWord {
    Text,
    Date,
    Integer,
    Number,
    Bool,
    Choice,
}

words! { KindWord:
    "text" => KindWord::Text, "Any text.";
    "date" => KindWord::Date, "A day as YYYY-MM-DD.";
    "integer" => KindWord::Integer, "A whole number.";
    "number" => KindWord::Number, "A number.";
    "bool" => KindWord::Bool, "true or false.";
    "choice" => KindWord::Choice, "One of the choices.";
}

/// A value that is no list and no table.
#[derive(Debug, Clone)]
pub(super) struct Scalar(pub Node);

impl Shape for Scalar {
    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        if matches!(node.value, Tree::List(_) | Tree::Table(_)) {
            cx.wrong_type(node, "a text, a number, a date, true or false");
            return None;
        }
        Some(Self(node.clone()))
    }
}

record! {
    /// A switch of the scenario.
    struct FlagTable => {
        /// Its position at the start.
        default: bool = default(false),
        /// What it does, for people.
        label: Prose = optional,
    }
}

record! {
    /// How the model is asked. A live run takes what is not set here from the configuration
    /// (`roundtable config`), then from the provider.
    struct ModelTable => {
        /// Whether replies are streamed.
        stream: bool = default(true),
        /// The model's name, with or without its provider's: openai/gpt-4.1-mini, or gpt-4.1-mini.
        /// Without it: OPENAI_MODEL, else that of the configuration, else the provider's usual one.
        name: Prose = optional,
        /// The root of the API. Without it: OPENAI_BASE_URL, else that of OpenAI.
        base_url: Prose = optional,
        /// What may be repaired in a reply before it is judged: a list of fences, preface, think, case
        /// and numbers. Each repair that is made is an event.
        repair: RepairList = default(RepairList::default()),
        /// How often the model is told what is wrong with a JSON reply, and asked again. Each time is
        /// one more call.
        ask_again: At<Whole<0, 10>> = default(At::nowhere(Whole(0))),
        /// The sampling temperature. Without it none is sent, and the provider's counts.
        temperature: Number<0, 2> = optional,
        /// Tokens of a reply at most. Without it the provider's bound counts; Anthropic needs one and
        /// is sent 4096.
        max_tokens: Whole<1, 10_000_000> = optional,
        /// How much the model thinks before it answers, in the provider's word, such as low or high.
        reasoning_effort: Prose = optional,
        /// How a reply in JSON is asked for. Without it: by the strictest way that the endpoint takes.
        json: JsonRung = optional,
        /// Fields of the request that are sent as they stand.
        extra: Free = default(Free::default()),
        /// One price for every model of a run. Without it a live run has those of the configuration and of
        /// the shipped table, as far as they know its models, and a scripted run has no cost.
        prices: PricesTable = optional,
    }
}

words! { JsonRung:
    "json_schema" => JsonRung::JsonSchema, "By a schema, made from the reply that is wanted.";
    "json_object" => JsonRung::JsonObject, "As some JSON object.";
    "text" => JsonRung::Text, "By the prompt alone.";
}

words! { Repair:
    "fences" => Repair::Fences, "A Markdown code fence around the object is taken off.";
    "preface" => Repair::Preface, "Text before and after the only object of a reply is taken off.";
    "think" => Repair::Think, "<think>…</think> in front of a reply is taken off.";
    "case" => Repair::Case, "Names and stances are taken in other spellings: \"GO\", \"Demand Analyst\".";
    "numbers" => Repair::Numbers, "Numbers are taken as texts, and 11 to 100 as per cent.";
}

/// What may be repaired: a list of words, or one word; `none` is the empty list.
#[derive(Debug, Clone, Default)]
pub(super) struct RepairList(pub Repairs);

impl Shape for RepairList {
    fn schema() -> Value {
        json!({
            "oneOf": [
                Repair::schema(),
                { "const": "none", "description": "Nothing is repaired." },
                { "type": "array", "items": Repair::schema(), "uniqueItems": true },
            ]
        })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Text(word) if word == "none" => Some(Self::default()),
            Tree::List(_) => {
                let list = List::<Repair, 0, 5>::read(node, cx)?;
                Some(Self(list.0.into_iter().collect()))
            }
            _ => Some(Self(Repairs::from([Repair::read(node, cx)?]))),
        }
    }
    fn plain(&self) -> Value {
        self.0.iter().map(|repair| Value::from(repair.word())).collect()
    }
}

record! {
    /// US dollars for a million tokens.
    struct PricesTable => {
        /// Tokens of the prompt.
        prompt_usd_per_million: Dollars = needed,
        /// Tokens of the reply.
        completion_usd_per_million: Dollars = needed,
    }
}

record! {
    /// One thing that the model says offline, and when. Exactly one of reply, raw and text; none is
    /// needed beside calls.
    struct ScriptTable rule json!({
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
        ]
    }) => {
        /// Only for this role.
        role: Prose = optional,
        /// Only for this agent of a team or swarm.
        agent: Prose = optional,
        /// Only for this message of an agents' session, from 1: the goal is the first.
        message: At<Whole<1, 1_000>> = optional,
        /// Only for the nth time that an agent is asked or handed over to, from 1.
        turn: At<Whole<1, 100_000>> = optional,
        /// Only for this step of the pattern. Without it: the contribution of a role. A row of an
        /// orchestrator or of research needs it.
        step: At<ScriptStep> = optional,
        /// Only in this round, from 1. An agent begins one with each call of its model: the second
        /// sees what the tools answered that it called in the first.
        round: At<Whole<1, 1_000>> = optional,
        /// Only for this attempt of a call, from 1.
        attempt: At<Whole<1, 20>> = optional,
        /// Only the nth time that the model is asked again because its reply was refused, from 1; 0 is
        /// the first time that it is asked. See model.ask_again.
        again: At<Whole<0, 10>> = optional,
        /// Only when this CEL condition holds for what the role is shown: facts, inputs, goal,
        /// role, round, attempt, flags, recent_rounds, open_conflicts. For a step facts, inputs,
        /// goal, attempt, flags, and: max_tasks, available_workers for a plan; final_decision,
        /// history for a launch brief; aggregate for an orchestrator's report; question, max_steps for
        /// the plan of research; question, url, domain, title, body, published_at, notes (those taken
        /// before) for the notes of a page; question, notes for the answer. For an agent facts,
        /// inputs, goal, attempt, flags, and: agent, input (what it was given), message, turn, round,
        /// results (its tool calls so far: tool, ok, text), handoffs (how many were asked for in its
        /// swarm), from (who asks it or handed over), members (whom it may consult or hand over to).
        when: Prose = optional,
        /// How long the answer takes: `900ms`, or `900ms..1.8s` to draw by the seed.
        latency: Latency = default(Latency::default()),
        /// What goes wrong first.
        fault: At<FaultTable> = optional,
        /// The answer as a table. It is sent as JSON, with the role's name as `agent` where it has
        /// none.
        reply: At<Free> = optional,
        /// The answer, sent as it is.
        raw: Text = optional,
        /// The answer, sent as it is.
        text: Text = optional,
        /// The tools that an agent calls with it.
        calls: At<List<At<CallTable>, 1, 64>> = optional,
    }
}

words! { ScriptStep:
    "plan" => ScriptStep::Plan, "The orchestrator's plan of tasks, or the steps of research.";
    "notes" => ScriptStep::Notes, "The notes of one page of research.";
    "synthesize" => ScriptStep::Synthesize, "The answer that the notes of research are put together to.";
    "finalize" => ScriptStep::Finalize, "The launch brief or report at the end.";
}

record! {
    /// What goes wrong in the first attempts of a call. Exactly one of status and kind.
    struct FaultTable rule json!({
        "oneOf": [{ "required": ["status"] }, { "required": ["kind"] }]
    }) => {
        /// The HTTP status that the endpoint answers with.
        status: Whole<400, 599> = optional,
        /// What its Retry-After says, in seconds.
        retry_after_s: At<Wait> = optional,
        /// Another way to fail.
        kind: FaultWord = optional,
        /// How many attempts of a call fail, from the first.
        times: Whole<1, 20> = default(Whole(1)),
    }
}

/// How a scripted attempt fails, other than with a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultWord {
    Hang,
    Refused,
    Reset,
    BadResponse,
}

words! { FaultWord:
    "hang" => FaultWord::Hang, "Nothing comes until the time-out.";
    "refused" => FaultWord::Refused, "The connection is refused.";
    "reset" => FaultWord::Reset, "The connection breaks half-way through the reply.";
    "bad_response" => FaultWord::BadResponse, "A body that is no chat completion.";
}

/// The JSON schema of a scenario file, for editors: descriptions, words, ranges, what must be there.
pub fn schema() -> Value {
    let mut schema = File::schema();
    if let Value::Object(fields) = &mut schema {
        let mut whole = serde_json::Map::new();
        whole.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
        whole.insert("title".into(), "roundtable scenario".into());
        whole.append(fields);
        *fields = whole;
    }
    schema
}
