//! How a reply ended: what the reasons of the APIs mean. Servers and proxies use each other's
//! words, in any case, so both APIs share one table.

use crate::event::kind::ReplyEnd;

/// The end of a chat completion: of its `finish_reason`, and of the text with which the model
/// refused.
pub(in crate::llm) fn end_of_completion(reason: Option<&str>, refusal: Option<&str>) -> ReplyEnd {
    match end_named(reason.unwrap_or_default()) {
        ReplyEnd::Stop | ReplyEnd::Length if refusal.is_some_and(|refusal| !refusal.is_empty()) => {
            ReplyEnd::Refused
        }
        // This API cannot continue a reply.
        ReplyEnd::Paused => ReplyEnd::Length,
        end => end,
    }
}

/// The end of a message: of its `stop_reason`.
pub(in crate::llm) fn end_of_message(reason: Option<&str>) -> ReplyEnd {
    end_named(reason.unwrap_or_default())
}

/// Parts of the words for each end. The first row with a part of the word counts; a word that is in
/// no row is an end of a future or local server, and the reply is taken as whole.
const PARTS: [(ReplyEnd, &[&str]); 6] = [
    (ReplyEnd::Paused, &["pause"]),
    // Before the filters: Gemini says `function_call_filter: MALFORMED_FUNCTION_CALL`.
    (ReplyEnd::Failed, &["malformed", "unexpected_tool", "missing_thought", "too_many_tool"]),
    (
        ReplyEnd::Filtered,
        &[
            "filter",
            "safety",
            "guardrail",
            "sensitive",
            "blocklist",
            "prohibited",
            "recitation",
            "spii",
            "toxic",
            "moderat",
            "policy",
            "censor",
        ],
    ),
    (ReplyEnd::Refused, &["refus"]),
    (
        ReplyEnd::Length,
        &[
            "length",
            "max_tok",
            "max_output",
            "max_new",
            "max_compl",
            "token_limit",
            "error_limit",
            "context_window",
            "truncat",
            "incomplete",
        ],
    ),
    (
        ReplyEnd::Failed,
        &[
            "error",
            "fail",
            "abort",
            "cancel",
            "interrupt",
            "timeout",
            "timed_out",
            "network",
            "invalid",
            "unexpected",
            "insufficient",
            "unavailable",
            "overload",
        ],
    ),
];

fn end_named(reason: &str) -> ReplyEnd {
    // Nearly every reply.
    if matches!(reason, "stop" | "end_turn" | "tool_calls" | "tool_use" | "") {
        return ReplyEnd::Stop;
    }
    let word = reason.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    let row = PARTS.iter().find(|(_, parts)| parts.iter().any(|part| word.contains(part)));
    row.map_or(ReplyEnd::Stop, |(end, _)| *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_end() {
        use ReplyEnd::*;
        let table: [(ReplyEnd, &[&str]); 6] = [
            (
                Stop,
                &[
                    "",
                    "stop",
                    "STOP",
                    "end_turn",
                    "tool_calls",
                    "tool_use",
                    "function_call",
                    "stop_sequence",
                    "eos",
                    "eos_token",
                    "COMPLETE",
                    "done",
                ],
            ),
            (
                Length,
                &[
                    "length",
                    "LENGTH",
                    "max_tokens",
                    "MAX_TOKENS",
                    "max_output_tokens",
                    "model_length",
                    "model_context_window_exceeded",
                    "context_length_exceeded",
                    "ERROR_LIMIT",
                    "max-tokens",
                ],
            ),
            (
                Filtered,
                &[
                    "content_filter",
                    "SAFETY",
                    "RECITATION",
                    "PROHIBITED_CONTENT",
                    "sensitive",
                    "guardrail_intervened",
                    "content_filtered",
                    "ERROR_TOXIC",
                    "IMAGE_SAFETY",
                ],
            ),
            (Refused, &["refusal", "refused"]),
            (
                Failed,
                &[
                    "error",
                    "ERROR",
                    "abort",
                    "aborted",
                    "network_error",
                    "malformed_function_call",
                    "insufficient_system_resource",
                    "cancelled",
                    "timeout",
                    "server_error",
                    "USER_CANCEL",
                    "UNEXPECTED_TOOL_CALL",
                ],
            ),
            (Paused, &["pause_turn"]),
        ];
        for (end, reasons) in table {
            for reason in reasons {
                assert_eq!(end_of_message(Some(reason)), end, "{reason}");
                let end = if end == Paused { Length } else { end };
                assert_eq!(end_of_completion(Some(reason), None), end, "{reason}");
            }
        }
        assert_eq!(end_of_completion(None, None), Stop);
        assert_eq!(end_of_message(None), Stop);
    }

    #[test]
    fn a_refusal_in_words_is_one() {
        use ReplyEnd::*;
        for (reason, refusal, end) in [
            (Some("stop"), "I cannot.", Refused),
            (None, "I cannot.", Refused),
            (Some("length"), "I cannot.", Refused),
            (Some("content_filter"), "I cannot.", Filtered),
            (Some("error"), "I cannot.", Failed),
            (Some("stop"), "", Stop),
        ] {
            assert_eq!(end_of_completion(reason, Some(refusal)), end, "{reason:?} {refusal}");
        }
    }
}
