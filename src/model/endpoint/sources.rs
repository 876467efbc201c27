//! Pairs the base URL with its key, and reads our variables from the text of a `.env` file. The
//! process environment is neither read nor changed.

use std::collections::BTreeMap;

use reqwest::Url;

use super::provider::Provider;
use super::{EndpointError, SettingOrigin, WithOrigin, provider};
use crate::net::{Secret, host_of};

/// The value of a variable; a blank one counts as not set. Quotes around it are removed: some tools that read
/// files of variables keep them.
pub(super) fn non_blank(value: &str) -> Option<&str> {
    let value = value.trim();
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = inside('"').or_else(|| inside('\'')).unwrap_or(value).trim();
    (!value.is_empty()).then_some(value)
}

pub(crate) struct VariableSources<'a> {
    pub(crate) shell: &'a BTreeMap<String, String>,
    pub(crate) file: &'a BTreeMap<&'static str, String>,
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
    pub(crate) fn providers(&self) -> Vec<Provider> {
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
            let needed = provider != Provider::Ollama && !provider::is_loopback(&url.value);
            if key.is_none() && needed {
                return Err(no_key(&url.value));
            }
            return Ok((url, key));
        };
        let local = provider::is_loopback(&theirs.value);
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
                ((_, None), (_, Some(_))) if !provider::is_loopback(&url.value) => {
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
        Provider::Ollama => provider::parse_host(text),
        Provider::Anthropic => provider::parse_base_address(text).map(provider::with_version_path),
        Provider::OpenAi | Provider::Gemini | Provider::OpenRouter => {
            provider::parse_base_address(text)
        }
    };
    match parsed {
        Ok(value) => Ok(WithOrigin { value, origin }),
        Err(why) => Err(EndpointError::BaseUrl { origin, why }),
    }
}

/// The model, for the OpenAI API.
pub(crate) const MODEL: &str = "OPENAI_MODEL";
/// The timeout of one attempt, in seconds.
pub(super) const TIMEOUT: &str = "OPENAI_TIMEOUT_SECONDS";

/// The names that we read. A `.env` serves other programs too; their lines are ignored.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let own = Provider::ALL.into_iter().flat_map(|it| [it.key_name(), it.address_name()]);
    own.chain([MODEL, TIMEOUT])
}

/// Reads our variables. If one is set twice, the later line counts, as in a shell.
pub(crate) fn read(text: &str) -> Result<BTreeMap<&'static str, String>, EndpointError> {
    let mut found = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let number = index + 1;
        if refers_to_a_variable(line) {
            return Err(EndpointError::DotenvReference { line: number, name });
        }
        match dotenvy::from_read_iter(line.as_bytes()).next() {
            Some(Ok((_, value))) => found.insert(name, value),
            Some(Err(_)) | None => return Err(EndpointError::DotenvLine { line: number, name }),
        };
    }
    Ok(found)
}

fn name_of(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let (name, _) = line.split_once('=')?;
    names().find(|known| *known == name.trim_end())
}

/// Whether the parser would insert another variable's value: a `$` without a backslash, outside
/// single quotes. It would take it from the shell, so a `.env` that came with a scenario could put
/// the shell's key into its address.
fn refers_to_a_variable(line: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for c in line.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => escaped = true,
            '$' if !single => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Result<Option<String>, EndpointError> {
        read(text).map(|mut found| found.remove("OPENAI_API_KEY"))
    }

    #[test]
    fn lines_that_can_be_read() {
        for (text, value) in [
            ("OPENAI_API_KEY=sk-1", Some("sk-1")),
            ("\u{feff}OPENAI_API_KEY = \"sk-1\" # mine\r\n", Some("sk-1")),
            ("  export OPENAI_API_KEY='sk-$1'", Some("sk-$1")),
            ("export\tOPENAI_API_KEY=sk\\$1", Some("sk$1")),
            ("OPENAI_API_KEY=", Some("")),
            ("OPENAI_API_KEY=a\nOPENAI_API_KEY=b", Some("b")),
            ("# OPENAI_API_KEY=a", None),
            ("MY_OPENAI_API_KEY=a\nOPENAI_API_KEY_2=b\nexportOPENAI_API_KEY=c", None),
            ("what is this?\nOTHER='open\nOPENAI_API_KEY=sk-1", Some("sk-1")),
            ("", None),
        ] {
            assert_eq!(key(text), Ok(value.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn lines_that_cannot() {
        let name = "OPENAI_API_KEY";
        for text in ["\nOPENAI_API_KEY='sk-1", "\nOPENAI_API_KEY=a b", "\nOPENAI_API_KEY=a\\b"] {
            assert_eq!(key(text), Err(EndpointError::DotenvLine { line: 2, name }), "{text}");
        }
        for text in [
            "OPENAI_API_KEY=$HOME",
            "OPENAI_API_KEY=a${HOME}b",
            "OPENAI_API_KEY=\"it's $HOME\"",
            "OPENAI_API_KEY='a'$HOME'b'",
            "OPENAI_API_KEY=\\\\$HOME",
        ] {
            assert_eq!(key(text), Err(EndpointError::DotenvReference { line: 1, name }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_expands_variables(parts in prop::collection::vec(
            prop::sample::select(vec!["$PATH", "${PATH}", "$", "'", "\"", "\\", " ", "#", "=", "a"]),
            0..8,
        )) {
            // In every environment in which the tests run, PATH is set and has a slash or
            // semicolon.
            if let Ok(Some(value)) = key(&format!("OPENAI_API_KEY={}", parts.concat())) {
                prop_assert!(!value.contains(['/', ';']), "{}", value);
            }
        }
    }
}
