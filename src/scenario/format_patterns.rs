//! The format of a scenario file: what only one of the patterns has.

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
    /// Limits of the run. Which there are depends on the pattern.
    struct BudgetTable => {
        /// Collaboration: rounds at most.
        max_rounds: At<Whole<1, 1_000>> = default(At::nowhere(Whole(3))),
        /// Collaboration: contributions at most.
        max_messages: At<Whole<1, 100_000>> = default(At::nowhere(Whole(12))),
        /// Seconds of the whole run, pauses not counted. Without it: 40, for an orchestrator and
        /// for research 25, for resilience, and for each message of a team or swarm, 60.
        max_seconds: WholeSeconds<1, 86_400> = optional,
        /// Tokens that the run may use at most, of prompts and replies together. Each call reserves its
        /// estimate first: its prompt, and model.max_tokens or 4096.
        max_total_tokens: At<Whole<1, { u32::MAX }>> = optional,
        /// US dollars that the run may cost at most, estimated from prices. Each call reserves its
        /// estimate first.
        max_cost_usd: At<Dollars> = optional,
        /// Collaboration: votes for go that decide.
        min_go_votes: At<Whole<1, 64>> = default(At::nowhere(Whole(2))),
        /// Orchestrator: tasks of a plan at most.
        max_tasks: Whole<1, 100_000> = default(Whole(4)),
        /// Orchestrator: tasks at once at most.
        max_parallel: Whole<1, 1_024> = default(Whole(3)),
        /// Orchestrator: attempts beyond the first of a task that timed out.
        max_retries_per_task: At<Whole<0, 19>> = default(At::nowhere(Whole(1))),
        /// Orchestrator: attempts of all tasks at most.
        max_dispatches: Whole<1, 1_000_000> = default(Whole(8)),
        /// Orchestrator: seconds that one attempt may take.
        task_timeout_seconds: Seconds = default(Seconds::whole(2)),
        /// Research: steps of a plan at most. Every plan has five.
        max_steps: At<Whole<1, 1_000>> = default(At::nowhere(Whole(8))),
        /// Research: sources that are kept at most, 1 to 20. It searches for twice as many.
        max_urls: Clamped<1, 20> = default(Clamped(6)),
        /// Research: pages that are read at most, 1 to 10.
        max_read_pages: Clamped<1, 10> = default(Clamped(3)),
        /// Research: notes that are taken at most, 1 to 20.
        max_notes: Clamped<1, 20> = default(Clamped(6)),
        /// Research: characters of the answer at most, 120 to 2000.
        max_answer_chars: Clamped<120, 2_000> = default(Clamped(850)),
    }
}

