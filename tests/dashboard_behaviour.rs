//! What the dashboard does, held to plain state: messages in, effects out, no terminal.

mod screen;

#[path = "dashboard/command_line.rs"]
mod command_line;
#[path = "dashboard/flags.rs"]
mod flags;
#[path = "dashboard/form.rs"]
mod form;
#[path = "dashboard/keys.rs"]
mod keys;
#[path = "dashboard/models.rs"]
mod models;
#[path = "dashboard/pointer.rs"]
mod pointer;
#[path = "dashboard/quiet.rs"]
mod quiet;
#[path = "dashboard/runs.rs"]
mod runs;
