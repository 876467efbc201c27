//! The ids of sources and notes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Number of a source in the search results, from 1: the same in every run with the same results.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SourceNo(pub u32);

impl SourceNo {
    /// The number of the source at this index, from 0.
    pub fn from_index(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// The index, from 0.
    pub fn index(self) -> Option<usize> {
        usize::try_from(self.0).ok()?.checked_sub(1)
    }
}

impl fmt::Display for SourceNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Id of a note, such as `n1`, as citations name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
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
