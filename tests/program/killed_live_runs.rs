//! Live runs whose process is killed: no model is asked again for a reply that is stored, and none is
//! asked before it is stored that it will be. An endpoint of the test counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::binary::{Home, Running};
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};

fn log_of(home: &Home, run: &str) -> Vec<Value> {
    home.run(&["export", run]).lines()
}

/// Kills a live run at its `nth` request, before or after the reply is sent, and continues it.
fn kill_at(scenario: &str, nth: usize, replies_first: bool) {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(scenario));
    endpoint.hold(nth, replies_first);
    let args = ["run", scenario, "--live", "--format", "json"];
    let mut running = Running::start(&mut endpoint.command(&home, &args));
    endpoint.wait_until_held();
    running.kill();
    endpoint.release();
    let about = format!("{scenario}, request {nth}, replied: {replies_first}");

    let mut stored = Vec::new();
    let rows = home.run(&["runs", "--json"]).json();
    let mut rows: Vec<&Value> = rows.as_array().expect("a list").iter().collect();
    rows.reverse();
    for row in &rows {
        let log = log_of(&home, row["id"].as_str().expect("an id"));
        stored.push((row["status"].clone(), ModelAttempts::of(&log)));
    }
    let asked = endpoint.prompts();
    let announced = stored.iter().fold(count([]), |mut all, (_, attempts)| {
        for (prompt, times) in attempts.started() {
            *all.entry(prompt).or_default() += times;
        }
        all
    });
    let unannounced = surplus(&count(asked.clone()), &announced);
    assert!(unannounced.is_empty(), "{about}: asked before it was stored: {unannounced:#?}");

    let (status, before) = stored.last().expect("a run");
    if status == "ended" {
        // A session was killed between two messages, or all was stored already.
        return;
    }
    let resumed = endpoint.run(&home, &["resume", "last", "--format", "json"]);
    if resumed.err.contains("has ended") {
        // Killed between its last event and its row, which is written now.
        assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "ended", "{about}");
        return assert_eq!(endpoint.prompts().len(), asked.len(), "{about}");
    }
    let outcome = resumed.json();
    let reason = outcome["stop_reason"].as_str().expect("a reason");
    assert!(!reason.starts_with("llm_error"), "{about}: {reason}: {}", resumed.err);
    let after = ModelAttempts::of(&log_of(&home, "last"));
    let more = count(endpoint.prompts().split_off(asked.len()));
    let repeated = surplus(&more, &after.started_after(before));
    assert!(repeated.is_empty(), "{about}: asked again: {repeated:#?}");
    assert_eq!(more.values().sum::<usize>(), after.len() - before.len(), "{about}");
}

#[test]
fn calls_are_stored_first_never_repeated() {
    let kills = [
        ("checkout-launch", 6, false),
        ("checkout-launch", 9, true),
        ("fraud-check", 2, false),
        ("fabricated-quote", 3, true),
        ("parallel-review", 5, false),
        ("support-swarm", 4, true),
        ("nested-swarm", 7, false),
        ("front-desk", 2, true),
    ];
    thread::scope(|scope| {
        for (scenario, nth, replies_first) in kills {
            scope.spawn(move || kill_at(scenario, nth, replies_first));
        }
    });
}

/// `cargo test --test program -- --ignored kill_anywhere`
#[test]
#[ignore = "a minute; the test above is its sample"]
fn kill_anywhere_pays_no_reply_twice() {
    const AT_A_TIME: usize = 8;
    let scenarios = [
        "checkout-deadlock",
        "checkout-launch",
        "dev-team",
        "fabricated-quote",
        "fraud-check",
        "front-desk",
        "morning-report",
        "nested-swarm",
        "parallel-review",
        "ping-pong",
        "support-swarm",
    ];
    let mut kills = Vec::new();
    for scenario in scenarios {
        let endpoint = CountingEndpoint::of(scenario);
        endpoint.run(&Home::new(), &["run", scenario, "--live", "--format", "json"]);
        let requests = 1..=endpoint.prompts().len();
        kills.extend(requests.flat_map(|nth| [(scenario, nth, false), (scenario, nth, true)]));
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((scenario, nth, replied)) =
                    kills.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    kill_at(scenario, *nth, *replied);
                }
            });
        }
    });
    println!("{} live runs were killed", kills.len());
    assert!(kills.len() >= 150, "{}", kills.len());
}
