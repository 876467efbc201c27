//! Who answers a run's model calls: the scenario's script, or a live endpoint, which is looked for
//! before anything starts.

use crate::app::state::LiveOffer;
use crate::engine::ModelChoice;
use crate::llm::endpoint::{self, Asked, Endpoint, EndpointError};
use crate::llm::openai::OpenAi;
use crate::net::{Http, Via};
use crate::scenario::Scenario;
use std::sync::Arc;

/// The models of a session. Their connections are kept and shared by its runs.
#[derive(Clone)]
pub struct Models {
    http: Http,
}

impl Models {
    /// Models that are reached this way. Nothing is built before the first call.
    pub fn new(via: Via) -> Self {
        Self { http: Http::new(via) }
    }

    /// The model at an endpoint that was found.
    pub fn live(&self, scenario: &Scenario, endpoint: Endpoint) -> ModelChoice {
        let timeout = endpoint.timeout().value;
        let model = OpenAi::new(self.http.clone(), endpoint, scenario.model.stream);
        ModelChoice::Live(Arc::new(model), timeout)
    }

    /// A client for the doctor's question to an endpoint.
    pub fn probe(&self, endpoint: Endpoint) -> OpenAi {
        OpenAi::new(self.http.clone(), endpoint, false)
    }
}

/// The endpoint that a scenario's live runs would ask.
///
/// # Errors
/// There is none, and what to set.
pub fn endpoint_of(scenario: &Scenario) -> Result<Endpoint, EndpointError> {
    endpoint::find_here(Asked {
        model: scenario.model.name.as_deref(),
        base_url: scenario.model.base_url.as_deref(),
    })
}

/// What the launch form may offer for a scenario.
pub fn offer(scenario: &Scenario) -> LiveOffer {
    match endpoint_of(scenario) {
        Ok(endpoint) => LiveOffer::Ready {
            host: endpoint.host().to_owned(),
            model: endpoint.model().value.clone(),
            key_from: key_from(&endpoint),
        },
        Err(error) => LiveOffer::Missing { why: explain(&error) },
    }
}

/// What a live run of this scenario would do, for who is asked to allow it.
pub fn would(scenario: &Scenario, endpoint: &Endpoint) -> Vec<String> {
    let mut lines = vec![
        format!("ask {} at {}", endpoint.model().value, endpoint.host()),
        format!("with the key from {}", key_from(endpoint)),
    ];
    if scenario.model.base_url.is_some() {
        lines.push("an address that the scenario itself names".to_owned());
    }
    lines
}

/// Where an endpoint's key comes from; never the key.
pub fn key_from(endpoint: &Endpoint) -> String {
    endpoint
        .key()
        .map_or_else(|| "nowhere (none is needed)".to_owned(), |key| key.origin.to_string())
}

/// An error with what to do about it.
pub fn explain(error: &EndpointError) -> String {
    format!("{error}. {}", error.advice())
}

/// The way out that `--proxy` names: an address, or `env` for what the environment says.
///
/// # Errors
/// What is wrong with the address.
pub fn via(proxy: Option<&str>) -> Result<Via, String> {
    match proxy {
        None => Ok(Via::Direct),
        Some(text) => text
            .parse()
            .map_err(|_| "no proxy's address: write http://proxy.example:3128, or env".to_owned()),
    }
}
