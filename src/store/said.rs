//! What was said in an event: the goal of a run and the messages of people, the replies of models, the
//! arguments and results of tools, and their errors. Prompts are left out, since they repeat what was
//! said before. This is what a search over kept runs searches.

use serde_json::Value;

use crate::base::plain_words::push_plain_words;
use crate::event::{Event, EventKind, Seq};

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

/// What was said in an event, and in which way.
#[derive(Clone, Copy, Debug)]
pub enum SaidPart<'e> {
    /// The goal of the run, and the message of a session.
    Goal(&'e str, Option<&'e str>),
    /// The arguments of a tool.
    Arguments(&'e Value),
    /// The reply of a model.
    Reply(&'e str),
    /// The result of a tool.
    Result(&'e Value),
    /// Why an attempt failed, and what of a reply had arrived.
    Error(&'e str, Option<&'e str>),
    /// The answer of the run.
    Answer(&'e str),
    /// What an agent that hands over tells the next one.
    Handoff(&'e str),
}

impl<'e> SaidPart<'e> {
    /// What was said in an event of this kind; `None` if nothing was.
    pub fn of(kind: &'e EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::RunStarted(head) => {
                let message = head.plan.get().message().filter(|text| *text != head.goal);
                Self::Goal(&head.goal, message)
            }
            EventKind::CallStarted(call) => Self::Arguments(call.args.as_deref()?),
            EventKind::AttemptAnswered(reply) => match &reply.result {
                Some(result) => Self::Result(result),
                None => Self::Reply(&reply.text),
            },
            EventKind::AttemptFailed(failed) => {
                Self::Error(&failed.text, failed.partial.as_deref())
            }
            EventKind::CallDegraded { value, .. } => Self::Result(value.as_deref()?),
            EventKind::AnswerComposed { text, .. } => Self::Answer(text),
            EventKind::Pattern(fact) => Self::Handoff(fact.get().message()?),
            _ => return None,
        })
    }

    /// The word for the way: `goal`, `arguments`, `reply`, `result`, `error`, `answer` or `handoff`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Goal(..) => "goal",
            Self::Arguments(_) => "arguments",
            Self::Reply(_) => "reply",
            Self::Result(_) => "result",
            Self::Error(..) => "error",
            Self::Answer(_) => "answer",
            Self::Handoff(_) => "handoff",
        }
    }

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
