//! What the doctor finds of live models: the one that is in force, the other providers with a key, and
//! Ollama on this machine.

use std::time::{Duration, Instant};

use super::finding::Finding;
use crate::app::state::Entry;
use crate::cli::in_force;
use crate::llm::endpoint::{
    self, Asked, DEFAULT_MODELS_DATE, Endpoint, EndpointError, Found, Origin, Provider,
};
use crate::llm::openai::Reach;
use crate::net::Via;
use crate::shell::config;
use crate::shell::models::LiveModels;
use crate::ui::format;

/// How long an endpoint may take to list its models.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long Ollama may take to say that it is there.
const LOCAL_PATIENCE: Duration = Duration::from_secs(1);

/// What there is to say of live models.
pub async fn findings(live: bool, models: &LiveModels, entries: &[Entry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut chosen = None;
    match endpoint::find_here(config::asked()) {
        Ok(endpoint) => {
            chosen = Some(endpoint.provider());
            findings.extend(one(live, models, entries, &endpoint).await);
        }
        Err(EndpointError::WhichProvider { keys }) => {
            return each(live, models, entries, &keys).await;
        }
        Err(error @ EndpointError::NoKey { .. }) if !live => {
            let text = format!("{error}; scripted runs need none");
            findings.push(Finding::note("key", text, error.advice()));
        }
        Err(error) => findings.push(Finding::bad("key", error.to_string(), error.advice())),
    }
    // What is wrong with the places of keys has been said.
    for provider in endpoint::with_keys_here().unwrap_or_default() {
        if Some(provider) != chosen {
            findings.extend(other(live, models, provider).await);
        }
    }
    if chosen != Some(Provider::Ollama) {
        findings.extend(local(live).await);
    }
    findings
}

/// What there is to say of each of these providers, which all have a key.
async fn each(
    live: bool,
    models: &LiveModels,
    entries: &[Entry],
    keys: &[Provider],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for provider in keys {
        match usual(*provider) {
            Ok(endpoint) => findings.extend(one(live, models, entries, &endpoint).await),
            Err(error) => findings.push(Finding::bad("key", error.to_string(), error.advice())),
        }
    }
    let several = EndpointError::WhichProvider { keys: keys.to_vec() };
    findings.push(Finding::note("model", several.to_string(), several.advice()));
    findings.extend(local(live).await);
    findings
}

/// A provider's default model.
fn usual(provider: Provider) -> Result<Endpoint, EndpointError> {
    let name = format!("{}/{}", provider.word(), provider.model());
    let asked = Found { value: name.as_str(), origin: Origin::Default };
    endpoint::find_here(Asked { model: Some(asked), ..config::asked() })
}

/// A provider that has a key too, and is not the one that is asked.
async fn other(live: bool, models: &LiveModels, provider: Provider) -> Vec<Finding> {
    let endpoint = match usual(provider) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![Finding::note("key", error.to_string(), error.advice())],
    };
    let from = endpoint.key().map_or(Origin::Default, |key| key.origin);
    let text = format!("{} from {from} as well", provider.key_name());
    let advice = format!("ask it with --model {}/{}", provider.word(), endpoint.model().value);
    let mut findings = vec![Finding { advice: Some(advice), ..Finding::good("key", text) }];
    if live {
        let found = reach(models, &endpoint).await;
        // Nothing fails for it until it is asked.
        findings.push(match found.advice.clone() {
            Some(advice) => Finding::note(found.about, found.text, advice),
            None => found,
        });
    }
    findings
}

