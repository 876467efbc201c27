//! Whom each caller of a live run would ask, or what it lacks: for who looks before starting one.

use super::models;
use crate::llm::endpoint::Endpoint;
use crate::scenario::Scenario;
use crate::scenario::live::callers;
use crate::scenario::seated::Caller;

/// A role, agent or step, and the model that it would ask live.
#[derive(Debug)]
pub struct CallerModel {
    /// Who asks.
    pub caller: Caller,
    /// Where the scenario or `--set` gives it a model of its own: `roles.risk_analyst.model`.
    pub place: Option<String>,
    /// Where that model is, or what it lacks.
    pub endpoint: Result<Endpoint, MissingModel>,
}

/// Why a caller has no model to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingModel {
    /// What is missing.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// Everyone who asks a model in a live run of this scenario, each once; `model` is what `--model` says.
pub fn by_caller(scenario: &Scenario, model: Option<&str>) -> Vec<CallerModel> {
    let mut all: Vec<CallerModel> = Vec::new();
    for caller in callers(&scenario.pattern) {
        if all.iter().any(|other| other.caller == caller) {
            continue;
        }
        let own = models::own_model(scenario, &caller, model);
        let endpoint = match own {
            Some(seated) => models::seat_or_missing(scenario, seated),
            None => {
                models::usual(scenario, model).map_err(|error| (error.to_string(), error.advice()))
            }
        };
        let endpoint = endpoint.map_err(|(what, advice)| MissingModel { what, advice });
        all.push(CallerModel { caller, place: own.map(|seated| seated.place.clone()), endpoint });
    }
    all
}
