//! Runs whose process is killed, continued with the real binary.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::binary::{Home, Running, without_times};

/// The shipped scenarios that need no service of the network and whose outcome does not depend on
/// time, or only in the number of calls, and after each how many of its events a run is killed.
const SCENARIOS: [(&str, usize); 24] = [
    ("checkout-blocked", 1),
    ("checkout-deadlock", 1),
    ("checkout-denied", 1),
    ("checkout-launch", 1),
    ("checkout-unanimous", 1),
    ("dev-team", 1),
    ("fabricated-quote", 1),
    ("fraud-check", 1),
    ("front-desk", 1),
    ("mixed-table", 1),
    ("morning-report", 1),
    ("morning-report-denied", 1),
    ("morning-report-partial", 1),
    ("nested-swarm", 1),
    ("own-notes", 1),
    ("parallel-review", 1),
    ("payments-incident", 1),
    ("ping-pong", 1),
    ("refund-desk", 1),
    ("rumour-mill", 1),
    ("runaway", 2),
    ("slow-specialist", 1),
    ("support-swarm", 1),
    ("vendor-brownout", 40),
];

/// What makes a long run shorter.
fn shortened(scenario: &str) -> &'static [&'static str] {
    match scenario {
        "vendor-brownout" => &["--set", "resilience.turns=8"],
        _ => &[],
    }
}

/// A run that is not killed.
struct Undisturbed {
    scenario: &'static str,
    /// Number of the lines that it prints.
    lines: usize,
    /// Its outcome; those of its messages if it is a session.
    outcomes: Vec<Value>,
}

impl Undisturbed {
    fn of(scenario: &'static str) -> Self {
        let args = ["run", scenario, "--no-store", "--format", "jsonl"];
        let ran = Home::new().run(&[&args[..], shortened(scenario)].concat());
        let lines = ran.lines();
        let last = lines.last().expect("an outcome");
        let outcomes = match last["session"].as_array() {
            Some(outcomes) => outcomes.clone(),
            None => vec![last.clone()],
        };
        Self { scenario, lines: lines.len(), outcomes }
    }

    /// The outcome of the message that this one answers, and this one; without ids, times, and what
    /// only lines of a log have. How many calls a resilience run makes depends on time.
    fn comparable(&self, outcome: &Value) -> [Value; 2] {
        let number = outcome["message"].as_u64().map_or(0, |message| message as usize - 1);
        [&self.outcomes[number], outcome].map(|outcome| {
            let mut outcome = without_times(outcome);
            if let Some(fields) = outcome.as_object_mut() {
                fields.retain(|name, _| !["v", "run", "kind"].contains(&name.as_str()));
                if fields.get("pattern").is_some_and(|pattern| pattern == "resilience") {
                    fields.retain(|name, _| ["status", "stop_reason"].contains(&name.as_str()));
                }
            }
            outcome
        })
    }
}

/// What became of a run that was killed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It came to the outcome of the undisturbed one.
    Continued,
    /// It stopped, because a tool that must not be called twice was in flight.
    InDoubt,
    /// All its events were stored before it was killed.
    Ended,
    /// It was killed before an event was stored.
    Nothing,
}

/// Kills a run after some of its events, at once or when some of them are stored, continues it, and
/// compares it with the undisturbed one.
fn kill_and_resume<U: Borrow<Undisturbed>>(
    (scenario, events): (&str, usize),
    when_stored: bool,
    undisturbed: impl FnOnce() -> U,
) -> Fate {
    let home = Home::new();
    let args = ["run", scenario, "--format", "jsonl"];
    let args = [&args[..], shortened(scenario)].concat();
    let mut running = Running::start(&mut home.command(&args));
    let mut last = String::new();
    for line in running.lines().take(events) {
        last = line.expect("a line");
    }
    if when_stored {
        wait_until_stored(&home, &last);
    }
    running.kill();
    let row = home.run(&["runs", "--json"]).json()[0].clone();
    if row["status"] != "interrupted" {
        assert!(row.is_null() || row["status"] == "ended", "{row}");
        return if row.is_null() { Fate::Nothing } else { Fate::Ended };
    }
    let before = home.run(&["export", "last"]).out;
    let resumed = home.run(&["resume", "last", "--format", "json"]);
    let about = format!("{scenario} killed after {events} events: {}", resumed.err);
    if resumed.err.contains("has ended") {
        // Killed between its last event and its row, which is written now.
        let row = home.run(&["runs", "--json"]).json()[0].clone();
        assert_eq!(row["status"], "ended", "{about}");
        return Fate::Ended;
    }
    let reason = resumed.json()["stop_reason"].clone();
    let in_doubt = reason.as_str().is_some_and(|reason| reason.starts_with("in_doubt:"));
    if !in_doubt {
        let [expected, found] = undisturbed().borrow().comparable(&resumed.json());
        let fields = found.as_object().expect("an outcome");
        let differs = fields.iter().find(|(name, value)| &expected[name.as_str()] != *value);
        assert_eq!(differs, None, "{about}");
    }
    let after = home.run(&["export", "last"]).out;
    assert!(after.starts_with(&before), "{about}: what was stored stays");
    let again = home.run(&["resume", "last"]);
    assert!(again.err.contains("has ended"), "{about}");
    if in_doubt { Fate::InDoubt } else { Fate::Continued }
}

