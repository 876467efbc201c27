//! What a model is told that a call came to. Its prompt and the transcript have it from here, so they
//! say the same.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::call::Reply;
use super::stop::StopReason;

/// A value: a text as it stands, anything else as JSON.
pub fn value(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        value => value.to_string().into(),
    }
}

/// A reply: the value of a tool or of what stands in, else the text of an agent.
pub fn reply(reply: &Reply) -> Arc<str> {
    reply.result.as_deref().map_or_else(|| Arc::clone(&reply.text), value)
}

/// That it came to nothing.
pub fn error(why: impl fmt::Display) -> Arc<str> {
    format!("error: {why}").into()
}

/// The failure of a call for good: the reason that it gives, and what its last attempt said, where
/// that was made. Of a call that was never made: what the model can do now.
pub fn failure(reason: &StopReason, last: Option<&str>) -> Arc<str> {
    match (last, reason) {
        // What an agent says of its end begins with the reason.
        (Some(last), _) if last.starts_with(&reason.to_string()) => error(last),
        (Some(last), _) => error(format_args!("{reason}: {last}")),
        (None, StopReason::CircuitOpen(tool)) => {
            error(format_args!("{reason}. {tool} takes no calls for now: go on without it."))
        }
        (None, StopReason::BulkheadFull(tool)) => {
            let now = "call it later, or go on without it";
            error(format_args!("{reason}. {tool} takes no more calls at once: {now}."))
        }
        (None, _) => error(reason),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_stands_without_quotes_and_a_reason_once() {
        assert_eq!(&*value(&json!("a \"text\"")), "a \"text\"");
        assert_eq!(&*value(&json!({ "hits": [12] })), r#"{"hits":[12]}"#);
        let reason = StopReason::MaxToolRounds;
        let table = [
            (None, "error: max_tool_rounds"),
            (Some("max_tool_rounds; a had said: so"), "error: max_tool_rounds; a had said: so"),
            (Some("HTTP 503"), "error: max_tool_rounds: HTTP 503"),
        ];
        for (last, text) in table {
            assert_eq!(&*failure(&reason, last), text);
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
            assert_eq!(&*failure(&reason, None), text);
        }
    }
}
