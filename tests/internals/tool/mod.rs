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

/// A secret of the tests; it must turn up in no text and no answer.
const TOKEN: &str = "hunter2hunter2";

/// Variables that programs of the tests get.
fn environment(name: &str) -> Option<String> {
    match name {
        "PATH" => std::env::var(name).ok(),
        "SHOP_TOKEN" => Some(TOKEN.to_owned()),
        _ => None,
    }
}
