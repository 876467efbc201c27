//! The known providers of live models, and how to reach them.
//!
//! Base URLs of endpoints: which are valid, and which are on this machine or its network.

use std::fmt;

use reqwest::Url;
use url::Host;

use crate::base::private_host::has_private_host;
use crate::base::private_host::{is_local_name, is_localhost, is_own_network};
use crate::base::visible::visible_within;
use crate::net::host_of;

/// The default base URL.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
/// The default model (collaboration source document).
pub const DEFAULT_MODEL: &str = "gpt-4.1-mini";

/// The date on which the default models were chosen ([`Provider::model`]). Prices are in
/// `assets/prices.toml`, which has its own date.
pub const DEFAULT_MODELS_DATE: &str = "2026-11-22";

/// A provider of chat models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// OpenAI, and any endpoint with its chat completions API.
    #[default]
    OpenAi,
    /// Anthropic, with its Messages API.
    Anthropic,
    /// Google's Gemini, at its OpenAI-compatible address.
    Gemini,
    /// OpenRouter.
    OpenRouter,
    /// Ollama, on this machine or where `OLLAMA_HOST` says.
    Ollama,
}

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

/// The properties of a provider.
struct ProviderInfo {
    word: &'static str,
    name: &'static str,
    key: &'static str,
    address: &'static str,
    base_url: &'static str,
    model: &'static str,
}

impl Provider {
    /// All providers, in display order.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::OpenRouter, Self::Ollama];

    fn provider_info(self) -> ProviderInfo {
        // The models are those that the providers' own documents recommended for general use at a
        // low price on `DEFAULT_MODELS_DATE`; `doctor --live` reports when a provider no longer
        // lists its model.
        match self {
            Self::OpenAi => ProviderInfo {
                word: "openai",
                name: "OpenAI",
                key: "OPENAI_API_KEY",
                address: "OPENAI_BASE_URL",
                base_url: DEFAULT_BASE_URL,
                model: DEFAULT_MODEL,
            },
            Self::Anthropic => ProviderInfo {
                word: "anthropic",
                name: "Anthropic",
                key: "ANTHROPIC_API_KEY",
                address: "ANTHROPIC_BASE_URL",
                base_url: "https://api.anthropic.com/v1",
                model: "claude-haiku-4-5",
            },
            Self::Gemini => ProviderInfo {
                word: "gemini",
                name: "Gemini",
                key: "GEMINI_API_KEY",
                address: "GEMINI_BASE_URL",
                base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
                model: "gemini-2.5-flash",
            },
            Self::OpenRouter => ProviderInfo {
                word: "openrouter",
                name: "OpenRouter",
                key: "OPENROUTER_API_KEY",
                address: "OPENROUTER_BASE_URL",
                base_url: "https://openrouter.ai/api/v1",
                model: "openai/gpt-4.1-mini",
            },
            Self::Ollama => ProviderInfo {
                word: "ollama",
                name: "Ollama",
                key: "OLLAMA_API_KEY",
                address: "OLLAMA_HOST",
                base_url: "http://localhost:11434/v1",
                model: "llama3.2",
            },
        }
    }

    /// The name before the `/` of a model's name.
    pub fn word(self) -> &'static str {
        self.provider_info().word
    }

    /// The names of all providers before the `/`.
    pub const WORDS: [&'static str; 5] = ["openai", "anthropic", "gemini", "openrouter", "ollama"];

    /// The provider with this word, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.word().eq_ignore_ascii_case(word))
    }

    /// The variable with its key.
    pub fn key_name(self) -> &'static str {
        self.provider_info().key
    }

    /// The variable with its address.
    pub fn address_name(self) -> &'static str {
        self.provider_info().address
    }

    /// The base URL if no address is set.
    pub fn base_url(self) -> &'static str {
        self.provider_info().base_url
    }

    /// Whether this base URL has the provider's own host.
    pub fn is_at(self, url: &Url) -> bool {
        Url::parse(self.base_url()).is_ok_and(|own| host_of(&own) == host_of(url))
    }

    /// The default model.
    pub fn model(self) -> &'static str {
        self.provider_info().model
    }

    /// The API that the provider uses.
    pub fn wire(self) -> Wire {
        match self {
            Self::Anthropic => Wire::Messages,
            Self::OpenAi | Self::Gemini | Self::OpenRouter | Self::Ollama => Wire::Chat,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.provider_info().name)
    }
}

