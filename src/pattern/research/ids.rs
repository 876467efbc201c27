//! The ids of notes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Id of a note, such as `n1`, as citations name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct NoteId(Arc<str>);

impl NoteId {
    /// An id with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id of the nth note, from 1.
    pub fn nth(number: usize) -> Self {
        Self(format!("n{number}").into())
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
