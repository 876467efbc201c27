//! The real binary, headless and over sockets of this machine.

mod acp;
mod acp_agents;
mod ag_ui;
mod cluster;
#[cfg(target_os = "linux")]
mod cluster_clocks;
mod cluster_copies;
mod cluster_logins;
mod cluster_many;
mod cluster_network;
mod cluster_servers;
mod cluster_takeover;
mod configuration;
mod costs;
mod docs;
mod doctor;
mod expectations;
#[cfg(unix)]
mod failure_reasons;
#[cfg(target_os = "linux")]
mod from_run;
mod full_disk;
mod guard;
mod headless_files;
mod headless_live;
mod headless_research;
mod headless_run;
mod headless_scenarios;
mod headless_sessions;
mod headless_tools;
mod histories;
mod hostile_logs;
mod kept_runs;
mod killed_approvals;
mod killed_live_runs;
mod killed_runs;
mod live_adaptation;
mod live_replies;
mod live_seats;
mod locked_store;
mod mcp;
mod mcp_tools;
mod new_scenario;
#[cfg(unix)]
mod peers;
mod people;
mod pictures;
mod plain;
mod prompt_files;
mod read_only_home;
mod research_web;
mod rows;
mod shared_store;
mod shells;
mod spending;
mod stream_errors;
#[path = "../support/program.rs"]
mod support;
#[cfg(unix)]
mod traces;
mod watch;
mod wrong_clock;
