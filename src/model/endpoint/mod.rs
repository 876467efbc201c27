//! Finds the endpoint of a live model: provider, key, base URL, model and timeout, each with its
//! origin, or why there is none and what to do.
//!
//! The provider comes from the model's name (`anthropic/claude-…`), else from what is set: a
//! variable with a model or an address, or the only key. The key and the base URL come from one
//! place, the shell or a `.env` file, because a downloaded `.env` or scenario must not send the
//! shell's key elsewhere. [`find`] is pure; [`find_here`] reads the shell and the working
//! directory.

mod provider;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};

use self::provider::{DEFAULT_BASE_URL, unknown_provider_note};
use self::sources::{MODEL, TIMEOUT, VariableSources};
use crate::base::read_file;
use crate::net::{Redactor, RequestTarget, Secret, host_of};

pub use self::provider::is_on_own_network;
pub use self::provider::{DEFAULT_MODEL, DEFAULT_MODELS_DATE, Provider, Wire, split_model_name};

/// The default timeout of one attempt (collaboration source document).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The default address of Ollama on this machine: host and port.
pub const OLLAMA: &str = "127.0.0.1:11434";

/// The longest timeout of one attempt that is accepted.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest `.env` file in bytes; a larger one is an error.
const MAX_DOTENV: u64 = 1 << 20;

/// The version of the Messages API that we use.
const MESSAGES_VERSION: &str = "2023-06-01";

/// What the caller, the scenario and the configuration request, if anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointRequest<'a> {
    /// The model: from the command line, a role, an agent, a step, or the whole scenario.
    pub model: Option<WithOrigin<&'a str>>,
    /// Whether the model comes from `--model`. A server of one's own then gets a name that begins
    /// with `openai/` unchanged, as from `OPENAI_MODEL`; in files that is always the provider.
    pub is_from_option: bool,
    /// `model.base_url` of the scenario.
    pub base_url: Option<&'a str>,
    /// The model of the configuration; the environment overrides it.
    pub config: Option<&'a str>,
    /// The timeout of one attempt from the configuration; the environment overrides it.
    pub timeout: Option<Duration>,
}

/// The endpoint of a chat model. Its key was checked to be valid in a header.
#[derive(Clone, Debug)]
pub struct Endpoint {
    provider: WithOrigin<Provider>,
    base_url: WithOrigin<Url>,
    host: String,
    model: WithOrigin<String>,
    key: Option<WithOrigin<Secret>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: WithOrigin<Duration>,
    notes: Vec<String>,
}

impl Endpoint {
    /// The provider.
    pub fn provider(&self) -> Provider {
        self.provider.value
    }
    /// The origin of the provider; if it was chosen by its key, the origin of the key.
    pub fn provider_origin(&self) -> SettingOrigin {
        self.provider.origin
    }
    /// Whether the endpoint is on this machine.
    pub fn is_local(&self) -> bool {
        provider::is_loopback(&self.base_url.value)
    }
    /// Whether this is the provider's own address, where its prices and its default model apply.
    pub fn is_providers_own(&self) -> bool {
        self.provider.value.is_at(&self.base_url.value)
    }
    /// The base of the API's paths.
    pub fn base_url(&self) -> &WithOrigin<Url> {
        &self.base_url
    }
    /// The host, with its port unless it is the default one. No other part of the address is shown.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// The model's name.
    pub fn model(&self) -> &WithOrigin<String> {
        &self.model
    }
    /// The model's name with its provider in front, once.
    pub(crate) fn full_model_name(&self) -> String {
        let (provider, model) = (self.provider(), &self.model.value);
        match split_model_name(model) {
            (Some(of), _) if of == provider => model.clone(),
            _ => format!("{}/{model}", provider.word()),
        }
    }
    /// The key; a local endpoint may have none.
    pub fn key(&self) -> Option<&WithOrigin<Secret>> {
        self.key.as_ref()
    }
    /// The timeout of one attempt if neither `--set` nor the scenario has one.
    pub fn timeout(&self) -> &WithOrigin<Duration> {
        &self.timeout
    }
    /// Notes for the operator before the first call: values that are not used, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The target of an API path below the base URL, with the headers of every request.
    pub(crate) fn target(&self, path: &[&str]) -> RequestTarget {
        let mut url = self.base_url.value.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let target = RequestTarget::new(url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.headers
            .iter()
            .fold(target, |target, (name, value)| target.header(name.clone(), value.clone()))
    }

    /// A redactor that removes this endpoint's key from texts.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::with_secrets(self.key.iter().map(|key| key.value.clone()))
    }
}

/// [`find`] with the shell's variables and the `.env` file of the working directory.
///
/// # Errors
/// As [`find`]; a `.env` that exists but cannot be read; a variable that is not UTF-8.
pub fn find_here(asked: EndpointRequest<'_>) -> Result<Endpoint, EndpointError> {
    find(&shell_here()?, read_dotenv(Path::new(".env"))?.as_deref(), asked)
}

