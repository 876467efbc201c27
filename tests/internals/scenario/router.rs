//! Good files of a router and their result, and bad ones and their reports.

use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::router::RouterSpec;
use crate::scenario::{Scenario, ScenarioOrigin, load};

use super::{judge, told};

const ROUTER: &str = r#"title = "A router"
pattern = "router"
goal = "{{request}}"
[inputs]
request = { value = "Pay me back." }
[flags.desk]
default = true
[router]
prompt = "Route {{request}}"
echo = ["request"]
fallback = "rest"
min_confidence = 0.75
[router.routes.billing]
flag = "desk"
[router.routes.rest]
[agents.billing]
description = "Invoices"
[agents.rest]
description = "The rest"
[[script]]
step = "classify"
when = "size(routes) == 2 && attempt == 1"
reply = { route = "billing", confidence = 0.9, reason = "An invoice." }
[[script]]
agent = "billing"
text = "Done."
[[script]]
agent = "rest"
text = "Noted."
"#;

fn reported(text: &str) -> Vec<String> {
    told(text, &[])
}

fn router(scenario: &Scenario) -> &RouterSpec {
    match &scenario.pattern {
        PatternSpec::Router(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_complete_router() {
    assert_eq!(reported(ROUTER), Vec::<String>::new());
    let scenario = load(ROUTER, ScenarioOrigin::Shipped("a"), &[]).expect("a scenario");
    let spec = router(&scenario);
    assert_eq!(&*spec.prompt.written(), "Route Pay me back.");
    let routes: Vec<_> = spec
        .routes
        .iter()
        .map(|it| (it.agent.as_str(), it.flag.as_ref().map(|flag| flag.as_str())))
        .collect();
    assert_eq!(routes, [("billing", Some("desk")), ("rest", None)]);
    assert_eq!(spec.fallback.as_ref().map(|it| it.as_str()), Some("rest"));
    assert_eq!(spec.min_confidence, 0.75);
    assert_eq!(spec.echo.len(), 1);
    let without =
        ROUTER.replace("min_confidence = 0.75\n", "").replace("fallback = \"rest\"\n", "");
    let scenario = load(&without, ScenarioOrigin::Shipped("a"), &[]).expect("a scenario");
    assert_eq!(router(&scenario).min_confidence, 0.6);
    assert_eq!(router(&scenario).fallback, None);
}

#[test]
fn mistakes_are_reported_at_their_place() {
    judge(
        ROUTER,
        r#"
- fallback = "rest"
+ fallback = "resd"
11:12: error: router.fallback: `resd` is not a route of this scenario (did you mean `rest`?)

- [router.routes.rest]
+ [router.routes.resd]
11:12: error: router.fallback: `rest` is not a route of this scenario (did you mean `resd`?)
15:16: error: router.routes.resd: `resd` is not an agent (did you mean `rest`?)

- flag = "desk"
+ flag = "dask"
14:8: error: router.routes.billing.flag: `dask` is not a flag of this scenario (did you mean `desk`?)

- echo = ["request"]
+ echo = ["requests"]
10:9: error: router.echo[0]: `requests` is not an input of this scenario (did you mean `request`?)

- min_confidence = 0.75
+ min_confidence = 75
12:18: error: router.min_confidence: 75 is out of range (0 to 1)

- step = "classify"
+ step = "plan"
21:8: error: script[0].step: the pattern has no step plan (step = "classify")

- step = "classify"
+ step = "classify"
+ agent = "rest"
22:9: error: script[0].agent: `agent` is for replies of agents (step = "classify")

- route = "billing", confidence
+ route = "biling", confidence
23:19: warning: script[0].reply.route: `biling` is not a route: the run stops with route_denied:biling (did you mean `billing`?)

- confidence = 0.9,
+ confidence = 9,
23:43: warning: script[0].reply.confidence: 9 is not from 0 to 1: the run stops with invalid_route:confidence_range (write a number from 0 to 1)

- , reason = "An invoice."
23:9: warning: script[0].reply.reason: `reason` is missing: the run stops with invalid_route:missing_keys
"#,
    );
}

#[test]
fn reports_silent_classifier_and_foreign_table() {
    let rows = ROUTER.find("[[script]]").expect("a row");
    let agents = ROUTER.find("[[script]]\nagent = \"billing\"").expect("a row");
    let silent = format!("{}{}", &ROUTER[..rows], &ROUTER[agents..]);
    let found = reported(&silent);
    assert!(found[0].contains("there is no scripted classification for offline runs"), "{found:?}");
    let found = reported(&format!("{ROUTER}[team]\nroot = \"rest\"\n"));
    assert!(found[0].contains("`team` belongs to the pattern team"), "{found:?}");
}
