//! Reads answers. What a reply needs (its text, its calls, its end) must have the right type; every
//! other field is read if it can be, and is otherwise ignored and named in the reply. An answer is
//! not parsed into a structure, because one odd field would then fail all of it: [`Fields`] keeps
//! values as text and parses each one when it is needed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::refusal::error_text;
use crate::base::json_text::repaired;
use crate::log::event::Usage;
use crate::model::Conversation;
use crate::net::sse::SseEvent;
use crate::scenario::spec::tool::ToolCall;

/// The largest count of tokens that an endpoint can mean.
const MAX_TOKENS: f64 = 1e9;

/// Why an answer, or an event of a stream, gives no part of a reply.
#[derive(Debug)]
pub(crate) enum BadAnswer {
    /// It reports an error.
    Reported(Value),
    /// It is not of the API: why, as the rest of a sentence that starts with the answer.
    Unreadable(String),
}

/// Fields whose values are not of the API and were ignored, each once.
#[derive(Debug, Default)]
pub(crate) struct IgnoredFields(Vec<&'static str>);

impl IgnoredFields {
    pub(crate) fn add(&mut self, name: &'static str) {
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// Their names for the log; `None` without any.
    pub(crate) fn names(&self) -> Option<Arc<str>> {
        (!self.0.is_empty()).then(|| self.0.join(", ").into())
    }
}

/// A string that is borrowed where possible, also inside an `Option`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct JsonText<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// An object whose values are not parsed yet. If it has a name twice, the last value counts. An empty list is
/// an empty object, because that is how PHP writes one.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some((JsonText(name), value)) = map.next_entry()? {
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Fields::default()),
            Some(_) => Err(A::Error::custom("invalid type: a list, expected an object")),
        }
    }
}

/// Whether a JSON value is null, false or empty (a string, a list, an object): some servers write that for
/// a missing value.
fn says_nothing(json: &str) -> bool {
    let inside = |open, close| json.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    matches!(json, "null" | "false" | "\"\"")
        || inside('[', ']')
            .or_else(|| inside('{', '}'))
            .is_some_and(|it| it.trim_ascii().is_empty())
}

impl<'a> Fields<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a field; `None` if it is missing or says nothing (`null`, `false`, `""`, `[]`, `{}`).
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name).filter(|value| !says_nothing(value.get()))
    }

    /// The value of a field, even if it says nothing.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rfind(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The value of a field that a reply needs.
    pub(crate) fn needed<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, BadAnswer> {
        self.get(name).map(|value| parse_needed(name, value)).transpose()
    }

    /// A text that a reply needs; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> Result<Cow<'a, str>, BadAnswer> {
        Ok(self.needed::<JsonText<'_>>(name)?.map(|text| text.0).unwrap_or_default())
    }

    /// The items of a list that a reply needs, without those that are `null`.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<&'a RawValue>, BadAnswer> {
        let mut items: Vec<&RawValue> = self.needed(name)?.unwrap_or_default();
        items.retain(|item| item.get() != "null");
        Ok(items)
    }

    /// An object that a reply can do without.
    pub(crate) fn optional(
        &self,
        name: &'static str,
        ignored: &mut IgnoredFields,
    ) -> Option<Fields<'a>> {
        let fields = serde_json::from_str(self.get(name)?.get()).ok();
        if fields.is_none() {
            ignored.add(name);
        }
        fields
    }

    /// A name, a reason or an id. A value of another type is its own JSON: a number is an id like any other.
    /// `None` if it is missing or blank.
    pub(crate) fn word(&self, name: &str) -> Option<Cow<'a, str>> {
        let json = self.get(name)?.get();
        let word = match serde_json::from_str(json) {
            Ok(JsonText(text)) => text,
            // A string with half a character.
            Err(_) if json.starts_with('"') => return None,
            Err(_) => Cow::Borrowed(json),
        };
        (!word.trim().is_empty()).then_some(word)
    }

    /// The position of a part in its reply.
    pub(crate) fn index(&self, ignored: &mut IgnoredFields) -> Option<i64> {
        let index = number(self.get("index")?);
        if index.is_none() {
            ignored.add("index");
        }
        index.map(|index| index as i64)
    }

    /// A count of tokens; `None` also for one that is impossible (negative, not whole, above 10^9).
    pub(crate) fn count(&self, name: &'static str, ignored: &mut IgnoredFields) -> Option<u64> {
        let count = number(self.get(name)?);
        let count =
            count.filter(|count| (0.0..=MAX_TOKENS).contains(count) && count.fract() == 0.0);
        if count.is_none() {
            ignored.add(name);
        }
        count.map(|count| count as u64)
    }

    /// All fields as they came; what serde_json cannot hold (`1e400`) is a text.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, value)| (name.clone().into_owned(), value_of(value))).collect()
    }

    /// The error that they report, if any: an `error` that says something, or all fields if `object`
    /// or `type` is `error`.
    pub(crate) fn error(&self) -> Option<Value> {
        let error = self.get("error").map(value_of).filter(error_says_something);
        let is_one = |name| self.word(name).is_some_and(|kind| kind == "error");
        error.or_else(|| (is_one("object") || is_one("type")).then(|| self.to_map().into()))
    }

    /// As [`error`](Self::error), for an answer without any part of a reply: then a message is an error too.
    pub(crate) fn error_without_reply(&self) -> Option<Value> {
        let all = || Value::from(self.to_map());
        self.error().or_else(|| Some(all()).filter(|all| error_text(all).is_some()))
    }
}

