//! Runners in this process, over a real NATS server: commands while no runner owns a run, and runs of
//! newer versions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::{Runner, RunnerNews, RunnerSettings};
use crate::cluster::Cluster;
use crate::cluster::address::ClusterAddress;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::cluster::layout::ClusterLayout;
use crate::cluster::request::{POOL, RunRequest};
use crate::event::kind::{Initiator, SCHEMA_VERSION};
use crate::event::launch::LaunchRecord;
use crate::event::world::Projection;
use crate::event::{BoundaryId, Command, Event, EventKind, RunId, Seq, World};
use crate::host::models::{LiveModels, parse_proxy};
use crate::scenario::config::ClusterDefaults;
use crate::scenario::{load, shipped};
use crate::support::nats::NatsServer;

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A runner with threads of its own. Dropped, it dies at once, as a killed process does.
struct DyingRunner {
    runtime: Option<Runtime>,
    news: mpsc::UnboundedReceiver<RunnerNews>,
    /// Its sender keeps the runner from stopping.
    _draining: watch::Sender<bool>,
}

impl DyingRunner {
    fn start(url: &str, name: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let (told, news) = mpsc::unbounded_channel();
        let (drain, draining) = watch::channel(false);
        let (address, settings) = (address(url), settings(name));
        runtime.spawn(async move {
            let cluster = Cluster::connect(&address, "test").await.expect("connected");
            let models = LiveModels::new(parse_proxy(None).expect("no proxy"));
            let tell = move |news| drop(told.send(news));
            Runner::new(cluster, settings, models, draining, tell).serve().await.expect("served");
        });
        Self { runtime: Some(runtime), news, _draining: drain }
    }

    async fn until(&mut self, wanted: impl Fn(&RunnerNews) -> bool) -> RunnerNews {
        loop {
            let news = timeout(PATIENCE, self.news.recv()).await.expect("in time");
            let news = news.expect("the runner lives");
            if wanted(&news) {
                return news;
            }
        }
    }
}

impl Drop for DyingRunner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn address(url: &str) -> ClusterAddress {
    ClusterAddress::find(Some(url), &ClusterDefaults::default(), |_| None).expect("an address")
}

fn settings(name: &str) -> RunnerSettings {
    RunnerSettings {
        name: name.to_owned(),
        pool: POOL.to_owned(),
        slots: 4,
        allow: BTreeSet::new(),
        ack_wait: Duration::from_secs(1),
        drain: Duration::from_secs(1),
        archive_after: Duration::from_secs(3_600),
    }
}

async fn cluster() -> Option<(NatsServer, Cluster)> {
    let server = NatsServer::start()?;
    let cluster = Cluster::connect(&address(&server.url()), "test").await.expect("connected");
    ClusterLayout(&cluster).make(1).await.expect("made");
    Some((server, cluster))
}

fn request(scenario: &str, pauses: &[&str]) -> RunRequest {
    let found = shipped().iter().find(|it| it.name == scenario).expect("shipped");
    let scenario = load(found.text, found.origin(), &[]).expect("a good scenario");
    RunRequest {
        run: RunId::new(""),
        schema: SCHEMA_VERSION,
        scenario: scenario.name.to_string(),
        title: scenario.title.clone(),
        pattern: scenario.pattern.get().name().to_owned(),
        launch: LaunchRecord {
            source: Arc::clone(&scenario.source),
            instant: true,
            model: None,
            flags: Vec::new(),
            pauses: pauses.iter().map(|at| BoundaryId::new(*at)).collect(),
            answered_by: None,
            forked: None,
        },
        live: false,
        flags: Vec::new(),
        seed: None,
        message: None,
        after: None,
        pool: POOL.to_owned(),
        by: "ann@here".to_owned(),
        wall_ms: 1,
    }
}

/// The events of a run up to the first of this kind, or to its end.
async fn events_until(cluster: &Cluster, run: &RunId, kind: &str) -> Vec<Arc<Event>> {
    let (mut follower, mut all) = (cluster.follow(run), Vec::new());
    loop {
        let news = timeout(PATIENCE, follower.news()).await.expect("in time");
        let Some(news) = news else { return all };
        if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) = news.expect("read") {
            all.extend(group.events(Seq(0)).expect("events"));
        }
        if all.iter().any(|event| event.kind.name() == kind) {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_sent_while_no_runner_owns_a_run_are_taken_once_by_the_next_one() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut first = DyingRunner::start(&server.url(), "a");
    let run =
        cluster.hand_over(request("checkout-launch", &["round:2"])).await.expect("stored").run;
    first.until(|news| matches!(news, RunnerNews::Plays(..))).await;
    events_until(&cluster, &run, "paused").await;
    drop(first);

    // The flag is switched off and on again: the last one counts, and both are in the log.
    let flag = |on| Command::SetFlag { flag: "legal_analyst".into(), on, by: Initiator::You };
    let resume = Command::Resume { by: Initiator::You };
    for command in [flag(true), flag(false), flag(true), resume] {
        cluster.send_command(&run, &command, "ann@there").await.expect("stored");
    }
    let mut second = DyingRunner::start(&server.url(), "b");
    let events = events_until(&cluster, &run, "run.closed").await;
    second.until(|news| matches!(news, RunnerNews::Ended(..))).await;

    let taken = events.iter().filter_map(|event| match &event.kind {
        EventKind::CommandTaken { by, .. } => Some(by.as_str()),
        _ => None,
    });
    assert_eq!(taken.collect::<Vec<_>>(), ["ann@there"; 4]);
    let count = |kind: &str| events.iter().filter(|event| event.kind.name() == kind).count();
    assert_eq!((count("resumed"), count("run.closed")), (1, 1));
    let world = World::from_events(events.iter().map(|event| &**event));
    let on = world.settings.flags.iter().find(|flag| flag.name == "legal_analyst".into());
    assert!(on.expect("the scenario has it").on);
    let decision = world.projection().and_then(Projection::decision);
    assert_eq!(
        decision.map(|it| it.word()),
        Some("go_with_caution"),
        "as with the flag in a local run"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_newer_version_is_left_to_newer_runners() {
    let Some((server, cluster)) = cluster().await else { return };
    let newer = RunRequest { schema: SCHEMA_VERSION + 1, ..request("checkout-launch", &[]) };
    let handed = cluster.hand_over(newer).await.expect("stored").run;
    let mut runner = DyingRunner::start(&server.url(), "a");
    let refused = runner.until(|news| matches!(news, RunnerNews::Refused(..))).await;
    let RunnerNews::Refused(run, why) = refused else { unreachable!() };
    assert_eq!(run, handed);
    assert!(why.contains("newer version"), "{why}");
    // Nothing was added to its log, and it still waits for a runner.
    let entries = cluster.entries(&handed).await.expect("read");
    assert!(matches!(&entries[..], [LogEntry { part: LogPart::Requested(_), .. }]));
    assert!(cluster.queued_runs().await.expect("read").contains(&handed));

    // The older runner itself is well.
    let known = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    let ended = runner.until(|news| matches!(news, RunnerNews::Ended(..))).await;
    assert!(matches!(ended, RunnerNews::Ended(run, _) if run == known));
}
