//! The panes of a collaboration.

pub(crate) mod draw;
mod speaker;
pub mod subject;
pub mod table;
pub mod view;
