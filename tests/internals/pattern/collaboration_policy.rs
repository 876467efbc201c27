//! The policy of the pattern collaboration against tables of what the functions in the collaboration
//! source document return.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::Launch;
use crate::log::event::{StopReason, World};
use crate::log::facts::collaboration::{Contribution, Stance};
use crate::log::world::collaboration::RoundFigures;
use crate::pattern::collaboration::payload;
use crate::pattern::collaboration::payload::ClosedRound;
use crate::pattern::collaboration::policy::{
    ContributionGateway, RoleSet, SOURCE_ROWS, decide_round_outcome, detect_conflicts,
    validate_contribution,
};
use crate::scenario::cel::Condition;
use crate::scenario::patterns::collaboration::{Decision, Share};
use crate::scenario::spec::script::ReplyEnd;
use crate::support::table::{engine, facts, paused_runtime, read};
use crate::support::vectors::{same, table};
use proptest::prelude::*;
use serde_json::{Value, json};

fn roles(names: &Value) -> RoleSet {
    names
        .as_array()
        .expect("names")
        .iter()
        .map(|name| name.as_str().expect("a name").into())
        .collect()
}

fn stances(rows: &Value) -> Vec<Stance> {
    rows.as_array()
        .expect("contributions")
        .iter()
        .map(|row| serde_json::from_value(row["stance"].clone()).expect("a stance"))
        .collect()
}

#[test]
fn validate_contribution_matches_source() {
    let (with, cases) =
        table(include_str!("../../vectors/collaboration_validate_contribution.json"));
    let allowed = roles(&with["allowed_agents"]);
    for (row, case) in cases.iter().enumerate() {
        let input = &case["given"]["input"];
        match validate_contribution(input, &allowed) {
            Ok(accepted) => {
                let ours = serde_json::to_value(accepted.contribution).expect("json");
                assert!(same(&ours, &case["return"]), "row {row}: {ours} for {input}");
            }
            Err(reason) => {
                assert_eq!(Value::from(reason.to_string()), case["stop"], "row {row}: {input}");
            }
        }
    }
}

#[test]
fn accept_answers_as_the_source_does() {
    let (with, cases) = table(include_str!("../../vectors/collaboration_accept.json"));
    let allow = roles(&with["allow"]);
    let max = with["budget"]["max_messages"].as_u64().expect("a limit");
    let mut gateway = ContributionGateway::new(u32::try_from(max).expect("a small limit"));
    for (row, case) in cases.iter().enumerate() {
        let expected = case["given"]["expected_agent"].as_str().expect("a role").into();
        match gateway.accept(&case["given"]["input"], &expected, &allow) {
            Ok(accepted) => {
                let ours = serde_json::to_value(accepted.contribution).expect("json");
                assert!(same(&ours, &case["return"]), "row {row}: {ours}");
            }
            Err(reason) => assert_eq!(Value::from(reason.to_string()), case["stop"], "row {row}"),
        }
    }
}

#[test]
fn refused_messages_count_as_used() {
    let allow: RoleSet = BTreeSet::from(["a".into()]);
    let mut gateway = ContributionGateway::new(2);
    let role = "a".into();
    assert!(gateway.accept(&json!([]), &role, &allow).is_err());
    assert!(gateway.accept(&json!([]), &role, &allow).is_err());
    assert_eq!(gateway.messages(), 2);
    let third = gateway.accept(&json!([]), &role, &allow).expect_err("spent");
    assert_eq!(third.to_string(), "max_messages");
    assert_eq!(gateway.messages(), 2);
}

#[test]
fn detect_conflicts_matches_source() {
    let (_, cases) = table(include_str!("../../vectors/collaboration_detect_conflicts.json"));
    for (row, case) in cases.iter().enumerate() {
        let ours = detect_conflicts(stances(&case["given"]["input"]));
        assert_eq!(serde_json::to_value(ours).expect("json"), case["return"], "row {row}");
    }
}

/// What the rows that say the rule of the source document decide.
fn by_rows(stances: &[Stance], min_go_votes: u32) -> Option<Decision> {
    let contributions: Vec<_> = stances
        .iter()
        .enumerate()
        .map(|(seat, stance)| {
            Arc::new(Contribution {
                agent: format!("seat_{}", seat % 5).as_str().into(),
                stance: *stance,
                summary: "Said.".into(),
                confidence: 0.5,
                actions: vec!["Act".into()],
                end: ReplyEnd::Stop,
            })
        })
        .collect();
    let weights = BTreeMap::from([("seat_1".into(), 7.5)]);
    let figures = RoundFigures { round: 1, max_rounds: 3, min_go_votes, weights: &weights };
    let shown = figures.values(&contributions);
    SOURCE_ROWS.iter().find_map(|(when, decision)| {
        let when = Condition::compile(when).expect("a condition");
        when.holds(&shown).expect("a value").then_some(*decision)
    })
}

/// The policy, and the rows that say its rule.
#[test]
fn decisions_match_source() {
    let (_, cases) = table(include_str!("../../vectors/collaboration_decide_round_outcome.json"));
    for (row, case) in cases.iter().enumerate() {
        let votes = case["given"]["min_go_votes"].as_u64().expect("votes");
        let votes = u32::try_from(votes).expect("a few votes");
        let stances = stances(&case["given"]["input"]);
        for ours in [by_rows(&stances, votes), decide_round_outcome(stances, votes)] {
            let ours = serde_json::to_value(ours).expect("json");
            assert_eq!(ours, case["return"], "row {row}: {case}");
        }
    }
}

