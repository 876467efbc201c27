//! Where a live model is found: key, base URL, model and time-out, each with where it came from.
//!
//! The key and the base URL come from one place, the shell or a `.env` file: a `.env` (or a
//! scenario) that came with somebody's download must not send the shell's key elsewhere. [`find`]
//! is pure; [`find_here`] looks around.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use crate::net::http::host_of;
use crate::net::{Redactor, Secret, Target};
use crate::regular;

mod address;
mod dotenv;
mod error;
mod pair;
#[cfg(test)]
mod tests;

pub use error::EndpointError;
use pair::Places;

/// The base URL where none is set.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
/// The model where none is set (source `000`).
pub const DEFAULT_MODEL: &str = "gpt-4.1-mini";
/// The bound of one attempt where none is set (source `000`).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest bound of one attempt that is taken.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// A `.env` larger than this is none.
const MAX_DOTENV: u64 = 1 << 20;

const MODEL: &str = "OPENAI_MODEL";
const TIMEOUT: &str = "OPENAI_TIMEOUT_SECONDS";

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A variable of the shell.
    Shell,
    /// The `.env` file in the working directory.
    Dotenv,
    /// The scenario's `[model]`.
    Scenario,
    /// Nobody set it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Shell => "the shell",
            Self::Dotenv => ".env",
            Self::Scenario => "the scenario",
            Self::Default => "the default",
        })
    }
}

/// A value with where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

/// What the scenario asks for, where it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// `model.name`.
    pub model: Option<&'a str>,
    /// `model.base_url`.
    pub base_url: Option<&'a str>,
}

/// A place where a chat model answers. The key in it has been found fit for a header.
#[derive(Clone, Debug)]
pub struct Endpoint {
    base_url: Found<Url>,
    host: String,
    model: Found<String>,
    key: Option<Found<Secret>>,
    authorization: Option<HeaderValue>,
    timeout: Found<Duration>,
    notes: Vec<String>,
}

impl Endpoint {
    /// What the paths of the API are put behind.
    pub fn base_url(&self) -> &Found<Url> {
        &self.base_url
    }
    /// The host with its port, if it has one of its own: all that is shown of the address.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// The model's name.
    pub fn model(&self) -> &Found<String> {
        &self.model
    }
    /// The key; a local endpoint may have none.
    pub fn key(&self) -> Option<&Found<Secret>> {
        self.key.as_ref()
    }
    /// The bound of one attempt where neither `--set` nor the scenario has one.
    pub fn timeout(&self) -> &Found<Duration> {
        &self.timeout
    }
    /// What a person should know before the first call: what was set and is not used, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// An address of the API below the base URL, with the headers that each request carries.
    pub(super) fn target(&self, path: &[&str]) -> Target {
        let mut url = self.base_url.value.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let target = Target::new(url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        match &self.authorization {
            Some(value) => target.header(AUTHORIZATION, value.clone()),
            None => target,
        }
    }

    /// What takes this endpoint's key out of foreign text.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::knowing(self.key.iter().map(|key| key.value.clone()))
    }
}

/// [`find`] with the shell's variables and the `.env` file of the working directory.
///
/// # Errors
/// As [`find`]; a `.env` that is there and cannot be read; a variable that is no text.
pub fn find_here(asked: Asked<'_>) -> Result<Endpoint, EndpointError> {
    let mut shell = BTreeMap::new();
    for name in dotenv::NAMES {
        match std::env::var(name) {
            Ok(value) => drop(shell.insert(name.to_owned(), value)),
            Err(std::env::VarError::NotPresent) => {}
            Err(std::env::VarError::NotUnicode(_)) => return Err(EndpointError::NotText { name }),
        }
    }
    find(&shell, read_dotenv(Path::new(".env"))?.as_deref(), asked)
}

fn read_dotenv(path: &Path) -> Result<Option<String>, EndpointError> {
    let failed = |error: &dyn fmt::Display| EndpointError::Dotenv { why: error.to_string() };
    match regular::read(path, MAX_DOTENV) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| failed(&error)),
        // A folder or a pipe of that name is somebody else's.
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::IsADirectory => Ok(None),
            _ => Err(failed(&error)),
        },
    }
}

/// Finds the endpoint.
///
/// - A variable that is empty or blank is not set.
/// - Key and base URL: from the shell where it sets either, else from `.env`. What the other place
///   says of them is not used; where the two would have to be mixed, that is an error.
/// - The scenario's base URL goes before both, but gets the key only where it has the same scheme,
///   host and port as the base URL that the key was set beside. To another host on this machine no
///   key is sent; any other is refused.
/// - The model: the scenario's, the shell's, `.env`'s, [`DEFAULT_MODEL`]. The time-out alike, but
///   for the scenario's, which the gateway knows.
/// - Plain `http` with a key: freely to this machine; to its network with a note, since that is
///   where people's own servers are; never beyond.
///
/// # Errors
/// No key and no local endpoint; places that would be mixed; values that cannot be used.
pub fn find(
    shell: &BTreeMap<String, String>,
    dotenv: Option<&str>,
    asked: Asked<'_>,
) -> Result<Endpoint, EndpointError> {
    let file = dotenv::read(dotenv.unwrap_or_default())?;
    let places = Places { shell, file: &file };
    let mut notes = Vec::new();
    let (base_url, key) = places.address_and_key(asked.base_url, &mut notes)?;
    let host = host_of(&base_url.value);
    if base_url.value.scheme() == "http" && key.is_some() && !address::is_loopback(&base_url.value)
    {
        if !address::is_on_local_network(&base_url.value) {
            return Err(EndpointError::PlainHttp { host });
        }
        notes.push(format!("the key and the prompts go to {host} over plain http"));
    }
    let authorization = match &key {
        Some(key) => Some(bearer(key)?),
        None => None,
    };
    let model = match asked.model.and_then(pair::set) {
        Some(name) => Found { value: name, origin: Origin::Scenario },
        None => {
            places.either(MODEL).unwrap_or(Found { value: DEFAULT_MODEL, origin: Origin::Default })
        }
    };
    if model.value.chars().count() > 200 || model.value.chars().any(char::is_control) {
        return Err(EndpointError::Model { origin: model.origin });
    }
    let timeout = match places.either(TIMEOUT) {
        None => Found { value: DEFAULT_TIMEOUT, origin: Origin::Default },
        Some(Found { value, origin }) => {
            Found { value: seconds(value).ok_or(EndpointError::Timeout { origin })?, origin }
        }
    };
    Ok(Endpoint {
        base_url,
        host,
        model: Found { value: model.value.to_owned(), origin: model.origin },
        key,
        authorization,
        timeout,
        notes,
    })
}

fn bearer(key: &Found<Secret>) -> Result<HeaderValue, EndpointError> {
    let text = format!("Bearer {}", key.value.expose());
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match HeaderValue::from_str(&text) {
        Ok(mut value) if plain => {
            value.set_sensitive(true);
            Ok(value)
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
