//! The tools that an agent's model is offered: members, tools, the handoff.

use std::sync::Arc;

use serde_json::json;

use super::policy::TRANSFER;
use crate::agents::spec::{AgentSpec, AgentsSpec};
use crate::base::name::{AgentName, ToolName};
use crate::event::kind::ToolOffer;
use crate::scenario::Scenario;

/// The offers of an agent's tools; names that the scenario does not define are skipped.
pub(super) fn tool_offers<'a>(
    scenario: &'a Scenario,
    names: &'a [ToolName],
) -> impl Iterator<Item = ToolOffer> + 'a {
    names.iter().filter_map(|name| scenario.tools.get(name)).map(|tool| tool.offer.clone())
}

/// The offer to consult a member, for a coordinator.
pub(super) fn member_offer(agent: &AgentSpec) -> ToolOffer {
    ToolOffer {
        name: agent.name.as_str().into(),
        description: Arc::clone(&agent.description),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": { "request": { "type": "string" } },
            "required": ["request"],
        })),
    }
}

/// The offer to hand over to another member; `None` if there are no other members.
pub(super) fn transfer_offer(
    spec: &AgentsSpec,
    members: &[AgentName],
    agent: &AgentName,
) -> Option<ToolOffer> {
    let others = || members.iter().filter(|member| *member != agent);
    others().next()?;
    let mut description =
        "Hands over to another agent, who goes on in your place. There are:".to_owned();
    for other in others() {
        let what = spec.get(other).map_or("", |other| &other.description);
        description.push_str(&format!("\n- {other}: {what}"));
    }
    let names: Vec<&str> = others().map(AgentName::as_str).collect();
    Some(ToolOffer {
        name: TRANSFER.into(),
        description: description.into(),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "agent_name": { "type": "string", "enum": names },
                "message": { "type": "string", "description": "What it should know or do." },
            },
            "required": ["agent_name"],
        })),
    })
}
