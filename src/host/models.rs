//! Chooses a run's models: the scenario's script, or live endpoints, which are found before the run
//! starts. A scripted run has neither an endpoint nor a request.

use std::sync::Arc;
use std::time::Duration;

use super::config;
use crate::base::refused::Refused;
use crate::engine::ModelChoice;
use crate::log::event::AttemptFailed;
use crate::model::anthropic::Anthropic;
use crate::model::endpoint::is_on_own_network;
use crate::model::endpoint::{
    Endpoint, EndpointError, EndpointRequest, Provider, SettingOrigin, Wire, WithOrigin,
};
use crate::model::openai::{OpenAi, ProbeResult};
use crate::model::prices::{endpoint_price, prices_at};
use crate::model::{Adaptations, ChatModel, Models, endpoint};
use crate::net::proxy::Proxies;
use crate::net::redact::Redactor;
use crate::net::{Http, ProxyMode};
use crate::scenario::Scenario;
use crate::scenario::catalogue::{LiveOffer, ProviderHost};
use crate::scenario::spec::{ModelAssignment, ModelCaller, Tuning};
use crate::scenario::tools::agent::OutsideAgent;

/// The live models of the program. All runs share its connections.
#[derive(Clone)]
pub struct LiveModels {
    http: Http,
    adaptations: Adaptations,
}

impl LiveModels {
    /// Models that are reached directly or through a proxy. Connects at the first call.
    pub fn new(via: ProxyMode) -> Self {
        Self { http: Http::new(via), adaptations: Adaptations::default() }
    }

    /// The models at resolved endpoints.
    pub fn model_choice(&self, scenario: &Scenario, endpoints: &Endpoints) -> ModelChoice {
        let Some(common) = &endpoints.common else { return ModelChoice::Agents };
        let open = |endpoint: &Endpoint| self.open(scenario, endpoint);
        let own =
            endpoints.by_caller.iter().map(|(caller, at)| (caller.clone(), open(at))).collect();
        let prices = prices_at(endpoints.distinct(), &config::user_config().prices);
        let models = Models::new(open(common), own).with_prices(prices);
        ModelChoice::Live(models, common.timeout().value)
    }

    fn open(&self, scenario: &Scenario, endpoint: &Endpoint) -> Arc<dyn ChatModel> {
        let settings = &scenario.model;
        let (http, endpoint) = (self.http.clone(), endpoint.clone());
        let (tuning, stream, refused) = (
            config::user_config().model.fill(&settings.tuning),
            settings.stream,
            &self.adaptations,
        );
        match endpoint.provider().wire() {
            Wire::Chat => {
                Arc::new(OpenAi::new(http, endpoint, tuning, stream).sharing_adaptations(refused))
            }
            Wire::Messages => Arc::new(
                Anthropic::new(http, endpoint, tuning, stream).sharing_adaptations(refused),
            ),
        }
    }

    /// Requests an endpoint's list of models, which is free.
    ///
    /// # Errors
    /// Those of a call.
    pub async fn probe(
        &self,
        endpoint: Endpoint,
        within: Duration,
    ) -> Result<ProbeResult, Box<AttemptFailed>> {
        let (http, tuning) = (self.http.clone(), Tuning::default());
        match endpoint.provider().wire() {
            Wire::Chat => OpenAi::new(http, endpoint, tuning, false).probe(within).await,
            Wire::Messages => Anthropic::new(http, endpoint, tuning, false).probe(within).await,
        }
    }
}

/// The endpoints of a live run.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// The endpoint of all callers without a model of their own; if every caller has one, the
    /// first's. `None`: agents of other programs answer for all callers.
    common: Option<Endpoint>,
    by_caller: Vec<(ModelCaller, Endpoint)>,
}

