//! Data about live models for the launch form: the run's model, the providers with a key, and the
//! lists of models. Each request has a timeout, and none is sent before the operator chooses live
//! models.

use std::time::Duration;

use reqwest::Url;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::effects::Services;
use super::models::{self, LiveModels};
use crate::app::Msg;
use crate::app::effect::RequestId;
use crate::app::live::{FoundLive, LiveQuery, ModelPlace, NameList, ProviderOffer};
use crate::llm::endpoint::{self, Endpoint, Found, Origin};
use crate::llm::openai::Reach;
use crate::scenario::Scenario;

/// Timeout for a list of models.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for a connection to Ollama. Short, since it is on this machine or missing.
const LOCAL: Duration = Duration::from_millis(300);

impl Services {
    /// Finds the models of the launch form's live run, from variables and `.env`. Sends no request.
    pub(super) fn find_live(&self, query: LiveQuery) {
        self.aside(move |services| {
            let LiveQuery { form, scenario, model } = query;
            let offer = models::offer(&scenario, model.as_deref());
            let found = Box::new(FoundLive { offer, providers: providers(&scenario) });
            services.tell(Msg::LiveFound { form, model, found });
        });
    }

    /// Requests the list of models at one of the run's endpoints.
    pub(super) fn list_models(&self, query: LiveQuery, place: ModelPlace) {
        self.aside(move |services| {
            let endpoint = services.may_list(&query, &place);
            let runtime = services.runtime.clone();
            runtime.spawn(async move {
                let list = match endpoint {
                    Ok(endpoint) => list_of(&services.models, endpoint).await,
                    Err(why) => NameList::Failed { why },
                };
                services.tell(Msg::ModelsListed { form: query.form, place, list });
            });
        });
    }

    /// The endpoint at `place`, if the operator allows a request to it.
    fn may_list(&self, query: &LiveQuery, place: &ModelPlace) -> Result<Endpoint, String> {
        let scenario = &query.scenario;
        let endpoints = models::endpoints_of(scenario, query.model.as_deref())?;
        // An address from a scenario needs the operator's permission.
        if scenario.model.base_url.is_some()
            && self.trust.asks(scenario, Some(&endpoints)).is_some()
        {
            return Err(
                "not requested: the scenario sets this address, and you have not allowed it yet. \
                     You can type a name."
                    .to_owned(),
            );
        }
        let found = endpoints.each().into_iter().find(|endpoint| models::place(endpoint) == *place);
        found.cloned().ok_or_else(|| "not requested: the settings have changed.".to_owned())
    }

    /// Looks for Ollama on this machine, or at `OLLAMA_HOST`.
    pub(super) fn find_ollama(&self, form: RequestId) {
        self.aside(move |services| {
            let Ok(Found { value: endpoint, .. }) = endpoint::ollama_here(endpoint::OLLAMA) else {
                return;
            };
            let runtime = services.runtime.clone();
            runtime.spawn(async move {
                let place = models::place(&endpoint);
                if let Some(list) = ollama_at(&services.models, endpoint).await {
                    services.tell(Msg::ModelsListed { form, place, list });
                }
            });
        });
    }
}

/// Ollama's models; `None` if it does not answer at this endpoint.
async fn ollama_at(models: &LiveModels, endpoint: Endpoint) -> Option<NameList> {
    if !accepts(&endpoint.base_url().value).await {
        return None;
    }
    let list = list_of(models, endpoint).await;
    matches!(list, NameList::Listed { .. }).then_some(list)
}

/// Whether a server accepts connections at an address.
async fn accepts(url: &Url) -> bool {
    let Some((host, port)) = url.host_str().zip(url.port_or_known_default()) else { return false };
    // In a URL an IPv6 address has brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    timeout(LOCAL, TcpStream::connect((host, port))).await.is_ok_and(|connected| connected.is_ok())
}

/// Requests an endpoint's list of models.
async fn list_of(models: &LiveModels, endpoint: Endpoint) -> NameList {
    match models.probe(endpoint, PATIENCE).await {
        Ok(Reach::Lists { models, names, .. }) => NameList::Listed { names, all: models },
        Ok(Reach::NoList { status, .. }) => NameList::NotGiven { status },
        Err(failed) => NameList::Failed { why: failed.text },
    }
}

/// The providers that have a key, each with its default model.
fn providers(scenario: &Scenario) -> Vec<ProviderOffer> {
    let with_key = endpoint::with_keys_here().unwrap_or_default();
    let offers = with_key.into_iter().filter_map(|provider| {
        let model = format!("{}/{}", provider.word(), provider.model());
        let model = Found { value: &*model, origin: Origin::CommandLine };
        let endpoint = models::find(scenario, model).ok()?;
        Some(ProviderOffer {
            place: models::place(&endpoint),
            model: endpoint.model().value.clone(),
            key: models::key_told(&endpoint),
        })
    });
    offers.collect()
}
