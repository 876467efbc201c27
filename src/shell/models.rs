//! Who answers a run's model calls: the scenario's script, or live endpoints, which are looked for
//! before anything starts.

use std::sync::Arc;
use std::time::Duration;

use super::config;
use crate::app::live::{LiveOffer, ModelPlace};
use crate::engine::ModelChoice;
use crate::event::kind::AttemptFailed;
use crate::llm::anthropic::Anthropic;
use crate::llm::endpoint::{self, Asked, Endpoint, EndpointError, Found, Origin, Provider, Wire};
use crate::llm::openai::{OpenAi, Reach};
use crate::llm::prices::{price_of, prices_at};
use crate::llm::{Adaptations, ChatModel, Models, Tuning};
use crate::net::{Http, Via};
use crate::scenario::Scenario;
use crate::scenario::live::callers;
use crate::scenario::seated::{Caller, Seated};

/// The live models of a session. Their connections are kept and shared by its runs.
#[derive(Clone)]
pub struct LiveModels {
    http: Http,
    adaptations: Adaptations,
}

impl LiveModels {
    /// Models that are reached this way. Nothing is built before the first call.
    pub fn new(via: Via) -> Self {
        Self { http: Http::new(via), adaptations: Adaptations::default() }
    }

    /// The models at endpoints that were found.
    pub fn of(&self, scenario: &Scenario, endpoints: &Endpoints) -> ModelChoice {
        let timeout = endpoints.usual.timeout().value;
        let open = |endpoint: &Endpoint| self.open(scenario, endpoint);
        let own = endpoints.own.iter().map(|(caller, at)| (caller.clone(), open(at))).collect();
        let prices = prices_at(endpoints.each(), &config::in_force().prices);
        let models = Models::new(open(&endpoints.usual), own).with_prices(prices);
        ModelChoice::Live(models, timeout)
    }

    fn open(&self, scenario: &Scenario, endpoint: &Endpoint) -> Arc<dyn ChatModel> {
        let settings = &scenario.model;
        let (http, endpoint) = (self.http.clone(), endpoint.clone());
        let (tuning, stream, refused) =
            (config::in_force().model.fill(&settings.tuning), settings.stream, &self.adaptations);
        match endpoint.provider().wire() {
            Wire::Chat => {
                Arc::new(OpenAi::new(http, endpoint, tuning, stream).remembering(refused))
            }
            Wire::Messages => {
                Arc::new(Anthropic::new(http, endpoint, tuning, stream).remembering(refused))
            }
        }
    }

    /// Asks an endpoint for its list of models, which costs nothing.
    ///
    /// # Errors
    /// As a call fails.
    pub async fn probe(
        &self,
        endpoint: Endpoint,
        within: Duration,
    ) -> Result<Reach, Box<AttemptFailed>> {
        let (http, tuning) = (self.http.clone(), Tuning::default());
        match endpoint.provider().wire() {
            Wire::Chat => OpenAi::new(http, endpoint, tuning, false).probe(within).await,
            Wire::Messages => Anthropic::new(http, endpoint, tuning, false).probe(within).await,
        }
    }
}

/// The endpoints that a live run asks.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Whom all callers ask that have no model of their own; where each has one, the first's.
    usual: Endpoint,
    /// The callers that have a model of their own.
    own: Vec<(Caller, Endpoint)>,
}

impl Endpoints {
    /// Each model at its endpoint, once, the usual one first.
    pub fn each(&self) -> Vec<&Endpoint> {
        let mut each: Vec<&Endpoint> = Vec::new();
        for endpoint in std::iter::once(&self.usual).chain(self.own.iter().map(|(_, at)| at)) {
            let same = |other: &&Endpoint| {
                (other.host(), &other.model().value) == (endpoint.host(), &endpoint.model().value)
            };
            if !each.iter().any(same) {
                each.push(endpoint);
            }
        }
        each
    }

    /// What a person should know before the first call.
    pub fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = Vec::new();
        for note in self.each().into_iter().flat_map(Endpoint::notes) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
        notes
    }
}

/// Why a scenario cannot be run live, and what to set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NotLive {
    /// Several providers have a key, and nothing says which of them to ask.
    WhichProvider(String),
    /// Anything else.
    Other(String),
}

/// The endpoints that a scenario's live runs would ask; `model` is what `--model` says. `--set` goes
/// before it, it goes before the file; then come the environment and the configuration.
///
/// # Errors
/// One of them is not there, and what to set.
pub fn endpoints_of(scenario: &Scenario, model: Option<&str>) -> Result<Endpoints, String> {
    look(scenario, model).map_err(|why| match why {
        NotLive::WhichProvider(text) | NotLive::Other(text) => text,
    })
}

fn look(scenario: &Scenario, model: Option<&str>) -> Result<Endpoints, NotLive> {
    let mut found: Vec<(Caller, Endpoint)> = Vec::new();
    let mut usual_asked = false;
    for caller in callers(&scenario.pattern) {
        match own_model(scenario, &caller, model) {
            None => usual_asked = true,
            Some(seated) if found.iter().all(|(other, _)| *other != caller) => {
                found.push((caller, seat(scenario, seated).map_err(NotLive::Other)?));
            }
            Some(_) => {}
        }
    }
    let usual = match found.first() {
        Some((_, first)) if !usual_asked => first.clone(),
        _ => usual(scenario, model).map_err(|error| match error {
            EndpointError::WhichProvider { .. } => NotLive::WhichProvider(explain(&error)),
            error => NotLive::Other(explain(&error)),
        })?,
    };
    let endpoints = Endpoints { usual, own: found };
    match unpriced(scenario, &endpoints) {
        None => Ok(endpoints),
        Some(why) => Err(NotLive::Other(why)),
    }
}