impl Endpoints {
    /// The endpoints without duplicates, the common one first.
    pub fn distinct(&self) -> Vec<&Endpoint> {
        let mut each: Vec<&Endpoint> = Vec::new();
        for endpoint in self.common.iter().chain(self.by_caller.iter().map(|(_, at)| at)) {
            let same = |other: &&Endpoint| {
                (other.host(), &other.model().value) == (endpoint.host(), &endpoint.model().value)
            };
            if !each.iter().any(same) {
                each.push(endpoint);
            }
        }
        each
    }

    /// Notes to show to the operator before the first call.
    pub fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = Vec::new();
        for note in self.distinct().into_iter().flat_map(Endpoint::notes) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
        notes
    }
}

/// Why a scenario cannot run live.
enum NotLive {
    /// Several providers have a key, and no setting chooses one.
    WhichProvider(Refused),
    Other(Refused),
}

impl From<Refused> for NotLive {
    fn from(why: Refused) -> Self {
        Self::Other(why)
    }
}

impl From<EndpointError> for NotLive {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::WhichProvider { .. } => Self::WhichProvider(error.into()),
            error => Self::Other(error.into()),
        }
    }
}

impl From<EndpointError> for Refused {
    fn from(error: EndpointError) -> Self {
        Self::new(error.to_string()).help(error.advice())
    }
}

/// The endpoints of a scenario's live runs; `model` is the value of `--model`. Precedence: `--set`,
/// `--model`, the scenario's file, the environment, the configuration.
///
/// # Errors
/// Something is missing or wrong.
pub fn endpoints_of(scenario: &Scenario, model: Option<&str>) -> Result<Endpoints, Refused> {
    resolve(scenario, model).map_err(|why| match why {
        NotLive::WhichProvider(why) | NotLive::Other(why) => why,
    })
}

fn resolve(scenario: &Scenario, model: Option<&str>) -> Result<Endpoints, NotLive> {
    let mut found: Vec<(ModelCaller, Endpoint)> = Vec::new();
    let mut usual_asked = false;
    let spec = scenario.pattern.get();
    let callers = spec.callers_of_models();
    if callers.is_empty() && !spec.outside_callers().is_empty() {
        return Ok(Endpoints::default());
    }
    for caller in callers {
        match own_model(scenario, &caller, model) {
            None => usual_asked = true,
            Some(seated) if found.iter().all(|(other, _)| *other != caller) => {
                found.push((caller, caller_endpoint(scenario, seated)?));
            }
            Some(_) => {}
        }
    }
    let usual = match found.first() {
        Some((_, first)) if !usual_asked => first.clone(),
        _ => common_endpoint(scenario, model)?,
    };
    let endpoints = Endpoints { common: Some(usual), by_caller: found };
    match missing_price_error(scenario, &endpoints) {
        None => Ok(endpoints),
        Some(why) => Err(why.into()),
    }
}

/// The error of a run whose cost is limited, by its scenario or by the day, and whose model has no known price.
fn missing_price_error(scenario: &Scenario, endpoints: &Endpoints) -> Option<Refused> {
    let config = config::user_config();
    let of_day = config.day.max_cost_usd.map(|_| "limits.day.cost_usd");
    let limit = scenario.spending.max_cost_usd.map(|_| "budget.max_cost_usd").or(of_day);
    let limit = limit.filter(|_| scenario.model.prices.is_none())?;
    let prices = &config.prices;
    let endpoint =
        endpoints.distinct().into_iter().find(|at| endpoint_price(at, prices).is_none())?;
    let host = endpoint.host();
    let model = endpoint.full_model_name();
    let what = format!("{limit} is set, but the price of {model} at {host} is unknown");
    Some(Refused::new(what).help(format!(
        "set it in the configuration ([prices.\"{model}\"]) or in the scenario ([model.prices]), or \
         limit {} instead",
        if limit.starts_with("limits") { "limits.day.total_tokens" } else { "budget.max_total_tokens" }
    )))
}

/// The caller's own model, unless `model` overrides it.
pub(crate) fn own_model<'s>(
    scenario: &'s Scenario,
    caller: &ModelCaller,
    model: Option<&str>,
) -> Option<&'s ModelAssignment> {
    let seated = scenario.model_assignments.iter().find(|seated| seated.caller == *caller);
    seated.filter(|seated| model.is_none() || seated.by_override)
}

