//! A collaboration in words.

pub mod badges;
mod event_line;
mod lines;
mod markdown;
mod narrate;
pub mod phrases;
mod preview;
mod rows;
mod what_if;
