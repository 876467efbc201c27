//! Repairs of a reply: removes text around its JSON object, and normalizes the spelling of values.
//! Pure. A valid reply is never changed.

use serde_json::{Map, Number, Value};

use crate::base::visible::visible_within;
use crate::scenario::spec::repair::{Repair, Repairs};

/// The most characters of a change that is reported.
const CHANGE_CHARS: usize = 160;

/// A repair that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The kind of repair.
    pub repair: Repair,
    /// What was removed or changed, shortened and with control characters made visible.
    pub what: String,
}

impl Repaired {
    fn of(repair: Repair, what: &str) -> Self {
        Self { repair, what: visible_within(what.trim(), CHANGE_CHARS) }
    }
}

/// A reply that was read as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedReply {
    /// The data.
    pub value: Value,
    /// The repairs that were made.
    pub repaired: Vec<Repaired>,
}

/// Reads a reply as JSON, with the allowed repairs; `None` if that fails.
///
/// The object is looked up in this order: after the model's thinking, in a code fence that is the
/// whole reply, in the text around it. A reply with two objects is ambiguous and refused.
pub fn parse_reply(text: &str, allowed: &Repairs) -> Option<ParsedReply> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(ParsedReply { value, repaired: Vec::new() });
    }
    let mut repaired = Vec::new();
    let mut rest = text.trim();
    if allowed.contains(&Repair::Think)
        && let Some((thought, reply)) = after_thinking(rest)
    {
        repaired.push(Repaired::of(Repair::Think, thought));
        rest = reply.trim();
        if let Ok(value) = serde_json::from_str(rest) {
            return Some(ParsedReply { value, repaired });
        }
    }
    if allowed.contains(&Repair::Fences)
        && let Some(Ok(value)) = inside_fence(rest).map(serde_json::from_str)
    {
        let tag = rest.lines().next().unwrap_or_default();
        repaired.push(Repaired::of(Repair::Fences, tag));
        return Some(ParsedReply { value, repaired });
    }
    if !allowed.contains(&Repair::Preface) {
        return None;
    }
    let (before, value, after) = only_object(rest)?;
    let fenced = before.contains("```");
    if fenced && !allowed.contains(&Repair::Fences) {
        return None;
    }
    let around = if before.trim().is_empty() { after } else { before };
    repaired.push(Repaired::of(Repair::Preface, around));
    if fenced {
        repaired.push(Repaired::of(Repair::Fences, "```"));
    }
    Some(ParsedReply { value, repaired })
}

/// Splits a reply after the model's thinking. Some chat templates omit the opening tag.
fn after_thinking(text: &str) -> Option<(&str, &str)> {
    const END: &str = "</think>";
    let opened = text.starts_with("<think>");
    // A tag inside an object is not thinking.
    if !opened && text.starts_with(['{', '[', '`']) {
        return None;
    }
    let end = text.find(END)? + END.len();
    Some(text.split_at(end))
}

/// The content of a Markdown code fence that is the whole reply, without its language tag.
fn inside_fence(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("```")?.strip_suffix("```")?;
    let (tag, body) = inside.split_once('\n')?;
    tag.trim().chars().all(|c| c.is_ascii_alphanumeric()).then_some(body)
}

/// The only object in a text, with the text before and after it. Each candidate starts after the
/// end of the previous object, so the search is linear in practice; at most [`MAX_OBJECT_STARTS`]
/// candidates are tried.
fn only_object(text: &str) -> Option<(&str, Value, &str)> {
    let mut found: Option<(usize, Value, usize)> = None;
    let mut from = 0;
    for _ in 0..MAX_OBJECT_STARTS {
        let Some(at) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| from + at) else {
            break;
        };
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                let end = at + stream.byte_offset();
                if found.is_some() {
                    return None;
                }
                found = Some((at, value, end));
                from = end;
            }
            _ => from = at + 1,
        }
    }
    let (at, value, end) = found?;
    Some((&text[..at], value, &text[end..]))
}

/// The most braces at which the search for an object starts.
const MAX_OBJECT_STARTS: usize = 64;

/// Replaces values that the contract's schema does not allow by the schema's spelling of them,
/// where one matches. A number in a contract is one from 0 to 1.
pub fn normalize_values(value: &mut Value, schema: &Value, allowed: &Repairs) -> Vec<Repaired> {
    let mut repaired = Vec::new();
    if allowed.contains(&Repair::Case) || allowed.contains(&Repair::Numbers) {
        normalize_value(value, schema, allowed, "", &mut repaired);
    }
    repaired
}

