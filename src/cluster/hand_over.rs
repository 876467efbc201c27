//! How a run gets to the runners.

use std::sync::atomic::{AtomicU32, Ordering};

use super::archive::RunArchive;
use super::connection::Cluster;
use super::request::RunRequest;
use super::rows::{ClusterRow, RunRows};
use crate::base::seeded_random::random_u64;
use crate::event::RunId;
use crate::store::ReadError;

impl Cluster {
    /// Stores the request under a new id, lists the run, and adds it to the queue, in this order: what
    /// is missing after a failure can be made from the request.
    ///
    /// # Errors
    /// The cluster does not store it, in one sentence.
    pub async fn hand_over(&self, mut request: RunRequest) -> Result<RunRequest, String> {
        /// Ids that this process has made.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let seed = request.wall_ms ^ u64::from(std::process::id()).rotate_left(32);
        loop {
            let number = random_u64(seed, "run", MADE.fetch_add(1, Ordering::Relaxed), "id");
            request.run = RunId::new(format!("r-{:08x}", number & 0xffff_ffff));
            if begin_run(self, &request).await.map_err(|error| error.to_string())? {
                break;
            }
        }
        let listed = RunRows(self).put(&ClusterRow::waiting(&request)).await;
        let queued = match listed {
            Ok(()) => self.enqueue(&request.pool, &request.run, None).await,
            Err(why) => Err(why),
        };
        match queued {
            Ok(()) => Ok(request),
            Err(why) => Err(format!(
                "{why}; {} is stored and may be played: see `roundtable runs --on`",
                request.run
            )),
        }
    }
}

/// Begins the log of a run with its request; `false`: there is or was a run of this id.
pub(super) async fn begin_run(cluster: &Cluster, request: &RunRequest) -> Result<bool, ReadError> {
    // The log of an archived run is not in the stream any more.
    if RunArchive(cluster).has_archived(&request.run).await? {
        return Ok(false);
    }
    cluster.request_run(request).await
}