/// A sum of weights is what a person adds up: 0.7 and 0.1 are 0.8, and nothing is 0.
#[test]
fn weights_add_up() {
    let says = |role: &str, stance| {
        Arc::new(Contribution {
            agent: role.into(),
            stance,
            summary: "Said.".into(),
            confidence: 0.5,
            actions: vec!["Act".into()],
            end: ReplyEnd::Stop,
        })
    };
    let round = [says("a", Stance::Go), says("b", Stance::Go)];
    let weights = BTreeMap::from([("a".into(), 0.7), ("b".into(), 0.1)]);
    let figures = RoundFigures { round: 1, max_rounds: 3, min_go_votes: 2, weights: &weights };
    let shown = figures.values(&round);
    for when in ["weight.go >= 0.8", "weight.go <= 0.8", "1.0 / weight.block > 0.0"] {
        assert_eq!(Condition::compile(when).expect("good").holds(&shown), Ok(true), "{when}");
    }
}

/// Rows such as "all say go" hold for a table without seats; it makes no decision.
#[test]
fn an_empty_table_decides_nothing() {
    let scenario = read(
        r#"
title = "Nobody"
pattern = "collaboration"
about = "For tests."
goal = "Decide."
[flags.on]
default = false
[budget]
max_rounds = 2
[collaboration]
sequence = ["a", "b"]
finalize_prompt = "Sum up."
decide = [{ when = "size(stances.go) == size(seats)", decision = "go" }]
[roles]
a = { prompt = "You are a.", flag = "on" }
b = { prompt = "You are b.", flag = "on" }
"#,
        &[],
    );
    let world = paused_runtime().block_on(async {
        let run = engine().start(Launch::scripted(scenario, true));
        World::from_events(facts(&run).await.iter().map(|event| &**event))
    });
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.stop_reason, StopReason::MaxRoundsReached);
}

proptest! {
    #[test]
    fn rows_decide_as_the_policy_does(
        stances in prop::collection::vec(prop::sample::select(&Stance::ALL[..]), 0..12),
        min_go_votes in 1_u32..6,
    ) {
        let ours = by_rows(&stances, min_go_votes);
        prop_assert_eq!(ours, decide_round_outcome(stances, min_go_votes));
    }
}

/// A round of the tables as a row of ours; `None` for one without a number, which ours never lack.
/// Other keys the source reads with a default.
fn history_row(round: &Value) -> Option<ClosedRound> {
    let list = |key: &str| round.get(key).cloned().unwrap_or_else(|| json!([]));
    let from: Vec<Contribution> =
        serde_json::from_value(list("contributions")).expect("contributions");
    Some(ClosedRound {
        round: serde_json::from_value(round.get("round")?.clone()).expect("a number"),
        contributions: from.into_iter().map(Arc::new).collect(),
        conflicts: serde_json::from_value(list("conflicts")).expect("conflicts"),
        decision: serde_json::from_value(round["decision"].clone()).expect("a decision"),
    })
}

#[test]
fn recent_rounds_matches_source() {
    let (_, cases) = table(include_str!("../../vectors/collaboration_recent_rounds.json"));
    let mut left_out = Vec::new();
    for (row, case) in cases.iter().enumerate() {
        let input = case["given"]["input"].as_array().expect("arguments");
        let (rounds, limit) = match input.as_slice() {
            [Value::Array(rounds), limit] => (rounds, limit.as_u64().expect("a limit") as usize),
            rounds => (&rounds.to_vec(), payload::RECENT_ROUNDS),
        };
        let Some(history) = rounds.iter().map(history_row).collect::<Option<Vec<_>>>() else {
            left_out.push(row);
            continue;
        };
        let ours = payload::recent_rounds(&history, limit, Share::Stances);
        let ours = serde_json::to_value(ours).expect("json");
        assert!(same(&ours, &case["return"]), "row {row}: {ours}");
    }
    // The last row holds a round without a number: our type cannot say that.
    assert_eq!(left_out, [cases.len() - 1]);
}

#[test]
fn rounds_confidence_by_binary_value() {
    let allowed: RoleSet = BTreeSet::from(["a".into()]);
    for (given, expected) in
        [(0.0625, 0.062), (0.1875, 0.188), (0.0005, 0.001), (0.2345, 0.234), (1.0, 1.0), (0.0, 0.0)]
    {
        let raw = json!({"agent": "a", "stance": "go", "summary": "s", "confidence": given, "actions": ["x"]});
        let accepted = validate_contribution(&raw, &allowed).expect("valid");
        assert_eq!(accepted.contribution.confidence, expected, "{given}");
    }
}

#[test]
fn what_is_dropped_is_counted() {
    let allowed: RoleSet = BTreeSet::from(["a".into()]);
    let raw = json!({"agent": " a ", "stance": " go ", "summary": " s ", "confidence": 1,
        "actions": ["1", "2", "3", "4", "5"], "mood": "fine", "extra": null});
    let accepted = validate_contribution(&raw, &allowed).expect("valid");
    assert_eq!((accepted.extra_keys, accepted.extra_actions), (2, 2));
    assert_eq!(accepted.contribution.actions.len(), 3);
}
