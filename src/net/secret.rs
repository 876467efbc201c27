//! A text that must not be shown.

use std::fmt;
use std::sync::Arc;

/// A key or password: `Debug` and `Display` print `***`, and it cannot be serialised.
///
/// ```
/// use roundtable::net::Secret;
/// let key = Secret::new("sk-123");
/// assert_eq!(format!("{key} {key:?}"), "*** ***");
/// assert_eq!(key.expose(), "sk-123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself: for the header that carries it and for the redaction that looks for it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
