//! Turns a model's reply into data that policy has judged: repairs, the details of a refusal, and
//! the retry of a refused reply. The contracts and their stop reasons belong to the patterns.

mod ask;
pub mod detail;
pub mod repair;

pub(crate) use ask::{
    JudgedReply, Refusal, final_text, report_empty_reply, request_json, request_json_fast,
};
