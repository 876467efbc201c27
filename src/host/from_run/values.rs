//! Values of a run as TOML of a scenario file. Texts are written so that they are read back as they were:
//! two braces would be a name to fill in.

use std::time::Duration;

use serde_json::Value;
use toml_edit::{Array, InlineTable, Value as TomlValue};

/// The longest latency that a scenario takes.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A text for a key in which `{{input}}` is filled in.
pub fn escaped(text: &str) -> String {
    text.replace("{{", "\\{{")
}

/// A JSON value for a key in whose texts `{{input}}` is filled in; `None`: TOML has no such value.
pub fn templated(value: &Value) -> Option<TomlValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None if number.is_u64() => return None,
            None => number.as_f64().filter(|number| number.is_finite())?.into(),
        },
        Value::String(text) => escaped(text).into(),
        Value::Array(items) => {
            let items = items.iter().map(templated).collect::<Option<Vec<_>>>()?;
            TomlValue::Array(items.into_iter().collect::<Array>())
        }
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (key, value) in fields {
                table.insert(key, templated(value)?);
            }
            TomlValue::InlineTable(table)
        }
    })
}

/// A JSON object that a table of the file would be read as, byte by byte; else `None`: write the text.
pub fn as_table(json: &str) -> Option<(Value, TomlValue)> {
    let value: Value = serde_json::from_str(json).ok().filter(Value::is_object)?;
    let table = templated(&value)
        .filter(|_| serde_json::to_string(&value).is_ok_and(|text| text == json))?;
    Some((value, table))
}

/// A time as a latency; `None`: it takes none.
pub fn latency(took: Duration) -> Option<String> {
    // Times of a log are rounded to microseconds.
    let ms = (took.min(LONGEST).as_micros() + 500) / 1_000;
    (ms > 0).then(|| format!("{ms}ms"))
}

/// A text as a string of CEL.
pub fn cel_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// A text for a comment: one line.
pub fn comment(text: &str) -> String {
    const CHARS: usize = 160;
    crate::base::visible::visible_within(text.trim(), CHARS).to_string().replace('\n', " ")
}
