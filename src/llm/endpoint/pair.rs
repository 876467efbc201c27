//! Pairs the base URL with its key.

use std::collections::BTreeMap;

use reqwest::Url;

use super::address;
use super::error::EndpointError;
use super::origin::{SettingOrigin, WithOrigin};
use super::provider::Provider;
use crate::net::Secret;
use crate::net::http::host_of;

/// The value of a variable; a blank one counts as not set. Quotes around it are removed: some tools that read
/// files of variables keep them.
pub(super) fn non_blank(value: &str) -> Option<&str> {
    let value = value.trim();
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = inside('"').or_else(|| inside('\'')).unwrap_or(value).trim();
    (!value.is_empty()).then_some(value)
}

pub(super) struct VariableSources<'a> {
    pub(super) shell: &'a BTreeMap<String, String>,
    pub(super) file: &'a BTreeMap<&'static str, String>,
}

impl<'a> VariableSources<'a> {
    fn get(&self, name: &str, origin: SettingOrigin) -> Option<&'a str> {
        match origin {
            SettingOrigin::Shell => self.shell.get(name).and_then(|value| non_blank(value)),
            SettingOrigin::Dotenv => self.file.get(name).and_then(|value| non_blank(value)),
            SettingOrigin::CommandLine
            | SettingOrigin::Scenario
            | SettingOrigin::Config
            | SettingOrigin::Default => None,
        }
    }

    pub(super) fn shell_or_dotenv_value(&self, name: &str) -> Option<WithOrigin<&'a str>> {
        [SettingOrigin::Shell, SettingOrigin::Dotenv]
            .into_iter()
            .find_map(|origin| self.get(name, origin).map(|value| WithOrigin { value, origin }))
    }

    /// The providers that have a key in either place.
    pub(super) fn providers(&self) -> Vec<Provider> {
        let has_key =
            |provider: &Provider| self.shell_or_dotenv_value(provider.key_name()).is_some();
        Provider::ALL.into_iter().filter(has_key).collect()
    }

    pub(super) fn address_and_key(
        &self,
        provider: Provider,
        asked: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<(WithOrigin<Url>, Option<WithOrigin<Secret>>), EndpointError> {
        let theirs = match asked.and_then(non_blank) {
            Some(text) => Some(parse_base_url(provider, text, SettingOrigin::Scenario)?),
            None => None,
        };
        let pair = self.pair(provider, notes);
        let no_key = |url: &Url| EndpointError::NoKey { provider, host: host_of(url) };
        let Some(theirs) = theirs else {
            let (url, key) = pair?;
            let needed = provider != Provider::Ollama && !address::is_loopback(&url.value);
            if key.is_none() && needed {
                return Err(no_key(&url.value));
            }
            return Ok((url, key));
        };
        let local = address::is_loopback(&theirs.value);
        match pair {
            Ok((own, key)) if own.value.origin() == theirs.value.origin() => match key {
                None if !local => Err(no_key(&theirs.value)),
                key => Ok((theirs, key)),
            },
            // The environment does not matter then, valid or not.
            _ if local => {
                notes.clear();
                if self.shell_or_dotenv_value(provider.key_name()).is_some() {
                    notes.push("no key is sent: the scenario sets the address".to_owned());
                }
                Ok((theirs, None))
            }
            Ok((own, Some(_))) => Err(EndpointError::ForeignHost {
                scenario: host_of(&theirs.value),
                key: host_of(&own.value),
            }),
            Ok((_, None)) => Err(no_key(&theirs.value)),
            Err(error) => Err(error),
        }
    }

    /// The base URL and the key that belong together. Notes say which values are ignored.
    fn pair(
        &self,
        provider: Provider,
        notes: &mut Vec<String>,
    ) -> Result<(WithOrigin<Url>, Option<WithOrigin<Secret>>), EndpointError> {
        let of = |origin| {
            (self.get(provider.address_name(), origin), self.get(provider.key_name(), origin))
        };
        let (shell, file) = (of(SettingOrigin::Shell), of(SettingOrigin::Dotenv));
        let origin =
            if shell == (None, None) { SettingOrigin::Dotenv } else { SettingOrigin::Shell };
        let (url, key) = if origin == SettingOrigin::Shell { shell } else { file };
        let url = match url {
            Some(text) => parse_base_url(provider, text, origin)?,
            None => parse_base_url(provider, provider.base_url(), SettingOrigin::Default)?,
        };
        if origin == SettingOrigin::Shell {
            match (shell, file) {
                // Only .env sets the address, and the key would go elsewhere.
                ((None, _), (Some(other), None)) if !same_address(provider, other, &url.value) => {
                    return Err(EndpointError::Mixed {
                        provider,
                        url: SettingOrigin::Dotenv,
                        key: SettingOrigin::Shell,
                    });
                }
                // Only .env has a key, and the address needs one.
                ((_, None), (_, Some(_))) if !address::is_loopback(&url.value) => {
                    return Err(EndpointError::Mixed {
                        provider,
                        url: SettingOrigin::Shell,
                        key: SettingOrigin::Dotenv,
                    });
                }
                (_, (None, None)) => {}
                (_, (other, key)) => {
                    let other =
                        other.is_some_and(|other| !same_address(provider, other, &url.value));
                    if other || key.is_some() {
                        notes.push(ignored_values_note(provider, other, key.is_some()));
                    }
                }
            }
        }
        let key = key.map(|text| WithOrigin { value: Secret::new(text), origin });
        Ok((url, key))
    }
}

/// The note about values in `.env` that the shell overrides.
fn ignored_values_note(provider: Provider, url: bool, key: bool) -> String {
    let (address_name, key_name) = (provider.address_name(), provider.key_name());
    let what = match (url, key) {
        (true, true) => format!("{address_name} and {key_name} of .env are"),
        (true, false) => format!("{address_name} of .env is"),
        (false, _) => format!("{key_name} of .env is"),
    };
    format!(
        "{what} not used: the shell sets one of the two, and both must come from the same place"
    )
}

fn same_address(provider: Provider, text: &str, url: &Url) -> bool {
    parse_base_url(provider, text, SettingOrigin::Dotenv)
        .is_ok_and(|parsed| parsed.value.origin() == url.origin())
}

fn parse_base_url(
    provider: Provider,
    text: &str,
    origin: SettingOrigin,
) -> Result<WithOrigin<Url>, EndpointError> {
    let parsed = match provider {
        Provider::Ollama => address::parse_host(text),
        Provider::Anthropic => address::parse(text).map(address::with_version),
        Provider::OpenAi | Provider::Gemini | Provider::OpenRouter => address::parse(text),
    };
    match parsed {
        Ok(value) => Ok(WithOrigin { value, origin }),
        Err(why) => Err(EndpointError::BaseUrl { origin, why }),
    }
}
