//! Every pattern, live, over endpoints that refuse a part of the request in the words of real ones.

use std::collections::BTreeSet;

use crate::log::event::EventKind;
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::CollaborationFact;
use crate::log::facts::orchestrator::OrchestratorFact;
use crate::log::facts::research::ResearchFact;
use crate::support::relay::{Does, Relay, shipped};
use futures::future::join_all;
use serde_json::{Value, json};

/// An endpoint that refuses: what a body has that it does not take, and its words for that.
struct Refusing {
    name: &'static str,
    refuses: fn(&Value) -> bool,
    words: &'static str,
}

const REFUSING: [Refusing; 7] = [
    Refusing {
        name: "temperature",
        refuses: |body| body.get("temperature").is_some(),
        words: "Unsupported value: 'temperature' does not support 0.2 with this model.",
    },
    // A schema is asked for first, so it never comes to this.
    Refusing {
        name: "nothing",
        refuses: |body| body["response_format"]["type"] == "json_object",
        words: "'response_format.type' must be 'json_schema' or 'text'",
    },
    Refusing {
        name: "response_format",
        refuses: |body| body["response_format"]["type"] == "json_schema",
        words: "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    },
    Refusing {
        name: "response_format",
        refuses: |body| body.get("response_format").is_some(),
        words: "response_format is not supported",
    },
    Refusing {
        name: "stream_options",
        refuses: |body| body.get("stream_options").is_some(),
        words: "Unrecognized request argument supplied: stream_options",
    },
    Refusing {
        name: "tools",
        refuses: |body| body.get("tools").is_some(),
        words: "this model does not support tools",
    },
    Refusing {
        name: "max_tokens",
        refuses: |body| body.get("max_tokens").is_some(),
        words: "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                'max_completion_tokens' instead.",
    },
];

/// A scenario of each pattern that asks a model.
const SCENARIOS: [(&str, bool); 5] = [
    ("checkout-unanimous", false),
    ("morning-report", false),
    ("dev-team", true),
    ("support-swarm", true),
    ("payments-incident", false),
];

const SETS: [&str; 2] = ["model.temperature=0.2", "model.max_tokens=500"];

#[tokio::test]
async fn patterns_adapt_or_explain_refusal() {
    // Some of their tools take seconds: all of them at once.
    let each = REFUSING.iter().flat_map(|refusing| SCENARIOS.map(|it| holds(refusing, it)));
    join_all(each).await;
}

async fn holds(refusing: &Refusing, (scenario, needs_tools): (&str, bool)) {
    let Refusing { name, refuses, words } = *refusing;
    let relay = Relay::start(move |got| match refuses(got.body) {
        true => {
            let error = json!({ "message": words, "type": "invalid_request_error" });
            Does::Refuses(400, json!({ "error": error }).to_string())
        }
        false => Does::Reply,
    });
    let relay = relay.await;
    let (world, facts) = relay.play(&shipped(scenario, &SETS), 1).await;
    let reason = world.progress.closed.as_ref().expect("it has ended").reason.to_string();
    let place = format!("{scenario} without {name}: {words}");
    if name == "tools" && needs_tools {
        assert_eq!(reason, "llm_error:http_400", "{place}");
        let error = world.outcome().and_then(|outcome| outcome.error).expect("a cause");
        assert!(error.contains("does not support tools"), "{place}: {error}");
        return;
    }
    assert_eq!(reason, "success", "{place}");
    let adapted: Vec<(&str, &str)> = facts
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::RequestAdapted { model, parameter } => {
                Some((model.as_str(), parameter.as_str()))
            }
            _ => None,
        })
        .collect();
    let once: BTreeSet<_> = adapted.iter().collect();
    assert_eq!(once.len(), adapted.len(), "{place}: {adapted:?}");
    let asks_json = facts.iter().any(|fact| {
        matches!(
            fact.kind,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { .. }))
                | EventKind::Pattern(PatternFact::Research(ResearchFact::StepsAccepted { .. }))
                | EventKind::Pattern(PatternFact::Collaboration(
                    CollaborationFact::ContributionAccepted { .. }
                ))
        )
    });
    let expected = match name {
        "tools" | "nothing" => false,
        "response_format" => asks_json,
        _ => true,
    };
    assert_eq!(adapted.len(), usize::from(expected), "{place}: {adapted:?}");
    assert!(adapted.iter().all(|(_, parameter)| *parameter == name), "{place}");
    let of_model = |span| {
        facts.iter().any(|fact| {
            let EventKind::CallStarted(call) = &fact.kind else { return false };
            fact.span == span && call.tool.as_str() == "llm"
        })
    };
    let retried = facts
        .iter()
        .any(|fact| matches!(fact.kind, EventKind::CallRetried { .. }) && of_model(fact.span));
    assert!(!retried, "{place}: it is no retry");
}
