//! The tools behind the gateway: fixtures of a scenario, programs, HTTP services, search endpoints, web
//! pages and folders of documents. Each implements [`crate::gateway::Tool`]; policy is the gateway's.

mod address;
pub mod command;
pub mod documents;
pub mod endpoint;
pub mod fixture;
#[cfg(feature = "documents")]
pub mod folder;
pub mod http;
pub(crate) mod process_group;
mod result_json;
pub mod settings;
#[cfg(feature = "documents")]
pub mod web;
