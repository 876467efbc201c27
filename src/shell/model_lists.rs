//! What the launch form asks about live models: which model a run would ask, which providers have a key,
//! and the models that a place lists. Each request is bounded in time, and none is sent before a person
//! has chosen live models.

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

/// How long a place may take to list its models.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection to Ollama may take: it is on this machine, or it is not there.
const LOCAL: Duration = Duration::from_millis(300);

impl Services {
    /// Finds out whom a live run of the launch form would ask. Variables and `.env` are read, nobody is
    /// asked.
    pub(super) fn find_live(&self, query: LiveQuery) {
        self.aside(move |services| {
            let LiveQuery { form, scenario, model } = query;
            let offer = models::offer(&scenario, model.as_deref());
            let found = Box::new(FoundLive { offer, providers: providers(&scenario) });
            services.tell(Msg::LiveFound { form, model, found });
        });
    }

    /// Asks a place of the run's models for those that it lists.
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

    /// The endpoint that a list may be asked of.
    fn may_list(&self, query: &LiveQuery, place: &ModelPlace) -> Result<Endpoint, String> {
        let scenario = &query.scenario;
        let endpoints = models::endpoints_of(scenario, query.model.as_deref())?;
        // An address that a file names is not asked before a person has allowed it.
        if scenario.model.base_url.is_some()
            && self.trust.asks(scenario, Some(&endpoints)).is_some()
        {
            return Err(
                "not asked: the scenario names this address, and you have not allowed it yet. \
                        A name can be typed."
                    .to_owned(),
            );
        }
        let found = endpoints.each().into_iter().find(|endpoint| models::place(endpoint) == *place);
        found.cloned().ok_or_else(|| "not asked: the settings have changed.".to_owned())
    }

    /// Looks for Ollama on this machine, or where `OLLAMA_HOST` says.
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

/// The models of Ollama at its endpoint; `None` where nothing answers there, or something else does.
async fn ollama_at(models: &LiveModels, endpoint: Endpoint) -> Option<NameList> {
    if !accepts(&endpoint.base_url().value).await {
        return None;
    }
    let list = list_of(models, endpoint).await;
    matches!(list, NameList::Listed { .. }).then_some(list)
}

/// Whether something takes connections at an address.
async fn accepts(url: &Url) -> bool {
    let Some((host, port)) = url.host_str().zip(url.port_or_known_default()) else { return false };
    // The brackets of an IPv6 address are the URL's.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    timeout(LOCAL, TcpStream::connect((host, port))).await.is_ok_and(|connected| connected.is_ok())
}

/// The models that an endpoint lists.
async fn list_of(models: &LiveModels, endpoint: Endpoint) -> NameList {
    match models.probe(endpoint, PATIENCE).await {
        Ok(Reach::Lists { models, names, .. }) => NameList::Listed { names, all: models },
        Ok(Reach::NoList { status, .. }) => NameList::NotGiven { status },
        Err(failed) => NameList::Failed { why: failed.text },
    }
}

/// Every provider that has a key and can be asked, with its default model.
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
