//! A router in words.

pub(crate) mod decision;
mod event_line;
mod lines;
mod markdown;
mod narrate;
mod what_if;
