//! What the panes of all agents share, and the drawer of a swarm's members.

pub mod call_tree;
pub(crate) mod draw;
pub mod lower;
pub mod members;
pub(crate) mod members_actions;
pub(crate) mod outcome_text;
pub mod picture;
pub mod row_cursor;
pub mod transcript;
