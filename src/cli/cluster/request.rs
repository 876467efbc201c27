//! The request of a run, from the command line.

use std::sync::Arc;

use crate::base::visible::visible;
use crate::cli::args::RunArgs;
use crate::cli::run::schedule;
use crate::cluster::request::{POOL, RunRequest};
use crate::event::RunId;
use crate::event::kind::SCHEMA_VERSION;
use crate::event::launch::LaunchRecord;
use crate::host::keep::now_ms;
use crate::host::machine;
use crate::scenario::Scenario;

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
        after: None,
        pool: args.remote.pool.clone().unwrap_or_else(|| POOL.to_owned()),
        by: machine::user_name(),
        wall_ms: now_ms(),
    }
}
