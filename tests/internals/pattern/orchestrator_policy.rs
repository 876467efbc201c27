//! The policy of the pattern orchestrator against tables of what the functions in the orchestrator
//! source document return.

use std::collections::BTreeSet;

use crate::base::name::ToolName;
use crate::log::event::StopReason;
use crate::pattern::orchestrator::policy::{accepts_args, args_hash, validate_plan};
use crate::support::vectors::{same, table};
use serde_json::{Value, json};

fn allowed(names: &Value) -> BTreeSet<ToolName> {
    let names = names.as_array().expect("names").iter();
    names.map(|name| ToolName::from(name.as_str().expect("a name"))).collect()
}

#[test]
fn validate_orchestration_plan_matches_source() {
    let (with, cases) = table(include_str!("../../vectors/orchestrator_validate_plan.json"));
    let workers = allowed(&with["allowed_workers"]);
    let max_tasks = u32::try_from(with["max_tasks"].as_u64().expect("a limit")).expect("small");
    for (row, case) in cases.iter().enumerate() {
        let input = &case["given"]["input"];
        match validate_plan(input, &workers, max_tasks) {
            Ok(tasks) => {
                let ours = serde_json::to_value(tasks).expect("json");
                assert!(same(&ours, &case["return"]), "row {row}: {ours} for {input}");
            }
            Err(fault) => {
                let reason = StopReason::InvalidPlan(fault).to_string();
                assert_eq!(Value::from(reason), case["stop"], "row {row}: {input}");
            }
        }
    }
}

/// Decisions: ids are trimmed before they are compared, worker names are not before the allowlist,
/// and a name that a model gave is bounded and made visible.
#[test]
fn where_we_part_from_the_source() {
    let workers = allowed(&json!(["w"]));
    let task = |id: &str, worker: &str| json!({ "id": id, "worker": worker, "args": {}, "critical": true, "more": 1 });
    let judged = |tasks: Value| {
        let plan = json!({ "kind": "plan", "tasks": tasks, "note": "dropped" });
        validate_plan(&plan, &workers, 4)
            .map_err(|fault| StopReason::InvalidPlan(fault).to_string())
    };
    let taken = judged(json!([task(" t1 ", "w")])).expect("a good plan");
    assert_eq!(taken[0].id.as_str(), "t1");
    assert_eq!(
        judged(json!([task("t1", "w"), task(" t1 ", "w")])),
        Err("invalid_plan:duplicate_task_id".to_owned())
    );
    assert_eq!(
        judged(json!([task("t1", " w")])),
        Err("invalid_plan:worker_not_allowed: w".to_owned())
    );
    let long = judged(json!([task("t1", &format!("\u{1b}{}", "x".repeat(200)))]));
    let reason = long.expect_err("no such worker");
    let name = reason.strip_prefix("invalid_plan:worker_not_allowed:").expect("a prefix");
    assert_eq!(name.chars().count(), 64);
    assert!(name.starts_with('␛'), "{name}");
}

#[test]
fn args_hash_matches_source() {
    let (_, cases) = table(include_str!("../../vectors/orchestrator_args_hash.json"));
    for (row, case) in cases.iter().enumerate() {
        let input = case["given"]["input"].as_object().expect("arguments");
        assert_eq!(Value::from(args_hash(input)), case["return"], "row {row}: {input:?}");
    }
}

/// A worker takes exactly the arguments that its catalogue entry names (`worker_bad_args`); a
/// `request_id` of the planner's is overwritten, as in the source.
#[test]
fn a_worker_takes_what_it_declares() {
    let declared = json!({ "report_date": "YYYY-MM-DD", "region": "US|EU" });
    let declared = declared.as_object().expect("a table");
    let table = [
        (json!({ "report_date": "2026-02-26", "region": "US" }), true),
        (json!({ "region": 7, "report_date": null }), true),
        (json!({ "region": "US" }), false),
        (json!({ "region": "US", "report_date": "x", "request_id": "mine" }), true),
        (json!({ "region": "US", "request_id": "mine" }), false),
        (json!({ "region": "US", "report_date": "x", "other": 1 }), false),
        (json!({}), false),
    ];
    for (given, expected) in table {
        assert_eq!(
            accepts_args(declared, given.as_object().expect("a table")),
            expected,
            "{given}"
        );
    }
}
