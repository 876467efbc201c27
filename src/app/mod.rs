//! The dashboard's behaviour: state, messages, update, key table. This layer has no terminal, no
//! async runtime and no clock of its own: time comes in with the messages, and work for the shell
//! goes out as effects.

pub mod action;
mod arrange;
mod authoring;
pub mod commands;
mod compare;
pub mod comparison_view;
pub mod confirm;
mod earlier;
pub mod effect;
pub mod faults;
pub mod flags;
mod fork_tree;
mod forks;
pub mod form;
pub mod help;
pub mod history;
pub mod home;
pub mod input;
mod kept_actions;
pub mod kept_change;
pub mod key;
pub mod key_hints;
pub mod keymap;
pub(crate) mod keys_in_use;
mod launch;
pub mod layout;
mod leave;
pub(crate) mod limit_step;
pub mod live;
pub mod message;
mod message_actions;
pub mod msg;
pub mod notice;
pub mod overlay;
mod overlay_actions;
mod pointer;
pub mod preview;
mod refusal;
pub mod request;
pub mod run;
mod run_terms;
mod said_filter;
pub mod scenario_list;
pub(crate) mod selection;
pub mod state;
pub mod template_list;
pub mod update;
pub mod what_if;

pub use action::Action;
pub use effect::Effect;
pub use key::{KeyCode, KeyPress};
pub use msg::Msg;
pub use state::AppState;
pub use update::update;