fn normalize_value(
    value: &mut Value,
    schema: &Value,
    allowed: &Repairs,
    place: &str,
    repaired: &mut Vec<Repaired>,
) {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, &mut *value) {
        ("object", Value::Object(fields)) => {
            for (name, schema) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if let Some(field) = fields.get_mut(name) {
                    let dot = if place.is_empty() { "" } else { "." };
                    normalize_value(
                        field,
                        schema,
                        allowed,
                        &format!("{place}{dot}{name}"),
                        repaired,
                    );
                }
            }
        }
        ("array", Value::Array(items)) => {
            let Some(schema) = schema.get("items") else { return };
            for (nth, item) in items.iter_mut().enumerate() {
                normalize_value(item, schema, allowed, &format!("{place}[{nth}]"), repaired);
            }
        }
        ("string", Value::String(text)) if allowed.contains(&Repair::Case) => {
            let words = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            if let Some(word) = matching_word(text, words.filter_map(Value::as_str)) {
                let what = format!("{place}: {text:?} to {word}");
                repaired.push(Repaired::of(Repair::Case, &what));
                *value = word.into();
            }
        }
        ("number", _) if allowed.contains(&Repair::Numbers) => {
            if let Some(number) = fraction(value) {
                let what = format!("{place}: {value} to {number}");
                repaired.push(Repaired::of(Repair::Numbers, &what));
                *value = Value::Number(number);
            }
        }
        _ => {}
    }
}

/// The only word that matches a text in another spelling; `None` if the text is one of the words
/// already.
pub(super) fn matching_word<'w>(
    text: &str,
    words: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let mut found = None;
    let wanted = normal_spelling(text);
    for word in words {
        if word == text.trim() {
            return None;
        }
        if normal_spelling(word) == wanted {
            // Two names that differ only in spelling: ambiguous.
            if found.is_some() {
                return None;
            }
            found = Some(word);
        }
    }
    found
}

/// A name in normal spelling: lower case, with `_` between words.
fn normal_spelling(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == '_' || c == '-');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("_")
}

/// The number from 0 to 1 that a value means; `None` if it is one already, or no number. Numbers
/// above 1 and below 11 could be on a scale of ten, so they are ambiguous.
pub fn fraction(value: &Value) -> Option<Number> {
    let (number, per_cent) = match value {
        Value::Number(number) => (number.as_f64()?, false),
        Value::String(text) => {
            let text = text.trim();
            let bare = text.strip_suffix('%').map(str::trim_end);
            // `inf` and `nan` parse as numbers in Rust.
            let digits = bare.unwrap_or(text);
            if digits.is_empty() || digits.contains(|c: char| c.is_alphabetic()) {
                return None;
            }
            (digits.parse().ok()?, bare.is_some())
        }
        _ => return None,
    };
    let meant = match number {
        _ if per_cent && (0.0..=100.0).contains(&number) => number / 100.0,
        _ if per_cent => return None,
        0.0..=1.0 if value.is_string() => number,
        11.0..=100.0 => number / 100.0,
        _ => return None,
    };
    Number::from_f64(meant)
}

/// The repairs that would have read a text as JSON.
pub fn repairs_needed(text: &str) -> Option<Vec<Repair>> {
    let all = Repairs::from(Repair::ALL);
    Some(parse_reply(text, &all)?.repaired.into_iter().map(|it| it.repair).collect())
}

/// A list of repairs in the syntax of a scenario file.
pub fn as_setting(repairs: &[Repair]) -> String {
    let words: Vec<String> = repairs.iter().map(|repair| format!("\"{repair}\"")).collect();
    format!("repair = [{}]", words.join(", "))
}

