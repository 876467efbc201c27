//! Runs over a NATS server: how many a second with one, two and four runner processes, what a recorded run
//! costs there against one that is recorded here, how soon a run is taken over, and the list of many runs.
//! Needs `nats-server` (see `ROUNDTABLE_NATS_SERVER`); without it nothing is measured.

#[path = "../tests/support/nats.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod nats;
mod paired;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use nats::NatsServer;
use paired::{held, median, own_folders, report, timed};
use roundtable::bench::{
    Cluster, ClusterAddress, ClusterRow, Database, RunRows, StoreFailure, StoreKeeper, StoredRuns,
};
use roundtable::{Engine, EngineSettings, Launch, LogLimits, Scenario, ScenarioOrigin, load};

const SCENARIO: &str = "checkout-unanimous";
const TEXT: &str = include_str!("../scenarios/checkout-unanimous.toml");

/// Runs of one measurement.
const RUNS: usize = 400;

/// Rows of the long list.
const ROWS: u32 = 100_000;

/// A process of the program; it ends with the value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtable"));
    command.args(args).envs(own_folders(home));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A runner that is ready.
fn runner(home: &Path, url: &str, name: &str) -> Process {
    let args = ["runner", "--on", url, "--name", name, "--slots", "8", "--takeover-after", "2s"];
    let mut command = program(home, &args);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.expect("a line").contains("plays runs of pool")));
    // What it says later goes nowhere, and its pipe stays open.
    std::thread::spawn(move || lines.count());
    Process(child)
}

/// The time of so many runs that runners play, from their hand-over to their last event.
fn remote_runs(home: &Path, url: &str) -> Duration {
    let times = RUNS.to_string();
    let args = ["run", SCENARIO, "--instant", "--times", &times, "--on", url];
    timed(|| assert!(program(home, &args).status().expect("it runs").success()))
}

fn scenario() -> Arc<Scenario> {
    let origin = ScenarioOrigin::Shipped("scenarios/checkout-unanimous.toml");
    Arc::new(load(TEXT, origin, &[]).expect("a good scenario"))
}

/// The time of so many runs that are played and recorded in this process, as many at a time as a runner plays.
fn local_runs(
    runtime: &tokio::runtime::Runtime,
    home: &Path,
    scenario: &Arc<Scenario>,
) -> Duration {
    let folder = tempfile::tempdir_in(home).expect("a folder");
    let database = Database::open(&folder.path().join("runs.db")).expect("opened");
    timed(|| {
        runtime.block_on(async {
            let stored = StoredRuns::new(database, StoreFailure::Pause);
            let log = LogLimits { window: 0, ahead: 64 << 20 };
            let settings = EngineSettings { log, finished_bytes: 0, stored_bytes: 0 };
            let keeper = Some(Arc::new(StoreKeeper(Arc::clone(&stored))) as _);
            let engine = Engine::with_keeper(settings, keeper);
            futures::stream::iter(0..RUNS)
                .for_each_concurrent(8, |_| async {
                    let run = engine.start(Launch::scripted(Arc::clone(scenario), true));
                    run.wait_until_finished().await;
                })
                .await;
            stored.finish().await;
        });
    })
}

fn events_of_a_run(home: &Path) -> usize {
    let args = ["run", SCENARIO, "--instant", "--no-store", "--format", "jsonl"];
    let out = program(home, &args).stdout(Stdio::piped()).output().expect("it runs").stdout;
    out.iter().filter(|byte| **byte == b'\n').count() - 1
}

/// The time from the end of a runner to the claim of the next one, in seconds.
fn takeover(home: &Path, url: &str) -> f64 {
    let first = runner(home, url, "first");
    let args = ["run", SCENARIO, "--format", "jsonl", "--on", url];
    let mut command = program(home, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut events = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let _follower = Process(child);
    assert!(events.by_ref().take(10).all(|line| line.is_ok()));
    std::thread::spawn(move || events.count());
    let _second = runner(home, url, "second");
    drop(first);
    let began = Instant::now();
    assert!(said.any(|line| line.expect("a line").contains("second continues")));
    began.elapsed().as_secs_f64()
}

/// The time to read a list of many runs.
async fn long_list(url: &str) -> (Duration, Duration) {
    let address = ClusterAddress { servers: vec![url.to_owned()], ..ClusterAddress::default() };
    let cluster = Cluster::connect(&address, "bench").await.expect("connected");
    let row = |nth: u32| ClusterRow {
        run: format!("r-{nth:08x}"),
        started_ms: 1_770_000_000_000 + u64::from(nth) * 1_000,
        title: "Checkout v2: go or no-go".to_owned(),
        scenario: SCENARIO.to_owned(),
        pattern: "collaboration".to_owned(),
        status: "ended".to_owned(),
        reason: Some("success".to_owned()),
        pool: "default".to_owned(),
        ..ClusterRow::default()
    };
    futures::stream::iter(0..ROWS)
        .for_each_concurrent(256, |nth| {
            let cluster = &cluster;
            async move { RunRows(cluster).put(&row(nth)).await.expect("stored") }
        })
        .await;
    let began = Instant::now();
    let listed = RunRows(&cluster).all().await.expect("listed");
    let all = began.elapsed();
    assert!(listed.len() >= ROWS as usize);
    let began = Instant::now();
    let mut follower = RunRows(&cluster).follow().await.expect("followed");
    follower.next().await.expect("a row");
    (all, began.elapsed())
}

fn main() -> ExitCode {
    let Some(server) = NatsServer::start() else { return ExitCode::SUCCESS };
    let (home, url) = (tempfile::tempdir().expect("a folder"), server.url());
    let home = home.path();
    assert!(program(home, &["cluster", "init", "--on", &url]).status().expect("it runs").success());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let (scenario, events) = (scenario(), events_of_a_run(home));

    let one = runner(home, &url, "r1");
    let ratios: Vec<f64> = (0..5)
        .map(|_| {
            let here = local_runs(&runtime, home, &scenario);
            remote_runs(home, &url).as_secs_f64() / here.as_secs_f64()
        })
        .collect();
    let overhead = median(ratios);
    report("runs that a runner plays and stores, against here", &format!("{overhead:.1}x"), "-");

    let mut more = vec![one];
    for count in [1_usize, 2, 4] {
        while more.len() < count {
            let name = format!("r{}", more.len() + 1);
            more.push(runner(home, &url, &name));
        }
        let seconds: Vec<f64> = (0..3).map(|_| remote_runs(home, &url).as_secs_f64()).collect();
        let rate = RUNS as f64 / median(seconds);
        let figures = format!("{rate:.0} runs/s, {:.0} events/s", rate * events as f64);
        report(&format!("with {count} runner processes on one machine"), &figures, "-");
    }
    drop(more);

    let seconds = median((0..5).map(|_| takeover(home, &url)).collect());
    report("takeover of a killed runner's run, of 2 s allowed", &format!("{seconds:.2} s"), "-");

    let (all, first) = runtime.block_on(long_list(&url));
    let figures =
        format!("{:.2} s, first row {:.0} ms", all.as_secs_f64(), first.as_secs_f64() * 1e3);
    report("list of 100,000 runs", &figures, "1 s");
    held(&[])
}
