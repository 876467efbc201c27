//! Checks a tool's result against the fields that its scenario requires.

use serde_json::Value;

use crate::scenario::spec::tool::{FieldKind, ResultContract};

/// Checks a result. Additional keys are allowed.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check(contract: &ResultContract, answer: &Value) -> Result<(), String> {
    if contract.required.is_empty() && answer.is_null() {
        // docs/rules/decisions.md: a result of null is an empty section, not a broken result.
        return Ok(());
    }
    let Value::Object(fields) = answer else {
        return Err(format!("the result is {}, not a JSON object", kind_of(answer)));
    };
    for (key, kind) in &contract.required {
        match fields.get(key) {
            None => return Err(format!("the result has no `{key}`")),
            Some(value) if !has_kind(value, *kind) => {
                let (wanted, found) = (kind.word(), kind_of(value));
                return Err(format!("`{key}` of the result is {found}, not a {wanted}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn has_kind(value: &Value, kind: FieldKind) -> bool {
    match kind {
        FieldKind::Text => value.is_string(),
        FieldKind::Number => value.is_number(),
        FieldKind::Bool => value.is_boolean(),
        FieldKind::List => value.is_array(),
        FieldKind::Table => value.is_object(),
        FieldKind::Any => true,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn checks_answer_against_contract() {
        let contract = ResultContract {
            required: vec![
                ("rate".to_owned(), FieldKind::Number),
                ("skus".to_owned(), FieldKind::List),
                ("note".to_owned(), FieldKind::Any),
            ],
        };
        let good = json!({ "rate": 0.5, "skus": [], "note": null, "more": 1 });
        assert_eq!(check(&contract, &good), Ok(()));
        assert_eq!(check(&ResultContract::default(), &json!(null)), Ok(()));
        for (answer, wrong) in [
            (json!(null), "the result is null, not a JSON object"),
            (json!([1]), "the result is a list, not a JSON object"),
            (json!({ "skus": [], "note": 1 }), "the result has no `rate`"),
            (
                json!({ "rate": "1", "skus": [], "note": 1 }),
                "`rate` of the result is a text, not a number",
            ),
        ] {
            assert_eq!(check(&contract, &answer), Err(wrong.to_owned()));
        }
    }
}
