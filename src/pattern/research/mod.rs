//! Pattern `004`, research: plan, search, dedupe, gate, read and take notes, verify, put together.
//!
//! [`policy`], [`address`], [`quote`], [`figures`], [`compare`] and [`answer`] are pure: what a user
//! must be able to trust of which sources are read, which notes are taken and which answers stand.
//! What pages and models say is data in all of them. [`by_rule`] does without a model what one may
//! do; `play.rs` and `reading.rs` are the loop.

pub mod address;
pub mod answer;
pub mod by_rule;
pub mod compare;
mod detail;
pub mod figures;
mod payload;
pub mod play;
pub mod policy;
pub mod quote;
mod reading;
pub mod sentences;
