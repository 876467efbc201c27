//! The text of a document, or why there is none.

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedDocument {
    /// Title in one line; empty if there is none.
    pub title: String,
    /// Publication date that the document states, as `YYYY-MM-DD`; empty if it states none.
    pub published_at: String,
    /// Visible text; paragraphs are separated by a blank line.
    pub text: String,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It contains no text.
    #[error("it contains no text")]
    Empty,
    /// Its bytes cannot be decoded in any plausible charset.
    #[error("its bytes are not valid text in its charset")]
    Charset,
    /// The parser's error.
    #[error("{0}")]
    Broken(String),
}
