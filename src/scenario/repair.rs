//! What may be repaired in a model's reply before it is judged.

use std::collections::BTreeSet;
use std::fmt;

/// One kind of repair. Each that is made is an event, and the raw reply is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// A Markdown code fence around the object is taken off.
    Fences,
    /// Text before and after the only object of a reply is taken off.
    Preface,
    /// `<think>…</think>` in front of the reply is taken off.
    Think,
    /// Names and stances are taken in other spellings: `"GO"`, `"Demand Analyst"` for
    /// `demand_analyst`.
    Case,
    /// Numbers are taken as texts (`"0.8"`), and 11 to 100 as per cent, where one from 0 to 1 is
    /// wanted.
    Numbers,
}

impl Repair {
    /// All of them.
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
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The repairs that a scenario allows; none by default, as in the sources.
pub type Repairs = BTreeSet<Repair>;