record! {
    /// Who speaks, and how.
    struct CollaborationTable => {
        /// The roles in the order in which they speak.
        sequence: At<List<Prose, 1, 64>> = needed,
        /// Whether the seats of a round are asked at once. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// Rounds in a row with a block after which a person is asked. 0: never; escalation is not
        /// available yet.
        escalate_after_blocks: Escalation = default(Escalation),
        /// System prompt of the launch brief at the end.
        finalize_prompt: Prose = needed,
        /// The model that writes the brief. Without it: that of [model].
        finalize_model: Prose = optional,
        /// Inputs that `team_summary` of the outcome repeats.
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
                cx.error(node.at, "escalation to a person is not available yet", "0: never");
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
    "parallel" => Concurrency::Parallel, "All at once: a round takes as long as its slowest seat.";
    "sequential" => Concurrency::Sequential, "One after another.";
}

record! {
    /// A role at the table.
    struct RoleTable => {
        /// Its system prompt; how it must reply is added to it. `{{input}}` is filled in.
        prompt: Prose = needed,
        /// The flag it sits behind.
        flag: Prose = optional,
        /// What happens while that flag is off.
        when_off: At<WhenOff> = optional,
        /// The model that answers, such as anthropic/claude-haiku-4-5. Without it: that of [model].
        model: Prose = optional,
    }
}

words! { WhenOff:
    "skip" => WhenOff::Skip, "The seat stays empty until the flag is on.";
    "deny" => WhenOff::Deny, "The run stops with agent_denied when its turn comes.";
}

record! {
    /// How the planner is asked, and how results are put together.
    struct OrchestratorTable => {
        /// System prompt of the planner; how it must reply is added to it. `{{input}}` is filled in.
        plan_prompt: Prose = needed,
        /// System prompt of the report at the end. `{{input}}` is filled in.
        finalize_prompt: Prose = needed,
        /// The model that plans. Without it: that of [model].
        plan_model: Prose = optional,
        /// The model that writes the report. Without it: that of [model].
        finalize_model: Prose = optional,
        /// Inputs that the planner is shown and the aggregate repeats.
        echo: List<Prose, 0, 64> = default(List(Vec::new())),
        /// The sections of the aggregate by name: the worker whose result stands in each.
        sections: Named<Prose, Ident> = default(Named::default()),
        /// The level of the aggregate: [orchestrator.level] with name = "health" and otherwise =
        /// "green", or words of your own.
        level: LevelTable = needed,
    }
}

record! {
    /// The level of the aggregate: that of the first rule that holds.
    struct LevelTable => {
        /// Its name in the aggregate, such as health.
        name: Prose = needed,
        /// The level when no rule holds.
        otherwise: Prose = needed,
        /// The rules, the most severe first.
        rules: List<RuleTable, 0, 100> = default(List(Vec::new())),
    }
}

record! {
    /// A rule of the level.
    struct RuleTable => {
        /// The level that it gives.
        level: Prose = needed,
        /// When: CEL over the sections, failed_tasks, and inputs that are repeated. Results may miss
        /// a field, so ask `has()` first.
        when: Prose = needed,
    }
}

record! {
    /// A worker: the planner may give it tasks. Exactly one of fixture, http and command does them.
    struct WorkerTable => {
        /// What it does, for the planner.
        description: Prose = needed,
        /// The arguments that it takes, each with what the planner is told of it.
        args: Free = default(Free::default()),
        /// The flag that takes it off the execution list while it is off.
        flag: Prose = optional,
        /// Answers that stand in this file.
        fixture: At<FixtureTable> = optional,
        /// An HTTP request that answers.
        http: At<HttpTable> = optional,
        /// A program that answers.
        command: At<CommandTable> = optional,
        /// Keys that an answer must have, and what stands in each.
        contract: Named<FieldKind, Key> = default(Named::default()),
    }
}

record! {
    /// Many agents that ask the same tools at once.
    struct ResilienceTable => {
        /// Agents that run at once.
        agents: Whole<1, 10_000> = needed,
        /// How often each goes through its steps.
        turns: Whole<1, 10_000> = needed,
        /// The tools that an agent asks in one turn, in this order.
        steps: List<Prose, 1, 64> = needed,
        /// Call slots that all agents share.
        pool: Whole<1, 10_000> = needed,
        /// The pause of an agent between two turns: `50ms`, or `50ms..150ms` to draw by the seed.
        pace: Latency = default(Latency::default()),
        /// Whether calls go through the tools' policies (true) or naive ones: true, false, or
        /// `{{input}}` of one that is.
        guarded: Switch = default(Switch::Set(true)),
        /// What an unguarded gateway does.
        naive: NaiveTable = table,
    }
}

record! {
    /// Retries in three places, each unaware of the others.
    struct NaiveTable => {
        /// Repeats inside the tool's own client.
        client_retries: Whole<0, 20> = default(Whole(2)),
        /// Repeats in the wrapper around the tool.
        tool_retries: Whole<0, 19> = default(Whole(2)),
        /// Times that an agent tries a step again.
        agent_retries: Whole<0, 20> = default(Whole(3)),
    }
}

/// `true`, `false`, or a text that names an input which is one of them.
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
