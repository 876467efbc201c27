//! Requests JSON from the model until policy accepts the reply, or the retries of the scenario's
//! `ask_again` are used up.

use std::sync::Arc;

use serde_json::Value;

use super::detail::{self, Detail};
use super::repair::{self, ParsedReply, Repaired};
use crate::base::visible::visible_within;
use crate::event::kind::{Reply, ReplyEnd, ReplyRefused};
use crate::event::{EventKind, SpanId, StopReason};
use crate::gateway::CallFailed;
use crate::llm::ReplyForm;
use crate::run::{ModelRequest, RunContext};
use crate::scenario::spec::model::ModelSettings;
use crate::scenario::spec::repair::Repair;

/// The most characters of a refused reply in its event.
const BEGINS_CHARS: usize = 200;

/// Why policy refuses a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The stop reason, as the source document of the pattern spells it.
    pub reason: StopReason,
    /// What exactly is wrong with the reply.
    pub detail: Detail,
}

/// The last reply, and the verdict of policy.
#[derive(Debug)]
pub(crate) struct JudgedReply<T> {
    /// Span of the call.
    pub call: SpanId,
    /// Text of the reply.
    pub text: Arc<str>,
    /// The reply as data.
    pub raw: RawReply,
    /// How the reply ended.
    pub end: ReplyEnd,
    /// The accepted value, or the stop reason.
    pub judged: Result<T, StopReason>,
}

/// A reply as data.
#[derive(Debug)]
pub(crate) enum RawReply {
    /// The data, after repairs.
    Read(Value),
    /// The text was accepted unchanged, and is JSON.
    Text,
}

impl RawReply {
    /// The data; `text` is the text of the reply.
    pub fn into_value(self, text: &str) -> Value {
        match self {
            Self::Read(value) => value,
            Self::Text => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

/// Requests JSON and has it judged. A refused reply is reported to the model, and the call is
/// retried up to the scenario's `ask_again` times. Each retry is a model call, but does not count
/// as a message or a dispatch. The returned future counts as an active branch of the run from now
/// on, not only from its first poll, as with [`RunContext::call_model`].
///
/// `wrap` turns a text that is not JSON into the value to judge, as the source documents do; an
/// empty text becomes an empty object. `judge` receives the data and the text that it was read
/// from.
///
/// # Errors
/// A call that failed.
pub(crate) fn request_json<'a, T: 'a>(
    cx: &'a RunContext,
    settings: &'a ModelSettings,
    ask: ModelRequest,
    wrap: fn(&str) -> Value,
    judge: impl FnMut(&Value, &str) -> Result<T, Refusal> + Send + 'a,
) -> impl Future<Output = Result<JudgedReply<T>, Box<CallFailed>>> + Send + 'a {
    request_json_fast(cx, settings, ask, wrap, None, |_| None, judge)
}

/// Like [`request_json`], with a fast path for valid replies: `plain` returns what `judge` would
/// return for an unrepaired text, or `None` to leave the reply to `judge`. `fill`: a key that is
/// filled in with this value where an object lacks it, and the word of this repair in events.
///
/// # Errors
/// A call that failed.
pub(crate) fn request_json_fast<'a, T: 'a>(
    cx: &'a RunContext,
    settings: &'a ModelSettings,
    mut ask: ModelRequest,
    wrap: fn(&str) -> Value,
    fill: Option<(&'static str, &'a str)>,
    plain: impl Fn(&str) -> Option<T> + Send + 'a,
    mut judge: impl FnMut(&Value, &str) -> Result<T, Refusal> + Send + 'a,
) -> impl Future<Output = Result<JudgedReply<T>, Box<CallFailed>>> + Send + 'a {
    // A pause waits for all of these calls: there is no boundary between them.
    let branch = cx.control().branch();
    async move {
        let _branch = branch;
        loop {
            let asked_again = ask.again;
            let (call, reply) = cx.call_model_on_branch(&ask).await?;
            // A repair could change what a plain reply says.
            if settings.repair.is_empty()
                && let Some(taken) = plain(&reply.text)
            {
                let (text, end) = (Arc::clone(&reply.text), reply.end);
                return Ok(JudgedReply { call, text, raw: RawReply::Text, end, judged: Ok(taken) });
            }
            let mut raw = read_reply(cx, settings, &ask.form, call, &reply.text, wrap);
            if let Some((key, value)) = fill
                && fill_in(&mut raw, &ask.form, key, value)
            {
                let (repair, changed) = (key.to_owned(), format!("{key}: {value}"));
                cx.publish(call, EventKind::ReplyRepaired { repair, changed });
            }
            let refusal = match judge(&raw, &reply.text) {
                Ok(taken) => {
                    let (raw, text) = (RawReply::Read(raw), Arc::clone(&reply.text));
                    let (end, judged) = (reply.end, Ok(taken));
                    return Ok(JudgedReply { call, text, raw, end, judged });
                }
                Err(refusal) => refusal,
            };
            let detail = match detail::describe_non_json(&reply) {
                Some(of_text) if !is_repaired(settings, &reply.text) => of_text,
                _ => match detail::describe_ending(&reply) {
                    Some(ended) => ended.into(),
                    None => with_unwrapping(refusal.detail, &raw, &ask.form),
                },
            };
            let times = cx.ask_again();
            // What a run asks for once its end is decided would be paid for nothing.
            let again =
                (asked_again < times && !cx.control().only_finishes()).then(|| asked_again + 1);
            let said = match (again, asked_again) {
                (None, times @ 1..) => {
                    format!("{detail} (retried {}, model.ask_again)", count(times))
                }
                _ => detail.to_string(),
            };
            let reason = refusal.reason.clone();
            publish_refusal(
                cx,
                call,
                &reply,
                RefusedReply { reason, detail: &said, asked_again, again },
            );
            if again.is_none() {
                let (raw, judged) = (RawReply::Read(raw), Err(refusal.reason));
                let (text, end) = (Arc::clone(&reply.text), reply.end);
                return Ok(JudgedReply { call, text, raw, end, judged });
            }
            ask = ask.repeat_after_refusal(call, &reply, retry_prompt(&detail.what));
        }
    }
}

/// The final text of a reply to a call: without the model's thinking, where the scenario allows that
/// repair.
pub(crate) fn final_text(
    cx: &RunContext,
    settings: &ModelSettings,
    call: SpanId,
    text: &Arc<str>,
) -> Arc<str> {
    match repair::without_thinking(text) {
        Some((thought, rest)) if settings.repair.contains(&Repair::Think) => {
            let Repaired { repair, what } = Repaired::of(Repair::Think, thought);
            let repair = repair.to_string();
            cx.publish(call, EventKind::ReplyRepaired { repair, changed: what });
            rest.into()
        }
        _ => Arc::clone(text),
    }
}

/// The JSON schema of the object that a reply has to be.
fn schema_of(form: &ReplyForm) -> Option<Value> {
    serde_json::from_str(form.contract()?.schema().get()).ok()
}

/// Fills in a key that an object lacks. One without any key of the contract has no reply in it.
fn fill_in(value: &mut Value, form: &ReplyForm, key: &str, with: &str) -> bool {
    let Some(fields) = value.as_object_mut() else { return false };
    let schema = schema_of(form);
    let keys = schema.as_ref().and_then(|schema| schema.get("properties"));
    let is_known = |name: &String| keys.is_some_and(|keys| keys.get(name).is_some());
    if fields.contains_key(key) || !fields.keys().any(is_known) {
        return false;
    }
    fields.insert(key.to_owned(), with.into());
    true
}

/// The detail of a refusal; with the repairs that would take the object out of what is around it, if
/// that is what is wrong.
fn with_unwrapping(detail: Detail, raw: &Value, form: &ReplyForm) -> Detail {
    let needed = schema_of(form).and_then(|schema| repair::unwraps_needed(raw, &schema));
    match (detail.setting, needed) {
        (None, Some(needed)) => {
            let setting = format!("{} would read it", repair::as_setting(&needed));
            Detail { setting: Some(setting), ..detail }
        }
        (setting, _) => Detail { setting, ..detail },
    }
}

/// Reports an empty text reply and returns the stop reason for it.
pub(crate) fn report_empty_reply(cx: &RunContext, call: SpanId, reply: &Reply) -> StopReason {
    let detail = detail::describe_ending(reply).unwrap_or_else(|| "the reply is empty".to_owned());
    let reason = StopReason::LlmEmpty;
    publish_refusal(
        cx,
        call,
        reply,
        RefusedReply { reason, detail: &detail, asked_again: 0, again: None },
    );
    StopReason::LlmEmpty
}

/// What is wrong with a reply, and whether the call is retried.
struct RefusedReply<'a> {
    reason: StopReason,
    detail: &'a str,
    asked_again: u32,
    again: Option<u32>,
}

