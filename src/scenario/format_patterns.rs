//! The file format of the tables that belong to one pattern.

use serde_json::{Value, json};

use super::amount::{Dollars, Seconds, WholeSeconds};
use super::format_research::Clamped;
use super::format_tools::{CommandTable, FixtureTable, HttpTable};
use super::model::{Concurrency, Latency, WhenOff};
use super::named::{Ident, Key, Named};
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::shape::{At, Free, List, Prose, Shape, Whole};
use super::tool::FieldKind;
use super::tree::{Node, Tree};

record! {
    /// Limits of the run. They depend on the pattern.
    struct BudgetTable => {
        /// Collaboration: maximum number of rounds.
        max_rounds: At<Whole<1, 1_000>> = default(At::nowhere(Whole(3))),
        /// Collaboration: maximum number of contributions.
        max_messages: At<Whole<1, 100_000>> = default(At::nowhere(Whole(12))),
        /// Time limit of the run in seconds; pauses are not counted. Default: 40 for a
        /// collaboration, 25 for an orchestrator and for research, 60 for resilience and for each
        /// message of a team or swarm.
        max_seconds: WholeSeconds<1, 86_400> = optional,
        /// Maximum number of tokens of the run, prompts and replies together. Each call first
        /// reserves its estimate: its prompt, and model.max_tokens or 4096.
        max_total_tokens: At<Whole<1, { u32::MAX }>> = optional,
        /// Maximum cost of the run in US dollars, estimated from prices. Each call first reserves
        /// its estimate.
        max_cost_usd: At<Dollars> = optional,
        /// Collaboration: how many go votes are needed for a go.
        min_go_votes: At<Whole<1, 64>> = default(At::nowhere(Whole(2))),
        /// Orchestrator: maximum number of tasks in a plan.
        max_tasks: Whole<1, 100_000> = default(Whole(4)),
        /// Orchestrator: maximum number of concurrent tasks.
        max_parallel: Whole<1, 1_024> = default(Whole(3)),
        /// Orchestrator: retries of a task after a timeout.
        max_retries_per_task: At<Whole<0, 19>> = default(At::nowhere(Whole(1))),
        /// Orchestrator: maximum number of attempts, all tasks together.
        max_dispatches: Whole<1, 1_000_000> = default(Whole(8)),
        /// Orchestrator: timeout of one attempt, in seconds.
        task_timeout_seconds: Seconds = default(Seconds::whole(2)),
        /// Research: maximum number of steps in a plan. Every plan has five.
        max_steps: At<Whole<1, 1_000>> = default(At::nowhere(Whole(8))),
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
        sequence: At<List<Prose, 1, 64>> = needed,
        /// Whether the seats of a round call the model in parallel. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// Reserved: rounds in a row with a block after which the operator is asked. Only 0 (never)
        /// is allowed so far.
        escalate_after_blocks: Escalation = default(Escalation),
        /// System prompt of the launch brief at the end.
        finalize_prompt: Prose = needed,
        /// The model that writes the launch brief. Default: that of [model].
        finalize_model: Prose = optional,
        /// Inputs that are copied to `team_summary` of the outcome.
        summary: List<Prose, 0, 64> = default(List(Vec::new())),
    }
}

/// `escalate_after_blocks`: only 0 so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Escalation;

