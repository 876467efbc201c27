//! For every text of a file or an override: it is judged, and nothing panics.
use crate::scenario::cel::CelBindings;
use crate::scenario::{Override, ScenarioListing, ScenarioOrigin, check, shipped};
use proptest::prelude::*;

fn judge(text: &str, set: &[Override]) {
    let checked = check(text, ScenarioOrigin::File("x.toml".into()), set);
    // What cannot be run says why; what can be run has no errors.
    assert_eq!(checked.scenario.is_none(), checked.problems.errors() > 0, "{text}");
    let _ = checked.problems.pretty(true);
    let _ = ScenarioListing::read("x", text);
    for problem in checked.problems.iter() {
        assert!(!checked.problems.line(problem).contains(['\n', '\u{1b}']));
    }
    let shown = CelBindings::default();
    for row in checked.scenario.iter().flat_map(|scenario| &scenario.script.rows) {
        let _ = row.when.as_ref().map(|when| when.holds(&shown));
    }
}

/// Pieces that a scenario is made of, so that arbitrary text comes near to one.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,8}",
        proptest::sample::select(vec![
            "[",
            "]",
            "[[script]]\n",
            "{",
            "}",
            "{{",
            "}}",
            "\"",
            "'''",
            "\"\"\"",
            "\\",
            "\n",
            "\r\n",
            "=",
            ".",
            ",",
            "#",
            "title",
            "pattern",
            "goal",
            "inputs",
            "flags",
            "budget",
            "facts",
            "collaboration",
            "sequence",
            "roles",
            "agents",
            "members = [\"\"]\n",
            "entry = \"\"\n",
            "calls = [{}]\n",
            "script",
            "role",
            "when",
            "latency",
            "reply",
            "fault",
            "1",
            "-1",
            "1e999",
            "nan",
            "true",
            "2026-03-02",
            "0x_",
            "99999999999999999999",
            "facts.x >= ",
            "\\u00e4",
            "\\\n",
            "\u{feff}",
            "\u{202e}",
            "ä",
            "🙂",
            "\t",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_judged(pieces in prop::collection::vec(piece(), 0..60)) {
        judge(&pieces.concat(), &[]);
    }

    #[test]
    fn judges_mutated_shipped_files(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        cut in 0_usize..40,
        put in prop::collection::vec(piece(), 0..4),
    ) {
        let all = shipped();
        let text: Vec<char> = all[which.index(all.len())].text.chars().collect();
        let from = from.index(text.len());
        let to = (from + cut).min(text.len());
        let changed: String =
            text[..from].iter().copied().chain(put.concat().chars()).chain(text[to..].iter().copied()).collect();
        judge(&changed, &[]);
    }

    #[test]
    fn arbitrary_overrides_are_judged(
        path in prop::collection::vec(
            prop_oneof![
                proptest::sample::select(vec![
                    "title", "goal", "inputs", "region", "value", "budget", "max_rounds", "facts", "roles",
                    "risk_analyst", "prompt", "script", "script[0]", "script[999]", "script[x]", "when",
                    "reply", "tools", "llm", "timeout_s", "collaboration", "sequence", "sequence[0]", "\"a.b\"",
                ]).prop_map(str::to_owned),
                "\\PC{0,6}",
            ],
            0..5,
        ),
        value in prop::collection::vec(piece(), 0..6),
    ) {
        if let Ok(set) = Override::new(&path.join("."), &value.concat()) {
            judge(shipped()[0].text, &[set]);
        }
        if let Ok(set) = Override::literal(&path.join("."), &value.concat()) {
            judge(shipped()[0].text, &[set]);
        }
    }
}

/// However deep values nest: the TOML parser stops at a depth of its own.
#[test]
fn deep_values_do_not_overflow_stack() {
    for text in [
        format!("facts = {}", "[".repeat(5_000)),
        format!("facts = {{ a = {}1{} }}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("facts = {}", "{a=".repeat(5_000)),
        format!("facts{} = 1", ".a".repeat(5_000)),
        format!("[facts{}]\nx = 1", ".a".repeat(5_000)),
    ] {
        judge(&text, &[]);
    }
    let deep = format!("facts{}=1", ".a".repeat(5_000));
    assert!(deep.parse::<Override>().is_err());
    let set = Override::new("facts.x", &"[".repeat(5_000)).expect("an override");
    judge(shipped()[0].text, &[set]);
}
