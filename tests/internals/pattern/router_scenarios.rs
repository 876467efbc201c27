//! The shipped scenario of a router, and its other endings: routed to an agent of each kind, the
//! fallback, no route, a refused classification, a flag switched while the run goes on.

use std::sync::Arc;

use crate::engine::{Launch, Schedule};
use crate::log::event::{BoundaryId, Command, Event, EventKind, SpanId, World};
use crate::log::facts::PatternFact;
use crate::log::facts::agents::AgentFact;
use crate::log::facts::router::{FallbackCause, RouterFact};
use crate::log::world::Projection;
use crate::log::world::agents::{HopKind, HopState};
use crate::scenario::{Override, Scenario, load, shipped};
use crate::support::plan::{engine, facts};
use crate::words::patterns::Narrate;
use crate::words::patterns::router::decision_text;
use serde_json::{Value, json};

fn read(set: &[&str]) -> Arc<Scenario> {
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    let shipped = shipped().iter().find(|shipped| shipped.name == "front-desk");
    let shipped = shipped.expect("a shipped scenario");
    let scenario = load(shipped.text, shipped.origin(), &set);
    Arc::new(scenario.unwrap_or_else(|problems| panic!("{problems}")))
}

/// A run that was played to its end.
struct Routed {
    facts: Vec<Arc<Event>>,
    world: World,
    outcome: Value,
}

async fn play_with(scenario: Arc<Scenario>, flags: &[(&str, bool)], schedule: Schedule) -> Routed {
    let flags = flags.iter().map(|(flag, on)| ((*flag).into(), *on)).collect();
    let launch = Launch { flags, schedule, ..Launch::scripted(scenario, false) };
    let facts = facts(&engine().start(launch)).await;
    let odd = facts.iter().find(|fact| fact.kind.name() == "condition.failed");
    assert!(odd.is_none(), "{odd:?}");
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    Routed { facts, world, outcome }
}

async fn play(flags: &[(&str, bool)], set: &[&str]) -> Routed {
    play_with(read(set), flags, Schedule::default()).await
}

impl Routed {
    /// The agents that were called, in order, with how.
    fn hops(&self) -> Vec<(String, HopKind)> {
        let hops = self.world.agents().expect("agents").hops.iter();
        hops.map(|hop| (hop.to.to_string(), hop.kind)).collect()
    }

    fn has(&self, is: impl Fn(&RouterFact) -> bool) -> bool {
        self.facts.iter().any(|fact| RouterFact::of(&fact.kind).is_some_and(&is))
    }
}

/// The figures of the outcome that each ending is about.
fn shown(outcome: &Value) -> Value {
    let keys = [
        "status",
        "stop_reason",
        "route",
        "proposed_route",
        "confidence",
        "fallback_used",
        "fallback_cause",
        "final_agent",
    ];
    keys.iter().filter_map(|key| Some((*key, outcome.get(key)?.clone()))).collect()
}

