//! Turns a model's reply into data that policy has judged: requests JSON, repairs it, says in one
//! sentence what is wrong with a refused reply, and asks again while the scenario's `ask_again`
//! allows it. Contracts and stop reasons belong to the patterns. Texts of a model are shortened and
//! made visible here.

pub mod repair;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use self::repair::{ParsedReply, Repaired};
use crate::base::visible::visible_within;
use crate::gateway::CallFailed;
use crate::log::event::{EventKind, Reply, ReplyRefused, SpanId, StopReason};
use crate::model::ReplyForm;
use crate::run::{ModelRequest, RunContext};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::{ModelSettings, Repair};

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
    pub call: SpanId,
    pub text: Arc<str>,
    /// The reply as data, after repairs.
    pub raw: Value,
    pub end: ReplyEnd,
    /// The accepted value, or the stop reason.
    pub judged: Result<T, StopReason>,
}

/// Requests JSON and has it judged. A refused reply is reported to the model, and the call is
/// retried up to the scenario's `ask_again` times. Each retry is a model call, but does not count
/// as a message or a dispatch.
///
/// `wrap` turns a text that is not JSON into the value to judge, as the source documents do; an
/// empty text becomes an empty object. `judge` receives the data and the text that it was read
/// from. `fill`: a key that is filled in with this value where an object lacks it, and the word of this
/// repair in events.
pub(super) async fn request_json<T>(
    cx: &RunContext,
    settings: &ModelSettings,
    mut ask: ModelRequest,
    wrap: fn(&str) -> Value,
    fill: Option<(&'static str, &str)>,
    mut judge: impl FnMut(&Value, &str) -> Result<T, Refusal> + Send,
) -> Result<JudgedReply<T>, Box<CallFailed>> {
    loop {
        let asked_again = ask.again;
        let (call, reply) = cx.call_model(&ask).await?;
        let mut raw = read_reply(cx, settings, &ask.form, call, &reply.text, wrap);
        if let Some((key, value)) = fill
            && fill_in(&mut raw, &ask.form, key, value)
        {
            let (repair, changed) = (key.to_owned(), format!("{key}: {value}"));
            cx.publish(call, EventKind::ReplyRepaired { repair, changed });
        }
        let refusal = match judge(&raw, &reply.text) {
            Ok(taken) => {
                let (text, end, judged) = (Arc::clone(&reply.text), reply.end, Ok(taken));
                return Ok(JudgedReply { call, text, raw, end, judged });
            }
            Err(refusal) => refusal,
        };
        let detail = match describe_non_json(&reply) {
            Some(of_text) if !is_repaired(settings, &reply.text) => of_text,
            _ => match describe_ending(&reply) {
                Some(ended) => ended.into(),
                None => with_unwrapping(refusal.detail, &raw, &ask.form),
            },
        };
        let times = cx.ask_again();
        // Once the end of a run is decided, a repeated request would be paid for nothing.
        let again = (asked_again < times && !cx.control().only_finishes()).then(|| asked_again + 1);
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
            let (text, end) = (Arc::clone(&reply.text), reply.end);
            let judged = Err(refusal.reason);
            return Ok(JudgedReply { call, text, raw, end, judged });
        }
        ask = ask.repeat_after_refusal(call, &reply, retry_prompt(&detail.what));
    }
}

/// The final text of a reply to a call: without the model's thinking, where the scenario allows that
/// repair.
pub(super) fn final_text(
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
    let Some(fields) = value.as_object_mut().filter(|fields| !fields.contains_key(key)) else {
        return false;
    };
    let schema = schema_of(form);
    let keys = schema.as_ref().and_then(|schema| schema.get("properties"));
    if !fields.keys().any(|name| keys.is_some_and(|keys| keys.get(name).is_some())) {
        return false;
    }
    fields.insert(key.to_owned(), with.into());
    true
}

/// The detail of a refusal; with the repairs that would take the object out of its wrapping, if the
/// wrapping is the fault.
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
pub(super) fn report_empty_reply(cx: &RunContext, call: SpanId, reply: &Reply) -> StopReason {
    let detail = describe_ending(reply).unwrap_or_else(|| "the reply is empty".to_owned());
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
    let detail = visible_within(detail, DETAIL_CHARS).into();
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
    let wrong = visible_within(wrong, DETAIL_CHARS);
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

/// Whether a text became JSON after a repair; if so, missing JSON is not the fault.
fn is_repaired(settings: &ModelSettings, text: &str) -> bool {
    repair::parse_reply(text, &settings.repair).is_some()
}

/// The most characters of a model's word in a detail.
const WORD_CHARS: usize = 60;
/// The most characters shown of a reply that is not JSON.
const BEGINNING_CHARS: usize = 40;
/// The most characters of a detail.
pub const DETAIL_CHARS: usize = 300;

/// What is wrong with a reply, and the setting that would accept it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The sentence, without its full stop.
    pub what: String,
    /// The repair that would accept such a reply: `repair = ["case"] would accept it`. For the
    /// operator, not for the model.
    pub setting: Option<String>,
}

