//! The classifier's conversation and the form of its reply.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::spec::RouterSpec;
use crate::base::name::{AgentName, FlagName};
use crate::event::kind::ChatMessage;
use crate::llm::{ReplyContract, ReplyForm};
use crate::pattern::prompting::{self, conversation};
use crate::scenario::Scenario;

/// The format of the classifier's reply, part of its prompt.
const CONTRACT: &str = r#"Answer with a single JSON object and nothing around it:
{"route": "<one of the routes>", "confidence": <number from 0 to 1>, "reason": "<one sentence>", "alternatives": [{"route": "<another route>", "confidence": <number from 0 to 1>}]}
`route` is the name of one of the routes in the message you are given. `alternatives` has the other routes that you considered."#;

/// The routes as the classifier receives them: names and descriptions, those that a flag has taken
/// off included.
pub(super) fn catalogue(spec: &RouterSpec) -> Value {
    let routes = spec.routes.iter().map(|route| {
        let description = spec.agents.get(&route.agent).map(|agent| &*agent.description);
        json!({ "name": route.agent, "description": description })
    });
    Value::Array(routes.collect())
}

/// The form of a classification: its keys, and the names of the routes.
pub(super) fn form(policy_list: &[AgentName]) -> ReplyForm {
    let routes = policy_list.to_vec();
    ReplyForm::with_contract("route", true, move || {
        let route = || ReplyContract::one_of(routes.iter().map(AgentName::as_str));
        let number = || json!({ "type": "number" });
        let alternative = ReplyContract::object([("route", route()), ("confidence", number())]);
        ReplyContract::object([
            ("route", route()),
            ("confidence", number()),
            ("reason", json!({ "type": "string" })),
            ("alternatives", json!({ "type": "array", "items": alternative })),
        ])
    })
}

/// The messages for the classifier.
pub(super) fn messages(
    scenario: &Scenario,
    spec: &RouterSpec,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let mut payload = Map::new();
    payload.insert("request".to_owned(), Value::from(&*scenario.goal));
    payload.extend(prompting::echoed_inputs(scenario, &spec.echo));
    payload.insert("routes".to_owned(), catalogue(spec));
    let system = format!("{}\n\n{CONTRACT}", spec.prompt.filled(flags).trim());
    conversation(&system, payload, flags)
}
