//! What exactly is wrong with a contribution that policy refused. Pure.

use serde_json::Value;

use super::policy::{KEYS, RoleSet};
use crate::event::contribution::Stance;
use crate::event::stop::ContributionFault;
use crate::pattern::reply::detail::{either, missing_keys, not, other_name, said};
use crate::pattern::reply::repair;
use crate::scenario::name::RoleName;

/// The sentence for a fault of this reply, which the role `expected` was asked for.
pub fn of(
    fault: &ContributionFault,
    raw: &Value,
    expected: &RoleName,
    allowed: &RoleSet,
) -> String {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    let agent = || field("agent").as_str().unwrap_or_default();
    match fault {
        ContributionFault::NotObject => format!("the reply is {}, not an object", said(raw)),
        ContributionFault::MissingKeys => missing_keys("", raw, &KEYS),
        ContributionFault::Agent => not("agent", field("agent"), "the name of a role"),
        ContributionFault::AgentNotAllowed(_) => {
            let known: Vec<&str> = std::iter::once(expected)
                .chain(allowed.iter().filter(|role| *role != expected))
                .map(RoleName::as_str)
                .collect();
            other_name("agent", agent(), &format!("asked was {expected}"), &known)
        }
        ContributionFault::AgentMismatch(_) => {
            other_name("agent", agent(), &format!("asked was {expected}"), &[])
        }
        ContributionFault::Stance => {
            let stances = Stance::ALL.map(Stance::word);
            match field("stance").as_str().map(str::trim) {
                Some(stance) if !stance.is_empty() => {
                    let wanted = format!("not {}", either(&stances));
                    other_name("stance", stance, &wanted, &stances)
                }
                _ => not("stance", field("stance"), &either(&stances)),
            }
        }
        ContributionFault::Summary => not("summary", field("summary"), "a text"),
        ContributionFault::ConfidenceType => {
            let what = not("confidence", field("confidence"), "a number");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::ConfidenceRange => {
            let what = not("confidence", field("confidence"), "from 0 to 1");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::Actions => not("actions", field("actions"), "a list of steps"),
        ContributionFault::ActionItem => {
            let items = field("actions").as_array().into_iter().flatten();
            let bad = |item: &Value| item.as_str().is_none_or(|text| text.trim().is_empty());
            match items.enumerate().find(|(_, item)| bad(item)) {
                Some((nth, item)) => not(&format!("actions[{nth}]"), item, "a text"),
                None => "an action is empty".to_owned(),
            }
        }
    }
}

/// With the repair that takes the number, where one does.
fn with_numbers(what: String, value: &Value) -> String {
    match repair::fraction(value) {
        Some(number) => format!("{what}; repair = [\"numbers\"] takes it as {number}"),
        None => what,
    }
}
