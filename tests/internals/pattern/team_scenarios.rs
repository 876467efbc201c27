//! The shipped scenarios of teams and swarms: each ends as it is there to show, under paused time
//! with all its latencies.
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Engine, EngineSettings, Launch};
use crate::log::event::{Command, Event, EventKind, Initiator, Seq, World};
use crate::log::facts::PatternFact;
use crate::log::facts::agents::{
    AgentFact, HandoffRefusal, LoopGuard, RosterChange, RosterCommand,
};
use crate::log::world::agents::{AgentsFold, HopRow, HopState, LineKind};
use crate::run::Session;
use crate::scenario::{Override, Scenario, load, shipped};
use serde_json::Value;

fn read(name: &str, set: &[&str]) -> Arc<Scenario> {
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    let shipped = shipped().iter().find(|shipped| shipped.name == name).expect("a scenario");
    let scenario = load(shipped.text, shipped.origin(), &set);
    Arc::new(scenario.unwrap_or_else(|problems| panic!("{problems}")))
}

/// A run that was played to its end.
struct Played {
    facts: Vec<Arc<Event>>,
    world: World,
    outcome: Value,
    next: Session,
}

async fn play(name: &str, flags: &[(&str, bool)], set: &[&str]) -> Played {
    go_on(read(name, set), flags, None, None).await
}

/// One message of a session; `joins` is added to a swarm before the message.
async fn go_on(
    scenario: Arc<Scenario>,
    flags: &[(&str, bool)],
    session: Option<Session>,
    joins: Option<(&str, &str)>,
) -> Played {
    let follow_up = match &scenario.pattern {
        crate::scenario::patterns::PatternSpec::Team(spec) => spec.follow_ups.first().cloned(),
        _ => None,
    };
    let mut launch = Launch::scripted(scenario, false);
    launch.flags = flags.iter().map(|(flag, on)| ((*flag).into(), *on)).collect();
    launch.session = session;
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(launch);
    if let Some((swarm, agent)) = joins {
        let change = RosterChange::Add { agent: agent.into() };
        run.send(Command::Roster(RosterCommand {
            swarm: swarm.into(),
            change,
            by: Initiator::You,
        }));
    }
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 1024).await > 0 {}
    let odd = facts.iter().find(|fact| fact.kind.name() == "condition.failed");
    assert!(odd.is_none(), "{odd:?}");
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    let next =
        run.follow_up(follow_up.unwrap_or_else(|| "And then?".into())).expect("it has ended");
    Played { facts, world, outcome, next }
}

impl Played {
    fn team(&self) -> &AgentsFold {
        self.world.agents().expect("a team")
    }

    /// The hops, without refused handoffs.
    fn hops(&self) -> Vec<&HopRow> {
        let hops = self.team().hops.iter();
        hops.filter(|hop| !matches!(hop.state, HopState::Refused { .. })).collect()
    }

    /// Who was asked or in control, in order.
    fn who(&self) -> Vec<&str> {
        self.hops().iter().map(|hop| hop.to.as_str()).collect()
    }

    fn hop(&self, agent: &str) -> &HopRow {
        self.hops().into_iter().find(|hop| hop.to.as_str() == agent).expect("its hop")
    }

    fn text(&self, key: &str) -> &str {
        self.outcome[key].as_str().unwrap_or_default()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.outcome["elapsed_ms"].as_u64().expect("milliseconds"))
    }

    /// The hand-offs that were made, and those that were refused.
    fn handoffs(&self) -> (usize, Vec<(HandoffRefusal, LoopGuard, u32)>) {
        let made = self.facts.iter().filter(|fact| fact.kind.name() == "handoff.made").count();
        let refused = self.facts.iter().filter_map(|fact| match &fact.kind {
            EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffRefused {
                reason: why,
                guard,
                rejections,
                ..
            })) => Some((*why, *guard, *rejections)),
            _ => None,
        });
        (made, refused.collect())
    }
}

fn took(hop: &HopRow) -> Duration {
    hop.until.expect("it has ended").duration() - hop.at.duration()
}

