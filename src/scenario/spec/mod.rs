//! What a good scenario says, as plain data: patterns, tools, limits, models, prices. Nothing here
//! reads a file, and nothing here runs.

pub mod alert;
pub(crate) mod boundary_form;
pub mod expectation;
pub mod fault;
pub mod http;
pub mod in_doubt;
pub mod limits;
pub mod live_defaults;
pub mod lookup;
pub mod model;
pub mod model_assignment;
pub mod pattern;
pub mod policy;
pub mod prepared;
pub mod price;
pub mod prompt;
pub mod repair;
pub mod script;
pub mod source_text;
pub mod spending_limits;
pub mod tool;
pub mod tuning;
