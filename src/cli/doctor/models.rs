//! The doctor's checks of live models: the one in force, other providers with a key, and Ollama on
//! this machine.

use std::time::{Duration, Instant};

use super::Finding;
use crate::base::time;
use crate::cli::effective;
use crate::host::config;
use crate::host::models::LiveModels;
use crate::model::endpoint;
use crate::model::endpoint::{
    DEFAULT_MODELS_DATE, Endpoint, EndpointError, EndpointRequest, Provider, SettingOrigin,
    WithOrigin,
};
use crate::model::openai::ProbeResult;
use crate::net::ProxyMode;
use crate::scenario::catalogue::ScenarioEntry;
use crate::words::format;

/// Timeout for an endpoint's list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for Ollama's list of models.
const OLLAMA_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the checks; requests leave this machine only with `live`.
pub async fn findings(live: bool, models: &LiveModels, entries: &[ScenarioEntry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut chosen = None;
    match endpoint::find_here(config::endpoint_defaults()) {
        Ok(endpoint) => {
            chosen = Some(endpoint.provider());
            findings.extend(endpoint_findings(live, models, entries, &endpoint).await);
        }
        Err(EndpointError::WhichProvider { keys }) => {
            return findings_per_provider(live, models, entries, &keys).await;
        }
        Err(error @ EndpointError::NoKey { .. }) if !live => {
            let text = format!("{error}; scripted runs need no key");
            findings.push(Finding::note("key", text, error.advice()));
        }
        Err(error) => findings.push(Finding::bad("key", error.to_string(), error.advice())),
    }
    // Errors of the sources of keys have already been reported.
    for provider in endpoint::providers_with_keys_here().unwrap_or_default() {
        if Some(provider) != chosen {
            findings.extend(other_provider_findings(live, models, provider).await);
        }
    }
    if chosen != Some(Provider::Ollama) {
        findings.extend(ollama_here_finding(live).await);
    }
    findings
}

/// Checks each of these providers, which all have a key.
async fn findings_per_provider(
    live: bool,
    models: &LiveModels,
    entries: &[ScenarioEntry],
    keys: &[Provider],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for provider in keys {
        match default_endpoint(*provider) {
            Ok(endpoint) => {
                findings.extend(endpoint_findings(live, models, entries, &endpoint).await)
            }
            Err(error) => findings.push(Finding::bad("key", error.to_string(), error.advice())),
        }
    }
    let several = EndpointError::WhichProvider { keys: keys.to_vec() };
    findings.push(Finding::note("model", several.to_string(), several.advice()));
    findings.extend(ollama_here_finding(live).await);
    findings
}

/// The endpoint with the provider's default model.
fn default_endpoint(provider: Provider) -> Result<Endpoint, EndpointError> {
    let name = format!("{}/{}", provider.word(), provider.model());
    let asked = WithOrigin { value: name.as_str(), origin: SettingOrigin::Default };
    endpoint::find_here(EndpointRequest { model: Some(asked), ..config::endpoint_defaults() })
}

/// Checks a provider that has a key but is not the one in force.
async fn other_provider_findings(
    live: bool,
    models: &LiveModels,
    provider: Provider,
) -> Vec<Finding> {
    let endpoint = match default_endpoint(provider) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![Finding::note("key", error.to_string(), error.advice())],
    };
    let from = endpoint.key().map_or(SettingOrigin::Default, |key| key.origin);
    let text = format!("also {} from {from}", provider.key_name());
    let advice = format!("use it with --model {}/{}", provider.word(), endpoint.model().value);
    let mut findings = vec![Finding { advice: Some(advice), ..Finding::good("key", text) }];
    if live {
        let found = probe_finding(models, &endpoint).await;
        // Only a note: no run uses it unless `--model` names it.
        findings.push(match found.advice.clone() {
            Some(advice) => Finding::note(found.about, found.text, advice),
            None => found,
        });
    }
    findings
}

