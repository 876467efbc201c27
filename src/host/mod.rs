//! This machine, for runs with and without a terminal: folders, configuration, scenario files,
//! models and keys, permission, the program's log, and kept runs read to be continued.

pub mod catalogue;
pub mod client_servers;
pub mod config;
pub mod consent;
pub mod day_account;
pub mod first_start;
pub mod from_run;
pub mod kept_runs;
pub mod models;
#[cfg(unix)]
pub mod peers;
pub mod prepare;
pub mod program_log;
pub mod recorded;
pub mod run_store;
pub mod traced_runs;
pub mod trust;

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::log::event::AnsweredBy;

/// Name of this machine, up to its first dot.
pub fn machine_name() -> String {
    #[cfg(unix)]
    let found = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let found = String::new();
    let short = found.split('.').next().unwrap_or_default();
    if short.is_empty() { "machine".to_owned() } else { short.to_owned() }
}

/// Name of the account that this process belongs to, as its environment says.
pub fn user_name() -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|it| std::env::var(it).ok());
    user.filter(|user| !user.trim().is_empty()).unwrap_or_else(|| "user".to_owned())
}

/// This person, as answers to questions name them. Nobody checks it.
pub fn this_person() -> AnsweredBy {
    AnsweredBy::Person { name: user_name().into(), host: machine_name().into() }
}

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

    /// Path of the account of the spending of each day.
    pub fn spent(&self) -> PathBuf {
        self.state.join("spent.db")
    }

    /// Path of the log file.
    pub fn log(&self) -> PathBuf {
        self.state.join("roundtable.log")
    }

    /// Path of the file that says that the program was started before.
    pub fn started(&self) -> PathBuf {
        self.state.join("started")
    }

    /// Path of the configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Path of what was seen and allowed of the tools of MCP servers.
    pub fn seen_tools(&self) -> PathBuf {
        self.config.join("tools.json")
    }

    /// Path of the list of trusted scenarios.
    pub fn trusted(&self) -> PathBuf {
        self.config.join("trusted")
    }
}
