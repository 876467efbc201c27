//! A recorded run that can be forked, as the launch form gets it.

use crate::event::RunId;
use crate::event::launch::ForkPlace;
use crate::scenario::Override;
use crate::scenario::catalogue::{RequestedModel, ScenarioEntry};

/// A recorded run that can be forked.
#[derive(Debug)]
pub struct ForkOffer {
    /// The run.
    pub run: RunId,
    /// Its scenario, as it was then.
    pub entry: ScenarioEntry,
    /// The overrides that the run was started with.
    pub set: Vec<Override>,
    /// What answered its model calls.
    pub model: RequestedModel,
    /// The boundaries where it can be forked, in their order; never empty.
    pub places: Vec<ForkPlace>,
}

/// What the form knows of the run that is forked.
#[derive(Debug)]
pub struct FormFork {
    /// The run.
    pub run: RunId,
    pub(super) set: Vec<Override>,
    pub(super) model: RequestedModel,
    pub(super) places: Vec<ForkPlace>,
}
