//! What the facts of a team or swarm fold to.

use crate::log::event::World;
use crate::log::facts::agents::{HandoffRefusal, MemberOutput};
use crate::log::world::MarkKind;
use crate::log::world::agents::{
    AgentState, AgentsFold, HopCounts, HopKind, HopRow, HopState, LineKind, shown_output,
};
use crate::support::facts::team;
use crate::support::facts::team::TeamFacts;

fn fold(facts: &TeamFacts) -> World {
    World::from_events(facts.log.iter().map(|event| &**event))
}

fn team(world: &World) -> &AgentsFold {
    world.agents().expect("a team")
}

#[test]
fn hops_show_control_and_outcome() {
    let world = fold(&team::working());
    let team = team(&world);
    let hops: Vec<String> = team
        .hops
        .iter()
        .map(|hop| {
            let from = hop.from.as_ref().map_or("you", |from| from.as_str());
            let state = match &hop.state {
                HopState::Running => "runs",
                HopState::Done => "done",
                HopState::HandedOver => "over",
                HopState::Degraded { .. } => "degraded",
                HopState::Failed(_) => "failed",
                HopState::Refused(_) => "refused",
            };
            format!("{from} {} {state}", hop.to)
        })
        .collect();
    let expected = [
        "you triage over",
        "triage billing over",
        "billing fraud over",
        "fraud billing over",
        "billing fraud refused",
        "billing refunds runs",
    ];
    assert_eq!(hops, expected);
    assert_eq!(team.in_control.as_ref().map(|it| it.as_str()), Some("refunds"));
    assert_eq!(team.hops.get(1).and_then(|hop| hop.context_tokens), Some(900));
    let message = team.hops.get(1).and_then(|hop| hop.message.clone());
    assert_eq!(message.as_deref(), Some("charge dispute, order 8841"));
    let agent = |name: &str| team.agent(&name.into()).expect("an agent");
    assert_eq!((agent("billing").turns, agent("billing").state), (2, AgentState::Done));
    assert_eq!((agent("tech").turns, agent("tech").state), (0, AgentState::Idle));
    assert_eq!(agent("refunds").state, AgentState::Running);
    assert!(agent("refunds").speaking.is_some());
    assert_eq!(agent("fraud").work_time.as_millis(), 1_200);
}

#[test]
fn hops_keep_agent_in_control() {
    let control = |facts: &TeamFacts| -> Vec<String> {
        let world = fold(facts);
        let of =
            |hop: &HopRow| hop.in_control.as_ref().map_or_else(String::new, ToString::to_string);
        team(&world).hops.iter().map(of).collect()
    };
    // A refused handoff passes nothing.
    let expected = ["triage", "billing", "fraud", "billing", "billing", "refunds"];
    assert_eq!(control(&team::working()), expected);
    // Consultations return, also those of teams within.
    assert_eq!(control(&team::office()), ["project_manager"; 5]);
}

#[test]
fn hops_are_counted_as_they_happen() {
    for facts in [team::working(), team::office_answered(), team::ring(4, 9), team::desks(12, 20)] {
        let mut world = World::new();
        for event in &facts.log {
            world.apply(event);
            let Some(team) = world.agents() else { continue };
            let mut counted = HopCounts::default();
            for hop in team.hops.iter() {
                *match (&hop.state, hop.kind) {
                    (HopState::Refused(_), _) => &mut counted.refused,
                    (_, HopKind::Start) => &mut counted.starts,
                    (_, HopKind::Handoff) => &mut counted.handoffs,
                    (_, HopKind::Consult) => &mut counted.consultations,
                    (_, HopKind::Next) => &mut counted.starts,
                } += 1;
            }
            assert_eq!(team.hop_counts, counted);
        }
    }
}

#[test]
fn counts_edges_and_refusals() {
    let world = fold(&team::working());
    let edges: Vec<String> = team(&world)
        .edges
        .iter()
        .map(|edge| {
            let from = edge.from.as_ref().map_or("you", |from| from.as_str());
            format!("{from} {} {} {}", edge.to, edge.count, edge.refused)
        })
        .collect();
    let expected = [
        "you triage 1 0",
        "triage billing 1 0",
        "billing fraud 1 1",
        "fraud billing 1 0",
        "billing refunds 1 0",
    ];
    assert_eq!(edges, expected);
    let swarm = team(&world).swarm(&"support".into()).expect("the swarm");
    assert_eq!((swarm.guard.handoffs, swarm.rejections), (5, 1));
    assert_eq!(swarm.refused, Some(HandoffRefusal::Repetitive));
}

#[test]
fn consultation_starts_nested_swarm() {
    let world = fold(&team::office());
    let team = team(&world);
    let front = team.edges.iter().find(|edge| edge.to == "front".into()).expect("an edge");
    assert_eq!(front.from, Some("desk".into()));
    assert!(front.is_consultation);
    let hop = team.hops.iter().find(|hop| hop.to == "front".into()).expect("a hop");
    assert_eq!((hop.kind, hop.depth), (HopKind::Start, 1));
    assert_eq!(team.roots.len(), 3, "what the project manager asked, and nothing of theirs");
    assert_eq!(team.in_control, Some("project_manager".into()));
    let consulted =
        world.over_time.marks.iter().filter(|it| matches!(it.what, MarkKind::Consulted(_)));
    assert_eq!(consulted.count(), 3, "and none of those within");
}

