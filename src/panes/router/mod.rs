//! The panes of a router: the routes with the classifier's claims, the decision, then the calls and
//! the transcript that all patterns of agents show.

pub mod decision;
pub(crate) mod draw;
pub mod view;
