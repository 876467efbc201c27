//! Asking the seats of a round in parallel or one after another gives the same outcome, whatever
//! they reply, however they fail and whatever they cost; usage and times aside. What the seats of a
//! run share (the breaker and the retry budget of `llm`) is set too high to matter: failures of
//! seats that run in parallel count there before the reply of an earlier seat does.

use crate::engine::{Launch, Schedule};
use crate::log::event::{BoundaryId, Command, EventKind, Initiator, Seq};
use crate::support::random_cases;
use crate::support::table::{BRIEF, engine, outcome, says, scenario, world};
use proptest::prelude::*;
use serde_json::Value;

#[derive(Debug, Clone)]
enum Row {
    Says(&'static str),
    Raw(&'static str),
    Fails(&'static str),
    Silent,
}

fn row() -> impl Strategy<Value = Row> {
    prop_oneof![
        6 => prop::sample::select(vec!["go", "go", "caution", "block"]).prop_map(Row::Says),
        1 => prop::sample::select(vec!["nonsense", "[]", "{}", r#"{"agent":"b","stance":"go","summary":"s","confidence":2,"actions":["x"]}"#]).prop_map(Row::Raw),
        1 => prop::sample::select(vec!["{ status = 503, times = 1 }", "{ status = 500, times = 9 }", "{ status = 404, times = 1 }", "{ kind = \"refused\", times = 2 }", "{ kind = \"hang\", times = 1 }"]).prop_map(Row::Fails),
        1 => Just(Row::Silent),
    ]
}

fn script(rows: &[(Row, u32)]) -> String {
    let mut script = String::new();
    for (place, (row, latency)) in rows.iter().enumerate() {
        let (role, round) = (["a", "b", "c"][place % 3], place / 3 + 1);
        let at = format!("round = {round}\nlatency = \"{latency}ms\"");
        script += &match row {
            Row::Says(stance) => says(role, &at, stance),
            Row::Raw(raw) => format!("\n[[script]]\nrole = \"{role}\"\n{at}\nraw = '{raw}'\n"),
            Row::Fails(fault) => says(role, &format!("{at}\nfault = {fault}"), "go"),
            Row::Silent => String::new(),
        };
    }
    script + BRIEF
}

/// The outcome without what may differ.
fn what_counts(mut outcome: Value) -> Value {
    if let Some(fields) = outcome.as_object_mut() {
        for differs in ["run_id", "usage", "elapsed_ms", "paused_ms"] {
            fields.remove(differs);
        }
    }
    outcome
}

proptest! {
    #![proptest_config(random_cases(200))]

    #[test]
    fn parallel_and_sequential_give_one_outcome(
        rows in prop::collection::vec((row(), 0u32..3000), 9),
        messages in 1u32..12,
        votes in 1u32..4,
        deny in any::<bool>(),
        third in any::<bool>(),
        turned in prop::option::of((2u32..4, any::<bool>())),
    ) {
        let script = script(&rows);
        let runtime = crate::support::table::paused_runtime();
        let played = ["parallel", "sequential"].map(|concurrency| {
            let sets = [
                format!("collaboration.concurrency={concurrency}"),
                format!("budget.max_messages={messages}"),
                format!("budget.min_go_votes={votes}"),
                "budget.max_seconds=600".to_owned(),
                "tools.llm.breaker.fail_threshold=1000".to_owned(),
                "tools.llm.retry_budget.min=1000".to_owned(),
                format!("roles.c.when_off={}", if deny { "deny" } else { "skip" }),
            ];
            let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
            let launch = Launch {
                flags: vec![("third".into(), third)],
                schedule: Schedule {
                    flags: turned
                        .map(|(round, on)| (BoundaryId::new(format!("round:{round}")), "third".into(), on))
                        .into_iter()
                        .collect(),
                    ..Schedule::default()
                },
                ..Launch::scripted(scenario(&script, &sets), false)
            };
            what_counts(runtime.block_on(outcome(launch)))
        });
        prop_assert_eq!(&played[0], &played[1]);
    }

    /// Whatever a person does to the pace of a run, it comes to what it would have come to alone.
    #[test]
    fn pause_and_step_change_only_times(
        rows in prop::collection::vec((row(), 0u32..3000), 9),
        presses in prop::collection::vec((0u8..4, 0u32..2500), 0..12),
    ) {
        let script = script(&rows);
        let runtime = crate::support::table::paused_runtime();
        let launch = || Launch::scripted(scenario(&script, &["budget.max_seconds=600"]), false);
        let alone = what_counts(runtime.block_on(outcome(launch())));
        let pressed = runtime.block_on(async {
            let run = engine().start(launch());
            for (press, wait) in presses {
                tokio::time::sleep(std::time::Duration::from_millis(wait.into())).await;
                run.send(match press {
                    0 => Command::Pause { by: Initiator::You },
                    1 => Command::Resume { by: Initiator::You },
                    2 => Command::Step,
                    _ => Command::StepRound,
                });
            }
            // Whatever the presses left it in, a person lets it go on in the end.
            let mut reader = run.bus().reader(Seq(0));
            let mut facts = Vec::new();
            while !facts.iter().any(|fact: &std::sync::Arc<crate::log::event::Event>| {
                matches!(fact.kind, EventKind::RunClosed(_))
            }) {
                run.send(Command::Resume { by: Initiator::You });
                facts.clear();
                reader.next_batch(&mut facts, 64).await;
            }
            serde_json::to_value(world(&run).await.outcome().expect("an outcome")).expect("json")
        });
        prop_assert_eq!(&alone, &what_counts(pressed));
    }
}
