//! The file format of the tables that belong to one pattern.

use serde_json::{Value, json};

use super::amount::{Dollars, Seconds, WholeSeconds};
use super::format_tools::{CommandTable, FixtureTable, HttpTable};
use super::named::{IdentName, NamedEntries, ResultKey};
use super::reader::{ReadContext, suggest_name};
use super::record::{ObjectSchema, Requirement, join_doc_lines, record, words};
use super::shape::{BoundedList, FormatShape, FreeTable, IntegerField, NonBlankString, Positioned};
use super::tree::{TomlNode, TomlValue};
use crate::base::seeded_random::Latency;
use crate::pattern::research::file::table::Clamped;
use crate::scenario::spec::model::{Concurrency, WhenOff};
use crate::scenario::spec::tool::FieldKind;

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
        /// Collaboration: how many go votes are needed for a go.
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

record! {
    /// The order of the roles and the launch brief.
    struct CollaborationTable => {
        /// The roles in speaking order; each entry is a seat.
        sequence: Positioned<BoundedList<NonBlankString, 1, 64>> = needed,
        /// Whether the seats of a round call the model in parallel. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// Reserved: rounds in a row with a block after which the operator is asked. Only 0 (never)
        /// is allowed so far.
        escalate_after_blocks: Escalation = default(Escalation),
        /// System prompt of the launch brief at the end.
        finalize_prompt: NonBlankString = needed,
        /// The model that writes the launch brief. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// Inputs that are copied to `team_summary` of the outcome.
        summary: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
    }
}

/// `escalate_after_blocks`: only 0 so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escalation;

impl FormatShape for Escalation {
    fn schema() -> Value {
        json!({ "type": "integer", "const": 0 })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match node.value {
            TomlValue::Integer(Some(0)) => Some(Self),
            TomlValue::Integer(_) => {
                cx.error(
                    node.at,
                    "escalation is not available yet",
                    "set it to 0, which means never",
                );
                None
            }
            _ => {
                cx.wrong_type(node, "the number 0");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        0.into()
    }
}

words! { Concurrency:
    "parallel" => Concurrency::Parallel, "All in parallel: a round takes as long as its slowest seat.";
    "sequential" => Concurrency::Sequential, "One after another.";
}

record! {
    /// A role at the table.
    struct RoleTable => {
        /// Its system prompt; the required reply format is appended. `{{input}}` is filled in.
        prompt: NonBlankString = needed,
        /// The flag that switches the role on and off.
        flag: NonBlankString = optional,
        /// What happens while that flag is off.
        when_off: Positioned<WhenOff> = optional,
        /// The model of this role, such as anthropic/claude-haiku-4-5. Default: that of [model].
        model: NonBlankString = optional,
    }
}

words! { WhenOff:
    "skip" => WhenOff::Skip, "The seat stays empty until the flag is on.";
    "deny" => WhenOff::Deny, "The run stops with agent_denied at its turn.";
}

record! {
    /// The prompts of the planner and of the report, and how results are aggregated.
    struct OrchestratorTable => {
        /// System prompt of the planner; the required reply format is appended. `{{input}}` is
        /// filled in.
        plan_prompt: NonBlankString = needed,
        /// System prompt of the report at the end. `{{input}}` is filled in.
        finalize_prompt: NonBlankString = needed,
        /// The model that plans. Default: that of [model].
        plan_model: NonBlankString = optional,
        /// The model that writes the report. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// Inputs that the planner sees and that are copied to the aggregate.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// The sections of the aggregate by name: the worker whose result each one holds.
        sections: NamedEntries<NonBlankString, IdentName> = default(NamedEntries::default()),
        /// The level of the aggregate: [orchestrator.level] with name = "health" and otherwise =
        /// "green", or other words.
        level: LevelTable = needed,
    }
}

record! {
    /// The level of the aggregate: the level of the first rule that holds.
    struct LevelTable => {
        /// Its name in the aggregate, such as health.
        name: NonBlankString = needed,
        /// The level if no rule holds.
        otherwise: NonBlankString = needed,
        /// The rules, the most severe first.
        rules: BoundedList<RuleTable, 0, 100> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// A rule of the level.
    struct RuleTable => {
        /// The level of the aggregate if this rule holds.
        level: NonBlankString = needed,
        /// The condition: CEL over the sections, failed_tasks, and the inputs in `echo`. A result
        /// may lack a field, so guard it with `has()`.
        when: NonBlankString = needed,
    }
}

record! {
    /// A worker that the planner may give tasks to. Exactly one of fixture, http and command
    /// implements it.
    struct WorkerTable => {
        /// What it does, shown to the planner.
        description: NonBlankString = needed,
        /// Its arguments, each with a description for the planner.
        args: FreeTable = default(FreeTable::default()),
        /// A flag that takes it off the execution list while it is off.
        flag: NonBlankString = optional,
        /// Results that are listed in this file.
        fixture: Positioned<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: Positioned<HttpTable> = optional,
        /// A program whose output is the result.
        command: Positioned<CommandTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: NamedEntries<FieldKind, ResultKey> = default(NamedEntries::default()),
    }
}

record! {
    /// Many agents that call the same tools concurrently.
    struct ResilienceTable => {
        /// Number of concurrent agents.
        agents: IntegerField<1, 10_000> = needed,
        /// How often each agent repeats its steps.
        turns: IntegerField<1, 10_000> = needed,
        /// The tools that an agent calls in one turn, in order.
        steps: BoundedList<NonBlankString, 1, 64> = needed,
        /// Number of call slots that all agents share.
        pool: IntegerField<1, 10_000> = needed,
        /// The pause of an agent between two turns: `50ms`, or `50ms..150ms` for a random time from
        /// the seed.
        pace: Latency = default(Latency::default()),
        /// Whether calls use the tools' policies (true) or the naive ones (false): true, false, or
        /// `{{input}}` with a boolean input.
        guarded: BoolOrInput = default(BoolOrInput::Set(true)),
        /// The retries without the tools' policies.
        naive: NaiveTable = table,
    }
}

record! {
    /// Retries in three layers that do not know of each other.
    struct NaiveTable => {
        /// Retries inside the tool's own client.
        client_retries: IntegerField<0, 20> = default(IntegerField(2)),
        /// Retries in the wrapper around the tool.
        tool_retries: IntegerField<0, 19> = default(IntegerField(2)),
        /// Retries of a step by the agent.
        agent_retries: IntegerField<0, 20> = default(IntegerField(3)),
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
