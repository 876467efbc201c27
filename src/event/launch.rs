//! What a run was started with: enough to show what was run, and to continue or repeat the run from
//! its log alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BoundaryId;
use crate::base::name::FlagName;
use crate::scenario::spec::source_text::SourceText;

/// What a run was started with, beyond what its scenario says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}
