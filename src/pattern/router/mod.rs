//! The pattern router (docs/rules/patterns.md, "Router"): one model call classifies the request,
//! policy picks the route, and the agent behind the route answers.

pub(crate) mod detail;
pub mod facts;
pub mod faults;
pub(crate) mod file;
pub(crate) mod head;
pub(crate) mod outcome;
pub(crate) mod payload;
pub mod plan;
pub mod play;
pub mod policy;
pub mod projection;
pub mod spec;
pub(crate) mod words;
