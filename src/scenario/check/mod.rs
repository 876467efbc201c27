//! From the tables of a file to a checked scenario: what belongs together, what is missing, what can
//! never have an effect. Each `build_*` builds one part of [`crate::scenario::Scenario`].

pub(crate) mod build;
pub(crate) mod build_implementation;
pub(crate) mod build_lookup;
pub(crate) mod build_models;
pub(crate) mod build_policy;
pub(crate) mod build_tools;
pub(crate) mod condition_check;
pub(crate) mod expect;
mod fault;
pub(crate) mod fixture_contract;
pub(crate) mod input;
pub(crate) mod instant_warning;
pub(crate) mod outcome_fields;
pub(crate) mod pattern_keys;
pub(crate) mod script;
pub(crate) mod script_limits;
pub(crate) mod script_steps;
pub(crate) mod scripted_reply;
pub(crate) mod stop_reasons;
pub(crate) mod unknown_name;
pub(crate) mod url_template;
