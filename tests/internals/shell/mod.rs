//! The loop of the dashboard without a terminal, and what a person is asked.

mod loop_flow;
mod readme;
mod remote_runs;
mod research_consent;
mod team_session;
