//! The model of each caller of a live run, or what is missing; for checks before a run starts.

use crate::host::models;
use crate::llm::endpoint::Endpoint;
use crate::scenario::Scenario;
use crate::scenario::spec::model_assignment::ModelCaller;

/// A role, agent or step, and the model that it would call live.
#[derive(Debug)]
pub struct CallerModel {
    /// The role, agent or step.
    pub caller: ModelCaller,
    /// The field that gives it its own model, such as `roles.risk_analyst.model`; `None`: it has
    /// none.
    pub place: Option<String>,
    /// The model's endpoint, or what is missing.
    pub endpoint: Result<Endpoint, MissingModel>,
}

/// Why a caller has no model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingModel {
    /// What is missing.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// The callers of models in a live run of this scenario, without duplicates; `model` is the value
/// of `--model`.
pub fn by_caller(scenario: &Scenario, model: Option<&str>) -> Vec<CallerModel> {
    let mut all: Vec<CallerModel> = Vec::new();
    for caller in scenario.pattern.get().model_callers() {
        if all.iter().any(|other| other.caller == caller) {
            continue;
        }
        let own = models::own_model(scenario, &caller, model);
        let endpoint = match own {
            Some(seated) => models::caller_endpoint_or_missing(scenario, seated),
            None => models::common_endpoint(scenario, model)
                .map_err(|error| (error.to_string(), error.advice())),
        };
        let endpoint = endpoint.map_err(|(what, advice)| MissingModel { what, advice });
        all.push(CallerModel { caller, place: own.map(|seated| seated.place.clone()), endpoint });
    }
    all
}
