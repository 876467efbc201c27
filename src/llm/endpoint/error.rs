//! Why there is no endpoint to call, and what to do about it.

use super::{DEFAULT_BASE_URL, DEFAULT_MODEL, Origin};

/// Why there is no endpoint to call. The run has not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// A host that is not this machine, and no key.
    #[error("no key for {host}: OPENAI_API_KEY is not set")]
    NoKey {
        /// Where the key is needed.
        host: String,
    },
    /// The key and the base URL stand in different places.
    #[error("OPENAI_BASE_URL comes from {url}, OPENAI_API_KEY from {key}: they are never mixed")]
    Mixed {
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
            Self::NoKey { .. } => "export OPENAI_API_KEY=…, or put it into a .env file here. An \
                 endpoint on this machine needs none: export OPENAI_BASE_URL=http://localhost:…/v1. \
                 Without --live the scenario's script answers."
                .to_owned(),
            Self::Mixed { url: Origin::Dotenv, .. } => "export OPENAI_BASE_URL beside the key, or \
                 unset OPENAI_API_KEY in the shell and put both into .env."
                .to_owned(),
            Self::Mixed { .. } => "export OPENAI_API_KEY beside the base URL, or unset \
                 OPENAI_BASE_URL in the shell and put both into .env."
                .to_owned(),
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
