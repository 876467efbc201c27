//! The known providers of live models, and how to reach them.

use std::fmt;

use reqwest::Url;

use crate::base::visible::visible_within;
use crate::net::http::host_of;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_is_not_known_is_told_where_no_model_is_called_that() {
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
    fn a_name_has_a_provider_only_where_it_is_known() {
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
}
