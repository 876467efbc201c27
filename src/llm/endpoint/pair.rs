//! The base URL and the key that go together.

use std::collections::BTreeMap;

use reqwest::Url;

use super::{DEFAULT_BASE_URL, EndpointError, Found, Origin, address};
use crate::net::Secret;
use crate::net::http::host_of;

const KEY: &str = "OPENAI_API_KEY";
const BASE_URL: &str = "OPENAI_BASE_URL";

/// A variable's value: what is blank is not set.
pub(super) fn set(value: &str) -> Option<&str> {
    let value = value.trim();
    (!value.is_empty()).then_some(value)
}

pub(super) struct Places<'a> {
    pub(super) shell: &'a BTreeMap<String, String>,
    pub(super) file: &'a BTreeMap<&'static str, String>,
}

impl<'a> Places<'a> {
    fn get(&self, name: &str, origin: Origin) -> Option<&'a str> {
        match origin {
            Origin::Shell => self.shell.get(name).and_then(|value| set(value)),
            Origin::Dotenv => self.file.get(name).and_then(|value| set(value)),
            Origin::Scenario | Origin::Default => None,
        }
    }

    pub(super) fn either(&self, name: &str) -> Option<Found<&'a str>> {
        [Origin::Shell, Origin::Dotenv]
            .into_iter()
            .find_map(|origin| self.get(name, origin).map(|value| Found { value, origin }))
    }

    pub(super) fn address_and_key(
        &self,
        asked: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<(Found<Url>, Option<Found<Secret>>), EndpointError> {
        let theirs = match asked.and_then(set) {
            Some(text) => Some(parse_base_url(text, Origin::Scenario)?),
            None => None,
        };
        let pair = self.pair(notes);
        let Some(theirs) = theirs else {
            let (url, key) = pair?;
            if key.is_none() && !address::is_loopback(&url.value) {
                let host = host_of(&url.value);
                return Err(EndpointError::NoKey { host });
            }
            return Ok((url, key));
        };
        let local = address::is_loopback(&theirs.value);
        match pair {
            Ok((own, key)) if own.value.origin() == theirs.value.origin() => match key {
                None if !local => Err(EndpointError::NoKey { host: host_of(&theirs.value) }),
                key => Ok((theirs, key)),
            },
            // What the environment says is of no matter then, right or wrong.
            _ if local => {
                notes.clear();
                if self.either(KEY).is_some() {
                    notes.push("no key is sent: the scenario names the address".to_owned());
                }
                Ok((theirs, None))
            }
            Ok((own, Some(_))) => Err(EndpointError::ForeignHost {
                scenario: host_of(&theirs.value),
                key: host_of(&own.value),
            }),
            Ok((_, None)) => Err(EndpointError::NoKey { host: host_of(&theirs.value) }),
            Err(error) => Err(error),
        }
    }

    /// The base URL and the key that go together, and what is left aside.
    fn pair(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<(Found<Url>, Option<Found<Secret>>), EndpointError> {
        let of = |origin| (self.get(BASE_URL, origin), self.get(KEY, origin));
        let (shell, file) = (of(Origin::Shell), of(Origin::Dotenv));
        let origin = if shell == (None, None) { Origin::Dotenv } else { Origin::Shell };
        let (url, key) = if origin == Origin::Shell { shell } else { file };
        let url = match url {
            Some(text) => parse_base_url(text, origin)?,
            None => parse_base_url(DEFAULT_BASE_URL, Origin::Default)?,
        };
        if origin == Origin::Shell {
            match (shell, file) {
                // Only .env says where, and it is not where the key would go.
                ((None, _), (Some(other), None)) if !same_address(other, &url.value) => {
                    return Err(EndpointError::Mixed { url: Origin::Dotenv, key: Origin::Shell });
                }
                // Only .env has a key, and the address needs one.
                ((_, None), (_, Some(_))) if !address::is_loopback(&url.value) => {
                    return Err(EndpointError::Mixed { url: Origin::Shell, key: Origin::Dotenv });
                }
                (_, (None, None)) => {}
                (_, (other, key)) => {
                    let other = other.is_some_and(|other| !same_address(other, &url.value));
                    if other || key.is_some() {
                        notes.push(left_aside(other, key.is_some()));
                    }
                }
            }
        }
        let key = key.map(|text| Found { value: Secret::new(text), origin });
        Ok((url, key))
    }
}

/// What is said of the values in `.env` that the shell's go before.
fn left_aside(url: bool, key: bool) -> String {
    let what = match (url, key) {
        (true, true) => "OPENAI_BASE_URL and OPENAI_API_KEY of .env are",
        (true, false) => "OPENAI_BASE_URL of .env is",
        (false, _) => "OPENAI_API_KEY of .env is",
    };
    format!("{what} not used: the shell sets one of the two, and they come from one place")
}

fn same_address(text: &str, url: &Url) -> bool {
    parse_base_url(text, Origin::Dotenv).is_ok_and(|parsed| parsed.value.origin() == url.origin())
}

fn parse_base_url(text: &str, origin: Origin) -> Result<Found<Url>, EndpointError> {
    match address::parse(text) {
        Ok(value) => Ok(Found { value, origin }),
        Err(why) => Err(EndpointError::BaseUrl { origin, why }),
    }
}
