//! Says in one sentence what is wrong with a refused reply. Pure. The stop reasons are those of the
//! source documents; the detail is added to them. Texts of a model are shortened here, and control
//! characters are made visible.

use std::fmt;

use serde_json::Value;

use super::repair;
use crate::base::visible::visible_within;
use crate::event::kind::{Reply, ReplyEnd};
use crate::scenario::spec::repair::Repair;

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

/// A text in quotes, shortened and with control characters made visible. Blanks at its ends stay:
/// they may be what is wrong with it.
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
    Detail {
        what: format!("{place} is {}, {wanted}", quoted(name, WORD_CHARS)),
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
    const MOST: usize = 8;
    let names: Vec<String> =
        names.into_iter().map(|name| visible_within(name, WORD_CHARS)).collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=MOST => names.join(", "),
        more => format!("{} and {} more", names[..MOST].join(", "), more - MOST),
    }
}
