//! Drawing of the panes of an orchestrator.

pub(crate) mod phases;
pub(crate) mod results;
pub(crate) mod sign;
pub(crate) mod slots;
pub(crate) mod task;
pub(crate) mod view;
pub(crate) mod waterfall;
