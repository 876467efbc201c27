//! The text that a scenario was read from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The text that a scenario was read from, with the changes made to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// The text of the file.
    pub text: Arc<str>,
    /// The overrides, as on the command line (`budget.max_rounds=1`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Path of the user's file; `None`: the scenario was shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
