//! Data about live models for the launch form: the run's model, the providers with a key, and the
//! lists of models. Each request has a timeout, and none is sent before the operator chooses live
//! models.
//!
//! The model of each caller of a live run, or what is missing; for checks before a run starts.

use std::time::Duration;

use reqwest::Url;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Services;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::host::models;
use crate::host::models::{LiveCalls, LiveModels};
use crate::model::endpoint;
use crate::model::endpoint::{Endpoint, SettingOrigin, WithOrigin};
use crate::model::openai::ProbeResult;
use crate::scenario::Scenario;
use crate::scenario::catalogue::{ProviderHost, ProviderOffer};
use crate::scenario::spec::ModelCaller;
use crate::screen::Msg;
use crate::screen::effect::RequestId;
use crate::screen::form::models::{LiveQuery, LiveQueryResult, OfferedModels};

/// Timeout for a list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a connection to Ollama. Short, since it is on this machine or missing.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);

impl Services {
    /// Finds the models of the launch form's live run, from variables and `.env`. Sends no request.
    pub(super) fn find_live(&self, query: LiveQuery) {
        self.in_background(move |services| {
            let LiveQuery { form, scenario, model } = query;
            let offer = models::offer(&scenario, model.as_deref());
            let found = Box::new(LiveQueryResult { offer, providers: providers(&scenario) });
            services.send_msg(Msg::LiveFound { form, model, found });
        });
    }

    /// Requests the list of models at one of the run's endpoints.
    pub(super) fn list_models(&self, query: LiveQuery, place: ProviderHost) {
        self.in_background(move |services| {
            let endpoint = services.listable_endpoint(&query, &place);
            let runtime = services.runtime.clone();
            runtime.spawn(async move {
                let list = match endpoint {
                    Ok(endpoint) => list_of(&services.models, endpoint).await,
                    Err(why) => OfferedModels::Failed { why: format!("{why:#}") },
                };
                services.send_msg(Msg::ModelsListed { form: query.form, place, list });
            });
        });
    }

    /// The endpoint at `place`, if the operator allows a request to it.
    fn listable_endpoint(
        &self,
        query: &LiveQuery,
        place: &ProviderHost,
    ) -> Result<Endpoint, Refused> {
        let scenario = &query.scenario;
        let endpoints = models::endpoints_of(scenario, query.model.as_deref())?;
        // An address from a scenario needs the operator's permission.
        if scenario.model.base_url.is_some()
            && self.trust.needed_consent(scenario, Some(LiveCalls::Here(&endpoints))).is_some()
        {
            let what =
                "not requested: the scenario sets this address, and you have not allowed it yet";
            return Err(Refused::new(what).help("you can type a name"));
        }
        let found =
            endpoints.distinct().into_iter().find(|endpoint| models::place(endpoint) == *place);
        found.cloned().or_refuse("not requested: the settings have changed")
    }

    /// Looks for Ollama on this machine, or at `OLLAMA_HOST`.
    pub(super) fn find_ollama(&self, form: RequestId) {
        self.in_background(move |services| {
            let Ok(WithOrigin { value: endpoint, .. }) = endpoint::ollama_here(endpoint::OLLAMA)
            else {
                return;
            };
            let runtime = services.runtime.clone();
            runtime.spawn(async move {
                let place = models::place(&endpoint);
                if let Some(list) = ollama_at(&services.models, endpoint).await {
                    services.send_msg(Msg::ModelsListed { form, place, list });
                }
            });
        });
    }
}

/// Ollama's models; `None` if it does not answer at this endpoint.
async fn ollama_at(models: &LiveModels, endpoint: Endpoint) -> Option<OfferedModels> {
    if !accepts(&endpoint.base_url().value).await {
        return None;
    }
    let list = list_of(models, endpoint).await;
    matches!(list, OfferedModels::Listed { .. }).then_some(list)
}

/// Whether a server accepts connections at an address.
async fn accepts(url: &Url) -> bool {
    let Some((host, port)) = url.host_str().zip(url.port_or_known_default()) else { return false };
    // In a URL an IPv6 address has brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    timeout(CONNECT_TIMEOUT, TcpStream::connect((host, port)))
        .await
        .is_ok_and(|connected| connected.is_ok())
}

/// Requests an endpoint's list of models.
async fn list_of(models: &LiveModels, endpoint: Endpoint) -> OfferedModels {
    match models.probe(endpoint, LIST_TIMEOUT).await {
        Ok(ProbeResult::Lists { models, names, .. }) => {
            OfferedModels::Listed { names, all: models }
        }
        Ok(ProbeResult::NoList { status, .. }) => OfferedModels::NotGiven { status },
        Err(failed) => OfferedModels::Failed { why: failed.text },
    }
}

/// The providers that have a key, each with its default model.
fn providers(scenario: &Scenario) -> Vec<ProviderOffer> {
    let with_key = endpoint::providers_with_keys_here().unwrap_or_default();
    let offers = with_key.into_iter().filter_map(|provider| {
        let model = format!("{}/{}", provider.word(), provider.model());
        let model = WithOrigin { value: &*model, origin: SettingOrigin::CommandLine };
        let endpoint = models::endpoint_of_model(scenario, model).ok()?;
        Some(ProviderOffer {
            place: models::place(&endpoint),
            model: endpoint.model().value.clone(),
            key: models::key_text(&endpoint),
        })
    });
    offers.collect()
}

/// A role, agent or step, and the model that it would call live.
#[derive(Debug)]
pub struct CallerModel {
    /// The role, agent or step.
    pub caller: ModelCaller,
    /// The field that gives it its own model, such as `roles.risk_analyst.model`; `None`: it has
    /// none.
    pub place: Option<String>,
    /// The model's endpoint, or what is missing.
    pub endpoint: Result<Endpoint, Refused>,
}

/// The callers of models in a live run of this scenario, without duplicates; `model` is the value
/// of `--model`.
pub fn models_by_caller(scenario: &Scenario, model: Option<&str>) -> Vec<CallerModel> {
    let mut all: Vec<CallerModel> = Vec::new();
    for caller in scenario.pattern.get().callers_of_models() {
        if all.iter().any(|other| other.caller == caller) {
            continue;
        }
        let own = models::own_model(scenario, &caller, model);
        let endpoint = match own {
            Some(seated) => models::caller_endpoint(scenario, seated),
            None => models::common_endpoint(scenario, model).map_err(Refused::from),
        };
        all.push(CallerModel { caller, place: own.map(|seated| seated.place.clone()), endpoint });
    }
    all
}
