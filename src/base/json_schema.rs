//! JSON schemas of the arguments of tools and of the fields of forms, as other programs write them. Endpoints
//! of models refuse a whole request for one odd schema, so [`of_object`] gives each the form that all take.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::time::date_from_iso;

/// Deepest nesting of a schema that is read; parts below take any value.
const MAX_DEPTH: usize = 32;

/// Most parts that the top of a schema is merged of: references to references can make any number of them.
const MAX_PARTS: usize = 200;

/// Keys that have a schema, besides `items`.
const SCHEMA_KEYS: [&str; 5] = ["additionalProperties", "not", "if", "then", "else"];
/// Keys that have a list of schemas.
const LIST_KEYS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keys that have schemas by name.
const MAP_KEYS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keys that no endpoint may see at the top: their content is merged.
const MERGED_KEYS: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum"];

/// Keys that set a limit for a number, a text or a list.
const BOUNDS: [&str; 8] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// Formats of texts that are checked. Others take any text.
pub const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Names of types that are none of JSON schema's, and what their authors mean; `""`: any type.
const OTHER_TYPES: [(&str, &str); 11] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("any", ""),
    ("", ""),
];

/// The schema of an object with `type` and `properties` at its top, as strict endpoints want it. What is
/// at its top in another way (`$ref`, `allOf`, `oneOf`, a list of types) is merged; below, arrays get
/// `items`, optional fields need not be `null`, and references that lead nowhere go. Every field stays.
///
/// # Errors
/// What the schema is, if it is none of an object.
pub fn of_object(schema: &Value) -> Result<Value, String> {
    let mut top = match schema {
        Value::Bool(true) | Value::Null => Map::new(),
        Value::Object(fields) => Parts { root: schema, left: MAX_PARTS }.merged(fields)?,
        _ => return Err("its schema is no object".to_owned()),
    };
    repair_type(&mut top);
    if !can_be_object(&top) {
        return Err(format!("its schema is one of {}", types_of(&top).join(" or ")));
    }
    top.insert("type".to_owned(), "object".into());
    let root = Value::Object(top.clone());
    repair(&mut top, &root, 0);
    top.entry("properties").or_insert_with(|| json!({}));
    top.remove("$id");
    Ok(Value::Object(top))
}

/// The parts of the top of a schema.
struct Parts<'s> {
    /// The whole schema.
    root: &'s Value,
    /// How many may still be read.
    left: usize,
}

impl<'s> Parts<'s> {
    /// The fields of a schema with those that it takes from elsewhere.
    fn merged(&mut self, schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err("its schema refers to itself".to_owned());
        };
        self.left = left;
        let mut fields = schema.clone();
        fields.retain(|key, _| !MERGED_KEYS.contains(&key.as_str()));
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let found = find(self.root, name).ok_or_else(|| {
                format!("its schema refers to `{}`, which is not in it", short(name))
            })?;
            add(&mut fields, self.merged(found)?, true);
        }
        for part in listed(schema, "allOf") {
            add(&mut fields, self.merged(part)?, true);
        }
        for key in ["anyOf", "oneOf"] {
            let parts = listed(schema, key).map(|part| self.merged(part));
            let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
            // Such as `null` beside an object.
            if parts.iter().any(can_be_object) {
                parts.retain(can_be_object);
            }
            let all = parts.into_iter().reduce(|mut all, part| {
                add(&mut all, part, false);
                all
            });
            add(&mut fields, all.unwrap_or_default(), true);
        }
        Ok(fields)
    }
}

fn can_be_object(schema: &Map<String, Value>) -> bool {
    let types = types_of(schema);
    types.is_empty() || types.contains(&"object")
}

/// The objects in a list of schemas.
fn listed<'s>(
    schema: &'s Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'s Map<String, Value>> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// The schema that a reference inside of `root` leads to.
fn find<'s>(root: &'s Value, name: &str) -> Option<&'s Map<String, Value>> {
    root.pointer(name.strip_prefix('#')?)?.as_object()
}