#[test]
fn transcript_omits_hidden_members() {
    let facts = team::office_answered();
    let world = fold(&facts);
    let team = team(&world);
    let by = |name: &str| {
        let of =
            |line: &&crate::log::world::agents::TranscriptLine| line.author == Some(name.into());
        team.lines.iter().filter(of).count()
    };
    assert_eq!(by("front"), 0);
    assert_eq!(by("researcher"), 1);
    assert_eq!(by("coder"), 3, "a call, its result, what it says");
    assert_eq!(shown_output(facts.attempt_of("front"), &world.spans), MemberOutput::Hidden);
    assert_eq!(shown_output(facts.attempt_of("coder"), &world.spans), MemberOutput::Text);
    assert_eq!(team.answered_by, Some("project_manager".into()));
}

#[test]
fn a_hand_off_has_one_line() {
    let world = fold(&team::working());
    let lines = || team(&world).lines.iter();
    let over = lines().filter(|line| matches!(line.what, LineKind::HandedOver { .. })).count();
    let refused = lines().filter(|line| matches!(line.what, LineKind::Refused { .. })).count();
    let called = lines().filter(|line| matches!(line.what, LineKind::Called(_))).count();
    assert_eq!((over, refused, called), (4, 1, 1), "the tool of hand-offs is told by them");
    assert!(matches!(lines().next().map(|line| &line.what), Some(LineKind::Message(_))));
}

#[test]
fn cancelled_run_leaves_no_agent_working() {
    let mut facts = TeamFacts::office();
    facts.after(100).ends("cancelled", None);
    let world = fold(&facts);
    let root = team(&world).agent(&"project_manager".into()).expect("the root");
    assert_eq!((root.state, root.since), (AgentState::Cancelled, None));
}

#[test]
fn agent_speaks_until_both_runs_end() {
    let speaking = |facts: &TeamFacts| {
        team(&fold(facts)).agent(&"researcher".into()).expect("an agent").speaking
    };
    for first_ends_first in [true, false] {
        let mut facts = TeamFacts::office();
        let ask = || serde_json::json!({ "request": "x" });
        let calls = [("researcher", ask()), ("dev_team", ask())];
        facts.says("project_manager", 10, "", &calls);
        facts.consults("project_manager", "researcher", "x", MemberOutput::Text).asks("researcher");
        let first = facts.attempt_of("researcher");
        facts.consults("project_manager", "dev_team", "x", MemberOutput::Text);
        facts.says("dev_team", 10, "", &[("researcher", ask())]);
        facts.consults("dev_team", "researcher", "x", MemberOutput::Text).asks("researcher");
        let second = facts.attempt_of("researcher");
        assert_eq!(speaking(&facts), Some(second));
        let (ends, left) = if first_ends_first { (first, second) } else { (second, first) };
        for (attempt, speaks) in [(ends, Some(left)), (left, None)] {
            facts.replies(attempt, "Said.");
            assert_eq!(speaking(&facts), speaks);
        }
    }
}

#[test]
fn swarm_shows_limits_of_latest_run() {
    let mut facts = TeamFacts::office();
    let ask = || serde_json::json!({ "request": "x" });
    facts.says("project_manager", 10, "", &[("desk", ask()), ("dev_team", ask())]);
    facts
        .consults("project_manager", "desk", "x", MemberOutput::Text)
        .hop_within("desk", "front", None);
    let (first, said) = (facts.within("desk"), facts.asks("front").call_of("front"));
    facts.consults("project_manager", "dev_team", "x", MemberOutput::Text).asks("dev_team");
    facts.consults("dev_team", "desk", "x", MemberOutput::Text).hop_within("desk", "front", None);
    let second = facts.within("desk");
    let state = |facts: &TeamFacts| {
        let world = fold(facts);
        let row = team(&world).swarm(&"desk".into()).expect("the swarm").clone();
        (row.span, row.guard.handoffs, row.rejections, row.refused)
    };
    let why = HandoffRefusal::Repetitive;
    assert_eq!(state(&facts), (Some(second), 0, 0, None));
    facts.refused_within("desk", first, 4, 2, why, said);
    assert_eq!(state(&facts), (Some(first), 4, 2, Some(why)));
    facts.made_within("desk", second, 1, said);
    assert_eq!(state(&facts), (Some(second), 1, 0, None));
    facts.made_within("desk", first, 5, said);
    assert_eq!(state(&facts), (Some(first), 5, 2, Some(why)));
}

#[test]
fn stopped_run_keeps_session_owner() {
    let owner = |facts: &TeamFacts| {
        fold(facts).outcome().expect("an outcome").fields.get("owner").expect("an owner")
    };
    let mut first = team::working();
    first.ends("max_seconds", None);
    assert_eq!(owner(&first), serde_json::Value::Null);
    let mut second = team::follow_up();
    second.hands("refunds", "billing", None).ends("max_seconds", None);
    assert_eq!(owner(&second), "refunds");
}