/// Waits until events of the run of this line are stored.
pub fn wait_until_stored(home: &Home, line: &str) {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let limit = Instant::now() + Duration::from_secs(60);
    while home.run(&["runs", "--json"]).json()[0]["id"] != line["run"] {
        assert!(Instant::now() < limit, "never stored: {line}");
    }
}

#[test]
fn resumed_run_matches_undisturbed_outcome() {
    let kills = [
        ("checkout-launch", 48),
        ("fraud-check", 12),
        ("morning-report-partial", 20),
        ("parallel-review", 14),
        ("parallel-review", 62),
        ("support-swarm", 18),
        ("nested-swarm", 25),
        ("payments-incident", 32),
        ("front-desk", 16),
    ];
    thread::scope(|scope| {
        for (scenario, events) in kills {
            scope.spawn(move || {
                let calm = scope.spawn(|| Undisturbed::of(scenario));
                let calm = || calm.join().expect("no panic");
                let fate = kill_and_resume((scenario, events), true, calm);
                assert_eq!(fate, Fate::Continued, "{scenario} killed after {events}");
            });
        }
    });
}

#[test]
fn resumed_run_survives_second_kill() {
    let home = Home::new();
    let mut command = home.command(&["run", "checkout-launch", "--format", "jsonl"]);
    let mut last = 0;
    for events in [18, 36, 48] {
        let mut running = Running::start(&mut command);
        for line in running.lines().take(events) {
            line.expect("a line");
        }
        running.kill();
        let kept = home.run(&["export", "last"]).lines();
        assert!(kept.len() > last, "{} events after {last}", kept.len());
        last = kept.len();
        let times: Vec<u64> = kept.iter().filter_map(|line| line["at_us"].as_u64()).collect();
        assert!(times.is_sorted(), "time goes on where it was: {times:?}");
        command = home.command(&["resume", "last", "--format", "jsonl"]);
    }
    let resumed = home.run(&["resume", "last", "--format", "json"]);
    let [expected, found] = Undisturbed::of("checkout-launch").comparable(&resumed.json());
    assert_eq!(found, expected, "{}", resumed.err);
}

/// `cargo test --test program -- --ignored kill_anywhere`: ten minutes.
#[test]
#[ignore = "ten minutes; the test above is its sample"]
fn run_resumes_after_kill_anywhere() {
    const AT_A_TIME: usize = 32;
    let undisturbed: Vec<(Undisturbed, usize)> = thread::scope(|scope| {
        let runs = SCENARIOS.map(|(name, step)| scope.spawn(move || (Undisturbed::of(name), step)));
        runs.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    let kills: Vec<(&Undisturbed, usize)> = undisturbed
        .iter()
        .flat_map(|(run, step)| (1..=run.lines).step_by(*step).map(move |at| (run, at)))
        .collect();
    let (next, fates) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<Fate, usize>::new()));
    let failed: usize = thread::scope(|scope| {
        let workers = std::array::from_fn::<_, AT_A_TIME, _>(|_| {
            scope.spawn(|| {
                let mut failed = 0;
                while let Some((run, at)) = kills.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Each failure has been printed; the other kills are tried all the same.
                    match std::panic::catch_unwind(|| {
                        kill_and_resume((run.scenario, *at), false, || *run)
                    }) {
                        Ok(fate) => *fates.lock().expect("a lock").entry(fate).or_default() += 1,
                        Err(_) => failed += 1,
                    }
                }
                failed
            })
        });
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    let fates = fates.into_inner().expect("a lock");
    println!("{} runs were killed: {fates:?}", kills.len());
    assert_eq!(failed, 0, "of {} kills", kills.len());
    assert!(fates[&Fate::Continued] >= 1_000, "{fates:?}");
}