/// The providers that have a key in the shell or in the `.env` file of the working directory.
///
/// # Errors
/// As [`find_here`].
pub fn providers_with_keys_here() -> Result<Vec<Provider>, EndpointError> {
    let file = sources::read(read_dotenv(Path::new(".env"))?.as_deref().unwrap_or_default())?;
    Ok(VariableSources { shell: &shell_here()?, file: &file }.providers())
}

/// [`ollama`] with the shell's variables and the `.env` file of the working directory.
///
/// # Errors
/// As [`find_here`].
pub fn ollama_here(usual: &str) -> Result<WithOrigin<Endpoint>, EndpointError> {
    ollama(shell_here()?, read_dotenv(Path::new(".env"))?.as_deref(), usual)
}

/// Ollama with its default model, at the address in `OLLAMA_HOST`, else at `usual` (host and port).
/// The origin is that of the address.
///
/// # Errors
/// As [`find`].
pub fn ollama(
    mut shell: BTreeMap<String, String>,
    dotenv: Option<&str>,
    usual: &str,
) -> Result<WithOrigin<Endpoint>, EndpointError> {
    let name = Provider::Ollama.address_name();
    let file = sources::read(dotenv.unwrap_or_default())?;
    let set = VariableSources { shell: &shell, file: &file }
        .shell_or_dotenv_value(name)
        .map(|found| found.origin);
    if set.is_none() {
        shell.insert(name.to_owned(), usual.to_owned());
    }
    let model = format!("{}/{}", Provider::Ollama.word(), Provider::Ollama.model());
    let model = Some(WithOrigin { value: model.as_str(), origin: SettingOrigin::Default });
    let value = find(&shell, dotenv, EndpointRequest { model, ..EndpointRequest::default() })?;
    Ok(WithOrigin { value, origin: set.unwrap_or(SettingOrigin::Default) })
}

/// Our variables that the shell has.
fn shell_here() -> Result<BTreeMap<String, String>, EndpointError> {
    let mut shell = BTreeMap::new();
    for name in sources::names() {
        match std::env::var(name) {
            Ok(value) => drop(shell.insert(name.to_owned(), value)),
            Err(std::env::VarError::NotPresent) => {}
            Err(std::env::VarError::NotUnicode(_)) => return Err(EndpointError::NotText { name }),
        }
    }
    Ok(shell)
}

fn read_dotenv(path: &Path) -> Result<Option<String>, EndpointError> {
    let failed = |error: &dyn fmt::Display| EndpointError::Dotenv { why: error.to_string() };
    match read_file::read_file(path, MAX_DOTENV) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| failed(&error)),
        // A folder or a pipe with that name belongs to another program.
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::IsADirectory => Ok(None),
            _ => Err(failed(&error)),
        },
    }
}

/// Finds the endpoint.
///
/// - An empty or blank variable counts as not set.
/// - The provider: the one before the `/` of the requested model; the OpenAI API if the scenario
///   sets an address, or if `OPENAI_MODEL` or `OPENAI_BASE_URL` is set; the one in the
///   configuration's model; the only one with a key; Ollama if `OLLAMA_HOST` is set.
/// - Key and base URL: from the shell if it sets either, else from `.env`. The values of the other
///   place are ignored; if the two places would have to be mixed, that is an error.
/// - The scenario's base URL overrides both, but gets the key only if it has the same scheme, host
///   and port as the base URL that the key was set with. Another host on this machine gets no key;
///   any other host is refused.
/// - The model: the requested one without its provider, then `OPENAI_MODEL` of the shell and of
///   `.env` (sent unchanged), the configuration's, the provider's default. The timeout: the shell's,
///   `.env`'s, the configuration's, the default; the gateway knows the scenario's.
/// - Plain `http` with a key: allowed to this machine; to its local network with a note, because
///   many servers there have no TLS; never beyond.
///
/// # Errors
/// No key and no local endpoint; several providers with a key and none chosen; key and address from
/// different places; invalid values.
pub fn find(
    shell: &BTreeMap<String, String>,
    dotenv: Option<&str>,
    asked: EndpointRequest<'_>,
) -> Result<Endpoint, EndpointError> {
    let file = sources::read(dotenv.unwrap_or_default())?;
    let places = VariableSources { shell, file: &file };
    let (provider, model) = choose_provider_and_model(&places, &asked)?;
    let mut notes = Vec::new();
    let (base_url, key) = places.address_and_key(provider.value, asked.base_url, &mut notes)?;
    let host = host_of(&base_url.value);
    if base_url.value.scheme() == "http" && key.is_some() && !provider::is_loopback(&base_url.value)
    {
        if !provider::is_on_local_network(&base_url.value) {
            return Err(EndpointError::PlainHttp { host });
        }
        notes.push(format!("the key and the prompts go to {host} over plain http"));
    }
    notes.extend(unknown_provider_note(provider.value, &base_url.value, model.value));
    let headers = headers(provider.value, key.as_ref())?;
    if model.value.chars().count() > 200 || model.value.chars().any(char::is_control) {
        return Err(EndpointError::Model { origin: model.origin });
    }
    let timeout = match places.shell_or_dotenv_value(TIMEOUT) {
        None => match asked.timeout {
            Some(value) => WithOrigin { value, origin: SettingOrigin::Config },
            None => WithOrigin { value: DEFAULT_TIMEOUT, origin: SettingOrigin::Default },
        },
        Some(WithOrigin { value, origin }) => {
            WithOrigin { value: seconds(value).ok_or(EndpointError::Timeout { origin })?, origin }
        }
    };
    Ok(Endpoint {
        provider,
        base_url,
        host,
        model: WithOrigin { value: model.value.to_owned(), origin: model.origin },
        key,
        headers,
        timeout,
        notes,
    })
}

