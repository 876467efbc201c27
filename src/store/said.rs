//! The words of what was said in an event ([`SaidPart`]): what a search over kept runs searches.

use serde_json::Value;

use crate::base::plain_words::push_plain_words;
use crate::event::said_part::SaidPart;
use crate::event::{Event, Seq};

/// Bytes of words that are searched of one event.
const MAX_WORDS: usize = 256 << 10;

/// The words of an event, as the index of the store has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidWords {
    /// Sequence number of the event.
    pub seq: Seq,
    /// Its words in order, with a blank after each.
    pub words: String,
}

impl SaidWords {
    /// The words of an event; `None` if nothing was said in it.
    pub fn of(event: &Event) -> Option<Self> {
        let mut words = String::new();
        SaidPart::of(&event.kind)?.each_text(&mut |text| {
            push_plain_words(text, &mut words, MAX_WORDS);
        });
        (!words.is_empty()).then_some(Self { seq: event.seq, words })
    }
}

impl SaidPart<'_> {
    /// The texts, in their order. A reply in JSON has those of its values.
    pub fn each_text(self, each: &mut dyn FnMut(&str)) {
        match self {
            Self::Goal(text, more) | Self::Error(text, more) => {
                each(text);
                more.into_iter().for_each(each);
            }
            Self::Arguments(value) | Self::Result(value) => each_value(value, each),
            Self::Reply(text) => match text.trim_start().starts_with(['{', '[']) {
                true => match serde_json::from_str(text) {
                    Ok(value) => each_value(&value, each),
                    Err(_) => each(text),
                },
                false => each(text),
            },
            Self::Answer(text) | Self::Handoff(text) => each(text),
        }
    }
}

/// The texts and numbers of a value.
fn each_value(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Number(number) => each(&number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| each_value(value, each)),
        Value::Object(fields) => fields.values().for_each(|value| each_value(value, each)),
        Value::Null | Value::Bool(_) => {}
    }
}
