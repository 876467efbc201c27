//! The fast path for a contribution that matches the contract exactly: it is judged while it is
//! parsed, without a JSON tree. Every other reply goes to policy.

use std::borrow::Cow;

use serde::Deserialize;

use super::policy;
use super::policy::{AcceptedContribution, RoleSet};
use crate::base::name::RoleName;

/// Exactly the keys of the contract, each once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainContribution<'a> {
    #[serde(borrow)]
    agent: Cow<'a, str>,
    #[serde(borrow)]
    stance: Cow<'a, str>,
    #[serde(borrow)]
    summary: Cow<'a, str>,
    confidence: f64,
    #[serde(borrow)]
    actions: Vec<PlainAction<'a>>,
}

/// A newtype, so that texts inside a list are borrowed too where possible.
#[derive(Deserialize)]
#[serde(transparent)]
struct PlainAction<'a>(#[serde(borrow)] Cow<'a, str>);

/// The result that [`policy::judge`] would give for this reply; `None` if it could differ.
pub fn judge(text: &str, expected: &RoleName, allowed: &RoleSet) -> Option<AcceptedContribution> {
    // serde would also read a list of five values as the object.
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    let plain: PlainContribution<'_> = serde_json::from_str(text).ok()?;
    let agent = policy::trimmed_text(&plain.agent)?;
    if agent != expected.as_str() || !allowed.contains(expected) {
        return None;
    }
    let stance = policy::parse_stance(&plain.stance)?;
    let summary = policy::trimmed_text(&plain.summary)?;
    if !(0.0..=1.0).contains(&plain.confidence) || plain.actions.is_empty() {
        return None;
    }
    if plain.actions.iter().any(|action| policy::trimmed_text(&action.0).is_none()) {
        return None;
    }
    let actions = plain.actions.iter().map(|action| action.0.trim());
    Some(policy::accept_parts(expected, stance, summary, plain.confidence, actions))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn roles() -> (RoleName, RoleSet) {
        let expected = RoleName::from("risk");
        (expected.clone(), RoleSet::from([expected, RoleName::from("legal")]))
    }

    /// The verdict of policy on a text.
    fn by_policy(text: &str) -> Option<AcceptedContribution> {
        let (expected, allowed) = roles();
        let value: Value = serde_json::from_str(text).ok()?;
        policy::judge(&value, &expected, &allowed).ok()
    }

    fn plainly(text: &str) -> Option<AcceptedContribution> {
        let (expected, allowed) = roles();
        judge(text, &expected, &allowed)
    }

    fn good() -> Value {
        json!({
            "agent": "risk",
            "stance": "go",
            "summary": "Within limits.",
            "confidence": 0.8,
            "actions": ["Watch"],
        })
    }

    #[test]
    fn a_reply_of_the_contract_takes_the_short_way() {
        let mut table = vec![good()];
        for (key, value) in [
            ("agent", json!(" risk\n")),
            ("stance", json!("block ")),
            ("summary", json!(" \"quoted\" ü\u{1f600} ")),
            ("confidence", json!(1)),
            ("confidence", json!(-0.0)),
            ("confidence", json!(0.12345)),
            ("confidence", json!(1e-9)),
            ("actions", json!(["a", " b ", "c", "d", "\t\\"])),
        ] {
            let mut reply = good();
            reply[key] = value;
            table.push(reply);
        }
        for reply in table {
            for text in [reply.to_string(), format!(" \n{reply:#}\t")] {
                let accepted = plainly(&text);
                assert!(accepted.is_some(), "{text}");
                assert_eq!(accepted, by_policy(&text), "{text}");
            }
        }
    }

    #[test]
    fn any_other_reply_is_left_to_policy() {
        let list = r#"["risk", "go", "Within limits.", 0.8, ["Watch"]]"#;
        let twice = good().to_string().replacen('{', r#"{"agent":"legal","#, 1);
        let mut more = good();
        more["note"] = json!({});
        for text in [list, &twice, &more.to_string(), "", "{}", "null", "{\"agent\":\"risk\"} x"] {
            assert_eq!(plainly(text), None, "{text}");
        }
    }

    /// Values of all types, valid ones included.
    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            Just("risk".to_owned()),
            Just("legal".to_owned()),
            Just(" go ".to_owned()),
            "[ \t\"\\\\a-z\u{0}-\u{1f}ü\u{1f600}]{0,12}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-0.5..1.5_f64).prop_map(Value::from),
            (0..=1000_u32).prop_map(|n| Value::from(f64::from(n) / 1000.0)),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 12, 5, |inner| {
            prop::collection::vec(inner, 0..5).prop_map(Value::from)
        })
    }

    proptest! {
        /// Whatever the fast path accepts, policy accepts with the same result. Whatever policy
        /// accepts, the fast path accepts too if the reply has no keys beyond the contract.
        #[test]
        fn the_short_way_says_what_policy_says(
            fields in prop::collection::vec((0_usize..6, any_value()), 0..4),
            order in Just([0, 1, 2, 3, 4]).prop_shuffle(),
            pretty in any::<bool>(),
        ) {
            const KEYS: [&str; 6] = ["agent", "stance", "summary", "confidence", "actions", "note"];
            let good = good();
            let mut reply = serde_json::Map::new();
            for key in order {
                reply.insert(KEYS[key].to_owned(), good[KEYS[key]].clone());
            }
            for (key, value) in fields {
                reply.insert(KEYS[key].to_owned(), value);
            }
            let extra = reply.len() > 5;
            let reply = Value::Object(reply);
            let text = if pretty { format!("{reply:#}") } else { reply.to_string() };
            let plain = plainly(&text);
            if extra {
                prop_assert_eq!(plain, None);
            } else {
                prop_assert_eq!(plain, by_policy(&text), "{}", text);
            }
        }

        /// For any text, the fast path agrees with policy or leaves the text to it.
        #[test]
        fn of_any_text_it_says_what_policy_says_or_nothing(
            cut in any::<prop::sample::Index>(),
            with in "[\\[\\]{}\",:0-9a-z \\\\]{0,3}",
        ) {
            let good = good().to_string();
            let at = cut.index(good.len());
            let text = format!("{}{with}{}", &good[..at], &good[(at + with.len()).min(good.len())..]);
            if let Some(accepted) = plainly(&text) {
                prop_assert_eq!(Some(accepted), by_policy(&text), "{}", text);
            }
        }
    }

    proptest! {
        /// A confidence is rounded to the same bits as printing it with three decimals.
        #[test]
        fn a_confidence_is_rounded_as_three_decimals_write_it(
            x in prop_oneof![0.0..=1.0_f64, (0..=2000_u32).prop_map(|n| f64::from(n) / 2000.0)],
        ) {
            let mut reply = good();
            reply["confidence"] = json!(x);
            let kept = plainly(&reply.to_string()).expect("plain").contribution.confidence;
            let written: f64 = format!("{x:.3}").parse().expect("a number");
            prop_assert_eq!(kept.to_bits(), written.to_bits());
        }
    }
}