/// Adds the fields of another schema. `both`: a value has to fit both schemas, and not one of them: then
/// what either requires is required.
fn add(fields: &mut Map<String, Value>, more: Map<String, Value>, both: bool) {
    let names = |fields: &Map<String, Value>| -> Vec<Value> {
        fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (has, adds) = (names(fields), names(&more));
    let required: Vec<Value> = match both {
        true => has.iter().chain(adds.iter().filter(|name| !has.contains(name))).cloned().collect(),
        false => has.into_iter().filter(|name| adds.contains(name)).collect(),
    };
    for (key, value) in more {
        match key.as_str() {
            "required" => {}
            // An alternative may have fields that another one does not allow.
            "additionalProperties" if fields.contains_key(&key) => {
                fields.remove(&key);
            }
            "properties" => match (fields.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => {
                    for (name, property) in more {
                        add_property(known, name, property, both);
                    }
                }
                (Some(Value::Object(_)), _) => {}
                (_, value) => {
                    fields.insert(key, value);
                }
            },
            _ => {
                if fields.get(&key).is_none_or(Value::is_null) {
                    fields.insert(key, value);
                }
            }
        }
    }
    fields.insert("required".to_owned(), required.into());
}

/// Adds a field. Where it is known in another form, either form is one of its values.
fn add_property(known: &mut Map<String, Value>, name: String, property: Value, both: bool) {
    match known.get_mut(&name) {
        Some(one) if *one != property && !both => {
            *one = json!({ "anyOf": [one.take(), property] });
        }
        Some(_) => {}
        None => {
            known.insert(name, property);
        }
    }
}

/// Repairs a schema and those in it.
fn repair(schema: &mut Map<String, Value>, root: &Value, depth: usize) {
    schema.remove("$schema");
    if let Some(name) = schema.get("$ref").and_then(Value::as_str)
        && find(root, name).is_none()
    {
        schema.remove("$ref");
    }
    repair_type(schema);
    for key in BOUNDS {
        // Python writes `1.0`, which strict readers refuse for a whole number.
        if let Some(bound) = schema.get_mut(key)
            && let Some(whole) = bound.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 1e15)
        {
            *bound = (whole as i64).into();
        }
    }
    // An empty list would allow nothing; some libraries write it for none.
    schema.retain(|key, value| key != "enum" || value.as_array().is_some_and(|it| !it.is_empty()));
    if depth == MAX_DEPTH {
        // Any value.
        return schema.clear();
    }
    for key in SCHEMA_KEYS {
        if let Some(Value::Object(part)) = schema.get_mut(key) {
            repair(part, root, depth + 1);
        }
    }
    for key in LIST_KEYS {
        if let Some(Value::Array(parts)) = schema.get_mut(key) {
            parts.iter_mut().filter_map(Value::as_object_mut).for_each(|part| {
                repair(part, root, depth + 1);
            });
        }
    }
    for key in MAP_KEYS {
        match schema.get_mut(key) {
            Some(Value::Object(parts)) => {
                for part in parts.values_mut() {
                    match part {
                        Value::Object(part) => repair(part, root, depth + 1),
                        // `true` is any value, and a text is not known.
                        _ => *part = json!({}),
                    }
                }
            }
            // Such as `[]` of PHP.
            Some(_) => {
                schema.remove(key);
            }
            None => {}
        }
    }
    repair_required(schema);
    let is_array = types_of(schema).contains(&"array");
    match schema.get_mut("items") {
        Some(Value::Object(items)) => repair(items, root, depth + 1),
        Some(other) => *other = json!({}),
        None if is_array => {
            schema.insert("items".to_owned(), json!({}));
        }
        None => {}
    }
}

