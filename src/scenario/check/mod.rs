//! From the tables of a file to a checked scenario: what belongs together, what is missing, what can
//! never have an effect. Each `build_*` builds one part of [`crate::scenario::Scenario`].

pub(crate) mod build;
pub(crate) mod build_implementation;
pub(crate) mod build_lookup;
pub(crate) mod build_models;
pub(crate) mod build_policy;
pub(crate) mod build_tools;
pub(crate) mod condition_check;
pub(crate) mod domain;
pub(crate) mod fixture_contract;
pub(crate) mod handoff_input;
pub(crate) mod input;
pub(crate) mod instant_warning;
pub(crate) mod nesting;
pub(crate) mod script;
pub(crate) mod script_contract;
pub(crate) mod script_steps;
pub(crate) mod unused_settings;
