//! Drawing of the panes of the tools, which every run can show.

pub(crate) mod agents;
pub(crate) mod breakers;
pub(crate) mod bulkheads;
pub(crate) mod gauges;
pub(crate) mod lanes;
pub(crate) mod retries;
mod state;
pub(crate) mod tool;
pub(crate) mod view;