/// Gives the schema types that JSON schema has.
fn repair_type(schema: &mut Map<String, Value>) {
    let Some(value) = schema.get_mut("type") else { return };
    let meant = |word: &str| {
        let found = OTHER_TYPES.iter().find(|(other, _)| word.eq_ignore_ascii_case(other));
        found.map_or_else(|| word.to_ascii_lowercase(), |(_, meant)| (*meant).to_owned())
    };
    let mut words: Vec<String> = Vec::new();
    let given = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for word in given.iter().filter_map(Value::as_str).map(meant) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match &words[..] {
        [] => {
            schema.remove("type");
        }
        words if words.iter().any(String::is_empty) => {
            schema.remove("type");
        }
        [word] => *value = word.as_str().into(),
        words => *value = words.into(),
    }
}

/// Keeps the names of fields that there are in `required`, and lets the other fields be left out in one way
/// only: not by `null` too.
fn repair_required(schema: &mut Map<String, Value>) {
    let names: Vec<String> = match schema.remove("required") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties.iter_mut() {
        if let Value::Object(property) = property
            && !names.contains(name)
        {
            leave_null_out(property);
        }
    }
    let names: Vec<String> =
        names.into_iter().filter(|name| properties.contains_key(name)).collect();
    if !names.is_empty() {
        schema.insert("required".to_owned(), names.into());
    }
}

/// Removes `null` from the values of a field that may be left out.
fn leave_null_out(property: &mut Map<String, Value>) {
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|word| word != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            property.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(words)) = property.get_mut("enum")
        && words.len() > 1
    {
        words.retain(|word| !word.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(parts)) = property.get_mut(key) else { continue };
        parts.retain(|part| part.get("type").is_none_or(|word| word != "null"));
        match &mut parts[..] {
            [Value::Object(one)] => {
                let one = std::mem::take(one);
                property.remove(key);
                add(property, one, true);
                property.retain(|key, value| key != "required" || *value != json!([]));
                return leave_null_out(property);
            }
            [] => {
                property.remove(key);
            }
            _ => {}
        }
    }
}

/// The types that a schema allows; empty: any.
pub fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The default values that a schema gives its fields, by name.
pub fn defaults(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let given = properties.filter_map(|(name, field)| {
        let value = field.get("default").filter(|value| !value.is_null())?;
        Some((name.clone(), value.clone()))
    });
    given.collect::<Map<String, Value>>().into()
}

/// A value that a field may have.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaChoice {
    pub value: Value,
    /// What it is called for people.
    pub title: Option<String>,
}

/// The values that a field may have, if its schema lists them: `enum`, with or without `enumNames`, or
/// constants with titles in `oneOf` or `anyOf`. Empty: it lists none.
pub fn choices(field: &Value) -> Vec<SchemaChoice> {
    let title = |name: Option<&Value>| name.and_then(Value::as_str).map(str::to_owned);
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        let names = field.get("enumNames");
        let choice = |(at, value): (usize, &Value)| {
            let title = title(names.and_then(|names| names.get(at)));
            SchemaChoice { value: value.clone(), title }
        };
        return values.iter().enumerate().map(choice).collect();
    }
    let constants = |key: &&str| -> Option<Vec<SchemaChoice>> {
        let parts = field.get(key)?.as_array()?.iter();
        let choice = |part: &Value| {
            Some(SchemaChoice {
                value: part.get("const")?.clone(),
                title: title(part.get("title")),
            })
        };
        parts.map(choice).collect()
    };
    ["oneOf", "anyOf"].iter().find_map(constants).unwrap_or_default()
}

