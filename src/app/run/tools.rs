//! The tools of a run, which can be opened over the view of any pattern: the selected tool, and the
//! run that this one is compared with.

use super::comparison::RunComparison;
use crate::base::name::ToolName;

/// Selections in the panes of the tools.
#[derive(Debug, Default)]
pub(super) struct ToolsView {
    /// Whether the tools cover the view of the run's own pattern.
    pub(super) is_open: bool,
    /// The selected tool.
    pub(super) tool: Option<ToolName>,
    /// The latest run of the same scenario under the other policy.
    pub(super) comparison: Option<RunComparison>,
}