/// A value that a reply needs; `name` is the field that it is in.
pub(crate) fn parse_needed<'a, T: Deserialize<'a>>(
    name: &str,
    value: &'a RawValue,
) -> Result<T, BadAnswer> {
    serde_json::from_str(value.get()).map_err(|error| {
        let why = error.to_string();
        let (why, _) = why.split_once(" at line ").unwrap_or((&why, ""));
        BadAnswer::Unreadable(format!("`{name}`: {why}"))
    })
}

/// A value as it came; one that serde_json cannot hold (`1e400`) as its text.
fn value_of(value: &RawValue) -> Value {
    serde_json::from_str(value.get()).unwrap_or_else(|_| Value::from(value.get()))
}

/// A number, also in a string.
fn number(value: &RawValue) -> Option<f64> {
    let json = value.get();
    match serde_json::from_str(json) {
        Ok(JsonText(text)) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        Err(_) => serde_json::from_str(json).ok(),
    }
}

/// Whether an error has a text or a number in it; servers send empty ones with a good reply.
fn error_says_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(error_says_something),
        Value::Object(fields) => fields.values().any(error_says_something),
    }
}

/// The fields of an answer.
pub(super) fn read_answer(json: &str) -> Result<Fields<'_>, BadAnswer> {
    let json = json.strip_prefix('\u{feff}').unwrap_or(json);
    let fields = match serde_json::from_str::<Fields<'_>>(json) {
        Ok(fields) => fields,
        Err(error) => {
            let listed = serde_json::from_str::<Vec<Fields<'_>>>(json).ok();
            let reported = listed.and_then(|listed| listed.first()?.error());
            return Err(match reported {
                Some(error) => BadAnswer::Reported(error),
                None => BadAnswer::Unreadable(error.to_string()),
            });
        }
    };
    match fields.error() {
        Some(error) => Err(BadAnswer::Reported(error)),
        None => Ok(fields),
    }
}

/// The reply in a body that is not streamed. `read` gets its fields, and again those of the
/// [`repaired`] body if it cannot be read as it is.
pub(crate) fn read_whole<T>(
    body: &[u8],
    read: impl Fn(&Fields<'_>) -> Result<T, BadAnswer>,
) -> Result<T, BadAnswer> {
    let text =
        std::str::from_utf8(body).map_err(|error| BadAnswer::Unreadable(error.to_string()))?;
    let whole = read_answer(text).and_then(|fields| read(&fields));
    match whole {
        Err(BadAnswer::Unreadable(why)) => match repaired(text) {
            Cow::Owned(text) => read_answer(&text).and_then(|fields| read(&fields)),
            Cow::Borrowed(_) => Err(BadAnswer::Unreadable(why)),
        },
        other => other,
    }
}

/// The fields of an event of a stream.
pub(crate) fn read_event<'a>(event: SseEvent<'a>) -> Result<Fields<'a>, BadAnswer> {
    match read_answer(event.data) {
        Ok(fields) if event.name == "error" => Err(BadAnswer::Reported(fields.to_map().into())),
        Err(BadAnswer::Unreadable(_)) if event.name == "error" => {
            Err(BadAnswer::Reported(Value::from(event.data)))
        }
        other => other,
    }
}

/// Whether an event only keeps the connection open.
pub(super) fn is_keep_alive(event: SseEvent<'_>) -> bool {
    event.name == "ping" || matches!(event.data.trim_ascii(), "" | "null")
}

