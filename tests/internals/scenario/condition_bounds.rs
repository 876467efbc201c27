//! No condition takes more steps or bytes than it may, with any text and any values: counted by the
//! budget, and compared with the real allocations of the process.

use crate::scenario::cel::{
    BudgetExceeded, CelBindings, Condition, ConditionError, EvalBudget, EvalLimits,
};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed};
use serde_json::{Value, json};

/// Fixed, so that a failure is the same everywhere. `PROPTEST_CASES` asks for more cases.
fn config() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(11),
        rng_algorithm: RngAlgorithm::ChaCha,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// JSON of any shape: long lists, long texts, deep maps.
fn data() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        (0..20_000_usize).prop_map(|length| Value::from("ab".repeat(length))),
        (0..2_000_usize).prop_map(|length| (0..length).collect::<Value>()),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,2}", inner, 0..6)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
    .boxed()
}

/// Conditions that are mostly of the right types, so that they get far, with loops in loops.
fn condition() -> BoxedStrategy<String> {
    let list = prop::sample::select(vec!["facts.l", "facts.a", "facts.m", "[1, 2, 3]", "x", "y"]);
    let atom = prop_oneof![
        list.clone().prop_map(str::to_owned),
        prop::sample::select(vec!["facts.s", "'ab'", "1", "2.5", "true", "facts", "null"])
            .prop_map(str::to_owned),
    ];
    atom.prop_recursive(5, 24, 3, |inner| {
        let variable = prop::sample::select(vec!["x", "y", "z"]);
        let kind = prop::sample::select(vec!["all", "exists", "exists_one", "filter", "map"]);
        let operator = prop::sample::select(vec!["+", "==", "!=", "in", "||", "&&", "<"]);
        prop_oneof![
            4 => (inner.clone(), kind, variable, inner.clone())
                .prop_map(|(a, kind, x, b)| format!("({a}).{kind}({x}, {b})")),
            2 => (inner.clone(), operator, inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            1 => inner.clone().prop_map(|a| format!("size({a})")),
            1 => inner.clone().prop_map(|a| format!("string({a})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => inner.prop_map(|a| format!("({a} == {a})")),
        ]
    })
    .prop_map(|text| format!("({text}) == 0 || true"))
    .boxed()
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn an_evaluation_stays_within_its_budget(
        text in condition(),
        (a, l, m) in (data(), data(), data()),
        steps in 1_u64..200_000,
        bytes in 1_u64..2_000_000,
    ) {
        let Ok(condition) = Condition::compile(&text) else { return Ok(()) };
        let mut shown = CelBindings::default();
        shown.bind("facts", &json!({ "a": a, "l": l, "m": m, "s": "abc".repeat(1_000) }));
        let limits = EvalLimits { steps, bytes };
        let mut budget = EvalBudget::new(limits);
        let mut found = None;
        let counted = allocation_counter::measure(|| {
            found = Some(condition.holds_within(&shown, &mut budget));
        });
        prop_assert!(budget.steps() <= steps && budget.bytes() <= bytes, "{:?}", budget);
        match found.expect("evaluated") {
            Err(ConditionError::BudgetExceeded(BudgetExceeded::Steps(most))) => prop_assert_eq!(most, steps),
            Err(ConditionError::BudgetExceeded(BudgetExceeded::Bytes(most))) => prop_assert_eq!(most, bytes),
            // `x || true` is true whatever happens to x, unless the budget is used up.
            other => prop_assert_eq!(other, Ok(true)),
        }
        // A list that grows is copied now and then, and an error has a text of its own.
        let most = 4 * budget.bytes() + 64 * 1024;
        prop_assert!(counted.bytes_max <= most, "{} bytes, {:?}: {}", counted.bytes_max, budget, text);
        let most = 4 * budget.steps() + 100;
        prop_assert!(counted.count_total <= most, "{counted:?}, {budget:?}: {text}");
    }
}

/// A loop in a loop over what a tool can answer: 100,000 numbers are no more than 600 kB.
#[test]
fn long_loops_stop_at_limit() {
    let mut shown = CelBindings::default();
    let long: Value = (0..100_000).collect();
    let short: Value = (0..1_000).collect();
    shown.bind("facts", &json!({ "l": long, "short": short, "s": "x".repeat(1_000_000) }));
    for (text, expected) in [
        ("facts.l.all(a, facts.l.all(b, a + b >= 0))", BudgetExceeded::Steps(1_000_000)),
        (
            "size(facts.l.map(a, facts.l)) + size(facts.l.map(a, facts.l.map(b, b))) > 0",
            BudgetExceeded::Steps(1_000_000),
        ),
        (
            "size(facts.short.map(a, facts.short.map(b, facts.l))) > 0",
            BudgetExceeded::Steps(1_000_000),
        ),
        ("size(facts.short.map(a, facts.s + facts.s)) > 0", BudgetExceeded::Bytes(16 << 20)),
        ("facts.short.all(a, facts.s == facts.s)", BudgetExceeded::Steps(1_000_000)),
        ("facts.short.all(a, facts.s.contains('xy') == false)", BudgetExceeded::Steps(1_000_000)),
        ("facts.short.all(a, size(facts.s) == 1000000)", BudgetExceeded::Steps(1_000_000)),
        ("facts.l.all(a, !(-1 in facts.l))", BudgetExceeded::Steps(1_000_000)),
        ("facts.l.exists(a, facts.l + facts.l == [])", BudgetExceeded::Bytes(16 << 20)),
        ("facts.l.all(a, facts.l == facts.l)", BudgetExceeded::Steps(1_000_000)),
    ] {
        let condition = Condition::compile(text).expect("CEL");
        let mut found = None;
        let counted = allocation_counter::measure(|| found = Some(condition.holds(&shown)));
        assert_eq!(found, Some(Err(ConditionError::BudgetExceeded(expected))), "{text}");
        assert!(counted.bytes_max <= 64 << 20, "{text}: {} bytes", counted.bytes_max);
    }
    // A value that is only looked at is not copied.
    let condition = Condition::compile("size(facts.l) == 100000").expect("CEL");
    let mut found = None;
    let counted = allocation_counter::measure(|| found = Some(condition.holds(&shown)));
    assert_eq!(found, Some(Ok(true)));
    assert!(counted.bytes_total < 1_000, "{} bytes", counted.bytes_total);
}
