//! The text that a model gets as the result of a call. Prompt and transcript both take it from
//! here, so they agree.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::call::Reply;
use super::stop::StopReason;
use crate::scenario::spec::script::ReplyEnd;

/// A value as text: a string as it is, anything else as JSON.
pub fn value_text(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        value => value.to_string().into(),
    }
}

/// The result of a tool or its fallback value, or the text of an agent's reply.
pub fn reply_text(reply: &Reply) -> Arc<str> {
    reply.result.as_deref().map_or_else(|| Arc::clone(&reply.text), value_text)
}

/// The text of a reply for a model that reads it: if the reply is not whole, it says so at its end.
pub fn marked_text(text: &Arc<str>, end: ReplyEnd) -> Arc<str> {
    match end.mark() {
        None => Arc::clone(text),
        Some(mark) => noted_text(text, Some(&format!("[This reply was {mark}.]"))),
    }
}

/// A result with a note below it.
pub fn noted_text(text: &Arc<str>, note: Option<&str>) -> Arc<str> {
    match note {
        None => Arc::clone(text),
        Some(note) => format!("{}\n\n{note}", text.trim_end()).into(),
    }
}

/// An error.
pub fn error_text(why: impl fmt::Display) -> Arc<str> {
    format!("error: {why}").into()
}

/// A failed call: its stop reason and the error of its last attempt. If no attempt was made: what
/// the model can do next.
pub fn failure_text(reason: &StopReason, last: Option<&str>) -> Arc<str> {
    match (last, reason) {
        // It says who has denied it, and why.
        (Some(denied), StopReason::ApprovalDenied(_)) => denied.into(),
        // The failure text of an agent begins with the stop reason already.
        (Some(last), _) if last.starts_with(&reason.to_string()) => error_text(last),
        (Some(last), _) => error_text(format_args!("{reason}: {last}")),
        (None, StopReason::CircuitOpen(tool)) => {
            error_text(format_args!("{reason}. {tool} takes no calls for now: go on without it."))
        }
        (None, StopReason::BulkheadFull(tool) | StopReason::RateReached(tool)) => {
            let now = "call it later, or go on without it";
            error_text(format_args!("{reason}. {tool} takes no more calls at once: {now}."))
        }
        (None, _) => error_text(reason),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omits_quotes_and_repeated_reasons() {
        assert_eq!(&*value_text(&json!("a \"text\"")), "a \"text\"");
        assert_eq!(&*value_text(&json!({ "hits": [12] })), r#"{"hits":[12]}"#);
        let reason = StopReason::MaxToolRounds;
        let table = [
            (None, "error: max_tool_rounds"),
            (Some("max_tool_rounds; a had said: so"), "error: max_tool_rounds; a had said: so"),
            (Some("HTTP 503"), "error: max_tool_rounds: HTTP 503"),
        ];
        for (last, text) in table {
            assert_eq!(&*failure_text(&reason, last), text);
        }
        let table = [
            (
                StopReason::CircuitOpen("web".into()),
                "error: circuit_open:web. web takes no calls for now: go on without it.",
            ),
            (
                StopReason::BulkheadFull("web".into()),
                "error: bulkhead_full:web. web takes no more calls at once: call it later, or go on \
                 without it.",
            ),
        ];
        for (reason, text) in table {
            assert_eq!(&*failure_text(&reason, None), text);
        }
    }
}
