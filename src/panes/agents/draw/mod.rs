//! Drawing of what the panes of all agents share.

pub(crate) mod agent;
pub(crate) mod calls;
pub(crate) mod members;
pub(crate) mod transcript;
