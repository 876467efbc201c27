//! Tables of inputs and what the sources' own functions answer to them.

use serde_json::Value;

/// What the function was set up with, and the cases.
pub fn table(text: &str) -> (Value, Vec<Value>) {
    let table: Value = serde_json::from_str(text).expect("a table");
    let cases = table["cases"].as_array().expect("cases").clone();
    assert!(!cases.is_empty());
    (table["with"].clone(), cases)
}

/// Compares with the source's answer: numbers by value, so that `1` and `1.0` are the same.
pub fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
