//! The forms of the ids of boundaries, as the operator writes them.

/// A form of ids. Each begins with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundaryForm {
    /// The word alone: `plan`.
    Word(&'static str),
    /// The word and a number: `round:2`.
    Numbered(&'static str),
    /// The word, a number and a name: `message:2:risk_analyst`.
    Named(&'static str),
    /// The word and two numbers: `turn:3:7`.
    Pair(&'static str),
}

impl BoundaryForm {
    /// Whether the text is an id of this form.
    pub fn fits(self, text: &str) -> bool {
        let mut parts = text.splitn(3, ':');
        match (self, parts.next(), parts.next(), parts.next()) {
            (Self::Word(word), Some(own), None, None) => own == word,
            (Self::Numbered(word), Some(own), Some(nth), None) => own == word && is_number(nth),
            (Self::Named(word), Some(own), Some(nth), Some(name)) => {
                own == word && is_number(nth) && !name.is_empty()
            }
            (Self::Pair(word), Some(own), Some(first), Some(second)) => {
                own == word && is_number(first) && is_number(second)
            }
            _ => false,
        }
    }
}

/// Whether this is a number from 1, as ids spell it: `02` would not equal the run's `2`.
fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|it| it > 0 && it.to_string() == text)
}
