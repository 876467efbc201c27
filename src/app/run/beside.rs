//! The other half of a comparison: what a guarded run came to, seen beside a naive one of the same
//! scenario, and the other way round (source `003`: amplification is what it is about).

use std::time::Duration;

use super::RunPage;
use crate::event::RunId;
use crate::scenario::name::ToolName;

/// What the other run has come to so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Which.
    pub run: RunId,
    /// Whether its calls go through the tools' policies.
    pub guarded: bool,
    /// Requests for each call of the tool that bears most, and which that is.
    pub most: (ToolName, f64),
    /// The 95th percentile of the calls of the tools that are asked, in the order of the steps.
    pub p95: Vec<(ToolName, Duration)>,
}

impl RunPage {
    /// What a run of this page is to others of its scenario; `None` where it is nothing to compare.
    pub(in crate::app) fn as_beside(&self) -> Option<Beside> {
        let world = self.world();
        let (_, plan) = world.resilience()?;
        let rows = || plan.steps.iter().filter_map(|step| world.tools.get(step.as_str()));
        let factors = rows().filter_map(|row| Some((row, row.tally.amplification()?)));
        // What differs most from one request for each call, up or down.
        let far = |factor: f64| factor.max(f64::MIN_POSITIVE).ln().abs();
        let (row, factor) = factors.max_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b)))?;
        let p95 =
            rows().filter_map(|row| Some((row.name().clone(), row.latencies.percentile(95)?)));
        Some(Beside {
            run: self.id().clone(),
            guarded: plan.guarded,
            most: (row.name().clone(), factor),
            p95: p95.filter(|(name, _)| name != row.name()).collect(),
        })
    }

    /// The latest run that this one is to be compared with.
    pub fn beside(&self) -> Option<&Beside> {
        self.beside.as_ref()
    }

    pub(in crate::app) fn set_beside(&mut self, beside: Option<Beside>) {
        self.beside = beside;
    }
}
