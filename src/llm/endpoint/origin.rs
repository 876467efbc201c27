//! Where a value of an endpoint comes from.

use std::fmt;

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// A variable of the shell.
    Shell,
    /// The `.env` file in the working directory.
    Dotenv,
    /// The command line.
    CommandLine,
    /// The scenario.
    Scenario,
    /// The configuration file.
    Config,
    /// The default value.
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
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: SettingOrigin,
}
