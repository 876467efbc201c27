//! What a run was started with: enough to show what was run, and to continue or repeat the run from
//! its log alone.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::model_price::ModelPriceHead;
use super::{BoundaryId, RunId, Seq};
use crate::base::name::FlagName;
use crate::scenario::spec::source_text::SourceText;

/// What a run was started with, beyond what its scenario says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct LaunchRecord {
    /// The scenario as it was then, whatever its file says today.
    pub source: Arc<SourceText>,
    /// Whether the delays of scripted replies were skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instant: bool,
    /// The model that was requested (`--model`), in place of those that the scenario names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The flags that were to be switched at boundaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(BoundaryId, FlagName, bool)>,
    /// The boundaries that were to be paused at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<BoundaryId>,
    /// The recorded run whose replies answered the model calls (`--replay`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<RunId>,
    /// Where the run was forked from another one; `None`: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkOrigin>,
}

/// A boundary that a recorded run came to, where it can be forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkPlace {
    /// The boundary.
    pub id: BoundaryId,
    /// The first event of the run after it.
    pub next: Seq,
    /// The run's own time then, without its pauses.
    pub at: Duration,
    /// The positions of the flags then.
    pub flags: Vec<(FlagName, bool)>,
}

/// Where a run was forked from another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ForkOrigin {
    /// The other run.
    pub parent: RunId,
    /// The boundary that the run continues from.
    #[serde(rename = "boundary")]
    pub at: BoundaryId,
    /// When it was forked, as Unix time in milliseconds. The run's own time continues that of its
    /// parent.
    pub wall_ms: u64,
    /// The flags that were switched there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(FlagName, bool)>,
    /// Prices of the models that the first events of the log are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<ModelPriceHead>,
}
