//! Finds which model each caller uses, and the settings of its requests.

use super::amount::Number;
use super::format::File;
use super::name::{AgentName, RoleName};
use super::reader::Reader;
use super::seated::{Caller, Seated};
use super::shape::{Free, Prose, Whole};
use super::tuning::{JsonRung, RESERVED, Tuning};

/// The request settings of a `[model]` table, of a scenario or of the configuration.
pub(super) struct Requests {
    pub temperature: Option<Number<0, 2>>,
    pub max_tokens: Option<Whole<1, 10_000_000>>,
    pub reasoning_effort: Option<Prose>,
    pub json: Option<JsonRung>,
    pub extra: Free,
}

/// Builds the request settings; reports reserved keys in `extra`.
pub(super) fn tuning(requests: Requests, cx: &mut Reader) -> Tuning {
    let extra = cx.within("extra", |cx| {
        for (key, node) in &requests.extra.table.entries {
            if RESERVED.contains(&key.text.as_str()) {
                let help = "other keys of the scenario set it";
                cx.error(node.at, format!("`{}` cannot be set here", key.text), help);
            }
        }
        requests.extra.table.json(&mut |text, _| text.into()).unwrap_or_default()
    });
    Tuning {
        temperature: requests.temperature.map(|number| number.0),
        max_tokens: requests.max_tokens.map(|tokens| tokens.0),
        reasoning_effort: requests.reasoning_effort.map(|word| word.text.trim().to_owned()),
        json: requests.json,
        extra,
    }
}

/// The callers with a model of their own, in the file's order.
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
