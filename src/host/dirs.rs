//! The folders for the program's files.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// The user's folders: by the XDG rules on Linux and macOS, in `AppData` on Windows.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// Settings of the user: `~/.config/roundtable`.
    pub config: PathBuf,
    /// State of the program: `~/.local/state/roundtable`.
    pub state: PathBuf,
}

impl Dirs {
    /// Finds the folders without creating them. `None`: the user has no home directory.
    pub fn find() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Some(Self { config: base.config_dir().join("roundtable"), state: state.join("roundtable") })
    }

    /// Path of the database of kept runs.
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs.db")
    }

    /// Path of the log file.
    pub fn log(&self) -> PathBuf {
        self.state.join("roundtable.log")
    }

    /// Path of the configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Path of the list of trusted scenarios.
    pub fn trusted(&self) -> PathBuf {
        self.config.join("trusted")
    }
}