/// How a value does not fit the schema of its field, beyond its type: "is less than 1". `None`: it fits.
pub fn misfit(field: &Value, value: &Value) -> Option<String> {
    let allowed = choices(field);
    if !allowed.is_empty() && !allowed.iter().any(|choice| choice.value == *value) {
        return Some("is not one of the allowed values".to_owned());
    }
    let bound = |key: &str| field.get(key).and_then(Value::as_f64);
    let below = |key: &str, is: f64, what: &str, unit: &str| {
        bound(key).filter(|least| is < *least).map(|least| format!("{what} {least}{unit}"))
    };
    let above = |key: &str, is: f64, what: &str, unit: &str| {
        bound(key).filter(|most| is > *most).map(|most| format!("{what} {most}{unit}"))
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            below("minimum", number, "is less than", "")
                .or_else(|| above("maximum", number, "is more than", ""))
        }
        Value::String(text) => {
            let length = text.chars().count() as f64;
            let format = field.get("format").and_then(Value::as_str).unwrap_or_default();
            below("minLength", length, "has fewer than", " characters")
                .or_else(|| above("maxLength", length, "has more than", " characters"))
                .or_else(|| wrong_format(format, text).map(str::to_owned))
        }
        Value::Array(items) => {
            let count = items.len() as f64;
            let of_items = field.get("items");
            let wrong = || items.iter().find_map(|item| misfit(of_items?, item));
            below("minItems", count, "has fewer than", " values")
                .or_else(|| above("maxItems", count, "has more than", " values"))
                .or_else(|| Some(format!("has a value that {}", wrong()?)))
        }
        _ => None,
    }
}

/// How a text does not have its format. A format that is not known takes any text.
fn wrong_format(format: &str, text: &str) -> Option<&'static str> {
    let is_time = |text: &str| {
        let of_time =
            |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z' | 'z');
        text.len() >= 9
            && text.as_bytes().get(3) == Some(&b':')
            && text.chars().skip(1).all(of_time)
    };
    let (fits, why) = match format {
        "email" => {
            let parts = text.split_once('@').filter(|_| !text.contains(char::is_whitespace));
            let fits = parts.is_some_and(|(name, host)| {
                !name.is_empty()
                    && host.contains('.')
                    && !host.starts_with('.')
                    && !host.ends_with('.')
            });
            (fits, "is no email address, such as ann@shop.example")
        }
        "uri" => (url::Url::parse(text).is_ok(), "is no address, such as https://shop.example/"),
        "date" => {
            (text.len() == 10 && date_from_iso(text).is_some(), "is no date, such as 2026-11-29")
        }
        "date-time" => {
            let time = text.get(10..).is_some_and(is_time);
            let fits = time && date_from_iso(text).is_some();
            (fits, "is no date with a time, such as 2026-11-29T14:05:00Z")
        }
        _ => return None,
    };
    (!fits).then_some(why)
}