async fn one(
    live: bool,
    models: &LiveModels,
    entries: &[Entry],
    endpoint: &Endpoint,
) -> Vec<Finding> {
    let mut findings = vec![key(endpoint)];
    let (url, name, timeout) = (endpoint.base_url(), endpoint.model(), endpoint.timeout());
    findings.push(Finding::good(
        "endpoint",
        format!("{} from {} ({})", endpoint.host(), url.origin, url.value.scheme()),
    ));
    findings.push(Finding::good("model", format!("{} from {}", name.value, name.origin)));
    let price = in_force::price(None, endpoint, config::in_force());
    findings.push(Finding::good("price", per_million(&price)));
    let time = format::took(timeout.value);
    let bound = format!("{time} an attempt, from {}{}", timeout.origin, own_timeouts(entries));
    findings.push(Finding::good("timeout", bound));
    for note in endpoint.notes() {
        findings.push(Finding::note("endpoint", note.clone(), "").plain());
    }
    findings.push(if live { reach(models, endpoint).await } else { not_asked(endpoint) });
    findings
}

/// The key of an endpoint, which is never shown.
pub fn key(endpoint: &Endpoint) -> Finding {
    match endpoint.key() {
        Some(key) => {
            let name = endpoint.provider().key_name();
            Finding::good("key", format!("{name} from {}", key.origin))
        }
        None => Finding::good("key", "none, and none is needed for an endpoint on this machine"),
    }
}

/// A price, or that there is none.
pub fn per_million(price: &in_force::InForce) -> String {
    match price.value.is_null() {
        true => price.text.clone(),
        false => format!("{} for a million tokens, from {}", price.text, price.from),
    }
}

/// What is said in place of asking an endpoint.
pub fn not_asked(endpoint: &Endpoint) -> Finding {
    let advice = "doctor --live asks it for its models: one request, which costs nothing";
    Finding::note("reach", format!("{} was not asked", endpoint.host()), advice)
}

/// The scenarios that bound the attempts of the model themselves, which goes before what the shell says.
fn own_timeouts(entries: &[Entry]) -> String {
    let own = entries.iter().filter_map(|entry| {
        let timeout = entry.loaded.as_ref().ok()?.llm.timeout?;
        Some(format!("{} ({})", entry.name, format::took(timeout)))
    });
    let own: Vec<String> = own.collect();
    if own.is_empty() {
        return String::new();
    }
    format!("; scenarios with a tools.llm.timeout_s of their own: {}", own.join(", "))
}

/// Asks an endpoint for its models, and says whether the one that is asked for is among them.
pub async fn reach(models: &LiveModels, endpoint: &Endpoint) -> Finding {
    let about = "reach";
    let (host, name) = (endpoint.host(), &endpoint.model().value);
    let asked = Instant::now();
    match models.probe(endpoint.clone(), PATIENCE).await {
        Ok(Reach::Lists { models, has_model, .. }) => {
            let time = format::took(asked.elapsed());
            let count = format::things(models as u64, "model");
            let text = format!("{host} answered in {time} and lists {count}");
            let advice = "name one that it lists: with --model, in the scenario, or for OpenAI in \
                          OPENAI_MODEL";
            match has_model {
                true => Finding::good(about, format!("{text}, {name} among them")),
                false => {
                    let text = format!("{text}; {}", lost(endpoint));
                    Finding::bad(about, text, advice)
                }
            }
        }
        Ok(Reach::NoList { status, said }) => {
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            Finding::note(
                about,
                format!("{host} answered, without a list of models (status {status}){said}"),
                "the first call shows whether it has the model; where that is refused too, check \
                 the key and the base URL: most end in /v1",
            )
        }
        Err(failed) => Finding::bad(about, failed.text, "").plain(),
    }
}

/// What is said of a model that its endpoint does not list. Our default was once on the provider's own
/// list; other servers never had to have it.
fn lost(endpoint: &Endpoint) -> String {
    let Found { value: name, origin } = endpoint.model();
    match origin {
        Origin::Default if endpoint.is_providers_own() => {
            format!("{name}, our default of {DEFAULT_MODELS_DATE}, is not among them any more")
        }
        Origin::Default => format!("{name}, our default, is not among them"),
        origin => format!("{name}, from {origin}, is not among them"),
    }
}

