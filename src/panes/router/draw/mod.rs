//! Drawing of the panes of a router.

mod routes;
mod steps;
mod view;
