//! The tools.

mod command_tool;
mod endpoint_search;
mod folder_read;
mod folder_search;
mod http_tool;
mod web_reader;
