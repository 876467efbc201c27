//! From the tables of a file to a checked scenario: what belongs together, what is missing, what can
//! never have an effect. Each `build_*` builds one part of [`crate::scenario::Scenario`].

pub mod build;
pub mod build_implementation;
pub mod build_lookup;
pub mod build_models;
pub mod build_orchestrator;
pub mod build_policy;
pub mod build_research;
pub mod build_resilience;
pub mod build_team;
pub mod build_tools;
pub mod condition_check;
pub mod domain;
pub mod fixture_contract;
pub mod input;
pub mod instant_warning;
pub mod nesting;
pub mod script;
pub mod script_contract;
pub mod script_steps;
pub mod script_team;
pub mod unused_settings;
