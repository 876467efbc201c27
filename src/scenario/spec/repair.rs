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
    /// Removes a comma after the last value of an object or a list.
    Commas,
    /// Accepts a list with one object as that object.
    List,
    /// Accepts an object inside the only key of another one, such as `{"response": {…}}`.
    Wrapper,
    /// Accepts JSON that is written as a text inside JSON: `"{\"agent\": …}"`.
    Encoded,
}

impl Repair {
    /// All kinds of repair.
    pub const ALL: [Self; 9] = [
        Self::Fences,
        Self::Preface,
        Self::Think,
        Self::Case,
        Self::Numbers,
        Self::Commas,
        Self::List,
        Self::Wrapper,
        Self::Encoded,
    ];

    /// Its word in scenarios and events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Preface => "preface",
            Self::Think => "think",
            Self::Case => "case",
            Self::Numbers => "numbers",
            Self::Commas => "commas",
            Self::List => "list",
            Self::Wrapper => "wrapper",
            Self::Encoded => "encoded",
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
            Some(Self::Commas) => "comma removed",
            Some(Self::List) => "list around the object removed",
            Some(Self::Wrapper) => "object around the object removed",
            Some(Self::Encoded) => "text read as JSON",
            None if word == FILLED_AGENT => "agent filled in",
            None => word,
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The word in events for the key `agent` of a contribution, which a live run fills in where it is
/// missing. It is not a setting.
pub const FILLED_AGENT: &str = "agent";

/// The repairs that a scenario allows; none by default, as in the source documents.
pub type Repairs = BTreeSet<Repair>;