/// Splits a model name as `model =` and `--model` give it into a known provider before the first
/// `/`, if there is one, and the name.
pub fn split_model_name(text: &str) -> (Option<Provider>, &str) {
    match text.split_once('/') {
        Some((word, model)) if !model.trim().is_empty() => match Provider::from_word(word.trim()) {
            Some(provider) => (Some(provider), model.trim()),
            None => (None, text),
        },
        _ => (None, text),
    }
}

/// A note about a model whose name begins with an unknown provider, if the chosen provider has no
/// such names. Compatible servers and OpenRouter have them (`org/model`).
pub(super) fn unknown_provider_note(asked: Provider, url: &Url, model: &str) -> Option<String> {
    let (word, _) = model.split_once('/')?;
    let plain = match asked {
        Provider::OpenAi | Provider::Anthropic => true,
        // Gemini's own list puts this before each name.
        Provider::Gemini => word != "models",
        Provider::OpenRouter | Provider::Ollama => false,
    };
    if !plain || !asked.is_at(url) || Provider::from_word(word.trim()).is_some() {
        return None;
    }
    let known = Provider::ALL.map(Provider::word).join(", ");
    let (model, word) = (visible_within(model, 60), visible_within(word, 40));
    Some(format!(
        "{model} is sent to {asked} unchanged: `{word}` is not a known provider ({known})"
    ))
}

/// The default port of Ollama, when `OLLAMA_HOST` gives none.
const OLLAMA_PORT: u16 = 11434;

/// Parses a base URL. The path of an API call at its end is removed.
pub(super) fn parse_base_address(text: &str) -> Result<Url, String> {
    // `localhost:11434/v1` would parse as a path with the scheme `localhost`.
    if !text.contains("://") {
        return Err("has no http:// or https://".to_owned());
    }
    let mut url = Url::parse(text).map_err(|error| format!("cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("begins with neither http:// nor https://".to_owned());
    }
    if url.host().is_none() {
        return Err("has no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains a user name or password; set the key in its own variable".to_owned());
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let call = ["/chat/completions", "/messages"].iter().find_map(|call| path.strip_suffix(call));
    let path = call.unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Adds `/v1` at the end, which `ANTHROPIC_BASE_URL` omits.
pub(super) fn with_version_path(mut url: Url) -> Url {
    if !url.path().ends_with("/v1") {
        url.set_path(&format!("{}/v1", url.path().trim_end_matches('/')));
    }
    url
}

/// Parses `OLLAMA_HOST`: a URL, or host and port in the server's notation (`0.0.0.0:11434` means
/// every address of this machine, and so does `:11434`).
pub(super) fn parse_host(text: &str) -> Result<Url, String> {
    let url = match text {
        text if text.contains("://") => parse_base_address(text)?,
        text if text.starts_with(':') => parse_base_address(&format!("http://localhost{text}"))?,
        text => parse_base_address(&format!("http://{text}"))?,
    };
    let mut url = with_version_path(url);
    if matches!(host(&url), Some(Host::Ipv4(ip)) if ip.is_unspecified())
        || matches!(host(&url), Some(Host::Ipv6(ip)) if ip.is_unspecified())
    {
        url.set_host(Some("localhost")).map_err(|error| format!("cannot be read: {error}"))?;
    }
    if url.port().is_none() && !text.contains("://") {
        let _ = url.set_port(Some(OLLAMA_PORT));
    }
    Ok(url)
}

/// Whether the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match host(url) {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        None => false,
    }
}

/// Whether the host is on a local network: a private address, a name without a dot, or a name in a
/// domain that is never public.
pub(super) fn is_on_local_network(url: &Url) -> bool {
    match host(url) {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(ip)) => is_own_network(ip.into()),
        Some(Host::Ipv6(ip)) => is_own_network(ip.into()),
        None => false,
    }
}

