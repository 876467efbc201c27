//! Why no endpoint was found, and what to do about it.

use super::origin::SettingOrigin;
use super::provider::{DEFAULT_BASE_URL, DEFAULT_MODEL, Provider};

/// Why no endpoint was found. The run has not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The host is not this machine, and there is no key.
    #[error("no key for {host}: {} is not set", provider.key_name())]
    NoKey {
        /// The provider of the call.
        provider: Provider,
        /// The host that needs the key.
        host: String,
    },
    /// Several providers have a key, and none is chosen.
    #[error("{} are set, but no provider is chosen", list(keys))]
    WhichProvider {
        /// The providers with a key, at least two.
        keys: Vec<Provider>,
    },
    /// The key and the base URL come from different places.
    #[error(
        "{} comes from {url}, {} from {key}: both must come from the same place",
        provider.address_name(),
        provider.key_name()
    )]
    Mixed {
        /// The provider of the call.
        provider: Provider,
        /// The origin of the base URL.
        url: SettingOrigin,
        /// The origin of the key.
        key: SettingOrigin,
    },
    /// The scenario sets a host that the key is not for.
    #[error("the scenario uses a model at {scenario}, but the key is for {key}")]
    ForeignHost {
        /// The scenario's host.
        scenario: String,
        /// The host of the base URL that goes with the key.
        key: String,
    },
    /// The key and the prompts would cross the internet unencrypted.
    #[error("the key would be sent to {host} over plain http")]
    PlainHttp {
        /// The host that would receive them.
        host: String,
    },
    /// An invalid base URL.
    #[error("the base URL from {origin} {why}")]
    BaseUrl {
        /// The origin of the URL.
        origin: SettingOrigin,
        /// What is wrong, as the rest of the sentence.
        why: String,
    },
    /// A key that is not valid in an HTTP header.
    #[error("the key from {origin} has a character that is not valid in an HTTP header")]
    Key {
        /// The origin of the key.
        origin: SettingOrigin,
    },
    /// An invalid model name.
    #[error(
        "the model's name from {origin} is longer than 200 characters or has a control character"
    )]
    Model {
        /// The origin of the name.
        origin: SettingOrigin,
    },
    /// An invalid timeout.
    #[error(
        "OPENAI_TIMEOUT_SECONDS from {origin} is not a number of seconds above 0 and up to 86400"
    )]
    Timeout {
        /// The origin of the value.
        origin: SettingOrigin,
    },
    /// A variable of the shell that is not UTF-8.
    #[error("{name} in the shell is not UTF-8")]
    NotText {
        /// The name of the variable.
        name: &'static str,
    },
    /// The `.env` file exists, but cannot be read.
    #[error(".env cannot be read: {why}")]
    Dotenv {
        /// Error of the system or the decoder.
        why: String,
    },
    /// A line of `.env` that cannot be parsed.
    #[error(".env, line {line}: the value of {name} cannot be read")]
    DotenvLine {
        /// The line number, from 1.
        line: usize,
        /// The variable that the line sets.
        name: &'static str,
    },
    /// A line of `.env` that refers to another variable.
    #[error(".env, line {line}: {name} refers to another variable, which is not supported")]
    DotenvReference {
        /// The line number, from 1.
        line: usize,
        /// The variable that the line sets.
        name: &'static str,
    },
}

impl EndpointError {
    /// What to do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::NoKey { provider: Provider::OpenAi, .. } => "export OPENAI_API_KEY=… (or \
                 ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY), or put it into a .env file \
                 here. An endpoint on this machine needs none: export \
                 OPENAI_BASE_URL=http://localhost:…/v1. Without --live the scenario's script answers."
                .to_owned(),
            Self::NoKey { provider, .. } => format!(
                "export {}=…, or put it into a .env file here. Without --live the scenario's script \
                 answers.",
                provider.key_name()
            ),
            Self::WhichProvider { keys } => {
                let first = keys.first().copied().unwrap_or_default();
                let (word, model) = (first.word(), first.model());
                format!(
                    "choose one with --model {word}/{model}, or with [model] name = \"{word}/{model}\" in \
                     the scenario or in the configuration (roundtable config --path)."
                )
            }
            Self::Mixed { provider, url: SettingOrigin::Dotenv, .. } => format!(
                "export {} together with the key, or unset {} in the shell and put both into .env.",
                provider.address_name(),
                provider.key_name()
            ),
            Self::Mixed { provider, .. } => format!(
                "export {} together with the base URL, or unset {} in the shell and put both into .env.",
                provider.key_name(),
                provider.address_name()
            ),
            Self::ForeignHost { .. } => "if you trust the scenario with a key, set OPENAI_BASE_URL to \
                 its address, together with its key; otherwise remove model.base_url from the scenario."
                .to_owned(),
            Self::PlainHttp { .. } => "use https. Plain http works only on this machine and its network."
                .to_owned(),
            Self::BaseUrl { .. } => {
                format!("give an address such as {DEFAULT_BASE_URL} or http://localhost:11434/v1.")
            }
            Self::Key { .. } => "copy it again; it may include a line break or a quote.".to_owned(),
            Self::Model { .. } => format!("give a name such as {DEFAULT_MODEL}."),
            Self::Timeout { .. } => "give seconds, such as 60.".to_owned(),
            Self::NotText { name } => format!("unset {name}, or set it to UTF-8 text."),
            Self::Dotenv { .. } => "make it a readable text file, or remove it.".to_owned(),
            Self::DotenvLine { .. } => "put the value in single quotes, on one line.".to_owned(),
            Self::DotenvReference { .. } => "write the value itself; put a value with a $ \
                 in single quotes."
                .to_owned(),
        }
    }
}

/// The variables of the providers' keys, as an enumeration.
fn list(providers: &[Provider]) -> String {
    let names: Vec<&str> = providers.iter().map(|provider| provider.key_name()).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}
