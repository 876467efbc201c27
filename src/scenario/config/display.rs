//! The table `[ui]`: how the dashboard looks, and what it tells its terminal.

use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::record::{ObjectSchema, Requirement, record, words};
use crate::scenario::file::shape::{FormatShape, NonBlankString, Positioned};
use crate::scenario::file::tree::{TomlNode, TomlValue};

/// Defaults of the display options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UiDefaults {
    /// The theme.
    pub theme: Option<ConfiguredTheme>,
    /// Draw with ASCII characters only.
    pub ascii: Option<bool>,
    /// Whether spinners and sparklines move.
    pub animation: Option<bool>,
    /// Whether the terminal's title says what the runs do.
    pub title: Option<bool>,
    /// How the terminal tells that a run has ended or waits for somebody.
    pub notify: Option<NotifyBy>,
}

/// A theme that the configuration selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredTheme {
    /// `auto`, name of a shipped theme, or path of a theme file.
    pub name: String,
    /// Position in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
}

/// How the terminal tells that a run has ended or waits for somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotifyBy {
    /// Not at all.
    #[default]
    Off,
    /// With its bell.
    Bell,
    /// With a notification of the desktop (`OSC 9`).
    Osc9,
}

impl NotifyBy {
    /// Its word in the configuration file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Bell => "bell",
            Self::Osc9 => "osc9",
        }
    }
}

words! { NotifyBy:
    "off" => NotifyBy::Off, "Not at all.";
    "bell" => NotifyBy::Bell, "With the terminal's bell.";
    "osc9" => NotifyBy::Osc9, "With a notification of the desktop, in terminals that know `OSC 9`.";
}

record! {
    /// How the dashboard looks.
    struct UiTable => {
        /// `auto` (light or dark, as the terminal's background is), name of a shipped theme, or path of a theme file.
        theme: Positioned<NonBlankString> = optional,
        /// Draw with ASCII characters only.
        ascii: bool = optional,
        /// Whether spinners and sparklines move.
        animation: bool = optional,
        /// Whether the terminal's title says what the runs do.
        title: bool = optional,
        /// How the terminal tells that a run has ended, or waits at a breakpoint.
        notify: NotifyBy = optional,
    }
}

impl UiTable {
    /// The values of the table.
    pub(super) fn defaults(self, cx: &ReadContext) -> UiDefaults {
        let theme = self.theme.map(|theme| {
            let (line, column) = cx.position(theme.at);
            let name = theme.value.text.trim().to_owned();
            ConfiguredTheme { name, place: format!("{line}:{column}") }
        });
        let Self { ascii, animation, title, notify, .. } = self;
        UiDefaults { theme, ascii, animation, title, notify }
    }
}
