//! Why there is no endpoint to call, and what to do about it.

use super::{DEFAULT_BASE_URL, DEFAULT_MODEL, Origin, Provider};

/// Why there is no endpoint to call. The run has not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// A host that is not this machine, and no key.
    #[error("no key for {host}: {} is not set", provider.key_name())]
    NoKey {
        /// Who is asked.
        provider: Provider,
        /// Where the key is needed.
        host: String,
    },
    /// Several providers have a key, and nothing says which of them to ask.
    #[error("{} are set, but no provider is chosen", list(keys))]
    WhichProvider {
        /// Those with a key, two at least.
        keys: Vec<Provider>,
    },
    /// The key and the base URL stand in different places.
    #[error(
        "{} comes from {url}, {} from {key}: they are never mixed",
        provider.address_name(),
        provider.key_name()
    )]
    Mixed {
        /// Who is asked.
        provider: Provider,
        /// Where the base URL stands.
        url: Origin,
        /// Where the key stands.
        key: Origin,
    },
    /// The scenario names a host that the key was not set for.
    #[error("the scenario asks for a model at {scenario}, and the key is for {key}")]
    ForeignHost {
        /// The scenario's host.
        scenario: String,
        /// The host of the base URL that goes with the key.
        key: String,
    },
    /// The key and the prompts would go through the internet unencrypted.
    #[error("{host} would be sent the key over plain http")]
    PlainHttp {
        /// The host.
        host: String,
    },
    /// A base URL that is none.
    #[error("the base URL from {origin} {why}")]
    BaseUrl {
        /// Where it stands.
        origin: Origin,
        /// What is wrong with it, as the rest of the sentence.
        why: String,
    },
    /// A key that no header can carry.
    #[error("the key from {origin} has a character that no header can carry")]
    Key {
        /// Where it stands.
        origin: Origin,
    },
    /// A model's name that is none.
    #[error(
        "the model's name from {origin} is longer than 200 characters or has a control character"
    )]
    Model {
        /// Where it stands.
        origin: Origin,
    },
    /// A time-out that is none.
    #[error("OPENAI_TIMEOUT_SECONDS from {origin} is no number of seconds above 0 and up to 86400")]
    Timeout {
        /// Where it stands.
        origin: Origin,
    },
    /// A variable of the shell that is no text.
    #[error("{name} in the shell is not UTF-8")]
    NotText {
        /// Which.
        name: &'static str,
    },
    /// The `.env` file is there and cannot be read.
    #[error(".env cannot be read: {why}")]
    Dotenv {
        /// Why not.
        why: String,
    },
    /// A line of `.env` that cannot be read.
    #[error(".env, line {line}: the value of {name} cannot be read")]
    DotenvLine {
        /// Which line, from 1.
        line: usize,
        /// What it sets.
        name: &'static str,
    },
    /// A line of `.env` that refers to another variable.
    #[error(".env, line {line}: {name} refers to another variable, which is not done here")]
    DotenvReference {
        /// Which line, from 1.
        line: usize,
        /// What it sets.
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
            Self::Mixed { provider, url: Origin::Dotenv, .. } => format!(
                "export {} beside the key, or unset {} in the shell and put both into .env.",
                provider.address_name(),
                provider.key_name()
            ),
            Self::Mixed { provider, .. } => format!(
                "export {} beside the base URL, or unset {} in the shell and put both into .env.",
                provider.key_name(),
                provider.address_name()
            ),
            Self::ForeignHost { .. } => "if you trust the scenario with a key, set OPENAI_BASE_URL to \
                 its address, beside the key for it; else take model.base_url out of the scenario."
                .to_owned(),
            Self::PlainHttp { .. } => "use https. Plain http is for this machine and its network."
                .to_owned(),
            Self::BaseUrl { .. } => {
                format!("give an address such as {DEFAULT_BASE_URL} or http://localhost:11434/v1.")
            }
            Self::Key { .. } => "copy it again: a line end or a quote may have come with it.".to_owned(),
            Self::Model { .. } => format!("give a name such as {DEFAULT_MODEL}."),
            Self::Timeout { .. } => "give seconds, such as 60.".to_owned(),
            Self::NotText { name } => format!("unset {name}, or set it again."),
            Self::Dotenv { .. } => "make it a readable text file, or take it away.".to_owned(),
            Self::DotenvLine { .. } => "put the value between single quotes, on one line.".to_owned(),
            Self::DotenvReference { .. } => "write the value itself; one that has a $ in it goes \
                 between single quotes."
                .to_owned(),
        }
    }
}

/// The variables of their keys, in a sentence.
fn list(providers: &[Provider]) -> String {
    let names: Vec<&str> = providers.iter().map(|provider| provider.key_name()).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}