/// The endpoint of a caller's own model.
pub(crate) fn caller_endpoint(
    scenario: &Scenario,
    seated: &ModelAssignment,
) -> Result<Endpoint, Refused> {
    let origin =
        if seated.by_override { SettingOrigin::CommandLine } else { SettingOrigin::Scenario };
    endpoint_of_model(scenario, WithOrigin { value: &seated.model, origin }).map_err(|error| {
        let (place, advice) = (&seated.place, error.advice());
        let what = format!("{place} names {}: {error}", seated.model);
        let help = format!("{advice} Or use another model: --set {place}=PROVIDER/MODEL.");
        Refused::new(what).help(help)
    })
}

/// The endpoint of all callers without a model of their own.
pub(crate) fn common_endpoint(
    scenario: &Scenario,
    model: Option<&str>,
) -> Result<Endpoint, EndpointError> {
    let settings = &scenario.model;
    let of_file = settings.name.as_deref();
    let mut is_from_option = false;
    let asked = match (of_file, model) {
        (Some(value), _) if settings.name_by_override => {
            Some(WithOrigin { value, origin: SettingOrigin::CommandLine })
        }
        (_, Some(value)) => {
            is_from_option = true;
            Some(WithOrigin { value, origin: SettingOrigin::CommandLine })
        }
        (Some(value), None) => Some(WithOrigin { value, origin: SettingOrigin::Scenario }),
        (None, None) => None,
    };
    match asked {
        Some(asked) => find_endpoint(scenario, asked, is_from_option),
        None => endpoint::find_here(EndpointRequest {
            base_url: settings.base_url.as_deref(),
            ..config::endpoint_defaults()
        }),
    }
}

/// The endpoint of a named model. The scenario's base URL applies to models without a provider, or
/// of OpenAI.
pub(crate) fn endpoint_of_model(
    scenario: &Scenario,
    model: WithOrigin<&str>,
) -> Result<Endpoint, EndpointError> {
    find_endpoint(scenario, model, false)
}

/// As [`endpoint_of_model`]; `is_from_option`: the model is that of `--model`.
fn find_endpoint(
    scenario: &Scenario,
    model: WithOrigin<&str>,
    is_from_option: bool,
) -> Result<Endpoint, EndpointError> {
    let elsewhere =
        endpoint::split_model_name(model.value).0.is_some_and(|it| it != Provider::OpenAi);
    let base_url = scenario.model.base_url.as_deref().filter(|_| !elsewhere);
    endpoint::find_here(EndpointRequest {
        model: Some(model),
        is_from_option,
        base_url,
        ..config::endpoint_defaults()
    })
}

/// The launch form's live option for a scenario.
pub fn offer(scenario: &Scenario, model: Option<&str>) -> LiveOffer {
    match resolve(scenario, model) {
        Ok(endpoints) => {
            let mut places: Vec<ProviderHost> = Vec::new();
            for place in endpoints.distinct().into_iter().map(place) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            let callers = scenario.pattern.get().outside_callers();
            let join = |of_endpoint: &dyn Fn(&Endpoint) -> String,
                        of_agent: &dyn Fn(&OutsideAgent) -> String| {
                let agents = callers.iter().map(|caller| of_agent(&caller.agent));
                join_distinct(endpoints.distinct().into_iter().map(of_endpoint).chain(agents))
            };
            LiveOffer::Ready {
                host: join(&|endpoint| endpoint.host().to_owned(), &OutsideAgent::place),
                model: join(&|endpoint| endpoint.model().value.clone(), &|agent| {
                    agent.name.to_string()
                }),
                model_from: join(&model_from, &|_| "the agent's own".to_owned()),
                key: join(&key_text, &|_| "the agent's own login".to_owned()),
                places,
            }
        }
        Err(NotLive::WhichProvider(why)) => LiveOffer::Choose { why: format!("{why:#}") },
        Err(NotLive::Other(why)) => LiveOffer::Missing { why: format!("{why:#}") },
    }
}

