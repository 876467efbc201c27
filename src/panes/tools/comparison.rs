//! The other half of a comparison: the figures of the latest run of the same scenario under the
//! other policy (guarded or naive). Amplification is the point of it (cascading failures source
//! document).

use std::time::Duration;

use crate::app::run::data::RunData;
use crate::base::name::ToolName;
use crate::event::RunId;

/// The figures of a run that another run is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunComparison {
    /// The run with these figures.
    pub run: RunId,
    /// Whether its calls go through the tools' policies.
    pub guarded: bool,
    /// The tool whose requests per call are furthest from 1, and that factor.
    pub amplification: (ToolName, f64),
    /// 95th percentile of the latency of the other tools of the plan, in the order of its steps.
    pub p95: Vec<(ToolName, Duration)>,
}

/// The figures of a run; `None` where it has no calls of tools to compare.
pub(crate) fn comparison_of(run: &RunData) -> Option<RunComparison> {
    let world = run.world();
    let load = world.projection()?.tool_load()?;
    let rows = || load.steps.iter().filter_map(|step| world.tools.get(step.as_str()));
    let factors = rows().filter_map(|row| Some((row, row.tally.amplification()?)));
    // A factor of 0.5 is as far from one request per call as a factor of 2.
    let far = |factor: f64| factor.max(f64::MIN_POSITIVE).ln().abs();
    let (row, factor) = factors.max_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b)))?;
    let p95 = rows().filter_map(|row| Some((row.name().clone(), row.latencies.percentile(95)?)));
    Some(RunComparison {
        run: run.id().clone(),
        guarded: load.naive_attempts.is_none(),
        amplification: (row.name().clone(), factor),
        p95: p95.filter(|(name, _)| name != row.name()).collect(),
    })
}
