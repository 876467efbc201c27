//! Headers and variables that a scenario names, looked up before a run starts, so that a missing
//! one is reported before anything is spent.

use std::collections::BTreeMap;

use crate::net::{Redactor, Secret};
use crate::scenario::spec::http::Setting;

/// Looks up an environment variable; tests pass their own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings with their values.
#[derive(Debug, Default)]
pub struct ToolSettings {
    /// Values by name. A value from the environment is a secret and never shown.
    pub(super) values: BTreeMap<String, Secret>,
    /// Redacts the values that came from the environment.
    pub(super) redactor: Redactor,
}

impl ToolSettings {
    /// Looks up the values that come from the environment. An empty variable counts as not set.
    ///
    /// # Errors
    /// Every variable that is not set.
    pub fn look_up(
        settings: &BTreeMap<String, Setting>,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let (mut values, mut secrets, mut missing) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, setting) in settings {
            let value = match setting {
                Setting::Text(text) => Secret::new(text.as_str()),
                Setting::Env(variable) => match env(variable).filter(|value| !value.is_empty()) {
                    Some(value) => {
                        let value = Secret::new(value);
                        secrets.push(value.clone());
                        // For `Bearer abc`, a server may echo `abc` alone.
                        let bare = value.expose().split_once(' ').map(|(_, bare)| bare.trim());
                        secrets.extend(bare.map(Secret::new));
                        value
                    }
                    None => {
                        let (name, variable) = (name.clone(), variable.clone());
                        missing.push(NotReady::Variable { name, variable });
                        continue;
                    }
                },
            };
            values.insert(name.clone(), value);
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(Self { values, redactor: Redactor::with_secrets(secrets) })
    }
}

/// Why a tool cannot be called at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// A variable is not set.
    #[error("{name} comes from ${variable}, which is not set: set it and start again")]
    Variable {
        /// The header, or the program's own variable.
        name: String,
        /// The environment variable to set.
        variable: String,
    },
    /// A header's name or value is not valid.
    #[error("the header {name} cannot be sent: its {part} has characters that headers cannot have")]
    Header {
        /// Name of the header.
        name: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// The URL cannot be called.
    #[error("{why}: write an address such as https://shop.example/v1/orders/{{id}}")]
    Address {
        /// What is wrong with it.
        why: String,
    },
    /// Documents cannot be read.
    #[error("{why}")]
    Documents {
        /// What is wrong with it, and what to do.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_that_is_missing_is_told_at_once() {
        let settings = BTreeMap::from([
            ("A".to_owned(), Setting::Text("plain".to_owned())),
            ("B".to_owned(), Setting::Env("TOKEN".to_owned())),
            ("C".to_owned(), Setting::Env("EMPTY".to_owned())),
            ("D".to_owned(), Setting::Env("NONE".to_owned())),
        ]);
        let env = |name: &str| match name {
            "TOKEN" => Some("hunter2hunter2".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let missing = ToolSettings::look_up(&settings, &env).expect_err("two are missing");
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(
            missing,
            [
                "C comes from $EMPTY, which is not set: set it and start again",
                "D comes from $NONE, which is not set: set it and start again",
            ]
        );
        let there = |_: &str| Some("hunter2hunter2".to_owned());
        let found = ToolSettings::look_up(&settings, &there).expect("all there");
        assert_eq!(found.redactor.redact("plain hunter2hunter2"), "plain ***");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}
