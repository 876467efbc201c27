//! Where files of ours live.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// The folders of this user. On Linux and macOS those of the XDG rules, on Windows those of
/// `AppData`.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// What a person sets: `~/.config/roundtable`.
    pub config: PathBuf,
    /// What the program keeps: `~/.local/state/roundtable`.
    pub state: PathBuf,
}

impl Dirs {
    /// Finds the folders; makes none. `None` when the user has no home.
    pub fn find() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Some(Self { config: base.config_dir().join("roundtable"), state: state.join("roundtable") })
    }

    /// The log file.
    pub fn log(&self) -> PathBuf {
        self.state.join("roundtable.log")
    }

    /// The configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The scenarios that a person trusts.
    pub fn trusted(&self) -> PathBuf {
        self.config.join("trusted")
    }
}
