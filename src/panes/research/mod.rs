//! The panes of research.

pub mod answer;
pub mod areas;
pub(crate) mod draw;
pub mod item;
mod jump;
mod moves;
pub mod notes;
pub mod page_layout;
pub mod selection;
pub mod step;
mod target;
pub mod view;
