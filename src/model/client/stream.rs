//! Reads a streamed reply (server-sent events), within the caps.
//!
//! How a reply ended: what the reasons of the APIs mean. Servers and proxies use each other's
//! words, in any case, so both APIs share one table.
//!
//! Repairs split surrogate pairs. JSON may escape a character as a pair (`\ud83d\udc4d`), and
//! servers that cut text between the two send one half in each event, which serde_json rejects.
//!
//! Halves are joined if they fit, and become U+FFFD if they do not. An event that can be parsed is
//! not changed, unless the event before it ended with a half.

use std::sync::Arc;

use super::fields::is_keep_alive;
use super::{Client, EVENT_CAP, STREAM_CAP};
use crate::log::event::kind::Reply;
use crate::model::{Failure, Listener};
use crate::net::sse::{SseEvent, SseParser};
use crate::net::{HttpResponse, NetError};
use crate::scenario::spec::script::ReplyEnd;

/// The most characters kept of an event that is not of the API.
const EXCERPT_CHARS: usize = 400;

/// The result of one event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStep {
    /// More events follow.
    More,
    /// The reply is complete.
    Done,
}

/// An event that ends the stream.
#[derive(Debug)]
pub(crate) struct BadEvent {
    /// The failure of the attempt.
    pub(crate) failure: Box<Failure>,
    /// Whether the event reports an error; otherwise it is not an event of the API.
    pub(crate) reported: bool,
}

/// An event that is not of the API. It is ignored, unless nothing else comes.
#[derive(Debug)]
pub(crate) struct ForeignEvent {
    /// Its number, from 1.
    pub(crate) nth: usize,
    /// The beginning of its data.
    pub(crate) data: String,
}

impl ForeignEvent {
    pub(crate) fn new(nth: usize, data: &str) -> Self {
        Self { nth, data: data.chars().take(EXCERPT_CHARS).collect() }
    }
}

/// A partial reply, as an API assembles it.
pub(crate) trait ReplyAssembler {
    /// Processes the next event.
    fn take(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadEvent>;

    /// The cap in bytes that the partial reply exceeds, if it does.
    fn exceeded_cap(&self) -> Option<usize>;

    /// The text so far.
    fn partial(&self) -> Option<Arc<str>>;

    /// Whether the reply has said why it ends (a reason that is not empty), so that nothing is missing if the
    /// stream ends in order.
    fn has_ended(&self) -> bool;

    /// The failure of a stream that had only events that are not of the API; `None` if it had others, or none.
    fn foreign(&self) -> Option<Box<Failure>>;

    /// The complete reply, after an event that ends the stream, or after its end.
    ///
    /// # Errors
    /// A part of the reply is missing, or its tool calls are invalid.
    fn done(self) -> Result<Reply, Box<Failure>>;
}

/// The position of an event, for the texts of failures; `nth` counts from 1.
pub(crate) fn event_place(nth: usize) -> String {
    format!("in event {nth} of the stream")
}

/// Reads a stream to its end.
///
/// # Errors
/// The stream breaks, ends early, exceeds a cap, reports an error or has an event that is not of
/// this API; `partial` has the text that had arrived.
pub(super) async fn read_stream(
    client: &Client,
    mut answer: HttpResponse,
    mut reply: impl ReplyAssembler,
    listener: &dyn Listener,
) -> Result<Reply, Box<Failure>> {
    let mut parser = SseParser::new(EVENT_CAP);
    let mut received = 0_usize;
    let too_large = |cap, partial| client.incomplete_answer(&NetError::TooLarge { cap }, partial);
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(client.incomplete_answer(&error, reply.partial())),
        };
        received += chunk.len();
        if received > STREAM_CAP {
            return Err(too_large(STREAM_CAP, reply.partial()));
        }
        let mut rest: &[u8] = &chunk;
        loop {
            match parser.next(&mut rest) {
                Ok(Some(event)) if is_keep_alive(event) => {}
                Ok(Some(event)) => match reply.take(event, listener) {
                    Ok(StreamStep::More) => {
                        if let Some(cap) = reply.exceeded_cap() {
                            return Err(too_large(cap, reply.partial()));
                        }
                    }
                    Ok(StreamStep::Done) => {
                        let reply = reply.done();
                        answer.release().await;
                        return reply;
                    }
                    Err(bad) => return Err(bad.failure),
                },
                Ok(None) => break,
                Err(error) => return Err(client.unparsed(error, reply.partial())),
            }
        }
    }
    // A complete last event counts even without the empty line after it, which some servers omit.
    // If it is incomplete, the stream was cut off inside it.
    let last = parser.finish().map(|last| last.filter(|event| !is_keep_alive(*event)));
    match last.map(|last| last.map(|event| reply.take(event, listener))) {
        Ok(Some(Ok(StreamStep::Done))) => reply.done(),
        Ok(Some(Err(bad))) if bad.reported => Err(bad.failure),
        _ if reply.has_ended() => reply.done(),
        _ => Err(reply.foreign().unwrap_or_else(|| client.cut_off(reply.partial()))),
    }
}

