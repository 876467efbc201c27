//! The request of a run, and how it gets to the runners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::base::seeded_random::random_u64;
use crate::base::visible::visible;
use crate::cli::args::RunArgs;
use crate::cli::run::schedule;
use crate::cluster::Cluster;
use crate::cluster::request::RunRequest;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::event::RunId;
use crate::event::kind::SCHEMA_VERSION;
use crate::event::launch::LaunchRecord;
use crate::host::keep::now_ms;
use crate::host::machine;
use crate::scenario::Scenario;

/// The pool of runs that name none.
const POOL: &str = "default";

/// Stores the request, lists the run, and adds it to the queue, in this order: whatever is missing after a
/// failure can be made from the request.
pub(super) async fn hand_over(
    cluster: &Cluster,
    mut request: RunRequest,
) -> Result<RunRequest, String> {
    /// Ids that this process has made.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let seed = now_ms() ^ u64::from(std::process::id()).rotate_left(32);
    loop {
        let number = random_u64(seed, "run", MADE.fetch_add(1, Ordering::Relaxed), "id");
        request.run = RunId::new(format!("r-{:08x}", number & 0xffff_ffff));
        if cluster.request_run(&request).await.map_err(|error| error.to_string())? {
            break;
        }
    }
    let row = ClusterRow::waiting(&request);
    RunRows(cluster).put(&row).await?;
    cluster.enqueue(&request.pool, &request.run).await?;
    Ok(request)
}

/// The request of a run; it has no id yet.
pub(super) fn request_of(scenario: &Scenario, args: &RunArgs) -> RunRequest {
    let (flags, schedule) = schedule(args);
    RunRequest {
        run: RunId::new(""),
        schema: SCHEMA_VERSION,
        scenario: visible(scenario.name.as_str()).into_owned(),
        title: scenario.title.clone(),
        pattern: scenario.pattern.get().name().to_owned(),
        launch: LaunchRecord {
            source: Arc::clone(&scenario.source),
            instant: args.instant,
            model: args.model.as_deref().map(Arc::from),
            flags: schedule.flags,
            pauses: schedule.breaks,
            forked: None,
            answered_by: None,
        },
        live: args.live,
        flags,
        seed: args.seed,
        message: args.messages.first().cloned(),
        pool: args.remote.pool.clone().unwrap_or_else(|| POOL.to_owned()),
        by: machine::user_name(),
        wall_ms: now_ms(),
    }
}