/// Token counts as an endpoint reports them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenCounts {
    pub(crate) prompt: Option<u64>,
    /// Tokens of the reply. Some servers leave those for reasoning out.
    pub(crate) completion: Option<u64>,
    /// Tokens of prompt and reply.
    pub(crate) total: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_written: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl TokenCounts {
    /// These counts, updated with later ones.
    pub(crate) fn updated_with(self, later: Self) -> Self {
        Self {
            // Some proxies end a stream with a prompt of 0 tokens.
            prompt: later.prompt.filter(|tokens| *tokens > 0).or(self.prompt).or(later.prompt),
            completion: later.completion.or(self.completion),
            total: later.total.or(self.total),
            cached: later.cached.or(self.cached),
            cache_written: later.cache_written.or(self.cache_written),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }

    /// The usage for events; `None` without any count. A prompt or a reply that was not counted has 0 tokens.
    pub(crate) fn usage(self) -> Option<Usage> {
        let counted = self.completion.unwrap_or_default();
        let reasoning = self.reasoning.unwrap_or_default();
        // Tokens for reasoning that cannot be a part of the reply's were counted apart.
        let said = if reasoning > counted { counted + reasoning } else { counted };
        // Of a total alone, all but the reply is the prompt.
        let prompt = self.prompt.or_else(|| self.total?.checked_sub(said));
        // Gemini, xAI and others count the tokens for reasoning in the total alone.
        let beyond_prompt = self.total.and_then(|total| total.checked_sub(self.prompt?));
        let completion = beyond_prompt.map_or(said, |tokens| counted.max(tokens));
        let is_counted = prompt.is_some() || completion > 0 || self.completion.is_some();
        let prompt = prompt.unwrap_or_default();
        let surplus = self.completion.map_or(0, |counted| completion - counted);
        is_counted.then(|| Usage {
            cached_tokens: self.cached.unwrap_or_default().min(prompt),
            cache_write_tokens: self.cache_written.unwrap_or_default().min(prompt),
            reasoning_tokens: reasoning.max(surplus).min(completion),
            ..Usage::new(prompt, completion)
        })
    }
}

/// The most calls of one reply.
pub(crate) const MAX_CALLS: usize = 64;
/// The most bytes of a tool's name; the API's own limit is 64.
pub(crate) const NAME_CAP: usize = 256;

/// What is wrong with the tool calls of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolCallFault {
    /// More than [`MAX_CALLS`].
    TooMany,
    /// A call without a tool name.
    Nameless,
    /// A call with a name longer than [`NAME_CAP`].
    LongName,
}

/// The arguments of a call, or the next part of them: JSON in a string or, from some servers, the JSON
/// itself.
pub(crate) fn arguments<'a>(fields: &Fields<'a>, name: &str) -> Result<Cow<'a, str>, BadAnswer> {
    match fields.raw(name).map(|json| json.get()) {
        None | Some("null" | "false") => Ok(Cow::Borrowed("")),
        Some(json) if json.starts_with('"') => fields.text(name),
        // The empty object of PHP.
        Some(json) if json.starts_with('[') && fields.get(name).is_none() => Ok("{}".into()),
        Some(json) => Ok(without_white_space(json).into()),
    }
}

/// JSON without the white space between its parts. Parsing it would change large numbers.
fn without_white_space(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let is_kept = |c: &char| {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '"' => in_string = !in_string,
            '\\' => escaped = true,
            _ => return in_string || !c.is_ascii_whitespace(),
        }
        true
    };
    json.chars().filter(is_kept).collect()
}

/// Complete arguments as they are kept: an empty list, which is how PHP writes an empty object, is one.
/// Everything else stays as the model wrote it.
pub(crate) fn whole_arguments(arguments: &str) -> &str {
    let inner = arguments.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.is_some_and(|inner| inner.trim().is_empty()) { "{}" } else { arguments }
}

/// Gives calls without an id a new one, and replaces duplicate ids, because results are matched by
/// id.
pub(crate) fn make_ids_unique(calls: &mut [ToolCall], before: &Conversation) {
    let mut seen = BTreeSet::new();
    if calls.iter().all(|call| !call.id.is_empty() && seen.insert(&call.id)) {
        return;
    }
    let earlier = before.iter().flat_map(|message| &*message.tool_calls);
    let ids = calls.iter().chain(earlier).map(|call| Arc::clone(&call.id));
    let mut taken: BTreeSet<Arc<str>> = ids.collect();
    let mut seen = BTreeSet::new();
    for call in calls {
        if call.id.is_empty() || seen.contains(&call.id) {
            let (stem, first) = if call.id.is_empty() { ("call", 1) } else { (&*call.id, 2) };
            let mut made = (first..).map(|nth: u32| Arc::<str>::from(format!("{stem}_{nth}")));
            if let Some(id) = made.find(|id| !taken.contains(id)) {
                call.id = id;
            }
        }
        taken.insert(Arc::clone(&call.id));
        seen.insert(Arc::clone(&call.id));
    }
}
