//! The run of a router: classify, choose the route, let its agent answer.
//!
//! The classifier's conversation and the form of its reply.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::policy;
use super::policy::RouteRefusal;
use crate::base::name::{AgentName, FlagName};
use crate::log::event::kind::{ChatMessage, Purpose};
use crate::log::event::{Boundary, EventKind, SpanId, StopReason, result_text};
use crate::log::facts::agents::MemberOutput;
use crate::log::facts::router::{Classification, RouterFact};
use crate::log::world::router;
use crate::model::{ReplyContract, ReplyForm};
use crate::pattern::agents::AgentRunner;
use crate::pattern::agents::agent_call::AgentRequest;
use crate::pattern::agents::swarm::Rosters;
use crate::pattern::prompting;
use crate::pattern::prompting::conversation;
use crate::pattern::reply::{JudgedReply, Refusal, request_json};
use crate::run::{ModelRequest, RunContext};
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::router::{CALLER, CLASSIFY, ROUTE, RouterSpec};

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
        policy::validate_classification(raw, &policy_list).map_err(|refusal| Refusal {
            detail: policy::describe_route_refusal(&refusal, raw, &policy_list),
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