async fn endpoint_findings(
    live: bool,
    models: &LiveModels,
    entries: &[ScenarioEntry],
    endpoint: &Endpoint,
) -> Vec<Finding> {
    let mut findings = vec![key(endpoint)];
    let (url, name, timeout) = (endpoint.base_url(), endpoint.model(), endpoint.timeout());
    findings.push(Finding::good(
        "endpoint",
        format!("{} from {} ({})", endpoint.host(), url.origin, url.value.scheme()),
    ));
    findings.push(Finding::good("model", format!("{} from {}", name.value, name.origin)));
    let price = effective::price(None, endpoint, config::user_config());
    findings.push(Finding::good("price", per_million(&price)));
    let time = time::duration_text(timeout.value);
    let bound =
        format!("{time} per attempt, from {}{}", timeout.origin, scenario_timeouts(entries));
    findings.push(Finding::good("timeout", bound));
    for note in endpoint.notes() {
        findings.push(Finding::note("endpoint", note.clone(), "").without_advice());
    }
    findings.push(if live { probe_finding(models, endpoint).await } else { not_asked(endpoint) });
    findings
}

/// Where the endpoint's key comes from; the key itself is never shown.
pub fn key(endpoint: &Endpoint) -> Finding {
    match endpoint.key() {
        Some(key) => {
            let name = endpoint.provider().key_name();
            Finding::good("key", format!("{name} from {}", key.origin))
        }
        None => Finding::good("key", "none (an endpoint on this machine needs none)"),
    }
}

/// A price per million tokens with its origin, or why there is none.
pub fn per_million(price: &effective::EffectiveSetting) -> String {
    match price.value.is_null() {
        true => price.text.clone(),
        false => format!("{} per million tokens, from {}", price.text, price.from),
    }
}

/// The finding for an endpoint that was not checked.
pub fn not_asked(endpoint: &Endpoint) -> Finding {
    let advice = "doctor --live requests its list of models: one free request";
    Finding::note("reach", format!("{} not checked", endpoint.host()), advice)
}

/// Lists the scenarios with their own timeout of a model attempt, which overrides the
/// environment's.
fn scenario_timeouts(entries: &[ScenarioEntry]) -> String {
    let own = entries.iter().filter_map(|entry| {
        let timeout = entry.loaded.as_ref().ok()?.llm.timeout?;
        Some(format!("{} ({})", entry.name, time::duration_text(timeout)))
    });
    let own: Vec<String> = own.collect();
    if own.is_empty() {
        return String::new();
    }
    format!("; scenarios with their own tools.llm.timeout_s: {}", own.join(", "))
}

/// Requests an endpoint's list of models and checks that the chosen model is in it.
pub async fn probe_finding(models: &LiveModels, endpoint: &Endpoint) -> Finding {
    let about = "reach";
    let (host, name) = (endpoint.host(), &endpoint.model().value);
    let asked = Instant::now();
    match models.probe(endpoint.clone(), LIST_TIMEOUT).await {
        Ok(ProbeResult::Lists { models, has_model, .. }) => {
            let time = time::duration_text(asked.elapsed());
            let count = format::count_noun(models as u64, "model");
            let text = format!("{host} answered in {time} and lists {count}");
            let advice = "choose one that it lists: with --model, in the scenario, or for \
                          OpenAI in OPENAI_MODEL";
            match has_model {
                true => Finding::good(about, format!("{text}, including {name}")),
                false => {
                    let text = format!("{text}; {}", not_listed_text(endpoint));
                    Finding::bad(about, text, advice)
                }
            }
        }
        Ok(ProbeResult::NoList { status, said }) => {
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            Finding::note(
                about,
                format!("{host} answered without a list of models (status {status}){said}"),
                "the first call shows whether it has the model; if that fails too, check the key \
                   and the base URL: most end in /v1",
            )
        }
        Err(failed) => Finding::bad(about, failed.text, "").without_advice(),
    }
}

/// The text for a model that its endpoint does not list. The default model was once on the
/// provider's own list; other servers may never have had it.
fn not_listed_text(endpoint: &Endpoint) -> String {
    let WithOrigin { value: name, origin } = endpoint.model();
    match origin {
        SettingOrigin::Default if endpoint.is_providers_own() => {
            format!("{name}, the default of {DEFAULT_MODELS_DATE}, is no longer listed")
        }
        SettingOrigin::Default => format!("{name}, the default, is not listed"),
        origin => format!("{name}, from {origin}, is not listed"),
    }
}

/// Checks Ollama, which usually runs on this machine.
async fn ollama_here_finding(live: bool) -> Option<Finding> {
    let found = match endpoint::ollama_here(endpoint::OLLAMA) {
        Ok(found) => found,
        Err(error) => {
            return Some(Finding::note("ollama", error.to_string(), error.advice()));
        }
    };
    ollama_finding(live, found).await
}

