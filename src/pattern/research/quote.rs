//! Whether a quote stands in its page: verbatim, but for how white space is laid out. Pure.

/// A text whose runs of white space are one blank each. Made once for a page, so that looking for
/// many quotes stays linear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded(String);

impl Folded {
    /// The text, folded.
    pub fn of(text: &str) -> Self {
        let mut folded = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        Self(folded)
    }

    /// As it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a quote stands in it; an empty one stands in nothing.
    pub fn holds(&self, quote: &str) -> bool {
        let quote = Self::of(quote);
        !quote.0.is_empty() && self.0.contains(&quote.0)
    }
}
