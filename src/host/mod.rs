//! What both ways to run a scenario need of this machine, with a terminal or without: folders, the
//! configuration file, scenario files, models and keys, tools, trust and permission, the log file.

pub mod catalogue;
pub mod config;
pub mod consent;
pub mod dirs;
pub mod fork;
pub mod journal;
#[cfg(feature = "store")]
pub mod keep;
#[cfg(feature = "store")]
pub mod kept;
#[cfg(feature = "tui")]
pub mod log;
#[cfg(feature = "nats")]
pub mod machine;
pub mod models;
pub mod pauses;
pub mod prepare;
pub mod recorded;
#[cfg(feature = "store")]
pub mod redaction_key;
#[cfg(feature = "store")]
pub mod resume;
pub mod tools;
pub mod trust;
