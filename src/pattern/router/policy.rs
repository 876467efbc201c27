//! The rules of the router that a user must be able to trust: which replies of the classifier are
//! accepted, and which route a request takes. Pure.
//!
//! The details of a refused classification: what exactly is wrong with it. Pure.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::base::name::AgentName;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::facts::router::{Classification, RouteFault, RouteScore};
use crate::pattern::reply::{
    Detail, listed, missing_keys, repair, show_value, wrong_name, wrong_value,
};
use crate::scenario::spec::Repair;

/// The keys that a reply must have.
pub(crate) const KEYS: [&str; 3] = ["route", "confidence", "reason"];
/// Most alternatives that are kept; a reply may have more.
const MAX_ALTERNATIVES: usize = 16;
/// Most characters of the reason that are kept.
const MAX_REASON_CHARS: usize = 1_000;

/// Why a classification is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteRefusal {
    /// The reply is not a classification.
    Invalid(RouteFault),
    /// The route is not on the policy list: its name, made visible and limited in length.
    Denied(Box<str>),
}

/// Checks a classifier's reply: an object, its keys, their types, their ranges, then the policy
/// list. Other keys are dropped. Names of alternatives are not checked against the list: they are
/// shown and never called.
///
/// # Errors
/// The first check that fails.
pub fn validate_classification(
    raw: &Value,
    policy_list: &[AgentName],
) -> Result<Classification, RouteRefusal> {
    let read = read_classification(raw).map_err(RouteRefusal::Invalid)?;
    if !policy_list.contains(&read.route) {
        return Err(RouteRefusal::Denied(visible_within(read.route.as_str(), REASON_CHARS).into()));
    }
    Ok(read)
}

fn read_classification(raw: &Value) -> Result<Classification, RouteFault> {
    let object = raw.as_object().ok_or(RouteFault::NotObject)?;
    let [Some(route), Some(confidence), Some(reason)] = KEYS.map(|key| object.get(key)) else {
        return Err(RouteFault::MissingKeys);
    };
    let route = text(route).ok_or(RouteFault::Route)?;
    let confidence = confidence.as_f64().ok_or(RouteFault::ConfidenceType)?;
    let reason = text(reason).ok_or(RouteFault::Reason)?;
    let alternatives = match object.get("alternatives") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => {
            let list = list.as_array().ok_or(RouteFault::Alternatives)?;
            let read = |entry: &Value| alternative(entry).ok_or(RouteFault::Alternative);
            list.iter().map(read).collect::<Result<Vec<_>, _>>()?
        }
    };
    let in_range = |confidence: f64| (0.0..=1.0).contains(&confidence);
    if !in_range(confidence) || !alternatives.iter().all(|it| in_range(it.confidence)) {
        return Err(RouteFault::ConfidenceRange);
    }
    Ok(Classification {
        route: AgentName::from(route),
        confidence,
        reason: shortened(reason),
        alternatives: alternatives.into_iter().take(MAX_ALTERNATIVES).collect(),
    })
}

fn alternative(entry: &Value) -> Option<RouteScore> {
    let entry: &Map<String, Value> = entry.as_object()?;
    let route = text(entry.get("route")?)?;
    let confidence = entry.get("confidence")?.as_f64()?;
    Some(RouteScore { route: visible_within(route, REASON_CHARS).into(), confidence })
}

/// The text without surrounding white space, unless nothing is left.
fn text(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn shortened(text: &str) -> Arc<str> {
    match text.char_indices().nth(MAX_REASON_CHARS) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

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
