//! Faults of a classifier's reply.

use std::borrow::Cow;
use std::fmt;

use crate::event::reason_part::ReasonPart;
use crate::event::redact::TextRedactor;

/// What is wrong with a classifier's reply, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// `not_object`
    NotObject,
    /// `missing_keys`
    MissingKeys,
    /// `route`: not the name of a route, or empty
    Route,
    /// `confidence_type`
    ConfidenceType,
    /// `reason`
    Reason,
    /// `alternatives`: not a list
    Alternatives,
    /// `alternative`: an entry is not an object with a route and a number
    Alternative,
    /// `confidence_range`: the confidence, or one of an alternative, is not from 0 to 1
    ConfidenceRange,
}

impl RouteFault {
    /// Every fault with its word and its phrase.
    const ROWS: [(Self, &'static str, &'static str); 8] = [
        (Self::NotObject, "not_object", "not an object"),
        (Self::MissingKeys, "missing_keys", "keys missing"),
        (Self::Route, "route", "bad route"),
        (Self::ConfidenceType, "confidence_type", "confidence is not a number"),
        (Self::Reason, "reason", "bad reason"),
        (Self::Alternatives, "alternatives", "bad alternatives"),
        (Self::Alternative, "alternative", "bad alternative"),
        (Self::ConfidenceRange, "confidence_range", "confidence not from 0 to 1"),
    ];

    fn row(self) -> (&'static str, &'static str) {
        let row = Self::ROWS.iter().find(|(fault, ..)| *fault == self);
        row.map_or(("", ""), |(_, word, phrase)| (word, phrase))
    }
}

impl fmt::Display for RouteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

impl ReasonPart for RouteFault {
    fn from_text(text: &str) -> Option<Self> {
        Self::ROWS.into_iter().find(|(_, word, _)| *word == text).map(|row| row.0)
    }

    fn phrase(&self) -> Cow<'_, str> {
        self.row().1.into()
    }

    fn redact(&mut self, _by: &TextRedactor) {}
}