fn publish_refusal(cx: &RunContext, call: SpanId, reply: &Reply, refused: RefusedReply<'_>) {
    let RefusedReply { reason, detail, asked_again, again } = refused;
    let detail = visible_within(detail, detail::DETAIL_CHARS).into();
    let begins = visible_within(reply.text.trim(), BEGINS_CHARS).into();
    let refused =
        ReplyRefused { reason, detail, preview: begins, repeat: again, repeats: asked_again };
    cx.publish(call, EventKind::ReplyRefused(Box::new(refused)));
}

fn count(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

/// The message to the model about its refused reply.
fn retry_prompt(wrong: &str) -> String {
    let wrong = visible_within(wrong, detail::DETAIL_CHARS);
    format!(
        "Your reply was refused: {wrong}. Reply once more, in the form that you were given: one JSON \
         object with all of its keys, and nothing around it."
    )
}

/// The reply as data, with the repairs that the scenario allows.
fn read_reply(
    cx: &RunContext,
    settings: &ModelSettings,
    form: &ReplyForm,
    call: SpanId,
    text: &str,
    wrap: fn(&str) -> Value,
) -> Value {
    let text = if text.is_empty() { "{}" } else { text };
    let Some(ParsedReply { mut value, mut repaired }) = repair::parse_reply(text, &settings.repair)
    else {
        return wrap(text);
    };
    if !settings.repair.is_empty()
        && let Some(schema) = schema_of(form)
    {
        let mut unwrapped = value.clone();
        let layers = repair::unwrap_object(&mut unwrapped, &schema, &settings.repair);
        if !layers.is_empty() {
            value = unwrapped;
            repaired.extend(layers);
        }
        repaired.append(&mut repair::normalize_values(&mut value, &schema, &settings.repair));
    }
    for Repaired { repair, what } in repaired {
        cx.publish(call, EventKind::ReplyRepaired { repair: repair.to_string(), changed: what });
    }
    value
}

/// Whether a text became JSON after a repair; if so, the missing JSON is not what is wrong with it.
fn is_repaired(settings: &ModelSettings, text: &str) -> bool {
    repair::parse_reply(text, &settings.repair).is_some()
}
