//! What the dashboard does, held to plain state: messages in, effects out, no terminal.

mod authoring;
mod command_line;
mod commands;
mod comparison;
mod earlier;
mod flags;
mod forks;
mod form;
mod kept;
mod keys;
mod models;
mod moving;
mod pointer;
mod quiet;
mod runs;
mod tour;
