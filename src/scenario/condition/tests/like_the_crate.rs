//! We use the `cel` crate's parser and must follow its rules: its own evaluator gives the same
//! results.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::*;

fn atom() -> BoxedStrategy<String> {
    prop::sample::select(vec![
        "0",
        "1",
        "2",
        "-1",
        "1u",
        "2u",
        "0.5",
        "1.0",
        "9223372036854775807",
        "true",
        "false",
        "null",
        "''",
        "'a'",
        "'ab'",
        "'ä'",
        "[]",
        "[1, 2]",
        "['a']",
        "{}",
        "{'a': 1}",
        "{1: 'a'}",
        "facts",
        "facts.rate",
        "facts.alerts",
        "facts.big",
        "facts.none",
        "facts.one",
        "facts.list",
        "facts.other",
        "round",
        "x",
        "y",
        "int",
        "string",
        "nobody",
    ])
    .prop_map(str::to_owned)
    .boxed()
}

fn expression() -> BoxedStrategy<String> {
    atom()
        .prop_recursive(4, 24, 3, |inner| {
            let binary = prop::sample::select(vec![
                "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in",
            ]);
            let function = prop::sample::select(vec![
                "size", "string", "int", "uint", "double", "bool", "type", "dyn", "!", "-",
            ]);
            let member = prop::sample::select(vec!["contains", "startsWith", "endsWith"]);
            let loops = prop::sample::select(vec!["all", "exists", "exists_one", "filter"]);
            let name = prop::sample::select(vec!["x", "y"]);
            let any = inner.clone();
            prop_oneof![
                (any.clone(), binary, any.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
                (function, any.clone()).prop_map(|(f, a)| format!("{f}({a})")),
                (any.clone(), member, any.clone()).prop_map(|(a, f, b)| format!("({a}).{f}({b})")),
                (any.clone(), loops, name.clone(), any.clone())
                    .prop_map(|(a, f, x, b)| format!("({a}).{f}({x}, {b})")),
                (any.clone(), name.clone(), any.clone())
                    .prop_map(|(a, x, b)| format!("({a}).map({x}, {b})")),
                (any.clone(), name, any.clone(), any.clone())
                    .prop_map(|(a, x, b, c)| format!("({a}).map({x}, {b}, {c})")),
                (any.clone(), any.clone(), any.clone())
                    .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
                (any.clone(), any.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
                any.clone().prop_map(|a| format!("({a}).a")),
                any.clone().prop_map(|a| format!("has(({a}).a)")),
                (any.clone(), any.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
                (any.clone(), any).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            ]
        })
        .boxed()
}

/// The crate reads every non-negative integer of JSON as `uint`.
fn value_of(json: &Value) -> cel::Value {
    match json {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, Some(whole)) => cel::Value::UInt(whole),
            (None, None) => cel::Value::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(value_of).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), value_of(value)));
            fields.collect::<std::collections::HashMap<_, _>>().into()
        }
    }
}

fn by_the_crate(text: &str, facts: &Value) -> Option<Result<bool, ()>> {
    let env = Arc::new(cel::Env::stdlib());
    let program = env.compile(text).ok()?;
    let mut context = cel::Context::with_env(env);
    context.add_variable_from_value("facts", value_of(facts));
    context.add_variable("round", 2).ok()?;
    Some(match program.execute(&context) {
        Ok(cel::Value::Bool(truth)) => Ok(truth),
        _ => Err(()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn the_same_is_found(text in expression()) {
        let facts = json!({
            "rate": 0.028, "alerts": 4, "big": u64::MAX, "none": null,
            "one": { "a": 2 }, "list": ["a", "b"],
        });
        let mut shown = CelBindings::default();
        shown.bind("facts", &facts);
        shown.bind("round", &json!(2));
        for text in [text.clone(), format!("({text}) == ({text})"), format!("size({text}) > 0")] {
            if let (Ok(condition), Some(theirs)) =
                (Condition::compile(&text), by_the_crate(&text, &facts))
            {
                let ours = condition.holds(&shown);
                // The crate treats a map as the list of its keys here; CEL does not.
                let said = ours.as_ref().err().map(ToString::to_string).unwrap_or_default();
                if said.ends_with("`+` does not take list and map") {
                    continue;
                }
                let ours = ours.map_err(|_| ());
                prop_assert_eq!(ours, theirs, "{}", text);
            }
        }
    }
}
