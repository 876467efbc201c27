//! Asking for JSON until policy takes it, or the scenario's `ask_again` is used up.

use std::sync::Arc;

use serde_json::Value;

use super::detail::{self, Detail};
use super::repair::{self, Read, Repaired};
use crate::event::kind::{Reply, ReplyRefused};
use crate::event::visible::visible_within;
use crate::event::{EventKind, SpanId, StopReason};
use crate::llm::Form;
use crate::run::{Ask, RunContext};
use crate::scenario::model::ModelSettings;
use crate::tool::CallFailed;

/// Characters of a refused reply that its event repeats.
const BEGINS_CHARS: usize = 200;

/// Why policy does not take a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The reason that stops the run, in the source's words.
    pub reason: StopReason,
    /// What exactly is wrong with it.
    pub detail: Detail,
}

/// The last reply, and what policy says of it.
#[derive(Debug)]
pub(in crate::pattern) struct Judged<T> {
    /// The call that gave it.
    pub call: SpanId,
    /// Its text.
    pub text: Arc<str>,
    /// The same as data.
    pub raw: Raw,
    /// What policy made of it.
    pub judged: Result<T, StopReason>,
}

/// A reply as data.
#[derive(Debug)]
pub(in crate::pattern) enum Raw {
    /// Read, with its repairs.
    Read(Value),
    /// It was judged as it stands, and is JSON.
    Text,
}

impl Raw {
    /// The data; `text` is the reply that it is of.
    pub fn of(self, text: &str) -> Value {
        match self {
            Self::Read(value) => value,
            Self::Text => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

/// Asks for JSON and has it judged. A reply that is refused is told to the model, and it is asked again,
/// as often as the scenario's `ask_again` says; each time is a call, and no message or dispatch. From
/// this moment, not only from its first poll, it is a branch on its way, as [`RunContext::ask`] is.
///
/// `wrap` is what an unreadable text becomes before it is judged, as the source has it; an empty one is
/// an empty object. `judge` is handed the data and the text that it was read from.
///
/// # Errors
/// A call that failed.
pub(in crate::pattern) fn ask_json<'a, T: 'a>(
    cx: &'a RunContext,
    settings: &'a ModelSettings,
    ask: Ask,
    wrap: fn(&str) -> Value,
    judge: impl FnMut(&Value, &str) -> Result<T, Refusal> + Send + 'a,
) -> impl Future<Output = Result<Judged<T>, Box<CallFailed>>> + Send + 'a {
    ask_plain_json(cx, settings, ask, wrap, |_| None, judge)
}

/// The same, with a shorter way for replies that are as they should be: `plain` takes what `judge`
/// would make of a text, read as it stands, or leaves it to `judge`.
///
/// # Errors
/// A call that failed.
pub(in crate::pattern) fn ask_plain_json<'a, T: 'a>(
    cx: &'a RunContext,
    settings: &'a ModelSettings,
    mut ask: Ask,
    wrap: fn(&str) -> Value,
    plain: impl Fn(&str) -> Option<T> + Send + 'a,
    mut judge: impl FnMut(&Value, &str) -> Result<T, Refusal> + Send + 'a,
) -> impl Future<Output = Result<Judged<T>, Box<CallFailed>>> + Send + 'a {
    // A pause waits for all of its calls: there is no boundary between two of them.
    let branch = cx.gate().branch();
    async move {
        let _branch = branch;
        loop {
            let form = ask.form.clone();
            let asked_again = ask.again;
            let next = (asked_again < settings.ask_again).then(|| ask.clone());
            let (call, reply) = cx.ask(ask).await?;
            // A repair may change what a plain reply says.
            if settings.repair.is_empty()
                && let Some(taken) = plain(&reply.text)
            {
                return Ok(Judged { call, text: reply.text, raw: Raw::Text, judged: Ok(taken) });
            }
            let raw = read(cx, settings, &form, call, &reply.text, wrap);
            let refusal = match judge(&raw, &reply.text) {
                Ok(taken) => {
                    let raw = Raw::Read(raw);
                    return Ok(Judged { call, text: reply.text, raw, judged: Ok(taken) });
                }
                Err(refusal) => refusal,
            };
            let detail = match detail::of_text(&reply) {
                Some(of_text) if !is_repaired(settings, &reply.text) => of_text,
                _ => detail::of_ending(&reply).map_or(refusal.detail, Detail::from),
            };
            let again = next.as_ref().map(|ask| ask.again + 1);
            let said = match (again, settings.ask_again) {
                (None, times @ 1..) => {
                    format!("{detail} (asked again {}, model.ask_again)", count(times))
                }
                _ => detail.to_string(),
            };
            let reason = refusal.reason.clone();
            refuse(cx, call, &reply, Refused { reason, detail: &said, asked_again, again });
            let Some(before) = next else {
                let (raw, judged) = (Raw::Read(raw), Err(refusal.reason));
                return Ok(Judged { call, text: reply.text, raw, judged });
            };
            ask = before.once_more(call, &reply, told(&detail.what));
        }
    }
}

/// Tells that a text reply is empty, which ends its call's part of the run.
pub(in crate::pattern) fn empty(cx: &RunContext, call: SpanId, reply: &Reply) -> StopReason {
    let detail = detail::of_ending(reply).unwrap_or_else(|| "the reply is empty".to_owned());
    let reason = StopReason::LlmEmpty;
    refuse(cx, call, reply, Refused { reason, detail: &detail, asked_again: 0, again: None });
    StopReason::LlmEmpty
}

/// What is said against a reply, and whether the model is asked again.
struct Refused<'a> {
    reason: StopReason,
    detail: &'a str,
    asked_again: u32,
    again: Option<u32>,
}

fn refuse(cx: &RunContext, call: SpanId, reply: &Reply, refused: Refused<'_>) {
    let Refused { reason, detail, asked_again, again } = refused;
    let detail = visible_within(detail, detail::DETAIL_CHARS).into();
    let begins = visible_within(reply.text.trim(), BEGINS_CHARS).into();
    let refused = ReplyRefused { reason, detail, begins, again, asked_again };
    cx.publish(call, EventKind::ReplyRefused(Box::new(refused)));
}

fn count(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

/// What the model is told of its reply.
fn told(wrong: &str) -> String {
    let wrong = visible_within(wrong, detail::DETAIL_CHARS);
    format!(
        "Your reply was refused: {wrong}. Reply once more, in the form that you were given: one JSON \
         object with all of its keys, and nothing around it."
    )
}

/// The reply as data, with what the scenario lets be repaired in it.
fn read(
    cx: &RunContext,
    settings: &ModelSettings,
    form: &Form,
    call: SpanId,
    text: &str,
    wrap: fn(&str) -> Value,
) -> Value {
    let text = if text.is_empty() { "{}" } else { text };
    let Some(Read { mut value, mut repaired }) = repair::read(text, &settings.repair) else {
        return wrap(text);
    };
    if !settings.repair.is_empty()
        && let Some(contract) = form.contract()
        && let Ok(schema) = serde_json::from_str(contract.schema().get())
    {
        repaired.append(&mut repair::spell(&mut value, &schema, &settings.repair));
    }
    for Repaired { repair, what } in repaired {
        cx.publish(call, EventKind::ReplyRepaired { repair: repair.to_string(), what });
    }
    value
}

/// Whether a text was read as JSON after a repair: what is wrong with it then is not that.
fn is_repaired(settings: &ModelSettings, text: &str) -> bool {
    repair::read(text, &settings.repair).is_some()
}
