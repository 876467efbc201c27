//! What is wrong with a refused reply, in one sentence that says what to look at. Pure. The reasons that
//! stop a run are the sources' own; this stands beside them. What a model said is made visible and
//! bounded here.

use std::fmt;

use serde_json::Value;

use super::repair;
use crate::event::kind::Reply;
use crate::event::visible::visible_within;
use crate::scenario::repair::Repair;

/// Characters of a model's word that a detail repeats.
const WORD_CHARS: usize = 60;
/// Characters of the beginning of a reply that is not JSON.
const BEGINNING_CHARS: usize = 40;
/// Characters of a whole detail.
pub const DETAIL_CHARS: usize = 300;

/// What is wrong with a reply, and what would take it all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The sentence, without its full stop.
    pub what: String,
    /// The repair that takes such a reply: `repair = ["case"] takes it`. It is said to people, and not
    /// to the model.
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

/// Why a reply ended before it was complete, where the endpoint says so: its token limit, a filter, a
/// refusal.
pub fn of_ending(reply: &Reply) -> Option<String> {
    let finish = reply.finish.as_deref()?;
    if let Some(words) = finish.strip_prefix("refusal:") {
        return Some(format!(
            "the model refused: {}",
            visible_within(words.trim(), WORD_CHARS * 2)
        ));
    }
    Some(match finish {
        "length" | "max_tokens" => "the reply ended at its token limit".to_owned(),
        "model_context_window_exceeded" => {
            "the reply ended at the end of the model's context window".to_owned()
        }
        "content_filter" => "the provider's content filter ended the reply".to_owned(),
        "refusal" => "the model refused to answer".to_owned(),
        _ => return None,
    })
}

/// What is wrong with a text that should be JSON; `None`: it is JSON.
pub fn of_text(reply: &Reply) -> Option<Detail> {
    let text = reply.text.trim();
    if text.is_empty() {
        return Some(of_ending(reply).unwrap_or_else(|| "the reply is empty".to_owned()).into());
    }
    // As data, and not only as JSON: a number beyond 64 bits is none of ours.
    let error = serde_json::from_str::<Value>(text).err()?;
    if let Some(ended) = of_ending(reply) {
        return Some(ended.into());
    }
    let first = text.lines().next().unwrap_or_default();
    let begins = if first.starts_with("```") {
        visible_within(first, BEGINNING_CHARS)
    } else {
        quoted(first, BEGINNING_CHARS)
    };
    Some(match repair::would_read(text) {
        Some(repairs) => {
            let them = if repairs.len() == 1 { "takes it off" } else { "take it off" };
            let setting = format!("{} {them}", repair::as_setting(&repairs));
            Detail { what: format!("not JSON: begins with {begins}"), setting: Some(setting) }
        }
        None => format!("not JSON: begins with {begins}; {error}").into(),
    })
}

/// A text in quotes, made visible and bounded.
pub fn quoted(text: &str, chars: usize) -> String {
    format!("\"{}\"", visible_within(text.trim(), chars))
}

/// A value as a sentence can repeat it: a short text or a number as it stands, all else by its kind.
pub fn said(value: &Value) -> String {
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

/// What stands in a field where something else is wanted: `stance is "GO", not go, caution or block`.
pub fn not(place: &str, value: &Value, wanted: &str) -> String {
    format!("{place} is {}, not {wanted}", said(value))
}

/// A name that is not the one that was asked, or none of those that there are, with the repair that
/// takes it where one does.
pub fn other_name(place: &str, name: &str, wanted: &str, known: &[&str]) -> Detail {
    let meant = repair::meant(name, known.iter().copied());
    Detail {
        what: format!("{place} is {}, {wanted}", quoted(name, WORD_CHARS)),
        setting: meant.map(|_| format!("{} takes it", repair::as_setting(&[Repair::Case]))),
    }
}

/// The keys that are not there: `keys missing: actions, stance`.
pub fn missing_keys(place: &str, value: &Value, keys: &[&str]) -> String {
    let missing = value.as_object().map(|fields| repair::missing(fields, keys)).unwrap_or_default();
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    format!("{place}keys missing: {}", missing.join(", "))
}

/// Words as a sentence lists them: `go, caution or block`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Names that there are, as many of them as there is room for.
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