/// An endpoint's provider and host.
pub(crate) fn place(endpoint: &Endpoint) -> ProviderHost {
    ProviderHost {
        provider: endpoint.provider().word().to_owned(),
        name: endpoint.provider().to_string(),
        host: endpoint.host().to_owned(),
        known_prefixes: match endpoint.provider() {
            Provider::OpenAi if !endpoint.is_providers_own() => &Provider::WORDS,
            _ => &[],
        },
    }
}

/// Where an endpoint's model was chosen, as it is shown.
fn model_from(endpoint: &Endpoint) -> String {
    match endpoint.model().origin {
        SettingOrigin::Default => format!("the default of {}", endpoint.provider()),
        // `OPENAI_MODEL` is the only variable for it.
        origin @ (SettingOrigin::Shell | SettingOrigin::Dotenv) => {
            format!("from OPENAI_MODEL in {origin}")
        }
        origin => format!("from {origin}"),
    }
}

/// Where an endpoint's key comes from, for the launch form; never the key itself.
pub(crate) fn key_text(endpoint: &Endpoint) -> String {
    match endpoint.key() {
        Some(key) => format!("key from {}", key.origin),
        None => "no key needed".to_owned(),
    }
}

/// Texts joined without duplicates.
fn join_distinct(texts: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in texts {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

/// The models that a live run calls.
#[derive(Clone, Copy, Debug)]
pub enum LiveCalls<'a> {
    /// From this machine, at these endpoints.
    Here(&'a Endpoints),
    /// From a runner, with its keys: this machine does not know them.
    OnRunner,
}

/// The actions of a live run that need permission.
pub fn live_permissions(scenario: &Scenario, calls: LiveCalls<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    // The scenario's address is not used by a provider with an address of its own, such as `ollama/…`.
    let mut uses_own_address = scenario.model.base_url.is_some();
    match calls {
        LiveCalls::Here(endpoints) => {
            let of_scenario = |at: &&Endpoint| at.base_url().origin == SettingOrigin::Scenario;
            uses_own_address = endpoints.distinct().iter().any(of_scenario);
            for endpoint in endpoints.distinct() {
                lines.push(format!("call {} at {}", endpoint.model().value, endpoint.host()));
                lines.push(format!("API key: {}", key_origin(endpoint)));
            }
        }
        LiveCalls::OnRunner => lines.push("call models with the keys of a runner".to_owned()),
    }
    if let Some(url) = scenario.model.base_url.as_deref().filter(|_| uses_own_address) {
        let url = Redactor::default().redact(url);
        lines.push(format!("use an address that the scenario sets: {url}"));
    }
    lines
}

/// Whether the scenario sets an address of models on this machine or on a local network.
pub fn sets_own_network(scenario: &Scenario) -> bool {
    scenario.model.base_url.as_deref().is_some_and(is_on_own_network)
}

/// Where an endpoint's key comes from; never the key itself.
pub fn key_origin(endpoint: &Endpoint) -> String {
    endpoint.key().map_or_else(|| "none needed".to_owned(), |key| format!("from {}", key.origin))
}

/// Parses `--proxy`: an address, or `env` for the environment's proxies.
///
/// # Errors
/// The address or a variable of the environment is wrong.
pub fn parse_proxy(proxy: Option<&str>) -> Result<ProxyMode, Refused> {
    match proxy {
        None => Ok(ProxyMode::Direct),
        Some(text) => {
            let mode = text.parse().map_err(|_| {
                let why = Refused::new("--proxy: not a proxy address");
                why.help("use http://proxy.example:3128, or env")
            })?;
            // A run with a proxy that cannot be used must not start.
            Proxies::of_mode(&mode, |name| std::env::var(name))
                .map_err(|why| Refused::new(format!("--proxy: {why}")))?;
            Ok(mode)
        }
    }
}
