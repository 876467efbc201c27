//! Drawing of the panes of a collaboration.

pub(crate) mod calls;
pub(crate) mod rounds;
pub(crate) mod seat;
pub(crate) mod speaker;
pub(crate) mod stances;
pub(crate) mod table;
pub(crate) mod table_middle;
pub(crate) mod view;
