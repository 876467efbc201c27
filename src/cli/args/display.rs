//! The options of every command: appearance, and the log file.

use std::path::PathBuf;

use clap::Args;

use crate::llm::endpoint::{SettingOrigin, WithOrigin};
use crate::scenario::config::UiDefaults;
use crate::shell::themes::AUTO;

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Draw with ASCII characters only (--ascii=false overrides the configuration)
    #[arg(
        long,
        global = true,
        help_heading = "Display",
        value_name = "true|false",
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub ascii: Option<bool>,
    /// Switch off moving spinners and sparklines (--no-animation=false switches them on)
    #[arg(
        long,
        global = true,
        help_heading = "Display",
        value_name = "true|false",
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub no_animation: Option<bool>,
    /// The colours of the dashboard: auto (as the terminal's background is), dark, light, colour-blind or mono, or a theme file
    #[arg(long, global = true, value_name = "NAME|FILE", help_heading = "Display")]
    pub theme: Option<String>,
    /// Write the log to this file (filter: ROUNDTABLE_LOG=debug)
    #[arg(long, global = true, value_name = "FILE", help_heading = "Display")]
    pub log_file: Option<PathBuf>,
    /// Do not keep runs in the store (see `roundtable runs`)
    #[arg(long, global = true)]
    pub no_store: bool,
    /// Display settings of the configuration file; the command line overrides them.
    #[arg(skip)]
    pub configured: UiDefaults,
    /// The theme that ROUNDTABLE_THEME names, if it is in force.
    #[arg(skip)]
    pub theme_variable: Option<String>,
}

impl Global {
    /// Whether output is limited to ASCII characters.
    pub fn is_ascii(&self) -> bool {
        self.ascii_from().value
    }

    /// Whether spinners and sparklines move.
    pub fn is_animated(&self) -> bool {
        self.animation_from().value
    }

    /// Whether the terminal's title says what the runs do.
    pub fn has_title(&self) -> bool {
        self.title_from().value
    }

    /// [`has_title`](Self::has_title) with its origin.
    pub fn title_from(&self) -> WithOrigin<bool> {
        first_set(None, self.configured.title, true)
    }

    /// The name of the theme, with its origin.
    pub fn theme_from(&self) -> WithOrigin<String> {
        let configured = self.configured.theme.as_ref().map(|theme| &theme.name);
        let (value, origin) = match (&self.theme, &self.theme_variable, configured) {
            (Some(name), ..) => (name.as_str(), SettingOrigin::CommandLine),
            (None, Some(name), _) => (name.as_str(), SettingOrigin::Shell),
            (None, None, Some(name)) => (name.as_str(), SettingOrigin::Config),
            (None, None, None) => (AUTO, SettingOrigin::Default),
        };
        WithOrigin { value: value.to_owned(), origin }
    }

    /// [`is_ascii`](Self::is_ascii) with its origin.
    pub fn ascii_from(&self) -> WithOrigin<bool> {
        first_set(self.ascii, self.configured.ascii, false)
    }

    /// [`is_animated`](Self::is_animated) with its origin.
    pub fn animation_from(&self) -> WithOrigin<bool> {
        first_set(self.no_animation.map(|still| !still), self.configured.animation, true)
    }
}

fn first_set(here: Option<bool>, configured: Option<bool>, otherwise: bool) -> WithOrigin<bool> {
    match (here, configured) {
        (Some(value), _) => WithOrigin { value, origin: SettingOrigin::CommandLine },
        (None, Some(value)) => WithOrigin { value, origin: SettingOrigin::Config },
        (None, None) => WithOrigin { value: otherwise, origin: SettingOrigin::Default },
    }
}
