//! Agents that work together (teams source document): model agents, coordinators and swarms. The
//! pattern team starts them; a pattern that needs agents of its own uses the same ones.
//!
//! As in the folder of a pattern, the name of a file says its layer: `spec` and `file` what a
//! scenario says, `facts`, `plan`, `projection`, `outcome` and `policy` what happened and the rules, `words`
//! events in words, all other files the loop.

pub mod agent_call;
pub mod agent_run;
pub mod by_kind;
pub mod call_result;
pub mod consult;
pub mod facts;
pub mod file;
pub mod handover;
pub(crate) mod head;
pub mod offers;
pub(crate) mod outcome;
pub mod plan;
pub mod policy;
pub mod projection;
pub mod rosters;
pub mod runner;
pub mod shared_history;
pub mod spec;
pub mod swarm;
pub mod tool_calls;
pub mod turn;
pub(crate) mod words;
