//! The details of a refused classification: what exactly is wrong with it. Pure.

use serde_json::Value;

use super::faults::RouteFault;
use super::policy::{KEYS, RouteRefusal};
use crate::base::name::AgentName;
use crate::pattern::reply::detail::{
    Detail, listed, missing_keys, show_value, wrong_name, wrong_value,
};
use crate::pattern::reply::repair;
use crate::scenario::spec::repair::Repair;

/// The sentence that describes why this reply is refused.
pub fn describe_route_refusal(
    refusal: &RouteRefusal,
    raw: &Value,
    policy_list: &[AgentName],
) -> Detail {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    let alternatives = || field("alternatives").as_array().map(Vec::as_slice).unwrap_or_default();
    let RouteRefusal::Invalid(fault) = refusal else {
        let known: Vec<&str> = policy_list.iter().map(AgentName::as_str).collect();
        let route = field("route").as_str().unwrap_or_default();
        let wanted = format!("routes are {}", listed(known.iter().copied()));
        return wrong_name("route", route, &wanted, &known);
    };
    match fault {
        RouteFault::NotObject => format!("the reply is {}, not an object", show_value(raw)).into(),
        RouteFault::MissingKeys => missing_keys("", raw, &KEYS).into(),
        RouteFault::Route => wrong_value("route", field("route"), "the name of a route").into(),
        RouteFault::Reason => wrong_value("reason", field("reason"), "text").into(),
        RouteFault::ConfidenceType => with_numbers(
            wrong_value("confidence", field("confidence"), "a number"),
            field("confidence"),
        ),
        RouteFault::ConfidenceRange => {
            let outside =
                |value: &Value| value.as_f64().is_some_and(|it| !(0.0..=1.0).contains(&it));
            if outside(field("confidence")) {
                let what = wrong_value("confidence", field("confidence"), "from 0 to 1");
                return with_numbers(what, field("confidence"));
            }
            let wrong = alternatives().iter().enumerate().find_map(|(nth, entry)| {
                entry.get("confidence").filter(|value| outside(value)).map(|value| (nth, value))
            });
            match wrong {
                Some((nth, value)) => {
                    let place = format!("alternatives[{nth}].confidence");
                    wrong_value(&place, value, "from 0 to 1").into()
                }
                None => "a confidence is not from 0 to 1".into(),
            }
        }
        RouteFault::Alternatives => {
            wrong_value("alternatives", field("alternatives"), "a list").into()
        }
        RouteFault::Alternative => {
            let good = |entry: &Value| {
                entry.get("route").and_then(Value::as_str).is_some_and(|it| !it.trim().is_empty())
                    && entry.get("confidence").is_some_and(Value::is_number)
            };
            match alternatives().iter().position(|entry| !good(entry)) {
                Some(nth) => {
                    format!("alternatives[{nth}] is not an object with a route and a confidence")
                        .into()
                }
                None => "an alternative is not valid".into(),
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