/// Checks that Ollama answers. On another machine it is called only with `live`.
async fn ollama_finding(live: bool, found: WithOrigin<Endpoint>) -> Option<Finding> {
    let WithOrigin { value: endpoint, origin } = found;
    let host = endpoint.host().to_owned();
    let named = origin != SettingOrigin::Default;
    if !live && !endpoint.is_local() {
        let text = format!("{host} from {origin}: not checked");
        return Some(Finding::note("ollama", text, "doctor --live requests its list of models"));
    }
    // No proxy: it is on this machine.
    match LiveModels::new(ProxyMode::Direct).probe(endpoint, OLLAMA_TIMEOUT).await {
        Ok(ProbeResult::Lists { models, .. }) => {
            let count = format::count_noun(models as u64, "model");
            let text = format!("answers at {host} and lists {count}");
            let advice = match models {
                0 => "install a model: ollama pull llama3.2",
                _ => "use one with --model ollama/NAME (see ollama list)",
            };
            Some(Finding { advice: Some(advice.to_owned()), ..Finding::good("ollama", text) })
        }
        Ok(ProbeResult::NoList { status, .. }) if named => {
            let text = format!("{host} from {origin} answers without a list (status {status})");
            Some(Finding::note("ollama", text, "check OLLAMA_HOST"))
        }
        Err(failed) if named => Some(Finding::note("ollama", failed.text, "check OLLAMA_HOST")),
        // Most machines have no Ollama: nothing to report.
        Ok(ProbeResult::NoList { .. }) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers one request with this body.
    fn server(status: &'static str, body: &'static str) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let host = listener.local_addr().expect("a bound socket").to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut read = [0; 4096];
            let _ = stream.read(&mut read).expect("a request");
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
            let answer = format!("{head}connection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).expect("written");
        });
        host
    }

    async fn at(host: &str, shell: &[(&str, &str)]) -> Option<String> {
        let shell = shell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let shell: BTreeMap<_, _> = shell.collect();
        let found = endpoint::ollama(shell, None, host).expect("an endpoint");
        ollama_finding(false, found).await.map(|finding| finding.text)
    }

    #[test]
    fn says_default_delisted_only_at_provider() {
        let at = |shell: &[(&str, &str)]| {
            let shell = shell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            not_listed_text(
                &endpoint::find(&shell.collect(), None, EndpointRequest::default())
                    .expect("an endpoint"),
            )
        };
        let key = ("OPENAI_API_KEY", "k");
        let any_more =
            format!("gpt-4.1-mini, the default of {DEFAULT_MODELS_DATE}, is no longer listed");
        for (shell, said) in [
            (&[key][..], any_more.as_str()),
            (
                &[key, ("OPENAI_BASE_URL", "http://127.0.0.1:8089/v1")],
                "gpt-4.1-mini, the default, is not listed",
            ),
            (&[key, ("OPENAI_MODEL", "m")], "m, from the shell, is not listed"),
        ] {
            assert_eq!(at(shell), said, "{shell:?}");
        }
    }

    #[tokio::test]
    async fn finds_ollama_only_where_it_answers() {
        let two = r#"{"object":"list","data":[{"id":"llama3.2"},{"id":"qwen3"}]}"#;
        let host = server("200 OK", two);
        let text = format!("answers at {host} and lists 2 models");
        assert_eq!(at(&host, &[]).await, Some(text));
        // Another server at that port, or none, gives no finding.
        let host = server("404 Not Found", "{}");
        assert_eq!(at(&host, &[]).await, None);
        let free = {
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
            listener.local_addr().expect("a bound socket").to_string()
        };
        assert_eq!(at(&free, &[]).await, None);
        // A host that was named is reported when it fails, and replaces the default one.
        let text = at("127.0.0.1:1", &[("OLLAMA_HOST", &free)]).await.expect("missed");
        assert!(text.contains(&free), "{text}");
        // No request leaves this machine.
        let text = at(&free, &[("OLLAMA_HOST", "http://ollama.example:1")]).await;
        assert_eq!(text.as_deref(), Some("ollama.example:1 from the shell: not checked"));
    }
}
