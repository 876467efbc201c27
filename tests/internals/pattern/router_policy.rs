//! The policy of the pattern router: which replies of the classifier are accepted, and which route a
//! request takes.

use crate::base::name::AgentName;
use crate::log::facts::router::{Classification, FallbackCause};
use crate::log::world::router::choose_route;
use crate::pattern::router::{RouteRefusal, describe_route_refusal, validate_classification};
use serde_json::{Value, json};

fn policy_list() -> Vec<AgentName> {
    ["billing", "outages", "general"].map(AgentName::from).to_vec()
}

fn good() -> Value {
    json!({ "route": "billing", "confidence": 0.9, "reason": "A bill." })
}

fn with(key: &str, value: Value) -> Value {
    let mut raw = good();
    raw[key] = value;
    raw
}

fn stop(raw: &Value) -> String {
    match validate_classification(raw, &policy_list()) {
        Ok(read) => format!("{} {}", read.route, read.confidence),
        Err(RouteRefusal::Invalid(fault)) => format!("invalid_route:{fault}"),
        Err(RouteRefusal::Denied(route)) => format!("route_denied:{route}"),
    }
}

/// Each row: the reply, the stop reason, and the sentence for the operator and the model.
#[test]
fn each_fault_has_reason_and_sentence() {
    let alternative = |confidence: Value| json!([{ "route": "general", "confidence": confidence }]);
    let table = [
        (json!("billing"), "not_object", "the reply is \"billing\", not an object"),
        (json!([]), "not_object", "the reply is an empty list, not an object"),
        (json!({}), "missing_keys", "keys missing: route, confidence, reason"),
        (json!({ "route": 1, "confidence": "x" }), "missing_keys", "keys missing: reason"),
        (with("route", json!(7)), "route", "route is 7, not the name of a route"),
        (with("route", json!("  ")), "route", "route is empty, not the name of a route"),
        (
            with("confidence", json!("high")),
            "confidence_type",
            "confidence is \"high\", not a number",
        ),
        (with("confidence", json!(true)), "confidence_type", "confidence is true, not a number"),
        (
            with("confidence", json!("0.7")),
            "confidence_type",
            "confidence is \"0.7\", not a number; repair = [\"numbers\"] would read it as 0.7",
        ),
        (with("reason", json!(null)), "reason", "reason is null, not text"),
        (with("alternatives", json!({})), "alternatives", "alternatives is an object, not a list"),
        (
            with("alternatives", json!(["general"])),
            "alternative",
            "alternatives[0] is not an object with a route and a confidence",
        ),
        (
            with("alternatives", alternative(json!("low"))),
            "alternative",
            "alternatives[0] is not an object with a route and a confidence",
        ),
        (
            with("confidence", json!(1.01)),
            "confidence_range",
            "confidence is 1.01, not from 0 to 1",
        ),
        (
            with("confidence", json!(-0.1)),
            "confidence_range",
            "confidence is -0.1, not from 0 to 1",
        ),
        (
            with("alternatives", alternative(json!(2))),
            "confidence_range",
            "alternatives[0].confidence is 2, not from 0 to 1",
        ),
    ];
    for (raw, word, sentence) in table {
        let refusal = validate_classification(&raw, &policy_list()).expect_err(sentence);
        assert_eq!(stop(&raw), format!("invalid_route:{word}"), "{raw}");
        assert_eq!(describe_route_refusal(&refusal, &raw, &policy_list()).to_string(), sentence);
    }
}

/// An object, its keys, its types, its ranges, then the policy list.
#[test]
fn the_checks_come_in_their_order() {
    let all = json!({ "route": "nobody", "confidence": 7, "reason": 3, "alternatives": 4 });
    assert_eq!(stop(&all), "invalid_route:reason");
    let types = json!({ "route": "nobody", "confidence": 7, "reason": "r", "alternatives": 4 });
    assert_eq!(stop(&types), "invalid_route:alternatives");
    let ranges = json!({ "route": "nobody", "confidence": 7, "reason": "r" });
    assert_eq!(stop(&ranges), "invalid_route:confidence_range");
    assert_eq!(stop(&with("route", json!("nobody"))), "route_denied:nobody");
}

