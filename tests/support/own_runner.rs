//! A NATS server with what runs need, and a runner in this process.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::nats::NatsServer;
use crate::cluster::Cluster;
use crate::cluster::address::ClusterAddress;
use crate::cluster::layout::ClusterLayout;
use crate::cluster::request::{POOL, RunRequest};
use crate::cluster::runner::{Runner, RunnerNews, RunnerSettings};
use crate::host::models::{LiveModels, parse_proxy};
use crate::log::event::BoundaryId;
use crate::log::event::head::LaunchRecord;
use crate::scenario::config::ClusterDefaults;
use crate::scenario::{load, shipped};

/// How long anything may take on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A runner with a runtime of its own. When it is dropped, all of it ends at once, as with kill -9.
pub struct OwnRunner {
    runtime: Option<Runtime>,
    news: mpsc::UnboundedReceiver<RunnerNews>,
    drain: watch::Sender<bool>,
}

impl OwnRunner {
    /// Starts one.
    pub fn start(url: &str, name: &str) -> Self {
        Self::start_with(url, settings(name))
    }

    /// Starts one with these settings.
    pub fn start_with(url: &str, settings: RunnerSettings) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let (told, news) = mpsc::unbounded_channel();
        let (drain, draining) = watch::channel(false);
        let address = address(url);
        runtime.spawn(async move {
            let cluster = Cluster::connect(&address, "test").await.expect("connected");
            let tell = move |news| drop(told.send(news));
            Runner::new(cluster, settings, models(), draining, tell).serve().await.expect("served");
        });
        Self { runtime: Some(runtime), news, drain }
    }

    /// Stops it as SIGTERM does: it returns its runs.
    pub fn stop(&self) {
        let _ = self.drain.send(true);
    }

    /// Waits for this news.
    pub async fn until(&mut self, wanted: impl Fn(&RunnerNews) -> bool) -> RunnerNews {
        loop {
            let news = timeout(PATIENCE, self.news.recv()).await.expect("in time");
            let news = news.expect("the runner lives");
            if wanted(&news) {
                return news;
            }
        }
    }
}

impl Drop for OwnRunner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The address of a server.
pub fn address(url: &str) -> ClusterAddress {
    ClusterAddress::find(Some(url), &ClusterDefaults::default(), |_| None).expect("an address")
}

/// Live models without a proxy.
pub fn models() -> LiveModels {
    LiveModels::new(parse_proxy(None).expect("no proxy"))
}

/// The settings of a runner that allows nothing.
pub fn settings(name: &str) -> RunnerSettings {
    RunnerSettings {
        name: name.to_owned(),
        pool: POOL.to_owned(),
        slots: 4,
        allow: BTreeSet::new(),
        ack_wait: Duration::from_secs(1),
        drain: Duration::from_secs(1),
        archive_after: Duration::from_secs(3_600),
        broken_for: RunnerSettings::BROKEN_FOR,
    }
}

/// A server with the setup for runs; `None`, with a message, if there is no server.
pub async fn cluster() -> Option<(NatsServer, Cluster)> {
    let server = NatsServer::start()?;
    let cluster = Cluster::connect(&address(&server.url()), "test").await.expect("connected");
    ClusterLayout(&cluster).make(1).await.expect("made");
    Some((server, cluster))
}

/// A run of a shipped scenario, without waits, that pauses at these boundaries.
pub fn request(scenario: &str, pauses: &[&str]) -> RunRequest {
    let found = shipped().iter().find(|it| it.name == scenario).expect("shipped");
    let request = RunRequest::of(&load(found.text, found.origin(), &[]).expect("a good scenario"));
    let pauses = pauses.iter().map(|at| BoundaryId::new(*at)).collect();
    RunRequest {
        launch: LaunchRecord { instant: true, pauses, ..request.launch },
        by: "ann@here".to_owned(),
        wall_ms: 1,
        ..request
    }
}