impl From<String> for Detail {
    fn from(what: String) -> Self {
        Self { what, setting: None }
    }
}

impl From<&str> for Detail {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.setting.iter().try_for_each(|setting| write!(f, "; {setting}"))
    }
}

/// Why a reply is incomplete: token limit, content filter, refusal. `None` if it is whole.
pub fn describe_ending(reply: &Reply) -> Option<String> {
    let finish = reply.finish.as_deref().unwrap_or_default();
    Some(match reply.end {
        ReplyEnd::Stop => return None,
        ReplyEnd::Length if finish.to_ascii_lowercase().contains("context") => {
            "the reply ended at the end of the model's context window".to_owned()
        }
        ReplyEnd::Length => "the reply ended at its token limit".to_owned(),
        ReplyEnd::Filtered => "the provider's content filter ended the reply".to_owned(),
        ReplyEnd::Refused => match finish.strip_prefix("refusal:") {
            Some(words) => {
                let words = visible_within(words.trim(), WORD_CHARS * 2);
                format!("the model refused: {words}")
            }
            None => "the model refused to answer".to_owned(),
        },
        ReplyEnd::Paused => "the model paused too often to end the reply".to_owned(),
        ReplyEnd::Failed => "the provider failed to end the reply".to_owned(),
    })
}

/// Why a text is not JSON; `None` if it is.
pub fn describe_non_json(reply: &Reply) -> Option<Detail> {
    let text = reply.text.trim();
    if text.is_empty() {
        return Some(
            describe_ending(reply).unwrap_or_else(|| "the reply is empty".to_owned()).into(),
        );
    }
    // Parsed as data, because numbers beyond 64 bits are valid JSON but not valid for us.
    let error = serde_json::from_str::<Value>(text).err()?;
    if let Some(ended) = describe_ending(reply) {
        return Some(ended.into());
    }
    let first = text.lines().next().unwrap_or_default().trim_end();
    let begins = if first.starts_with("```") {
        visible_within(first, BEGINNING_CHARS)
    } else {
        quoted(first, BEGINNING_CHARS)
    };
    Some(match repair::repairs_needed(text) {
        Some(repairs) => {
            let them = if repairs.len() == 1 { "would remove it" } else { "would remove them" };
            let setting = format!("{} {them}", repair::as_setting(&repairs));
            Detail { what: format!("not JSON: begins with {begins}"), setting: Some(setting) }
        }
        None => format!("not JSON: begins with {begins}; {error}").into(),
    })
}

/// A text in quotes, shortened and with control characters made visible. Blanks at its ends stay: of a text that
/// its rule does not trim they may be the fault.
pub fn quoted(text: &str, chars: usize) -> String {
    format!("\"{}\"", visible_within(text, chars))
}

/// A value as part of a sentence: numbers and short texts as they are, others by their type.
pub fn show_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => visible_within(&number.to_string(), WORD_CHARS),
        Value::String(text) if text.trim().is_empty() => "empty".to_owned(),
        Value::String(text) => quoted(text, WORD_CHARS),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The value in a field that should hold something else: `stance is "GO", not go, caution or
/// block`.
pub fn wrong_value(place: &str, value: &Value, wanted: &str) -> String {
    format!("{place} is {}, not {wanted}", show_value(value))
}

/// The detail for an unexpected or unknown name, with the repair that would accept it, if there is
/// one.
pub fn wrong_name(place: &str, name: &str, wanted: &str, known: &[&str]) -> Detail {
    let meant = repair::matching_word(name, known.iter().copied());
    // The rule compares it as it is.
    let blanks = match name.trim() != name && known.contains(&name.trim()) {
        true => " with blanks at its ends",
        false => "",
    };
    Detail {
        what: format!("{place} is {}{blanks}, {wanted}", quoted(name, WORD_CHARS)),
        setting: meant.map(|_| format!("{} would accept it", repair::as_setting(&[Repair::Case]))),
    }
}

/// The missing keys: `keys missing: actions, stance`.
pub fn missing_keys(place: &str, value: &Value, keys: &[&str]) -> String {
    let missing = value.as_object().map(|fields| repair::missing(fields, keys)).unwrap_or_default();
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    format!("{place}keys missing: {}", missing.join(", "))
}

/// Words as an enumeration: `go, caution or block`.
pub fn join_with_or(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A list of names, limited to the first eight.
pub fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const MAX_NAMES: usize = 8;
    let names: Vec<String> =
        names.into_iter().map(|name| visible_within(name, WORD_CHARS)).collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=MAX_NAMES => names.join(", "),
        more => format!("{} and {} more", names[..MAX_NAMES].join(", "), more - MAX_NAMES),
    }
}
