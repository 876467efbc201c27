//! The patterns, whole runs of them and their rules.

mod collaboration_policy;
mod orchestrator_flows;
mod orchestrator_policy;
mod orchestrator_scenarios;
mod research_flows;
mod research_policy;
mod research_scenarios;
mod research_web;
mod router_policy;
mod router_scenarios;
mod team_coordinator;
mod team_depth;
mod team_faults;
mod team_head;
mod team_policy;
mod team_scenarios;
mod team_swarm;
mod team_transcript;
