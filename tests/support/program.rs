//! What the tests of the real binary share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod acp;
pub mod ag_ui;
pub mod binary;
pub mod counting_endpoint;
pub mod cut_proxy;
#[cfg(target_os = "linux")]
pub mod full_disk;
pub mod hostile_logs;
pub mod line_client;
pub mod locked_store;
pub mod logins;
pub mod mcp;
pub mod nats;
pub mod nats_group;
pub mod nats_proxy;
pub mod people;
pub mod pipe;
pub mod pty;
pub mod runners;
pub mod scene;
pub mod senders;
pub mod server;
pub mod site;
pub mod strict;
pub mod web_research;
