//! The request of a run, from the command line.

use std::sync::Arc;

use crate::cli::args::RunArgs;
use crate::cli::run::schedule;
use crate::cluster::request::RunRequest;
use crate::event::launch::LaunchRecord;
use crate::host::keep::now_ms;
use crate::host::machine;
use crate::scenario::Scenario;

/// The request of a run; it has no id yet.
pub(super) fn request_of(scenario: &Scenario, args: &RunArgs) -> RunRequest {
    let (flags, schedule) = schedule(args);
    let request = RunRequest::of(scenario);
    RunRequest {
        launch: LaunchRecord {
            instant: args.instant,
            model: args.model.as_deref().map(Arc::from),
            flags: schedule.flags,
            pauses: schedule.breaks,
            ..request.launch
        },
        live: args.live,
        flags,
        seed: args.seed,
        message: args.messages.first().cloned(),
        pool: args.remote.pool.clone().unwrap_or(request.pool),
        by: machine::user_name(),
        wall_ms: now_ms(),
        ..request
    }
}
