//! The details of a refused contribution: what exactly is wrong with it. Pure.

use serde_json::Value;

use super::policy::KEYS;
use crate::base::name::RoleName;
use crate::event::contribution::Stance;
use crate::pattern::collaboration::faults::ContributionFault;
use crate::pattern::reply::detail::{
    Detail, join_with_or, missing_keys, show_value, wrong_name, wrong_value,
};
use crate::pattern::reply::repair;
use crate::scenario::spec::repair::Repair;

/// The sentence that describes a fault of this reply to a call of the role `expected`.
pub fn describe_contribution_fault(
    fault: &ContributionFault,
    raw: &Value,
    expected: &RoleName,
) -> Detail {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    let agent = || field("agent").as_str().unwrap_or_default();
    match fault {
        ContributionFault::NotObject => {
            format!("the reply is {}, not an object", show_value(raw)).into()
        }
        ContributionFault::MissingKeys => missing_keys("", raw, &KEYS).into(),
        ContributionFault::Agent => {
            wrong_value("agent", field("agent"), "the name of a role").into()
        }
        // Another role's name stays wrong in whatever spelling.
        ContributionFault::AgentNotAllowed(_) | ContributionFault::AgentMismatch(_) => {
            wrong_name("agent", agent(), &format!("expected {expected}"), &[expected.as_str()])
        }
        ContributionFault::Stance => {
            let stances = Stance::ALL.map(Stance::word);
            match field("stance").as_str().map(str::trim) {
                Some(stance) if !stance.is_empty() => {
                    let wanted = format!("not {}", join_with_or(&stances));
                    wrong_name("stance", stance, &wanted, &stances)
                }
                _ => wrong_value("stance", field("stance"), &join_with_or(&stances)).into(),
            }
        }
        ContributionFault::Summary => wrong_value("summary", field("summary"), "text").into(),
        ContributionFault::ConfidenceType => {
            let what = wrong_value("confidence", field("confidence"), "a number");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::ConfidenceRange => {
            let what = wrong_value("confidence", field("confidence"), "from 0 to 1");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::Actions => {
            wrong_value("actions", field("actions"), "a list of steps").into()
        }
        ContributionFault::ActionItem => {
            let items = field("actions").as_array().into_iter().flatten();
            let bad = |item: &Value| item.as_str().is_none_or(|text| text.trim().is_empty());
            match items.enumerate().find(|(_, item)| bad(item)) {
                Some((nth, item)) => wrong_value(&format!("actions[{nth}]"), item, "text").into(),
                None => "an action is empty".into(),
            }
        }
    }
}

/// Adds the repair that would accept the number, if there is one.
fn with_numbers(what: String, value: &Value) -> Detail {
    let takes =
        |number| format!("{} would read it as {number}", repair::as_setting(&[Repair::Numbers]));
    Detail { what, setting: repair::fraction(value).map(takes) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pattern::collaboration::policy::{RoleSet, judge};

    #[test]
    fn each_fault_says_what_it_is() {
        let good = json!({
            "agent": "risk_analyst",
            "stance": "go",
            "summary": "Fine.",
            "confidence": 0.5,
            "actions": ["Start"],
        });
        let with = |key: &str, value: Value| {
            let mut raw = good.clone();
            raw[key] = value;
            raw
        };
        let table = [
            (json!("go"), "the reply is \"go\", not an object"),
            (json!({ "agent": "a" }), "keys missing: stance, summary, confidence, actions"),
            (with("agent", json!(5)), "agent is 5, not the name of a role"),
            (with("agent", json!("boss")), "agent is \"boss\", expected risk_analyst"),
            (
                with("agent", json!("Risk Analyst")),
                "agent is \"Risk Analyst\", expected risk_analyst; repair = [\"case\"] would accept it",
            ),
            (with("agent", json!("critic")), "agent is \"critic\", expected risk_analyst"),
            (with("agent", json!("Critic")), "agent is \"Critic\", expected risk_analyst"),
            (with("stance", json!("maybe")), "stance is \"maybe\", not go, caution or block"),
            (with("stance", json!(null)), "stance is null, not go, caution or block"),
            (with("summary", json!("")), "summary is empty, not text"),
            (with("confidence", json!("high")), "confidence is \"high\", not a number"),
            (
                with("confidence", json!("0.5")),
                "confidence is \"0.5\", not a number; repair = [\"numbers\"] would read it as 0.5",
            ),
            (with("confidence", json!(7)), "confidence is 7, not from 0 to 1"),
            (with("actions", json!([])), "actions is an empty list, not a list of steps"),
            (with("actions", json!("start")), "actions is \"start\", not a list of steps"),
            (with("actions", json!(["a", 2])), "actions[1] is 2, not text"),
        ];
        let role = RoleName::from("risk_analyst");
        let allowed: RoleSet = [role.clone(), RoleName::from("critic")].into();
        for (raw, expected) in table {
            let fault = judge(&raw, &role, &allowed).expect_err(expected);
            assert_eq!(describe_contribution_fault(&fault, &raw, &role).to_string(), expected);
        }
    }
}
