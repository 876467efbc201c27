//! The pattern router (docs/rules/patterns.md, "Router"): one model call classifies the request,
//! policy picks the route, and the agent behind the route answers. The rules that a user must be able
//! to trust come first, and are pure: which replies of the classifier are accepted, which route a
//! request takes, what exactly is wrong with a refused one. Then the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::name::{AgentName, FlagName};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{
    Boundary, ChatMessage, EventKind, Purpose, SpanId, StopReason, result_text,
};
use crate::log::facts::agents::MemberOutput;
use crate::log::facts::router::{Classification, RouteFault, RouteScore, RouterFact};
use crate::log::world::router;
use crate::model::{ReplyContract, ReplyForm};
use crate::pattern::agents::AgentRunner;
use crate::pattern::agents::agent_call::AgentRequest;
use crate::pattern::agents::swarm::Rosters;
use crate::pattern::prompting;
use crate::pattern::prompting::conversation;
use crate::pattern::reply::{
    Detail, JudgedReply, Refusal, listed, missing_keys, repair, request_json, show_value,
    wrong_name, wrong_value,
};
use crate::run::{ModelRequest, RunContext};
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::router::{CALLER, CLASSIFY, ROUTE, RouterSpec};
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
        // As the rule compares it.
        let route = field("route").as_str().unwrap_or_default().trim();
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

/// Runs a router to its end. The context's phase says how far it got.
///
/// # Errors
/// The stop reason, if the run ends without an answer.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &RouterSpec,
    rosters: &Rosters,
) -> Result<(), StopReason> {
    let base = prompting::run_conditions(cx, scenario);
    cx.set_phase(CLASSIFY.to_owned());
    cx.boundary(Boundary::Step(CLASSIFY)).await?;
    let (call, proposed) = classify(cx, scenario, spec, base.clone()).await?;
    cx.set_phase(ROUTE.to_owned());
    cx.boundary(Boundary::Step(ROUTE)).await?;
    let route = choose(cx, spec, &proposed)?;
    cx.set_phase(route.to_string());
    let runner = AgentRunner { cx, scenario, agents: &spec.agents, rosters, base };
    answer(&runner, call, &route).await
}

/// Requests the classification and checks it.
async fn classify(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &RouterSpec,
    base: Option<CelBindings>,
) -> Result<(SpanId, Classification), StopReason> {
    let shown = base.map(|mut shown| {
        shown.bind("routes", &catalogue(spec));
        shown.bind("flags", &prompting::to_json(&cx.control().flags()));
        shown
    });
    let policy_list: Vec<AgentName> = spec.routes.iter().map(|it| it.agent.clone()).collect();
    let form = classifier_form(&policy_list);
    let messages = classifier_messages(scenario, spec, &cx.shown_flags());
    let path = Boundary::Step(CLASSIFY).text();
    let ask = ModelRequest::single(SpanId::RUN, Purpose::Classify, path, messages, form, shown);
    let wrap = |text: &str| Value::from(text);
    let asking = request_json(cx, &scenario.model, ask, wrap, None, |raw, _| {
        validate_classification(raw, &policy_list).map_err(|refusal| Refusal {
            detail: describe_route_refusal(&refusal, raw, &policy_list),
            reason: match refusal {
                RouteRefusal::Invalid(fault) => StopReason::InvalidRoute(fault),
                RouteRefusal::Denied(route) => StopReason::RouteDenied(route),
            },
        })
    });
    let JudgedReply { call, judged, .. } = asking.await.map_err(|failed| failed.reason)?;
    let proposed = judged?;
    cx.publish(call, RouterFact::RouteProposed(Arc::new(proposed.clone())));
    Ok((call, proposed))
}

