//! Checks that a quote is in its page: verbatim, except for white space. Pure.

/// A text in which each run of white space is one space. Made once for a page, so that the search
/// for many quotes stays linear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldedText(String);

impl FoldedText {
    /// Folds the white space of a text.
    pub fn fold_white_space(text: &str) -> Self {
        let mut folded = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        Self(folded)
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text contains a quote; an empty quote is never contained.
    pub fn contains_quote(&self, quote: &str) -> bool {
        let quote = Self::fold_white_space(quote);
        !quote.0.is_empty() && self.0.contains(&quote.0)
    }
}