/// Ollama on this machine, where it is.
async fn local(live: bool) -> Option<Finding> {
    let found = match endpoint::ollama_here(endpoint::OLLAMA) {
        Ok(found) => found,
        Err(error) => {
            return Some(Finding::note("ollama", error.to_string(), error.advice()));
        }
    };
    ollama(live, found).await
}

/// Whether Ollama answers. Beyond this machine it is asked only when that was said.
async fn ollama(live: bool, found: Found<Endpoint>) -> Option<Finding> {
    let Found { value: endpoint, origin } = found;
    let host = endpoint.host().to_owned();
    let named = origin != Origin::Default;
    if !live && !endpoint.is_local() {
        let text = format!("{host} from {origin}: not asked");
        return Some(Finding::note("ollama", text, "doctor --live asks it for its models"));
    }
    // Whatever proxy was asked for, this machine is not reached through it.
    match LiveModels::new(Via::Direct).probe(endpoint, LOCAL_PATIENCE).await {
        Ok(Reach::Lists { models, .. }) => {
            let count = format::things(models as u64, "model");
            let text = format!("answers at {host} and lists {count}");
            let advice = match models {
                0 => "give it a model: ollama pull llama3.2",
                _ => "ask one of them with --model ollama/NAME (ollama list names them)",
            };
            Some(Finding { advice: Some(advice.to_owned()), ..Finding::good("ollama", text) })
        }
        Ok(Reach::NoList { status, .. }) if named => {
            let text = format!("{host} from {origin} answers, without a list (status {status})");
            Some(Finding::note("ollama", text, "check OLLAMA_HOST"))
        }
        Err(failed) if named => Some(Finding::note("ollama", failed.text, "check OLLAMA_HOST")),
        // Most people have none.
        Ok(Reach::NoList { .. }) | Err(_) => None,
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
        ollama(false, found).await.map(|finding| finding.text)
    }

    #[test]
    fn only_the_providers_own_list_has_ever_had_our_default() {
        let at = |shell: &[(&str, &str)]| {
            let shell = shell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            lost(&endpoint::find(&shell.collect(), None, Asked::default()).expect("an endpoint"))
        };
        let key = ("OPENAI_API_KEY", "k");
        let any_more = format!(
            "gpt-4.1-mini, our default of {DEFAULT_MODELS_DATE}, is not among them any more"
        );
        for (shell, said) in [
            (&[key][..], any_more.as_str()),
            (
                &[key, ("OPENAI_BASE_URL", "http://127.0.0.1:8089/v1")],
                "gpt-4.1-mini, our default, is not among them",
            ),
            (&[key, ("OPENAI_MODEL", "m")], "m, from the shell, is not among them"),
        ] {
            assert_eq!(at(shell), said, "{shell:?}");
        }
    }

    #[tokio::test]
    async fn ollama_is_found_where_it_answers_and_not_missed_where_it_does_not() {
        let two = r#"{"object":"list","data":[{"id":"llama3.2"},{"id":"qwen3"}]}"#;
        let host = server("200 OK", two);
        let text = format!("answers at {host} and lists 2 models");
        assert_eq!(at(&host, &[]).await, Some(text));
        // Somebody else's server at that port, or none, is nothing to tell of.
        let host = server("404 Not Found", "{}");
        assert_eq!(at(&host, &[]).await, None);
        let free = {
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
            listener.local_addr().expect("a bound socket").to_string()
        };
        assert_eq!(at(&free, &[]).await, None);
        // What was named is missed, and goes before the usual place.
        let text = at("127.0.0.1:1", &[("OLLAMA_HOST", &free)]).await.expect("missed");
        assert!(text.contains(&free), "{text}");
        // Beyond this machine nobody is asked.
        let text = at(&free, &[("OLLAMA_HOST", "http://ollama.example:1")]).await;
        assert_eq!(text.as_deref(), Some("ollama.example:1 from the shell: not asked"));
    }
}
