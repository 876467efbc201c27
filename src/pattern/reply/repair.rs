//! Repairs of a reply: removes what is around its JSON object, and normalizes the spelling of values.
//! Pure. A valid reply is never changed.

use serde_json::{Map, Number, Value};

use crate::base::visible::visible_within;
use crate::scenario::spec::{Repair, Repairs};

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
    pub(crate) fn of(repair: Repair, what: &str) -> Self {
        Self { repair, what: visible_within(what.trim(), CHANGE_CHARS) }
    }
}

/// A reply that was read as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedReply {
    /// The data.
    pub value: Value,
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
    }
    if let Some(read) = parse_around(rest, allowed) {
        repaired.extend(read.repaired);
        return Some(ParsedReply { value: read.value, repaired });
    }
    if !allowed.contains(&Repair::Commas) {
        return None;
    }
    let (shorter, commas) = without_last_commas(rest)?;
    let read = parse_around(&shorter, allowed)?;
    repaired.extend(read.repaired);
    let what = if commas == 1 { "one comma".to_owned() } else { format!("{commas} commas") };
    repaired.push(Repaired::of(Repair::Commas, &what));
    Some(ParsedReply { value: read.value, repaired })
}

/// Reads the object of a text: the whole text, inside a code fence, or with text around it.
fn parse_around(rest: &str, allowed: &Repairs) -> Option<ParsedReply> {
    let mut repaired = Vec::new();
    if let Ok(value) = serde_json::from_str(rest) {
        return Some(ParsedReply { value, repaired });
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

/// The text without the commas before a closing bracket, and how many they were; `None` if there
/// are none. Commas inside texts in quotes stay.
fn without_last_commas(text: &str) -> Option<(String, usize)> {
    let (mut kept, mut commas) = (String::with_capacity(text.len()), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, char) in text.char_indices() {
        if char == ',' && !quoted {
            let next = text[at + 1..].trim_start();
            // A comma after nothing, or after another comma, is another mistake.
            let value_before = !kept.trim_end().ends_with([',', '[', '{', ':']);
            if next.starts_with(['}', ']']) && value_before {
                commas += 1;
                continue;
            }
        }
        match char {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && char == '\\' && !escaped;
        kept.push(char);
    }
    (commas > 0).then_some((kept, commas))
}

/// A final text without the model's thinking before it, and the thinking; `None` if there is none.
/// Without an opening tag, the closing one is a line of its own: a text that mentions the tag stays.
pub fn without_thinking(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (thought, reply) = after_thinking(text)?;
    let last_line = thought.rsplit('\n').next().unwrap_or_default();
    (text.starts_with("<think>") || last_line.trim() == "</think>")
        .then_some((thought, reply.trim()))
}

/// Takes the object of a reply out of its wrapping: a text, a list with one entry, an object with one
/// key. `schema` is that of the object.
pub fn unwrap_object(value: &mut Value, schema: &Value, allowed: &Repairs) -> Vec<Repaired> {
    /// Maximum number of layers that are removed; more of them are not taken for a mistake.
    const LAYERS: usize = 3;
    let keys = schema.get("properties").and_then(Value::as_object);
    let is_key = |key: &str| keys.is_some_and(|keys| keys.contains_key(key));
    let has_keys = |fields: &Map<String, Value>| fields.keys().any(|key| is_key(key));
    let mut repaired = Vec::new();
    for _ in 0..LAYERS {
        let (inner, repair, what) = match &*value {
            Value::String(text) if allowed.contains(&Repair::Encoded) => {
                match serde_json::from_str::<Value>(text) {
                    Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                        (inner, Repair::Encoded, text.clone())
                    }
                    _ => break,
                }
            }
            Value::Array(items) if allowed.contains(&Repair::List) => match &items[..] {
                [one @ (Value::Object(_) | Value::String(_))] => {
                    (one.clone(), Repair::List, "a list with one entry".to_owned())
                }
                _ => break,
            },
            Value::Object(fields) if allowed.contains(&Repair::Wrapper) => {
                let mut only = fields.iter();
                match (only.next(), only.next()) {
                    (Some((key, Value::Object(inner))), None)
                        if !is_key(key) && has_keys(inner) =>
                    {
                        (Value::Object(inner.clone()), Repair::Wrapper, key.clone())
                    }
                    _ => break,
                }
            }
            _ => break,
        };
        repaired.push(Repaired::of(repair, &what));
        *value = inner;
    }
    // Without the object inside there was no wrapping to remove.
    match &*value {
        Value::Object(fields) if has_keys(fields) => repaired,
        _ => Vec::new(),
    }
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
    let of_values = [Repair::Case, Repair::Numbers, Repair::Encoded];
    if of_values.iter().any(|repair| allowed.contains(repair)) {
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
        ("object" | "array", Value::String(text)) if allowed.contains(&Repair::Encoded) => {
            let meant = serde_json::from_str::<Value>(text).ok();
            let fits =
                |inner: &Value| if kind == "array" { inner.is_array() } else { inner.is_object() };
            if let Some(inner) = meant.filter(fits) {
                repaired.push(Repaired::of(Repair::Encoded, &format!("{place}: {text}")));
                *value = inner;
                normalize_value(value, schema, allowed, place, repaired);
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

/// The repairs that would have taken the object of this schema out of its wrapping.
pub fn unwraps_needed(value: &Value, schema: &Value) -> Option<Vec<Repair>> {
    let mut value = value.clone();
    let repaired = unwrap_object(&mut value, schema, &Repairs::from(Repair::ALL));
    let repairs: std::collections::BTreeSet<Repair> =
        repaired.into_iter().map(|it| it.repair).collect();
    (!repairs.is_empty()).then(|| repairs.into_iter().collect())
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
pub(crate) fn missing<'k>(fields: &Map<String, Value>, keys: &[&'k str]) -> Vec<&'k str> {
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
    fn removes_text_around_object_where_allowed() {
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
    fn last_commas_are_removed_where_allowed() {
        use Repair::{Commas, Fences, Preface, Think};
        type CommaCase = (&'static str, &'static [Repair], Option<&'static [Repair]>);
        let table: &[CommaCase] = &[
            (r#"{"a": [1, 2,],}"#, &[Commas], Some(&[Commas])),
            (r#"{"a": [1, 2,],}"#, &[Preface], None),
            ("{\"a\": [1, 2\n,\n]}", &[Commas], Some(&[Commas])),
            ("```json\n{\"a\": [1, 2,]}\n```", &[Commas, Fences], Some(&[Fences, Commas])),
            ("So: {\"a\": [1, 2,]}", &[Commas, Preface], Some(&[Preface, Commas])),
            ("<think>x</think>{\"a\": [1, 2,]}", &[Commas, Think], Some(&[Think, Commas])),
            (r#"{"a": [1, 2,,]}"#, &[Commas], None),
            (r#"{"a": [1, 2], ,}"#, &[Commas], None),
            (r#"{"a": [,]}"#, &[Commas], None),
            (r#"{"a": ,}"#, &[Commas], None),
        ];
        for (text, allowed, expected) in table {
            let read = parse_reply(text, &repairs(allowed));
            let made = read.map(|read| {
                assert_eq!(read.value, json!({ "a": [1, 2] }), "{text}");
                read.repaired.iter().map(|it| it.repair).collect::<Vec<_>>()
            });
            assert_eq!(made.as_deref(), *expected, "{text} with {allowed:?}");
        }
        // A comma in a text stays, also after a quotation mark in it.
        let text = r#"{"a": ",] \" ,}", "b": 1,}"#;
        let read = parse_reply(text, &repairs(&[Commas])).expect("read");
        assert_eq!(read.value, json!({ "a": ",] \" ,}", "b": 1 }));
    }

    #[test]
    fn extracts_object_from_surrounding_text() {
        use Repair::{Encoded, List, Wrapper};
        let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } } });
        let object = json!({ "a": 1 });
        let text = object.to_string();
        let table: &[(Value, &[Repair], bool)] = &[
            (json!([{ "a": 1 }]), &[List], true),
            (json!([{ "a": 1 }]), &[Wrapper, Encoded], false),
            (json!([{ "a": 1 }, { "a": 1 }]), &[List], false),
            (json!([]), &[List], false),
            (json!([1]), &[List], false),
            (json!({ "response": { "a": 1 } }), &[Wrapper], true),
            (json!({ "response": { "a": 1 } }), &[List, Encoded], false),
            (json!({ "response": { "b": 1 } }), &[Wrapper], false),
            (json!({ "response": { "a": 1 }, "more": 1 }), &[Wrapper], false),
            (json!({ "a": { "a": 1 } }), &[Wrapper], false),
            (json!(text), &[Encoded], true),
            (json!(text), &[List, Wrapper], false),
            (json!("no object"), &[Encoded], false),
            (json!("5"), &[Encoded], false),
            (json!([{ "response": text }]), &Repair::ALL, false),
            (json!([json!({ "response": { "a": 1 } }).to_string()]), &Repair::ALL, true),
            (json!([[[[{ "a": 1 }]]]]), &Repair::ALL, false),
        ];
        for (given, allowed, taken) in table {
            let mut value = given.clone();
            let made = unwrap_object(&mut value, &schema, &repairs(allowed));
            assert_eq!(!made.is_empty(), *taken, "{given} with {allowed:?}");
            if *taken {
                assert_eq!(value, object, "{given}");
                let needed = unwraps_needed(given, &schema).expect("some");
                assert!(made.iter().all(|it| needed.contains(&it.repair)), "{given}");
            }
        }
        assert_eq!(unwraps_needed(&object, &schema), None);
    }

    #[test]
    fn removes_thinking_from_final_text() {
        let table = [
            ("<think>so</think>Start.", Some("Start.")),
            (" <think>\nso\n</think>\n\nStart. ", Some("Start.")),
            ("so\n</think>\n\nStart.", Some("Start.")),
            ("<think>so</think>", Some("")),
            ("Start.", None),
            ("Write </think> after the thoughts.", None),
            ("<think>never closed", None),
            ("{\"a\": \"\n</think>\n\"}", None),
        ];
        for (text, expected) in table {
            assert_eq!(without_thinking(text).map(|(_, rest)| rest), expected, "{text}");
        }
    }

    #[test]
    fn respells_values_as_in_contract() {
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
            (json!({ "list": "[\"c\"]" }), json!({ "list": ["c"] }), 1),
            (json!({ "list": "[\"C\"]" }), json!({ "list": ["c"] }), 2),
            (json!({ "list": "{}" }), json!({ "list": "{}" }), 0),
            (json!({ "list": "c" }), json!({ "list": "c" }), 0),
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