impl Shape for Escalation {
    fn schema() -> Value {
        json!({ "type": "integer", "const": 0 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match node.value {
            Tree::Whole(Some(0)) => Some(Self),
            Tree::Whole(_) => {
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
    fn plain(&self) -> Value {
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
        prompt: Prose = needed,
        /// The flag that switches the role on and off.
        flag: Prose = optional,
        /// What happens while that flag is off.
        when_off: At<WhenOff> = optional,
        /// The model of this role, such as anthropic/claude-haiku-4-5. Default: that of [model].
        model: Prose = optional,
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
        plan_prompt: Prose = needed,
        /// System prompt of the report at the end. `{{input}}` is filled in.
        finalize_prompt: Prose = needed,
        /// The model that plans. Default: that of [model].
        plan_model: Prose = optional,
        /// The model that writes the report. Default: that of [model].
        finalize_model: Prose = optional,
        /// Inputs that the planner sees and that are copied to the aggregate.
        echo: List<Prose, 0, 64> = default(List(Vec::new())),
        /// The sections of the aggregate by name: the worker whose result each one holds.
        sections: Named<Prose, Ident> = default(Named::default()),
        /// The level of the aggregate: [orchestrator.level] with name = "health" and otherwise =
        /// "green", or other words.
        level: LevelTable = needed,
    }
}

record! {
    /// The level of the aggregate: the level of the first rule that holds.
    struct LevelTable => {
        /// Its name in the aggregate, such as health.
        name: Prose = needed,
        /// The level if no rule holds.
        otherwise: Prose = needed,
        /// The rules, the most severe first.
        rules: List<RuleTable, 0, 100> = default(List(Vec::new())),
    }
}

record! {
    /// A rule of the level.
    struct RuleTable => {
        /// The level of the aggregate if this rule holds.
        level: Prose = needed,
        /// The condition: CEL over the sections, failed_tasks, and the inputs in `echo`. A result
        /// may lack a field, so guard it with `has()`.
        when: Prose = needed,
    }
}

record! {
    /// A worker that the planner may give tasks to. Exactly one of fixture, http and command
    /// implements it.
    struct WorkerTable => {
        /// What it does, shown to the planner.
        description: Prose = needed,
        /// Its arguments, each with a description for the planner.
        args: Free = default(Free::default()),
        /// A flag that takes it off the execution list while it is off.
        flag: Prose = optional,
        /// Results that are listed in this file.
        fixture: At<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: At<HttpTable> = optional,
        /// A program whose output is the result.
        command: At<CommandTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: Named<FieldKind, Key> = default(Named::default()),
    }
}

record! {
    /// Many agents that call the same tools concurrently.
    struct ResilienceTable => {
        /// Number of concurrent agents.
        agents: Whole<1, 10_000> = needed,
        /// How often each agent repeats its steps.
        turns: Whole<1, 10_000> = needed,
        /// The tools that an agent calls in one turn, in order.
        steps: List<Prose, 1, 64> = needed,
        /// Number of call slots that all agents share.
        pool: Whole<1, 10_000> = needed,
        /// The pause of an agent between two turns: `50ms`, or `50ms..150ms` for a random time from
        /// the seed.
        pace: Latency = default(Latency::default()),
        /// Whether calls use the tools' policies (true) or the naive ones (false): true, false, or
        /// `{{input}}` with a boolean input.
        guarded: Switch = default(Switch::Set(true)),
        /// The retries without the tools' policies.
        naive: NaiveTable = table,
    }
}

record! {
    /// Retries in three layers that do not know of each other.
    struct NaiveTable => {
        /// Retries inside the tool's own client.
        client_retries: Whole<0, 20> = default(Whole(2)),
        /// Retries in the wrapper around the tool.
        tool_retries: Whole<0, 19> = default(Whole(2)),
        /// Retries of a step by the agent.
        agent_retries: Whole<0, 20> = default(Whole(3)),
    }
}

/// `true`, `false`, or a string that names a boolean input.
#[derive(Debug, Clone)]
pub(super) enum Switch {
    Set(bool),
    Named(Prose),
}

impl Shape for Switch {
    fn schema() -> Value {
        json!({ "oneOf": [
            { "type": "boolean" },
            { "type": "string", "pattern": r"^\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}$" },
        ] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Truth(truth) => Some(Self::Set(*truth)),
            Tree::Text(text) => Some(Self::Named(Prose { at: node.at, text: text.clone() })),
            _ => {
                cx.wrong_type(node, "true, false, or \"{{input}}\"");
                None
            }
        }
    }
    fn plain(&self) -> Value {
        match self {
            Self::Set(truth) => Value::Bool(*truth),
            Self::Named(text) => text.text.as_str().into(),
        }
    }
}
