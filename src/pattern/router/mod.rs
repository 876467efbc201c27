//! The pattern router (docs/rules/patterns.md, "Router"): one model call classifies the request,
//! policy picks the route, and the agent behind the route answers.

pub mod play;
pub mod policy;
