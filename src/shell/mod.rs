//! Everything that touches the terminal and the system: the loop, the screen guard, input, effects,
//! clipboard, logging, folders. Behaviour is in `app`, drawing in `ui`.

#[cfg(unix)]
mod abort;
pub mod callers;
pub mod catalogue;
pub mod clipboard;
pub mod config;
pub mod consent;
pub mod console;
pub mod dirs;
pub mod effects;
pub mod feed;
pub mod input;
pub mod journal;
#[cfg(unix)]
pub mod keyboard;
pub mod log;
mod model_lists;
pub mod models;
pub mod pager;
pub mod pauses;
pub mod run;
pub mod screen;
pub mod signals;
pub mod surface;
pub mod themes;
pub mod tools;
pub mod trust;
pub mod tty;
pub mod watch;
pub mod watchdog;