#[tokio::test(start_paused = true)]
async fn team_answers_routed_request() {
    let run = play(&[], &[]).await;
    assert_eq!(
        shown(&run.outcome),
        json!({
            "status": "ok", "stop_reason": "success", "route": "billing",
            "proposed_route": "billing", "confidence": 0.93, "fallback_used": false,
            "final_agent": "billing",
        })
    );
    assert!(run.outcome["answer"].as_str().is_some_and(|text| text.contains("R-1188")));
    assert_eq!(
        run.outcome["alternatives"],
        json!([
            { "route": "general", "confidence": 0.05 },
            { "route": "outages", "confidence": 0.02 },
        ])
    );
    let started = |name: &str| (name.to_owned(), HopKind::Start);
    let consulted = |name: &str| (name.to_owned(), HopKind::Consult);
    let hops = [started("billing"), consulted("invoice_clerk"), consulted("refund_clerk")];
    assert_eq!(run.hops(), hops);
    let agents = run.world.agents().expect("agents");
    assert!(agents.hops.iter().all(|hop| hop.state == HopState::Done));
    assert_eq!(agents.in_control.as_ref().map(|it| it.as_str()), Some("billing"));
    // The answer is said once: by the agent, not as a result for the router.
    let answer = run.outcome["answer"].as_str().expect("an answer");
    let said =
        agents.lines.iter().filter(|line| format!("{:?}", line.what).contains(&answer[..40]));
    assert_eq!(said.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn swarm_answer_names_member() {
    let run = play(&[], &["inputs.request=The internet has been down since Monday."]).await;
    assert_eq!(
        shown(&run.outcome),
        json!({
            "status": "ok", "stop_reason": "success", "route": "outages",
            "proposed_route": "outages", "confidence": 0.88, "fallback_used": false,
            "final_agent": "field_service",
        })
    );
    let handed = |fact: &&Arc<Event>| {
        matches!(&fact.kind, EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade { .. })))
    };
    assert_eq!(run.facts.iter().filter(handed).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_low_confidence_takes_the_fallback() {
    let run = play(&[], &["inputs.request=It does not work."]).await;
    assert_eq!(
        shown(&run.outcome),
        json!({
            "status": "ok", "stop_reason": "success", "route": "general",
            "proposed_route": "outages", "confidence": 0.35, "fallback_used": true,
            "fallback_cause": "low_confidence", "final_agent": "general",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn disabled_route_takes_fallback() {
    let run = play(&[("billing_desk", false)], &[]).await;
    assert_eq!(
        shown(&run.outcome),
        json!({
            "status": "ok", "stop_reason": "success", "route": "general",
            "proposed_route": "billing", "confidence": 0.93, "fallback_used": true,
            "fallback_cause": "route_off", "final_agent": "general",
        })
    );
    assert_eq!(run.hops(), [("general".to_owned(), HopKind::Start)], "billing is never called");
}

#[tokio::test(start_paused = true)]
async fn no_available_route_stops_run() {
    let run = play(&[("billing_desk", false), ("front_office", false)], &[]).await;
    assert_eq!(
        shown(&run.outcome),
        json!({
            "status": "stopped", "stop_reason": "no_route", "proposed_route": "billing",
            "confidence": 0.93, "fallback_used": false, "fallback_cause": "route_off",
        })
    );
    assert!(run.has(|fact| *fact == RouterFact::RouteMissing { cause: FallbackCause::RouteOff }));
    assert!(run.hops().is_empty(), "no agent is called");
    let no_fallback = read(&["inputs.request=It does not work.", "router.fallback=outages"]);
    let run = play_with(no_fallback, &[], Schedule::default()).await;
    assert_eq!(run.outcome["route"], "outages", "a fallback is taken whatever its claim");
}

/// A flag is read when the route is chosen, so a switch at that boundary counts.
#[tokio::test(start_paused = true)]
async fn flag_counts_only_before_choice() {
    for (at, route) in
        [("classify", "general"), ("route", "general"), ("ask:2:router/billing.1", "billing")]
    {
        let flags = vec![(BoundaryId::new(at), "billing_desk".into(), false)];
        let run = play_with(read(&[]), &[], Schedule { flags, ..Schedule::default() }).await;
        assert_eq!(run.outcome["route"], route, "{at}");
        assert_eq!(run.outcome["proposed_route"], "billing", "{at}");
        let switched = run.facts.iter().any(|fact| fact.kind.name() == "flag.changed");
        assert!(switched, "{at}");
    }
}

/// The boundaries of a run, in order: each can be stopped at.
#[tokio::test(start_paused = true)]
async fn each_boundary_has_its_place() {
    let scenario = read(&["inputs.request=The internet has been down since Monday."]);
    let ids = [
        "classify",
        "route",
        "ask:1:router/outages.1/line_check.1",
        "ask:2:router/outages.1/line_check.1",
        "handoff:1:router/outages.1/field_service",
    ];
    let spec = scenario.pattern.get();
    for id in ids {
        assert_eq!(spec.check_boundary(id, &scenario.tools), Ok(()), "{id}");
        let breaks = vec![BoundaryId::new(id)];
        let schedule = Schedule { breaks, ..Schedule::default() };
        let run =
            engine().start(Launch { schedule, ..Launch::scripted(Arc::clone(&scenario), false) });
        let mut reader = run.bus().reader(crate::log::event::Seq(0));
        let mut seen = Vec::new();
        while !seen.iter().any(|fact: &Arc<Event>| fact.kind.name() == "paused") {
            assert!(reader.next_batch(&mut seen, 64).await > 0, "{id} is never reached");
        }
        run.send(Command::Cancel);
        run.wait_until_finished().await;
    }
    for (id, why) in [
        ("finalize", "never reached here; use classify, route, ask:1:router/billing.1"),
        (
            "ask:1:router/invoice_clerk.1",
            "never reached here: invoice_clerk.1 is not a route; use classify, route, ask:1:router/billing.1",
        ),
        (
            "ask:1:router/outages.1",
            "never reached here; use classify, route, ask:1:router/billing.1",
        ),
        (
            "ask:1:router/outages.1/field_service.1",
            "never reached here: a handoff comes before field_service's first call; use classify, route, ask:1:router/billing.1",
        ),
        (
            "ask:1:router/general.1/nobody.1",
            "no such agent: \"nobody\"; use billing, field_service, general, invoice_clerk, line_check, outages, refund_clerk",
        ),
    ] {
        assert_eq!(spec.check_boundary(id, &scenario.tools), Err(why.to_owned()), "{id}");
    }
}

/// Each row: the reply, repeats, the stop reason.
#[tokio::test(start_paused = true)]
async fn refused_classification_stops_or_retries() {
    let first = r#"script[0].reply={ route = "sales", confidence = 0.9, reason = "r" }"#;
    let run = play(&[], &[first, "script[0].again=0"]).await;
    assert_eq!(run.outcome["stop_reason"], "route_denied:sales");
    assert!(run.hops().is_empty());
    let number = r#"script[0].reply={ route = "billing", confidence = "high", reason = "r" }"#;
    let run = play(&[], &[number, "script[0].again=0"]).await;
    assert_eq!(run.outcome["stop_reason"], "invalid_route:confidence_type");
    assert!(run.outcome.get("route").is_none() && run.outcome.get("confidence").is_none());
    let again = play(&[], &[number, "script[0].again=0", "model.ask_again=1"]).await;
    assert_eq!(again.outcome["stop_reason"], "success", "{}", again.outcome);
    // The row for the first reply is used up by `again`, so the last row answers: too low.
    assert_eq!(again.outcome["fallback_used"], true);
    let router = again.world.router().expect("a router");
    assert!(router.refused.is_none() && router.proposed.is_some());
}

#[tokio::test(start_paused = true)]
async fn events_know_span_and_cause() {
    let run = play(&[], &[]).await;
    let router = run.world.router().expect("a router");
    let at =
        |name: &str| run.facts.iter().find(|fact| fact.kind.name() == name).expect("such an event");
    let (proposed, chosen) = (at("route.proposed"), at("route.chosen"));
    assert_eq!(Some(proposed.span), router.classify);
    assert_eq!(
        (chosen.span, router.call_of(chosen, &run.world.run)),
        (SpanId::RUN, router.classify)
    );
    struct Log<'f>(&'f [Arc<Event>]);
    impl crate::log::world::EventLog for Log<'_> {
        fn find_before(
            &self,
            seq: crate::log::event::Seq,
            so: &dyn Fn(&Event) -> bool,
        ) -> Option<crate::log::event::Seq> {
            self.0.iter().rev().find(|it| it.seq < seq && so(it)).map(|it| it.seq)
        }
        fn last_dropped(&self) -> Option<crate::log::event::Seq> {
            None
        }
    }
    let log = Log(&run.facts);
    let cause = |event: &Event| router.cause_of(event, &run.world.run, &log);
    assert_eq!(cause(chosen), Some(proposed.seq));
    let call = run.facts.iter().find(|fact| {
        matches!(&fact.kind, EventKind::CallStarted(call) if call.tool.as_str() == "billing")
    });
    assert_eq!(cause(call.expect("the call of the route")), Some(chosen.seq));
    let answered = cause(at("answer.composed")).expect("a cause");
    assert_eq!(run.facts[answered.0 as usize].kind.name(), "call.answered");
}

/// The log of a run reads back as the same state.
#[tokio::test(start_paused = true)]
async fn log_round_trips() {
    let run = play(&[("billing_desk", false)], &[]).await;
    let lines: Vec<String> = run.facts.iter().map(|fact| fact.to_line().expect("a line")).collect();
    let head: Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(head["plan"]["pattern"].as_str().or(head["pattern"].as_str()), Some("router"));
    let read: Vec<Event> =
        lines.iter().map(|line| Event::from_line(line).expect("an event")).collect();
    for (read, written) in read.iter().zip(&run.facts) {
        assert_eq!(read, &**written);
    }
    let world = World::from_events(read.iter());
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    assert_eq!(outcome, run.outcome);
}

/// Two decimals would make these look equal: both figures are written out.
#[tokio::test(start_paused = true)]
async fn similar_figures_are_written_out() {
    let reply = r#"script[0].reply={ route = "billing", confidence = 0.5996, reason = "r" }"#;
    let run = play(&[], &[reply]).await;
    let router = run.world.router().expect("a router");
    let text = decision_text(router).expect("a decision");
    assert_eq!(text, "fallback general: the confidence 0.5996 is below 0.6");
    let run = play(&[], &["inputs.request=It does not work."]).await;
    let text = decision_text(run.world.router().expect("a router")).expect("a decision");
    assert_eq!(text, "fallback general: the confidence .35 is below .60");
}

/// Each row: the flags at the start, the events that have happened, the switch, and its effect.
#[tokio::test(start_paused = true)]
async fn switch_effect_is_shown_beforehand() {
    type Row<'a> = (&'a [(&'a str, bool)], &'a str, (&'a str, bool), &'a [&'a str]);
    let later = "Takes effect when the route is chosen.";
    let table: [Row<'_>; 8] = [
        (
            &[],
            "run.started",
            ("billing_desk", false),
            &[later, "billing could not be chosen: general would answer instead."],
        ),
        (
            &[],
            "run.started",
            ("front_office", false),
            &[later, "general could not be chosen, and the fallback would be off."],
        ),
        (
            &[("front_office", false)],
            "run.started",
            ("billing_desk", false),
            &[later, "billing could not be chosen: the run would stop with no_route."],
        ),
        (
            &[("billing_desk", false)],
            "run.started",
            ("billing_desk", true),
            &[later, "billing can be chosen again."],
        ),
        (&[], "route.proposed", ("billing_desk", false), &[later, "general would answer."]),
        (
            &[],
            "route.proposed",
            ("front_office", false),
            &[later, "billing would answer, as without the switch."],
        ),
        (
            &[("front_office", false)],
            "route.proposed",
            ("billing_desk", false),
            &[later, "The run would stop with no_route."],
        ),
        (&[], "route.chosen", ("billing_desk", false), &["Too late: the route is chosen."]),
    ];
    for (flags, until, (flag, on), expected) in table {
        let run = play(flags, &[]).await;
        let last = run.facts.iter().position(|fact| fact.kind.name() == until).expect(until);
        let world = World::from_events(run.facts[..=last].iter().map(|fact| &**fact));
        let router = world.router().expect("a router");
        let effects = router.if_flag(&flag.into(), on, &world.run);
        assert_eq!(effects, expected, "{flags:?} {until} {flag}={on}");
    }
}
