//! The options of every command: how it looks, and where its log goes.

use std::path::PathBuf;

use clap::Args;

use crate::llm::endpoint::{Found, Origin};
use crate::scenario::config::UiDefaults;

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Draw with ASCII characters only (--ascii=false: with all, whatever the configuration says)
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
    /// Keep spinners and sparklines still (--no-animation=false: let them move)
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
    /// The colours of the dashboard: dark, light or colour-blind, or a file of your own
    #[arg(long, global = true, value_name = "NAME|FILE", help_heading = "Display")]
    pub theme: Option<String>,
    /// Write the log to this file (filter: ROUNDTABLE_LOG=debug)
    #[arg(long, global = true, value_name = "FILE", help_heading = "Display")]
    pub log_file: Option<PathBuf>,
    /// What the configuration says of them; the command line goes before it.
    #[arg(skip)]
    pub configured: UiDefaults,
}

impl Global {
    /// Whether only ASCII characters are drawn.
    pub fn is_ascii(&self) -> bool {
        self.ascii_from().value
    }

    /// Whether spinners and sparklines move.
    pub fn is_animated(&self) -> bool {
        self.animation_from().value
    }

    /// [`is_ascii`](Self::is_ascii), with where that was said.
    pub fn ascii_from(&self) -> Found<bool> {
        said(self.ascii, self.configured.ascii, false)
    }

    /// [`is_animated`](Self::is_animated), with where that was said.
    pub fn animation_from(&self) -> Found<bool> {
        said(self.no_animation.map(|still| !still), self.configured.animation, true)
    }
}

fn said(here: Option<bool>, configured: Option<bool>, otherwise: bool) -> Found<bool> {
    match (here, configured) {
        (Some(value), _) => Found { value, origin: Origin::CommandLine },
        (None, Some(value)) => Found { value, origin: Origin::Config },
        (None, None) => Found { value: otherwise, origin: Origin::Default },
    }
}
