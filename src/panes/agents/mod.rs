//! What the panes of all agents share.

pub mod call_tree;
pub(crate) mod draw;
pub mod graph;
pub mod picture;
pub mod row_cursor;
pub mod transcript;
