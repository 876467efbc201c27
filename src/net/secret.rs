//! A text that must not be shown.

use std::fmt;
use std::sync::Arc;

/// A key or password: `Debug` and `Display` print `***`, and it cannot be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Shortest secret worth redacting, in characters.
    const MIN_CHARS: usize = 8;

    /// Whether it is long enough to be a secret. Local servers accept any key, and `x` or `ollama`
    /// are common: redacting those would replace ordinary words and protect nothing.
    pub fn is_worth_hiding(&self) -> bool {
        self.0.chars().count() >= Self::MIN_CHARS
    }

    /// The text itself, for the header that carries it and for the redactor.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_formatted() {
        let key = Secret::new("sk-123");
        assert_eq!(format!("{key} {key:?}"), "*** ***");
        assert_eq!(key.expose(), "sk-123");
    }

    #[test]
    fn a_placeholder_is_no_secret() {
        assert!(Secret::new("sk-12345").is_worth_hiding());
        assert!(!Secret::new("ollama").is_worth_hiding());
    }
}
