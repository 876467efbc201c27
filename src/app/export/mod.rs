//! A run as a document that is given to somebody: no screen, no clipboard, a file or a page of a
//! wiki. Pure functions over [`World`](crate::event::World), for the dashboard and for a run without.

mod escape;
pub mod research;
