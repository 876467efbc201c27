//! The tools.

mod command_tool;
mod document_allocations;
mod endpoint_search;
mod folder_read;
mod folder_search;
mod http_tool;
mod web_reader;
