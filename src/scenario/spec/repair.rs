//! Repairs of a model's reply before it is checked.

use std::collections::BTreeSet;
use std::fmt;

/// One kind of repair. Each repair is logged as an event, and the raw reply is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Removes a Markdown code fence around the object.
    Fences,
    /// Removes text before and after the single object of a reply.
    Preface,
    /// Removes `<think>…</think>` before the reply.
    Think,
    /// Accepts other spellings of names and stances: `"GO"`, `"Demand Analyst"` for
    /// `demand_analyst`.
    Case,
    /// Accepts numbers in quotes (`"0.8"`), and reads 11 to 100 as per cent where a number from 0
    /// to 1 is required.
    Numbers,
}

impl Repair {
    /// All kinds of repair.
    pub const ALL: [Self; 5] =
        [Self::Fences, Self::Preface, Self::Think, Self::Case, Self::Numbers];

    /// Its word in scenarios and events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Preface => "preface",
            Self::Think => "think",
            Self::Case => "case",
            Self::Numbers => "numbers",
        }
    }

    /// The repair in words, from its word in an event; an unknown word as it is.
    pub(crate) fn phrase(word: &str) -> &str {
        match Self::ALL.into_iter().find(|repair| repair.word() == word) {
            Some(Self::Fences) => "code fence removed",
            Some(Self::Preface) => "text around the JSON removed",
            Some(Self::Think) => "thinking removed",
            Some(Self::Case) => "spelling changed",
            Some(Self::Numbers) => "number changed",
            None => word,
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The repairs that a scenario allows; none by default, as in the source documents.
pub type Repairs = BTreeSet<Repair>;
