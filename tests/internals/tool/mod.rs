//! The tools.

#[cfg(unix)]
mod acp;
mod ag_ui;
mod ag_ui_turns;
mod command_tool;
mod endpoint_search;
mod folder_read;
mod folder_search;
mod http_tool;
#[cfg(unix)]
mod mcp;
mod web_reader;