/// Whether this address of an endpoint may be on this machine or on a local network: a name of one,
/// or an address that no public machine has, in any spelling. `false` if it cannot be read.
pub fn is_on_own_network(address: &str) -> bool {
    parse_base_address(address).is_ok_and(|url| {
        is_loopback(&url) || is_on_local_network(&url) || has_private_host(url.as_str())
    })
}

fn host(url: &Url) -> Option<Host<&str>> {
    url.host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_unknown_provider_prefix() {
        for (asked, url, model, has_note) in [
            (Provider::OpenAi, "https://api.openai.com/v1", "mistral/large", true),
            (Provider::OpenAi, "https://api.openai.com/v1", "ft:gpt-4.1-mini", false),
            (Provider::OpenAi, "https://api.openai.com/v1", "openai/", false),
            (Provider::OpenAi, "http://127.0.0.1:8089/v1", "mistral/large", false),
            (Provider::OpenAi, "https://gateway.example/v1", "mistral/large", false),
            (Provider::Anthropic, "https://api.anthropic.com/v1", "mistral/large", true),
            (Provider::Gemini, Provider::Gemini.base_url(), "mistral/large", true),
            (Provider::Gemini, Provider::Gemini.base_url(), "models/gemini-2.5-flash", false),
            (Provider::OpenRouter, "https://openrouter.ai/api/v1", "mistral/large", false),
            (Provider::Ollama, "http://localhost:11434/v1", "hf.co/some/model", false),
        ] {
            let url = Url::parse(url).expect(url);
            let note = unknown_provider_note(asked, &url, model);
            assert_eq!(note.is_some(), has_note, "{asked} {url} {model}: {note:?}");
        }
        let url = Url::parse(Provider::OpenAi.base_url()).expect("an address");
        assert_eq!(
            unknown_provider_note(Provider::OpenAi, &url, "mistral/large").as_deref(),
            Some(
                "mistral/large is sent to OpenAI unchanged: `mistral` is not a known provider \
                 (openai, anthropic, gemini, openrouter, ollama)"
            )
        );
    }

    #[test]
    fn splits_only_known_provider_prefix() {
        for (text, provider, model) in [
            ("anthropic/claude-haiku-4-5", Some(Provider::Anthropic), "claude-haiku-4-5"),
            ("OpenAI/gpt-5", Some(Provider::OpenAi), "gpt-5"),
            ("openrouter/openai/gpt-5", Some(Provider::OpenRouter), "openai/gpt-5"),
            ("meta/llama-4", None, "meta/llama-4"),
            ("gpt-5", None, "gpt-5"),
            ("openai/", None, "openai/"),
            ("/gpt-5", None, "/gpt-5"),
        ] {
            assert_eq!(split_model_name(text), (provider, model), "{text}");
        }
    }

    #[test]
    fn each_has_words_of_its_own() {
        assert_eq!(Provider::ALL.map(Provider::word), Provider::WORDS);
        for (at, one) in Provider::ALL.into_iter().enumerate() {
            for other in Provider::ALL.into_iter().skip(at + 1) {
                assert_ne!(one.word(), other.word());
                assert_ne!(one.key_name(), other.key_name());
                assert_ne!(one.address_name(), other.address_name());
            }
        }
    }

    #[test]
    fn what_can_be_used() {
        for (text, base) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com:443/v1/", "https://api.openai.com/v1"),
            ("https://a.example", "https://a.example/"),
            ("HTTP://LocalHost:11434/v1//", "http://localhost:11434/v1"),
            ("https://a.example/v1/chat/completions", "https://a.example/v1"),
            ("https://a.example/x/?api-version=1#top", "https://a.example/x?api-version=1"),
        ] {
            assert_eq!(parse_base_address(text).as_ref().map(Url::as_str), Ok(base), "{text}");
        }
        for text in [
            "",
            "api.openai.com",
            "ftp://a/",
            "file:///etc",
            "https://",
            "https://u:p@a/",
            "localhost:1",
        ] {
            assert!(parse_base_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_ollama_and_anthropic_addresses() {
        for (text, base) in [
            ("127.0.0.1:11500", "http://127.0.0.1:11500/v1"),
            ("0.0.0.0", "http://localhost:11434/v1"),
            (":11500", "http://localhost:11500/v1"),
            ("[::]:9", "http://localhost:9/v1"),
            ("http://box.lan:11434/", "http://box.lan:11434/v1"),
            ("https://ollama.example/v1", "https://ollama.example/v1"),
        ] {
            assert_eq!(parse_host(text).as_ref().map(Url::as_str), Ok(base), "{text}");
        }
        assert!(parse_host("ftp://a").is_err());
        for (text, base) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
            ("https://a.example/claude/", "https://a.example/claude/v1"),
            ("https://a.example/v1/messages", "https://a.example/v1"),
        ] {
            let url = parse_base_address(text).map(with_version_path);
            assert_eq!(url.as_ref().map(Url::as_str), Ok(base), "{text}");
        }
    }

    #[test]
    fn reports_missing_scheme() {
        for text in ["api.openai.com/v1", "localhost:11434/v1", "10.0.0.1:8000", "/v1", "sk-key"] {
            assert_eq!(
                parse_base_address(text),
                Err("has no http:// or https://".to_owned()),
                "{text}"
            );
        }
        for text in ["ftp://a/", "file:///etc"] {
            assert!(
                parse_base_address(text).is_err_and(|why| why.contains("neither http://")),
                "{text}"
            );
        }
    }

    #[test]
    fn where_it_lies() {
        for (text, loopback, network) in [
            ("http://localhost", true, true),
            ("http://a.localhost:1", true, true),
            ("http://127.9.9.9", true, true),
            ("http://[::1]:8080", true, true),
            ("http://[::ffff:127.0.0.1]", true, true),
            ("http://0x7f.1", true, true),
            ("http://10.1.2.3", false, true),
            ("http://192.168.0.1", false, true),
            ("http://172.31.0.1", false, true),
            ("http://100.64.0.1", false, true),
            ("http://169.254.1.1", false, true),
            ("http://[fd00::1]", false, true),
            ("http://[fe80::1]", false, true),
            ("http://vllm:8000", false, true),
            ("http://box.local", false, true),
            ("http://host.docker.internal", false, true),
            ("http://172.32.0.1", false, false),
            ("http://100.128.0.1", false, false),
            ("http://8.8.8.8", false, false),
            ("http://[2001:db8::1]", false, false),
            ("http://localhost.example.com", false, false),
            ("http://notlocal", false, true),
            ("http://localhost.:1", true, true),
            ("http://a.LOCALHOST.", true, true),
            ("http://box.local.", false, true),
            ("http://vllm.:8000", false, true),
            ("http://api.openai.com.", false, false),
            ("http://0.0.0.0", false, false),
            ("http://[::127.0.0.1]", false, false),
            ("https://api.openai.com", false, false),
        ] {
            let url = parse_base_address(text).expect(text);
            assert_eq!(
                (is_loopback(&url), is_on_local_network(&url)),
                (loopback, network),
                "{text}"
            );
            // What gets no privilege of this machine still needs the permission for local networks.
            {
                let odd = ["http://0.0.0.0", "http://[::127.0.0.1]"].contains(&text);
                assert_eq!(is_on_own_network(text), loopback || network || odd, "{text}");
            }
        }
    }
}