/// The end of a chat completion: of its `finish_reason`, and of the text with which the model
/// refused.
pub(crate) fn end_of_completion(reason: Option<&str>, refusal: Option<&str>) -> ReplyEnd {
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
pub(crate) fn end_of_message(reason: Option<&str>) -> ReplyEnd {
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

/// The fields whose text continues in the next event.
const GROWING: [&str; 6] = ["content", "refusal", "arguments", "text", "partial_json", "thinking"];

/// Replaces a half without its counterpart.
const ESCAPED_REPLACEMENT: &str = "\\ufffd";

/// Keeps the half at the end of an event until the other half arrives.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    held: Option<HeldHalf>,
}

/// The first half of a pair, and the field that ended with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HeldHalf {
    field: String,
    high: u16,
}

impl Surrogates {
    /// The data of the next event, joined with the pending half; `None` without a pending half.
    pub(crate) fn continued(&mut self, data: &str) -> Option<String> {
        self.held.is_some().then(|| self.rewritten(data).text)
    }

    /// The data of an event that cannot be parsed, without halves; `None` if it has none.
    pub(crate) fn repaired(&mut self, data: &str) -> Option<String> {
        let rewritten = self.rewritten(data);
        rewritten.changed.then_some(rewritten.text)
    }

    /// Whether a half in this field is still without its counterpart.
    pub(crate) fn is_pending_in(&self, field: &str) -> bool {
        self.held.as_ref().is_some_and(|held| held.field == field)
    }

    fn rewritten(&mut self, data: &str) -> Rewriter {
        let mut rewriter =
            Rewriter { before: self.held.take(), streamed: true, ..Rewriter::default() };
        rewriter.read(data);
        self.held =
            rewriter.held.take().or_else(|| rewriter.before.take_if(|_| !rewriter.continued));
        rewriter
    }
}

/// A body without halves of characters; `None` if it has none.
pub(super) fn repaired_body(body: &str) -> Option<String> {
    let mut rewriter = Rewriter::default();
    rewriter.read(body);
    rewriter.changed.then_some(rewriter.text)
}

/// Copies JSON, valid or not, and changes only halves of characters.
#[derive(Debug, Default)]
struct Rewriter {
    /// The half at the end of the previous event.
    before: Option<HeldHalf>,
    /// Another event may follow, with the other half.
    streamed: bool,
    text: String,
    changed: bool,
    /// The pending half was inserted.
    continued: bool,
    held: Option<HeldHalf>,
}

impl Rewriter {
    fn read(&mut self, json: &str) {
        let (mut rest, mut field) = (json, "");
        while let Some((before, string, after)) = next_string(rest) {
            self.text.push_str(before);
            self.text.push('"');
            if after.trim_start().starts_with(':') {
                field = string;
                self.string(string, "");
            } else {
                self.string(string, field);
            }
            self.text.push('"');
            rest = after;
        }
        self.text.push_str(rest);
    }

    /// Copies the content of a string.
    fn string(&mut self, string: &str, field: &str) {
        let mut rest = string;
        if let Some(held) =
            self.before.as_ref().filter(|held| held.field == field && !rest.is_empty())
        {
            (self.changed, self.continued) = (true, true);
            match parse_half(rest) {
                Some(Half::Low(low)) => {
                    self.text.push_str(&format!("\\u{:04x}\\u{low:04x}", held.high));
                    rest = skip(rest, ESCAPE);
                }
                _ => self.text.push_str(ESCAPED_REPLACEMENT),
            }
        }
        while let Some(at) = rest.find('\\') {
            self.text.push_str(rest.get(..at).unwrap_or_default());
            rest = skip(rest, at);
            let next = skip(rest, ESCAPE);
            match (parse_half(rest), parse_half(next)) {
                (Some(Half::High(_)), Some(Half::Low(_))) => rest = self.copy(rest, 2 * ESCAPE),
                (Some(Half::High(high)), _)
                    if self.streamed && next.is_empty() && GROWING.contains(&field) =>
                {
                    self.changed = true;
                    self.held = Some(HeldHalf { field: field.to_owned(), high });
                    rest = next;
                }
                (Some(_), _) => {
                    self.changed = true;
                    self.text.push_str(ESCAPED_REPLACEMENT);
                    rest = next;
                }
                (None, _) => {
                    let after = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                    rest = self.copy(rest, after);
                }
            }
        }
        self.text.push_str(rest);
    }

    /// Copies `bytes` bytes, and returns the rest.
    fn copy<'t>(&mut self, text: &'t str, bytes: usize) -> &'t str {
        self.text.push_str(text.get(..bytes).unwrap_or_default());
        skip(text, bytes)
    }
}

/// The length of `\ud83d` in bytes.
const ESCAPE: usize = 6;