/// The keys of a contract that are missing in a map, in the contract's order.
pub(super) fn missing<'k>(fields: &Map<String, Value>, keys: &[&'k str]) -> Vec<&'k str> {
    keys.iter().copied().filter(|key| !fields.contains_key(*key)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn repairs(words: &[Repair]) -> Repairs {
        words.iter().copied().collect()
    }

    #[test]
    fn text_around_an_object_is_removed_where_allowed() {
        use Repair::{Fences, Preface, Think};
        /// A text, the allowed repairs, and the repairs that were made if it could be read.
        type RepairCase = (&'static str, &'static [Repair], Option<&'static [Repair]>);
        let table: &[RepairCase] = &[
            ("{}", &[], Some(&[])),
            ("```json\n{}\n```", &[], None),
            ("```json\n{}\n```", &[Fences], Some(&[Fences])),
            ("  ```\n{}\n```\n", &[Fences], Some(&[Fences])),
            ("```json {} ```", &[Fences], None),
            ("```json\n{}\n```", &[Preface], None),
            ("Here it is: ```json\n{}\n```", &[Fences], None),
            ("Here it is: ```json\n{}\n```", &[Fences, Preface], Some(&[Preface, Fences])),
            ("Here it is: {}", &[Fences], None),
            ("Here it is: {}", &[Preface], Some(&[Preface])),
            ("{} I hope this helps.", &[Preface], Some(&[Preface])),
            ("The set {a, b}: {}", &[Preface], Some(&[Preface])),
            ("{} or {}", &[Preface], None),
            ("<think>so {}</think>{}", &[Preface], None),
            ("<think>so {}</think>{}", &[Think], Some(&[Think])),
            ("so</think>\n{}", &[Think], Some(&[Think])),
            ("<think>a</think>\n```json\n{}\n```", &[Think, Fences], Some(&[Think, Fences])),
            ("<think>never closed {}", &[Think], None),
            ("{\"a\": \"</think>\"", &[Think], None),
            ("I cannot say.", &Repair::ALL, None),
            ("", &Repair::ALL, None),
        ];
        for (text, allowed, expected) in table {
            let read = parse_reply(text, &repairs(allowed));
            let made = read.as_ref().map(|read| {
                assert_eq!(read.value, json!({}), "{text}");
                read.repaired.iter().map(|it| it.repair).collect::<Vec<_>>()
            });
            assert_eq!(made.as_deref(), *expected, "{text} with {allowed:?}");
        }
    }

    #[test]
    fn values_are_spelt_as_the_contract_has_them() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "enum": ["demand_analyst", "go"] },
                "score": { "type": "number" },
                "list": { "type": "array", "items": { "type": "string", "enum": ["a_b", "A-B", "c"] } },
            },
        });
        let table = [
            (json!({ "name": "Demand Analyst" }), json!({ "name": "demand_analyst" }), 1),
            (json!({ "name": "demand-analyst" }), json!({ "name": "demand_analyst" }), 1),
            (json!({ "name": "GO" }), json!({ "name": "go" }), 1),
            (json!({ "name": " go " }), json!({ "name": " go " }), 0),
            (json!({ "name": "gone" }), json!({ "name": "gone" }), 0),
            (json!({ "name": 5 }), json!({ "name": 5 }), 0),
            (json!({ "score": "0.8" }), json!({ "score": 0.8 }), 1),
            (json!({ "score": "1" }), json!({ "score": 1.0 }), 1),
            (json!({ "score": 80 }), json!({ "score": 0.8 }), 1),
            (json!({ "score": "80" }), json!({ "score": 0.8 }), 1),
            (json!({ "score": "80 %" }), json!({ "score": 0.8 }), 1),
            (json!({ "score": "5%" }), json!({ "score": 0.05 }), 1),
            (json!({ "score": 11 }), json!({ "score": 0.11 }), 1),
            (json!({ "score": 100 }), json!({ "score": 1.0 }), 1),
            (json!({ "score": 0.8 }), json!({ "score": 0.8 }), 0),
            (json!({ "score": 1 }), json!({ "score": 1 }), 0),
            (json!({ "score": 8 }), json!({ "score": 8 }), 0),
            (json!({ "score": 101 }), json!({ "score": 101 }), 0),
            (json!({ "score": -1 }), json!({ "score": -1 }), 0),
            (json!({ "score": "nan" }), json!({ "score": "nan" }), 0),
            (json!({ "score": "" }), json!({ "score": "" }), 0),
            (json!({ "score": "high" }), json!({ "score": "high" }), 0),
            (json!({ "list": ["C", "A B"] }), json!({ "list": ["c", "A B"] }), 1),
            (json!({ "other": "GO" }), json!({ "other": "GO" }), 0),
        ];
        for (mut value, expected, made) in table {
            let given = value.clone();
            let repaired = normalize_values(&mut value, &schema, &repairs(&Repair::ALL));
            assert_eq!(value, expected, "{given}");
            assert_eq!(repaired.len(), made, "{given}: {repaired:?}");
            let mut untouched = given.clone();
            assert!(normalize_values(&mut untouched, &schema, &Repairs::new()).is_empty());
            assert_eq!(untouched, given);
        }
    }
}