#[test]
fn shows_and_limits_model_route_name() {
    let denied = stop(&with("route", json!(format!("\u{1b}{}", "x".repeat(200)))));
    let name = denied.strip_prefix("route_denied:").expect("a prefix");
    assert_eq!(name.chars().count(), 64);
    assert!(name.starts_with('␛'), "{name}");
    let wrong_case = with("route", json!("Billing"));
    let refusal = validate_classification(&wrong_case, &policy_list()).expect_err("not a route");
    assert_eq!(
        describe_route_refusal(&refusal, &wrong_case, &policy_list()).to_string(),
        "route is \"Billing\", routes are billing, outages, general; repair = [\"case\"] would accept it"
    );
}

#[test]
fn what_is_kept_of_a_reply() {
    let many: Vec<Value> =
        (0..40).map(|_| json!({ "route": "general", "confidence": 0.1 })).collect();
    let raw = json!({
        "route": " billing ", "confidence": 1, "reason": "é".repeat(2_000), "alternatives": many,
        "more": "dropped",
    });
    let read = validate_classification(&raw, &policy_list()).expect("a classification");
    assert_eq!((read.route.as_str(), read.confidence), ("billing", 1.0));
    assert_eq!(read.reason.chars().count(), 1_001);
    assert_eq!(read.alternatives.len(), 16);
    let none = with("alternatives", Value::Null);
    assert!(
        validate_classification(&none, &policy_list()).is_ok_and(|it| it.alternatives.is_empty())
    );
}

/// Each row: the classifier's route and confidence, the execution list, the fallback, and the route
/// with the reason for a fallback, or the reason that there is no route.
#[test]
fn route_follows_execution_list_and_confidence() {
    use FallbackCause::{LowConfidence, RouteOff};
    let all = ["billing", "outages", "general"];
    let off = ["outages", "general"];
    let only = ["outages"];
    type Row<'a> = (
        &'a str,
        f64,
        &'a [&'a str],
        Option<&'a str>,
        Result<(&'a str, Option<FallbackCause>), FallbackCause>,
    );
    let table: [Row<'_>; 10] = [
        ("billing", 0.9, &all, Some("general"), Ok(("billing", None))),
        ("billing", 0.6, &all, Some("general"), Ok(("billing", None))),
        ("billing", 0.599, &all, Some("general"), Ok(("general", Some(LowConfidence)))),
        ("billing", 0.9, &off, Some("general"), Ok(("general", Some(RouteOff)))),
        // A route that is off is never asked, whatever the confidence; the first check is named.
        ("billing", 0.1, &off, Some("general"), Ok(("general", Some(RouteOff)))),
        ("general", 0.9, &all, Some("general"), Ok(("general", None))),
        ("general", 0.2, &all, Some("general"), Ok(("general", Some(LowConfidence)))),
        ("billing", 0.9, &off, None, Err(RouteOff)),
        ("billing", 0.2, &all, None, Err(LowConfidence)),
        // The fallback is off itself.
        ("billing", 0.9, &only, Some("general"), Err(RouteOff)),
    ];
    for (row, (route, confidence, on, fallback, expected)) in table.into_iter().enumerate() {
        let proposed = Classification {
            route: route.into(),
            confidence,
            reason: "r".into(),
            alternatives: Vec::new(),
        };
        let on: Vec<AgentName> = on.iter().map(|name| AgentName::from(*name)).collect();
        let fallback = fallback.map(AgentName::from);
        let chosen = choose_route(&proposed, &on, 0.6, fallback.as_ref());
        let chosen = chosen.map(|it| (it.route, it.fallback));
        let expected = expected.map(|(route, cause)| (AgentName::from(route), cause));
        assert_eq!(chosen, expected, "row {row}");
    }
}