/// One half of a pair.
enum Half {
    High(u16),
    Low(u16),
}

/// The half that the escape at the beginning of a text encodes.
fn parse_half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match u16::from_str_radix(digits, 16).ok()? {
        high @ 0xd800..=0xdbff => Some(Half::High(high)),
        low @ 0xdc00..=0xdfff => Some(Half::Low(low)),
        _ => None,
    }
}

fn skip(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

/// The text before the next string, the string without its quotes, and the text after it.
fn next_string(json: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = json.split_once('"')?;
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some((before, rest.get(..end)?, rest.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

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

    fn content(data: &str) -> String {
        let value: Value = serde_json::from_str(data).expect(data);
        value["content"].as_str().expect(data).to_owned()
    }

    /// The text of a sequence of stream events.
    fn joined(events: &[&str]) -> String {
        let (mut halves, mut text) = (Surrogates::default(), String::new());
        for event in events {
            let data = format!(r#"{{"id":"a","content":"{event}"}}"#);
            let continued = halves.continued(&data);
            let data = continued.unwrap_or(data);
            match serde_json::from_str::<Value>(&data) {
                Ok(_) => text += &content(&data),
                Err(_) => text += &content(&halves.repaired(&data).expect("it has halves")),
            }
        }
        if halves.is_pending_in("content") {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    }

    #[test]
    fn halves_are_joined_where_they_fit() {
        for (events, text) in [
            (&[r"a \ud83d", r"\udc4d b"][..], "a 👍 b"),
            (&[r"a \uD83D", r"\uDC4D"], "a 👍"),
            // An event without text does not end a half.
            (&[r"\ud83d", "", r"\udc4d"], "👍"),
            (&[r"\ud83d", r"\udc4d\ud83d", r"\udc4e"], "👍👎"),
            (&[r"\ud83d", "b"], "\u{fffd}b"),
            (&[r"\ud83d", r"\ud83d", r"\udc4d"], "\u{fffd}👍"),
            (&[r"a \ud83d"], "a \u{fffd}"),
            (&[r"\udc4d a"], "\u{fffd} a"),
            (&[r"a \ud83d b"], "a \u{fffd} b"),
            (&[r"a \ud83d\n"], "a \u{fffd}\n"),
            // Complete characters stay as they are, next to a half too.
            (&[r"\ud83d\udc4d \\ud83d \u00fc \ud83d", r"\udc4d"], "👍 \\ud83d ü 👍"),
            (&["a", "b"], "ab"),
        ] {
            assert_eq!(joined(events), text, "{events:?}");
        }
    }

    #[test]
    fn a_half_belongs_to_its_field() {
        let mut halves = Surrogates::default();
        let data =
            r#"{"delta":{"content":"a \ud83d"},"message":{"content":"a \ud83d"},"id":"\ud83d"}"#;
        let repaired = halves.repaired(data).expect("it has halves");
        assert_eq!(
            repaired,
            r#"{"delta":{"content":"a "},"message":{"content":"a "},"id":"\ufffd"}"#
        );
        // An event without the field keeps the half pending.
        let other = r#"{"delta":{"role":"assistant"},"usage":null}"#;
        assert_eq!(halves.continued(other).as_deref(), Some(other));
        let data = r#"{"message":{"content":"\udc4d"},"delta":{ "content" : "\udc4d" }}"#;
        let whole =
            r#"{"message":{"content":"\ud83d\udc4d"},"delta":{ "content" : "\ud83d\udc4d" }}"#;
        assert_eq!(halves.continued(data).as_deref(), Some(whole));
        assert!(!halves.is_pending_in("content") && halves.continued(data).is_none());
    }

    #[test]
    fn a_whole_body_is_read_without_its_halves() {
        for (body, text) in [
            (r#"{"content":"a \ud83d"}"#, Some("a \u{fffd}")),
            (r#"{"content":"\udc4d\ud83d\udc4d"}"#, Some("\u{fffd}👍")),
            (r#"{"content":"a"}"#, None),
            (r#"{"content":"a"#, None),
        ] {
            assert_eq!(repaired_body(body).map(|body| content(&body)).as_deref(), text, "{body}");
        }
    }

    proptest! {
        /// No input panics, and a text without halves is copied.
        #[test]
        fn what_has_no_halves_is_copied(json in r#"([a-zü":{}, ]|\\n|\\u00fc|\\ud83d\\udc4d){0,40}"#) {
            let mut halves = Surrogates::default();
            prop_assert_eq!(halves.repaired(&json), None);
        }

        /// A text that is cut between any two of its units is joined again.
        #[test]
        fn a_text_cut_anywhere_is_whole(text in "[a👍ü\"]{1,8}", at in 0_usize..12) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (first, second) = units.split_at(at.min(units.len()));
            let [first, second] = [first, second].map(|units| {
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
            });
            prop_assert_eq!(joined(&[&first, &second]), text);
        }
    }
}