/// Why a limit on what a run may cost cannot be kept: a model whose price is not known.
fn unpriced(scenario: &Scenario, endpoints: &Endpoints) -> Option<String> {
    scenario.spending.max_cost_usd.filter(|_| scenario.model.prices.is_none())?;
    let prices = &config::in_force().prices;
    let endpoint = endpoints.each().into_iter().find(|at| price_of(at, prices).is_none())?;
    let host = endpoint.host();
    let model = format!("{}/{}", endpoint.provider().word(), endpoint.model().value);
    Some(format!(
        "budget.max_cost_usd is set, and the price of {model} at {host} is not known. Set it in the \
         configuration ([prices.\"{model}\"]) or in the scenario ([model.prices]), or limit \
         budget.max_total_tokens instead."
    ))
}

/// The model that a caller has of its own, where `model` does not go before it.
pub(super) fn own_model<'s>(
    scenario: &'s Scenario,
    caller: &Caller,
    model: Option<&str>,
) -> Option<&'s Seated> {
    let seated = scenario.seated.iter().find(|seated| seated.caller == *caller);
    seated.filter(|seated| model.is_none() || seated.by_override)
}

/// The endpoint of a caller that has a model of its own.
fn seat(scenario: &Scenario, seated: &Seated) -> Result<Endpoint, String> {
    seat_or_missing(scenario, seated).map_err(|(what, advice)| format!("{what}. {advice}"))
}

/// The same, or what is missing and what to do about it.
pub(super) fn seat_or_missing(
    scenario: &Scenario,
    seated: &Seated,
) -> Result<Endpoint, (String, String)> {
    let origin = if seated.by_override { Origin::CommandLine } else { Origin::Scenario };
    find(scenario, Found { value: &seated.model, origin }).map_err(|error| {
        let (place, advice) = (&seated.place, error.advice());
        let what = format!("{place} asks for {}: {error}", seated.model);
        (what, format!("{advice} Or use another model: --set {place}=PROVIDER/MODEL."))
    })
}

/// The endpoint of those that have no model of their own.
pub(super) fn usual(scenario: &Scenario, model: Option<&str>) -> Result<Endpoint, EndpointError> {
    let settings = &scenario.model;
    let of_file = settings.name.as_deref();
    let asked = match (of_file, model) {
        (Some(value), _) if settings.name_by_override => {
            Some(Found { value, origin: Origin::CommandLine })
        }
        (_, Some(value)) => Some(Found { value, origin: Origin::CommandLine }),
        (Some(value), None) => Some(Found { value, origin: Origin::Scenario }),
        (None, None) => None,
    };
    match asked {
        Some(asked) => find(scenario, asked),
        None => {
            endpoint::find_here(Asked { base_url: settings.base_url.as_deref(), ..config::asked() })
        }
    }
}

/// The endpoint of a model that is named. The scenario's address is that of the models whose provider
/// is not named, or is OpenAI's.
pub(super) fn find(scenario: &Scenario, model: Found<&str>) -> Result<Endpoint, EndpointError> {
    let elsewhere = endpoint::named(model.value).0.is_some_and(|it| it != Provider::OpenAi);
    let base_url = scenario.model.base_url.as_deref().filter(|_| !elsewhere);
    endpoint::find_here(Asked { model: Some(model), base_url, ..config::asked() })
}

/// What the launch form may offer for a scenario.
pub fn offer(scenario: &Scenario, model: Option<&str>) -> LiveOffer {
    match look(scenario, model) {
        Ok(endpoints) => {
            let mut places: Vec<ModelPlace> = Vec::new();
            for place in endpoints.each().into_iter().map(place) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            LiveOffer::Ready {
                host: joined(&endpoints, |endpoint| endpoint.host().to_owned()),
                model: joined(&endpoints, |endpoint| endpoint.model().value.clone()),
                model_from: joined(&endpoints, model_from),
                key: joined(&endpoints, key_told),
                places,
            }
        }
        Err(NotLive::WhichProvider(why)) => LiveOffer::Choose { why },
        Err(NotLive::Other(why)) => LiveOffer::Missing { why },
    }
}

/// Where an endpoint's models are asked and listed.
pub(super) fn place(endpoint: &Endpoint) -> ModelPlace {
    ModelPlace {
        provider: endpoint.provider().word().to_owned(),
        name: endpoint.provider().to_string(),
        host: endpoint.host().to_owned(),
    }
}

/// Who names an endpoint's model.
fn model_from(endpoint: &Endpoint) -> String {
    match endpoint.model().origin {
        Origin::Default => format!("the default of {}", endpoint.provider()),
        // No other variable names a model.
        origin @ (Origin::Shell | Origin::Dotenv) => format!("from OPENAI_MODEL in {origin}"),
        origin => format!("from {origin}"),
    }
}

/// Where an endpoint's key comes from, for the launch form; never the key.
pub(super) fn key_told(endpoint: &Endpoint) -> String {
    match endpoint.key() {
        Some(key) => format!("key from {}", key.origin),
        None => "no key needed".to_owned(),
    }
}

/// What is said of each endpoint, once.
fn joined(endpoints: &Endpoints, of: impl Fn(&Endpoint) -> String) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in endpoints.each().into_iter().map(of) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

/// What a live run of this scenario would do, for who is asked to allow it.
pub fn would(scenario: &Scenario, endpoints: &Endpoints) -> Vec<String> {
    let mut lines = Vec::new();
    for endpoint in endpoints.each() {
        lines.push(format!("ask {} at {}", endpoint.model().value, endpoint.host()));
        lines.push(format!("with the key from {}", key_from(endpoint)));
    }
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