/// Whether models of the OpenAI API are called at another address than OpenAI's.
fn is_own_server(places: &VariableSources<'_>, asked: &EndpointRequest<'_>) -> bool {
    let set = || places.shell_or_dotenv_value(Provider::OpenAi.address_name());
    let address = asked.base_url.and_then(sources::non_blank).or_else(|| Some(set()?.value));
    let url = address.and_then(|address| provider::parse_base_address(address).ok());
    url.is_some_and(|url| !Provider::OpenAi.is_at(&url))
}

fn choose_provider_and_model<'a>(
    places: &VariableSources<'a>,
    asked: &EndpointRequest<'a>,
) -> Result<(WithOrigin<Provider>, WithOrigin<&'a str>), EndpointError> {
    let wanted = |found: WithOrigin<&'a str>| {
        sources::non_blank(found.value).map(|value| WithOrigin { value, origin: found.origin })
    };
    let wanted = asked.model.and_then(wanted);
    let config = asked.config.and_then(sources::non_blank);
    if let Some(WithOrigin { value, origin }) = wanted
        && let (Some(provider), name) = split_model_name(value)
    {
        // Before the name of another provider, `openai/` can only be a provider.
        let is_name = provider == Provider::OpenAi && split_model_name(name).0.is_none();
        let name = match asked.is_from_option && is_name && is_own_server(places, asked) {
            true => value,
            false => name,
        };
        return Ok((WithOrigin { value: provider, origin }, WithOrigin { value: name, origin }));
    }
    let set = |name| places.shell_or_dotenv_value(name).map(|found| found.origin);
    let said = [MODEL, Provider::OpenAi.address_name()].into_iter().find_map(set);
    let said =
        asked.base_url.and_then(sources::non_blank).map(|_| SettingOrigin::Scenario).or(said);
    let by = |value, origin| WithOrigin { value, origin };
    let provider = if let Some(origin) = said {
        by(Provider::OpenAi, origin)
    } else if let Some(provider) = config.and_then(|name| split_model_name(name).0) {
        by(provider, SettingOrigin::Config)
    } else {
        match (&places.providers()[..], set(Provider::Ollama.address_name())) {
            (&[one], _) => by(one, set(one.key_name()).unwrap_or(SettingOrigin::Default)),
            ([], Some(origin)) => by(Provider::Ollama, origin),
            ([], None) => by(Provider::OpenAi, SettingOrigin::Default),
            (several, _) => return Err(EndpointError::WhichProvider { keys: several.to_vec() }),
        }
    };
    let of_variable =
        || places.shell_or_dotenv_value(MODEL).filter(|_| provider.value == Provider::OpenAi);
    let of_config = || {
        let (of, value) = split_model_name(config?);
        of.is_none_or(|of| of == provider.value)
            .then_some(WithOrigin { value, origin: SettingOrigin::Config })
    };
    let default = WithOrigin { value: provider.value.model(), origin: SettingOrigin::Default };
    Ok((provider, wanted.or_else(of_variable).or_else(of_config).unwrap_or(default)))
}

/// The headers of a request besides those of its body: the key, as the provider expects it.
fn headers(
    provider: Provider,
    key: Option<&WithOrigin<Secret>>,
) -> Result<Vec<(HeaderName, HeaderValue)>, EndpointError> {
    let mut headers = Vec::new();
    if provider.wire() == Wire::Messages {
        let name = HeaderName::from_static("anthropic-version");
        headers.push((name, HeaderValue::from_static(MESSAGES_VERSION)));
    }
    let Some(key) = key else { return Ok(headers) };
    let (name, text) = match provider.wire() {
        Wire::Chat => (AUTHORIZATION, format!("Bearer {}", key.value.expose())),
        Wire::Messages => (HeaderName::from_static("x-api-key"), key.value.expose().to_owned()),
    };
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match HeaderValue::from_str(&text) {
        Ok(mut value) if plain => {
            value.set_sensitive(true);
            headers.push((name, value));
            Ok(headers)
        }
        _ => Err(EndpointError::Key { origin: key.origin }),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let duration = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (duration >= Duration::from_millis(1) && duration <= MAX_TIMEOUT).then_some(duration)
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// A variable of the shell.
    Shell,
    /// The `.env` file in the working directory.
    Dotenv,
    CommandLine,
    Scenario,
    /// The configuration file.
    Config,
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Shell => "the shell",
            Self::Dotenv => ".env",
            Self::CommandLine => "the command line",
            Self::Scenario => "the scenario",
            Self::Config => "the configuration",
            Self::Default => "the default",
        })
    }
}

/// A value with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithOrigin<T> {
    pub value: T,
    pub origin: SettingOrigin,
}

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
