//! A run as a document for somebody else: a file or a wiki page. Pure functions over
//! [`World`](crate::event::World), used by the dashboard and by headless runs.

pub(crate) mod escape;