/// Chooses the route by the flags of this moment.
fn choose(
    cx: &RunContext,
    spec: &RouterSpec,
    proposed: &Classification,
) -> Result<AgentName, StopReason> {
    let flags = cx.control().flags();
    let on = |flag: &Option<_>| flag.as_ref().is_none_or(|flag| flags.get(flag) != Some(&false));
    let routes = spec.routes.iter().filter(|route| on(&route.flag));
    let execution_list: Vec<AgentName> = routes.map(|route| route.agent.clone()).collect();
    let (needed, fallback) = (spec.min_confidence, spec.fallback.as_ref());
    match router::choose_route(proposed, &execution_list, needed, fallback) {
        Ok(choice) => {
            let (route, fallback) = (choice.route.clone(), choice.fallback);
            cx.publish(SpanId::RUN, RouterFact::RouteChosen { route, fallback });
            Ok(choice.route)
        }
        Err(cause) => {
            cx.publish(SpanId::RUN, RouterFact::RouteMissing { cause });
            Err(StopReason::NoRoute)
        }
    }
}

/// Lets the agent behind the route answer the request.
async fn answer(
    runner: &AgentRunner<'_>,
    call: SpanId,
    route: &AgentName,
) -> Result<(), StopReason> {
    let cx = runner.cx;
    let agent = runner.agents.get(route).ok_or(StopReason::InternalError)?;
    let request = Arc::clone(&cx.session().text);
    let asked = AgentRequest {
        by: &AgentName::from(CALLER),
        parent: SpanId::RUN,
        path: CALLER,
        seed_path: CALLER,
        turn: 1,
        requested_by: call,
        index: 0,
        request: &request,
        inherited: [].into(),
        output: MemberOutput::Text,
    };
    let (answered, by) = runner.call_agent(agent, asked).await.map_err(|(_, halt)| halt.reason)?;
    let text = result_text::reply_text(&answered.reply);
    let by = Some(by.unwrap_or_else(|| route.clone()));
    let (text, end) = (text.trim().into(), answered.reply.end);
    cx.publish(SpanId::RUN, EventKind::AnswerComposed { text, by, end });
    Ok(())
}

/// The format of the classifier's reply, part of its prompt.
const CONTRACT: &str = r#"Answer with a single JSON object and nothing around it:
{"route": "<one of the routes>", "confidence": <number from 0 to 1>, "reason": "<one sentence>", "alternatives": [{"route": "<another route>", "confidence": <number from 0 to 1>}]}
`route` is the name of one of the routes in the message you are given. `alternatives` has the other routes that you considered."#;

/// The routes as the classifier receives them: names and descriptions, those that a flag has taken
/// off included.
pub(crate) fn catalogue(spec: &RouterSpec) -> Value {
    let routes = spec.routes.iter().map(|route| {
        let description = spec.agents.get(&route.agent).map(|agent| &*agent.description);
        json!({ "name": route.agent, "description": description })
    });
    Value::Array(routes.collect())
}

/// The form of a classification: its keys, and the names of the routes.
fn classifier_form(policy_list: &[AgentName]) -> ReplyForm {
    let routes = policy_list.to_vec();
    ReplyForm::with_contract("route", true, move || {
        let route = || ReplyContract::one_of(routes.iter().map(AgentName::as_str));
        let number = || json!({ "type": "number" });
        let alternative = ReplyContract::object([("route", route()), ("confidence", number())]);
        ReplyContract::object([
            ("route", route()),
            ("confidence", number()),
            ("reason", json!({ "type": "string" })),
            ("alternatives", json!({ "type": "array", "items": alternative })),
        ])
    })
}

fn classifier_messages(
    scenario: &Scenario,
    spec: &RouterSpec,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let mut payload = Map::new();
    payload.insert("request".to_owned(), Value::from(&*scenario.goal));
    payload.extend(prompting::echoed_inputs(scenario, &spec.echo));
    payload.insert("routes".to_owned(), catalogue(spec));
    let system = format!("{}\n\n{CONTRACT}", spec.prompt.filled(flags).trim());
    conversation(&system, payload, flags)
}
