//! Makes of a file which model answers whom.

use super::format::File;
use super::name::{AgentName, RoleName};
use super::seated::{Caller, Seated};
use super::shape::Prose;

/// Who has a model of its own in this file, in the file's order.
pub(super) fn seated(file: &File) -> Vec<Seated> {
    let mut seated = Vec::new();
    let mut seat = |caller: Caller, place: String, model: &Option<Prose>| {
        if let Some(model) = model {
            let by_override = model.at.text > 0;
            seated.push(Seated { caller, model: model.text.trim().to_owned(), place, by_override });
        }
    };
    for role in &file.roles.entries {
        if let Some(table) = &role.value {
            let caller = Caller::Role(RoleName::from(role.name.as_str()));
            seat(caller, format!("roles.{}.model", role.name), &table.model);
        }
    }
    for agent in &file.agents.entries {
        if let Some(table) = &agent.value {
            let caller = Caller::Agent(AgentName::from(agent.name.as_str()));
            seat(caller, format!("agents.{}.model", agent.name), &table.model);
        }
    }
    if let Some(table) = &file.collaboration {
        let place = "collaboration.finalize_model".to_owned();
        seat(Caller::Finalize, place, &table.finalize_model);
    }
    if let Some(table) = &file.orchestrator {
        seat(Caller::Plan, "orchestrator.plan_model".to_owned(), &table.plan_model);
        seat(Caller::Finalize, "orchestrator.finalize_model".to_owned(), &table.finalize_model);
    }
    if let Some(table) = &file.research {
        seat(Caller::Plan, "research.plan_model".to_owned(), &table.plan_model);
        seat(Caller::Notes, "research.notes_model".to_owned(), &table.notes_model);
        seat(Caller::Answer, "research.answer_model".to_owned(), &table.answer_model);
    }
    seated
}
