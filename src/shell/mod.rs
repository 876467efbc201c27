//! Everything that touches the terminal and the system: the loop, the screen guard, input, effects,
//! clipboard, logging, folders. Behaviour is in `app`, drawing in `ui`.

#[cfg(unix)]
mod abort;
pub mod callers;
pub mod clipboard;
mod comparison;
pub mod console;
pub mod effects;
mod execute;
pub mod feed;
pub mod input;
mod kept_runs;
pub mod kept_store;
#[cfg(unix)]
pub mod keyboard;
mod last_recorded;
mod model_lists;
mod recorded_runs;
#[cfg(feature = "nats")]
pub mod remote;
#[cfg(feature = "nats")]
mod remote_session;
pub mod remote_store;
pub mod run;
mod scenario_files;
pub mod screen;
pub mod signals;
pub mod surface;
mod terminal_program;
pub mod themes;
pub mod tty;
mod waits;
pub mod watch;
pub mod watchdog;
