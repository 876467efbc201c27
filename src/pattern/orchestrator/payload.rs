//! The payloads for the planner and for the writer of the report (`llm.py` in the orchestrator
//! source document).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::name::{FlagName, ToolName};
use crate::event::kind::ChatMessage;
use crate::llm::{ReplyContract, ReplyForm};
use crate::pattern::orchestrator::spec::OrchestratorSpec;
use crate::pattern::prompting;
use crate::pattern::prompting::{conversation, fields};
use crate::scenario::Scenario;
use crate::scenario::spec::prompt::PromptTemplate;

/// The format of the planner's reply, part of its prompt.
const CONTRACT: &str = r#"Return only one JSON object in this exact shape:
{"kind":"plan","tasks":[{"id":"t1","worker":"<name>","args":{},"critical":true}]}
Use only workers from available_workers, each with exactly the args it lists. Mark a task critical only if the report is impossible without it. At most max_tasks tasks. No Markdown, no other keys."#;

/// The inputs that the planner and the aggregate both receive, in the scenario's order.
pub(super) fn echo(scenario: &Scenario, spec: &OrchestratorSpec) -> Map<String, Value> {
    prompting::echoed_inputs(scenario, &spec.echo)
}

/// The worker catalogue as the planner receives it.
pub(super) fn catalogue(spec: &OrchestratorSpec) -> Value {
    let workers = spec.workers.iter().map(|worker| {
        json!({ "name": worker.name, "description": worker.description, "args": worker.args })
    });
    Value::Array(workers.collect())
}

/// The form of a plan: the keys that the policy requires, and the names of the workers. Each worker
/// has its own arguments, so the schema is not strict.
pub(super) fn form(spec: &OrchestratorSpec) -> ReplyForm {
    let workers: Vec<ToolName> = spec.workers.iter().map(|worker| worker.name.clone()).collect();
    ReplyForm::with_contract("plan", false, move || {
        let task = ReplyContract::object([
            ("id", json!({ "type": "string" })),
            ("worker", ReplyContract::one_of(workers.iter().map(ToolName::as_str))),
            ("args", json!({ "type": "object" })),
            ("critical", json!({ "type": "boolean" })),
        ]);
        ReplyContract::object([
            ("kind", ReplyContract::one_of(["plan"])),
            ("tasks", json!({ "type": "array", "items": task })),
        ])
    })
}

/// The planner's conversation.
pub(super) fn plan_messages(
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let mut payload = Map::new();
    payload.insert("goal".to_owned(), Value::from(&*scenario.goal));
    payload.extend(echo(scenario, spec));
    payload.insert("max_tasks".to_owned(), spec.budget.max_tasks.into());
    payload.insert("available_workers".to_owned(), catalogue(spec));
    let system = format!("{}\n\n{CONTRACT}", spec.plan_prompt.filled(flags).trim());
    conversation(&system, payload, flags)
}

/// The conversation for the report.
pub(super) fn report_messages(
    prompt: &PromptTemplate,
    goal: &str,
    aggregate: &Value,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let payload = fields(json!({ "goal": goal, "aggregate": aggregate }));
    conversation(prompt.filled(flags).trim(), payload, flags)
}
