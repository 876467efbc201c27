//! One word that may follow on a command line.

/// A word, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub word: String,
    pub about: String,
}

impl Candidate {
    pub fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}
