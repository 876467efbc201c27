//! From a model's reply to data that policy has judged: what is repaired in it, what is said about one
//! that is refused, and how the model is asked again. The contracts themselves, and the reasons that
//! they stop a run with, are those of the patterns.

mod ask;
pub mod detail;
pub mod repair;

pub(super) use ask::{Judged, Refusal, ask_json, ask_plain_json, empty};
