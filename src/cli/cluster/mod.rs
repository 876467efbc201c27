//! The commands about clusters: make and show one, play its runs, hand a run over.

mod batch;
mod batch_table;
mod connect;
mod follow;
mod hand_over;
mod list;
mod request;
mod runner;
mod serve;
mod status;
mod transfer;

use crate::cli::args::{ClusterAction, ClusterArgs};
use crate::cli::exit::Exit;
use crate::cli::stream_style::StreamStyle;

pub use connect::{attached, configured, reach_run};
pub use hand_over::run_remote;
pub use list::list_runs;
pub use runner::runner;

/// Runs `roundtable cluster`.
pub async fn cluster(args: &ClusterArgs, paint: &StreamStyle) -> Exit {
    match &args.action {
        ClusterAction::Init { on, replicas, dry_run } => {
            status::init(on, *replicas, *dry_run, paint).await
        }
        ClusterAction::Status { on, json } => status::status(on, *json, paint).await,
        ClusterAction::Pull { on, runs } => transfer::pull(on, runs).await,
        ClusterAction::Push { on, runs } => transfer::push(on, runs).await,
        ClusterAction::Serve { port, data } => serve::serve(*port, data.as_deref()).await,
    }
}