/// The beginning of a name that an error quotes.
fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()).into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn q() -> Value {
        json!({ "q": { "type": "string" } })
    }

    #[test]
    fn top_becomes_an_object() {
        let of = |properties: Value| json!({ "type": "object", "properties": properties });
        for (schema, expected) in [
            (json!({ "type": "object" }), of(json!({}))),
            (json!({}), of(json!({}))),
            (json!(null), of(json!({}))),
            (json!({ "type": "object", "properties": null }), of(json!({}))),
            (json!({ "type": "object", "properties": [], "required": null }), of(json!({}))),
            (json!({ "properties": q(), "$schema": "x", "required": ["r"] }), of(q())),
            (json!({ "type": ["object", "null"], "properties": q() }), of(q())),
            (json!({ "type": "dict", "properties": q() }), of(q())),
            (
                json!({ "anyOf": [{ "type": "object", "properties": q() }, { "type": "null" }] }),
                of(q()),
            ),
            (json!({ "properties": { "a": true } }), of(json!({ "a": {} }))),
        ] {
            assert_eq!(of_object(&schema), Ok(expected), "{schema}");
        }
        let refers = json!({ "$ref": "#/$defs/In", "$defs": { "In": { "type": "object",
            "properties": q(), "required": ["q"] } } });
        let merged = of_object(&refers).expect("an object");
        assert_eq!((&merged["properties"], &merged["required"]), (&q(), &json!(["q"])));
        for (schema, why) in [
            (json!({ "type": "string" }), "its schema is one of string"),
            (json!([]), "its schema is no object"),
            (
                json!({ "$ref": "#/$defs/No" }),
                "its schema refers to `#/$defs/No`, which is not in it",
            ),
            (json!({ "$ref": "#" }), "its schema refers to itself"),
        ] {
            assert_eq!(of_object(&schema), Err(why.to_owned()), "{schema}");
        }
    }

    #[test]
    fn parts_of_the_top_are_merged() {
        let part = |name: &str, also: &str| {
            json!({
                "properties": { "kind": { "const": name }, name: { "type": "string" } },
                "required": ["kind", also], "additionalProperties": false,
            })
        };
        let parts = [part("a", "a"), part("b", "b")];
        let all = of_object(&json!({ "allOf": parts, "title": "T" })).expect("an object");
        assert_eq!(all["required"], json!(["kind", "a", "b"]));
        assert_eq!(all["properties"]["kind"], json!({ "const": "a" }));
        let one = of_object(&json!({ "oneOf": parts, "title": "T" })).expect("an object");
        assert_eq!(one["required"], json!(["kind"]));
        assert_eq!(
            one["properties"]["kind"],
            json!({ "anyOf": [{ "const": "a" }, { "const": "b" }] })
        );
        assert!(one["properties"]["b"].is_object() && one.get("oneOf").is_none(), "{one}");
        assert!(one.get("additionalProperties").is_none() && one["title"] == "T", "{one}");
    }

    #[test]
    fn fields_are_repaired() {
        let field = |property: Value, required: bool| {
            let required: &[&str] = if required { &["f"] } else { &[] };
            let schema = json!({ "properties": { "f": property }, "required": required });
            of_object(&schema).expect("an object")["properties"]["f"].clone()
        };
        let text_or_null = || json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        for (property, expected) in [
            (json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
            (json!({ "type": "array", "items": [] }), json!({ "type": "array", "items": {} })),
            (
                json!({ "items": { "type": "list" } }),
                json!({ "items": { "type": "array", "items": {} } }),
            ),
            (json!({ "type": ["string", "null"], "default": null }), json!({ "type": "string" })),
            (text_or_null(), json!({ "type": "string" })),
            (
                json!({ "type": "string", "enum": ["a", null] }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
            (json!({ "enum": [] }), json!({})),
            (
                json!({ "type": "integer", "minimum": 1.0 }),
                json!({ "type": "integer", "minimum": 1 }),
            ),
            (json!({ "type": "STRING" }), json!({ "type": "string" })),
            (json!({ "type": "any" }), json!({})),
            (json!({ "$ref": "https://a.example/schema" }), json!({})),
            (
                json!({ "type": "object", "properties": { "g": { "type": "int" } }, "required": ["h"] }),
                json!({ "type": "object", "properties": { "g": { "type": "integer" } } }),
            ),
        ] {
            assert_eq!(field(property.clone(), false), expected, "{property}");
        }
        assert_eq!(field(text_or_null(), true), text_or_null(), "a required one can be null");
    }

    #[test]
    fn values_fit_their_fields() {
        let text = |format: &str| json!({ "type": "string", "format": format });
        let list = json!({ "type": "array", "minItems": 1, "maxItems": 2.0,
            "items": { "enum": ["a", "b", "c"] } });
        let titled = json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] });
        for (field, value, why) in [
            (json!({ "minimum": 1.0, "maximum": 5 }), json!(1), None),
            (json!({ "minimum": 1.0 }), json!(0.5), Some("is less than 1")),
            (json!({ "maximum": 5 }), json!(6), Some("is more than 5")),
            (json!({ "minLength": 2 }), json!("ü"), Some("has fewer than 2 characters")),
            (json!({ "maxLength": 1 }), json!("üü"), Some("has more than 1 characters")),
            (text("email"), json!("ann@shop.example"), None),
            (
                text("email"),
                json!("not an email"),
                Some("is no email address, such as ann@shop.example"),
            ),
            (text("uri"), json!("mailto:a@b.c"), None),
            (text("uri"), json!("shop"), Some("is no address, such as https://shop.example/")),
            (text("date"), json!("2026-02-29"), Some("is no date, such as 2026-11-29")),
            (text("date-time"), json!("2026-11-29T14:05:00.5+01:00"), None),
            (
                text("date-time"),
                json!("2026-11-29"),
                Some("is no date with a time, such as 2026-11-29T14:05:00Z"),
            ),
            (text("phone"), json!("?"), None),
            (list.clone(), json!(["a", "b"]), None),
            (list.clone(), json!([]), Some("has fewer than 1 values")),
            (list, json!(["d"]), Some("has a value that is not one of the allowed values")),
            (titled.clone(), json!("b"), None),
            (titled, json!("A"), Some("is not one of the allowed values")),
        ] {
            assert_eq!(misfit(&field, &value).as_deref(), why, "{field} {value}");
        }
    }

    #[test]
    fn choices_have_their_titles() {
        let of = |field: Value| -> Vec<(Value, Option<String>)> {
            choices(&field).into_iter().map(|it| (it.value, it.title)).collect()
        };
        let named = json!({ "enum": ["a", "b"], "enumNames": ["A"] });
        let titled = json!({ "anyOf": [{ "const": "a", "title": "A" }, { "const": "b" }] });
        for field in [named, titled] {
            assert_eq!(of(field), [(json!("a"), Some("A".to_owned())), (json!("b"), None)]);
        }
        assert!(of(json!({ "anyOf": [{ "type": "string" }, { "const": "b" }] })).is_empty());
    }

    /// Schemas of any form, with the keys that are repaired.
    fn schemas() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec!["object", "array", "null", "string", "int", ""]);
        let leaf = prop_oneof![
            words.prop_map(|word| json!({ "type": word })),
            Just(json!({ "$ref": "#/properties/a" })),
            Just(json!({ "$ref": "#" })),
            Just(json!([])),
            Just(json!(null)),
            Just(json!(true)),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop::sample::select(vec![
                "anyOf",
                "oneOf",
                "allOf",
                "properties",
                "items",
                "not",
                "required",
                "$defs",
                "enum",
            ]);
            prop::collection::btree_map(key, prop::collection::vec(inner, 0..3), 0..3).prop_map(
                |keys| {
                    let fields = keys.into_iter().map(|(key, parts)| {
                        let named = ["a", "b", "c"].into_iter().map(str::to_owned);
                        let value = match key {
                            "properties" | "$defs" => {
                                Value::Object(named.zip(parts).collect::<Map<_, _>>())
                            }
                            "items" | "not" => parts.into_iter().next().unwrap_or_default(),
                            "required" => json!(["a", "z"]),
                            _ => parts.into(),
                        };
                        (key.to_owned(), value)
                    });
                    Value::Object(fields.collect())
                },
            )
        })
    }

    /// What a strict endpoint takes.
    fn is_strict(schema: &Value) -> bool {
        let Some(fields) = schema.as_object() else { return false };
        let properties = fields.get("properties").and_then(Value::as_object);
        let of_properties = || properties.into_iter().flat_map(|all| all.values());
        let is_array = types_of(fields).contains(&"array");
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        (!is_array || fields.get("items").is_some_and(Value::is_object))
            && fields.get("properties").is_none_or(Value::is_object)
            && required
                .filter_map(Value::as_str)
                .all(|it| properties.is_some_and(|all| all.contains_key(it)))
            && of_properties().chain(fields.get("items")).all(is_strict)
    }

    proptest! {
        #[test]
        fn strict_endpoints_take_repaired_schemas(schema in schemas()) {
            if let Ok(repaired) = of_object(&schema) {
                prop_assert!(repaired["type"] == "object" && repaired["properties"].is_object());
                prop_assert!(MERGED_KEYS.iter().all(|key| repaired.get(key).is_none()));
                prop_assert!(is_strict(&repaired), "{repaired}");
                prop_assert_eq!(of_object(&repaired), Ok(repaired.clone()), "a second time");
            }
        }
    }
}