#[tokio::test(start_paused = true)]
async fn each_scenario_ends_as_intended() {
    let device = "inputs.device=known";
    let crash = "inputs.complaint=The app crashes.";
    for (name, flags, set, reason, holder, says) in [
        ("dev-team", &[][..], &[][..], "success", "project_manager", "Ready to merge"),
        ("dev-team", &[("release_freeze", true)], &[], "success", "project_manager", "not merged"),
        ("parallel-review", &[], &[], "success", "review_lead", "spread the ages"),
        ("parallel-review", &[], &["inputs.outage=true"], "success", "review_lead", "Two of three"),
        ("support-swarm", &[], &[], "success", "refunds", "was not yours"),
        ("support-swarm", &[], &[device], "success", "refunds", "charged twice"),
        ("support-swarm", &[], &[crash], "success", "triage", "nobody who is here"),
        ("ping-pong", &[], &[], "repetitive_handoff", "accounts", "all that an account can say"),
        ("ping-pong", &[("escalation", true)], &[], "success", "duty_manager", "lost the renewal"),
        (
            "ping-pong",
            &[],
            &["agents.help_desk.repetitive_handoff_window=0"],
            "max_handoffs",
            "licences",
            "",
        ),
        ("runaway", &[], &[], "max_handoffs", "brand", "full stop was asked for"),
        ("runaway", &[("ship_it", true)], &[], "success", "design", "Place order"),
        (
            "runaway",
            &[],
            &["agents.copy_desk.repetitive_handoff_min_unique=4"],
            "repetitive_handoff",
            "legal",
            "",
        ),
        ("slow-specialist", &[], &[], "node_timeout:database", "database", "nightly import"),
        (
            "slow-specialist",
            &[],
            &["agents.night_shift.node_timeout_s=12"],
            "success",
            "database",
            "ANALYZE",
        ),
        ("nested-swarm", &[], &[], "success", "incident_lead", "report job"),
        (
            "nested-swarm",
            &[],
            &["inputs.error=certificate expired"],
            "success",
            "incident_lead",
            "had a certificate that ended",
        ),
    ] {
        let played = play(name, flags, set).await;
        let said = [played.text("answer"), played.text("partial_answer")].concat();
        assert_eq!(played.text("stop_reason"), reason, "{name} {set:?}: {}", played.outcome);
        // A run that is stopped has no owner of its own; who was in control is its phase.
        let (whose, owned) = if reason == "success" {
            ("owner", played.outcome["owner"] == holder)
        } else {
            ("phase", played.outcome["owner"].is_null())
        };
        assert_eq!(played.text(whose), holder, "{name} {flags:?} {set:?}");
        assert!(owned, "{name} {flags:?} {set:?}");
        assert!(said.contains(says), "{name} {flags:?} {set:?}: {said}");
        assert_eq!(played.outcome["status"] == "ok", reason == "success", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn inner_developers_work_in_parallel() {
    let played = play("dev-team", &[], &[]).await;
    assert_eq!(played.who(), ["dev_team", "backend_dev", "frontend_dev", "doc_writer"]);
    let depth = |agent: &str| played.hop(agent).depth;
    assert_eq!(depth("backend_dev"), depth("dev_team") + 1);
    assert_eq!(depth("doc_writer"), depth("dev_team"));
    let (backend, frontend) = (played.hop("backend_dev"), played.hop("frontend_dev"));
    assert_eq!(backend.at, frontend.at);
    let inner = played.hop("dev_team");
    assert!(took(inner) < took(backend) + took(frontend) + Duration::from_secs(2));
    assert!(
        inner.until > frontend.until && played.hop("doc_writer").at >= inner.until.expect("it")
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_reviewers_take_slowest_time() {
    let at_once = play("parallel-review", &[], &[]).await;
    let in_turn = play("parallel-review", &[], &["inputs.parallel=false"]).await;
    let times = |played: &Played| played.hops().into_iter().map(took).collect::<Vec<_>>();
    let (at_once_each, in_turn_each) = (times(&at_once), times(&in_turn));
    assert_eq!(at_once_each, in_turn_each, "each takes as long either way");
    let slowest = at_once_each.iter().max().expect("three reviewers");
    let all: Duration = in_turn_each.iter().sum();
    assert_eq!(in_turn.elapsed() - at_once.elapsed(), all - *slowest);
    assert!(in_turn.elapsed() - at_once.elapsed() > Duration::from_secs(6), "it can be seen");
    assert_eq!(at_once.text("answer"), in_turn.text("answer"));
}

#[tokio::test(start_paused = true)]
async fn reviewer_outage_fails_only_its_call() {
    let played = play("parallel-review", &[], &["inputs.outage=true"]).await;
    let states: Vec<bool> =
        played.hops().iter().map(|hop| matches!(hop.state, HopState::Failed { .. })).collect();
    assert_eq!(states, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn eighth_ping_pong_handoff_is_refused() {
    let played = play("ping-pong", &[], &[]).await;
    let (made, refused) = played.handoffs();
    assert_eq!((made, refused.len()), (7, 3));
    let (why, guard, rejections) = refused[0];
    assert_eq!((why.to_string().as_str(), rejections), ("repetitive handoff detected", 1));
    assert_eq!((guard.handoffs, guard.window, guard.distinct_agents), (8, 8, 2));
    assert!(!played.who().contains(&"duty_manager"));
    // A new agent among the last eight is no repetition.
    let asked = play("ping-pong", &[("escalation", true)], &[]).await;
    let (made, refused) = asked.handoffs();
    assert_eq!((made, refused.len(), asked.who().last()), (8, 1, Some(&"duty_manager")));
}

#[tokio::test(start_paused = true)]
async fn runaway_twenty_first_handoff_is_refused() {
    let played = play("runaway", &[], &[]).await;
    let (made, refused) = played.handoffs();
    assert_eq!((made, refused.len()), (20, 3));
    let (why, guard, _) = refused[0];
    assert_eq!((why.to_string().as_str(), guard.handoffs), ("max handoffs exceeded: 20", 21));
}

#[tokio::test(start_paused = true)]
async fn node_timeout_bounds_only_handoff_targets() {
    let played = play("slow-specialist", &[], &[]).await;
    let bound = Duration::from_secs(4);
    assert!(took(played.hop("on_call")) > bound, "the entry may take longer");
    assert_eq!(took(played.hop("database")), bound);
    // The next message starts at the entry, not at the agent that had control last.
    let again = go_on(read("slow-specialist", &[]), &[], Some(played.next), None).await;
    assert_eq!((again.who(), again.text("status")), (vec!["on_call"], "ok"));
    assert!(again.text("answer").starts_with("Without the specialist"), "{}", again.outcome);
}

#[tokio::test(start_paused = true)]
async fn nested_swarm_starts_afresh_each_call() {
    let played = play("nested-swarm", &[], &[]).await;
    let who = ["diagnosis", "edge", "service", "database", "status_writer", "diagnosis", "edge"];
    assert_eq!(played.who(), who);
    let depths: Vec<u16> = played.hops().iter().map(|hop| hop.depth).collect();
    assert_eq!(depths, [0, 1, 1, 1, 0, 0, 1]);
    let guard = played.team().swarm(&"diagnosis".into()).expect("it").guard;
    assert_eq!(guard.handoffs, 0, "the second time nobody handed over yet");
}

/// What the edge says the second time is what it was told: the cause is gone by then.
#[tokio::test(start_paused = true)]
async fn nested_swarm_metric_falls_after_fix() {
    for error in ["backend timeout", "certificate expired"] {
        let scenario = read("nested-swarm", &[&format!("inputs.error={error}")]);
        let played = go_on(scenario, &[], None, None).await;
        let lines = &played.team().lines;
        let told = lines.iter().filter_map(|line| match &line.what {
            LineKind::Result { of, text, .. } if &**of == "query_metrics" => Some(text),
            _ => None,
        });
        let edge: Vec<f64> = told
            .filter_map(|text| {
                let told: serde_json::Value = serde_json::from_str(text).ok()?;
                told["errors_percent"].as_f64()
            })
            .collect();
        assert_eq!(edge, [12.0, 0.1], "{error}");
        let said = lines.iter().any(|line| {
            matches!(&line.what, LineKind::Said(text) if text.contains("the usual 0.1 percent"))
        });
        assert!(said, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn support_follow_up_starts_at_owner() {
    let played = play("support-swarm", &[], &[]).await;
    assert_eq!(played.who(), ["triage", "billing", "fraud", "refunds"]);
    let again = go_on(read("support-swarm", &[]), &[], Some(played.next), None).await;
    assert_eq!((again.who(), again.text("owner")), (vec!["refunds"], "refunds"));
    assert!(again.text("answer").contains("working days"), "{}", again.outcome);
}

#[tokio::test(start_paused = true)]
async fn technician_gets_handoff_after_joining() {
    let scenario = read("support-swarm", &["inputs.complaint=The app crashes."]);
    let played = go_on(scenario, &[], None, Some(("support", "tech"))).await;
    assert_eq!(played.who(), ["triage", "tech"]);
    assert!(played.text("answer").contains("Which version"), "{}", played.outcome);
}

#[tokio::test(start_paused = true)]
async fn follow_up_asks_one_developer() {
    let played = play("dev-team", &[], &[]).await;
    let again = go_on(read("dev-team", &[]), &[], Some(played.next), None).await;
    assert_eq!(again.who(), ["dev_team", "backend_dev"]);
    assert!(again.text("answer").contains("A voucher lowers the price"), "{}", again.outcome);
}

/// Long enough to see what happens, short enough to stay for it.
#[tokio::test(start_paused = true)]
async fn they_are_good_to_watch() {
    for name in [
        "dev-team",
        "parallel-review",
        "support-swarm",
        "ping-pong",
        "runaway",
        "slow-specialist",
        "nested-swarm",
    ] {
        let elapsed = play(name, &[], &[]).await.elapsed().as_secs();
        assert!((6..=20).contains(&elapsed), "{name} takes {elapsed} s");
    }
}
