//! What it costs to send spans to a receiver that takes connections and never answers: runs that are kept, one
//! after another, with such a receiver and without one. They have no waits, which would hide a cost.

mod paired;

use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use paired::{held, pairs, report};
use roundtable::bench::{Database, StoreFailure, StoreKeeper, StoredRuns, send_spans, traced};
use roundtable::{Engine, EngineSettings, Launch, LogLimits, Scenario, ScenarioOrigin, load};

const TEXT: &str = include_str!("../scenarios/checkout-unanimous.toml");

/// Runs of a measurement, and measurements of each kind.
const RUNS: usize = 60;
const ROUNDS: usize = 41;

const BOUND: f64 = 1.25;

/// Connections that the receiver has taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Takes connections and never answers; returns its address.
fn silent_receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        // Each stays open.
        let mut taken = Vec::new();
        for connection in listener.incoming() {
            taken.push(connection);
            TAKEN.store(taken.len(), Ordering::Relaxed);
        }
    });
    address
}

/// The time until the last of the runs has ended.
fn played(
    runtime: &tokio::runtime::Runtime,
    home: &Path,
    scenario: &Arc<Scenario>,
    is_traced: bool,
) -> Duration {
    let folder = tempfile::tempdir_in(home).expect("a folder");
    let database = Database::open(&folder.path().join("runs.db")).expect("opened");
    runtime.block_on(async {
        let stored = StoredRuns::new(database, StoreFailure::Pause);
        let log = LogLimits { window: 0, ahead: 64 << 20 };
        let settings = EngineSettings { log, finished_bytes: 0, stored_bytes: 0 };
        let keeper = Some(Arc::new(StoreKeeper(Arc::clone(&stored))) as _);
        let keeper = if is_traced { traced(keeper) } else { keeper };
        let engine = Engine::with_keeper(settings, keeper);
        let began = Instant::now();
        for _ in 0..RUNS {
            let run = engine.start(Launch::scripted(Arc::clone(scenario), true));
            run.wait_until_finished().await;
        }
        let took = began.elapsed();
        stored.finish().await;
        took
    })
}

fn main() -> ExitCode {
    let origin = ScenarioOrigin::Shipped("scenarios/checkout-unanimous.toml");
    let scenario = Arc::new(load(TEXT, origin, &[]).expect("a good scenario"));
    let home = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    send_spans(Some(&silent_receiver()), true).expect("an address");
    let all = pairs(
        ROUNDS,
        || played(&runtime, home.path(), &scenario, true),
        || played(&runtime, home.path(), &scenario, false),
    );
    let (with, without) = all.medians();
    let ms = |seconds: f64| seconds * 1e3 / RUNS as f64;
    let told = format!("{:.2}x ({:.2} / {:.2} ms a run)", all.ratio(), ms(with), ms(without));
    report("runs with a receiver that never answers", &told, &format!("{BOUND:.2}x"));
    assert!(TAKEN.load(Ordering::Relaxed) > 0, "spans were sent");
    runtime.shutdown_background();
    held(&[("a receiver that never answers", all.ratio(), BOUND)])
}
