//! Drawing of the panes of research.

pub(crate) mod items;
pub(crate) mod page;
pub(crate) mod sign;
pub(crate) mod sources;
pub(crate) mod steps;
pub(crate) mod title;
pub(crate) mod view;
