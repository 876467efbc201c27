//! The part of a stop reason after its word: a name or a fault.

use std::borrow::Cow;
use std::fmt;

use super::redact::TextRedactor;
use crate::base::name::{AgentName, RoleName, ToolName};

/// A part of a stop reason, behind its word and a colon.
pub(crate) trait ReasonPart: fmt::Display + Sized {
    /// Reads it as it is displayed; `None`: this version does not know it.
    fn from_text(text: &str) -> Option<Self>;

    /// The part in words.
    fn phrase(&self) -> Cow<'_, str>;

    /// Bytes that it refers to, besides its own size.
    fn weight(&self) -> usize {
        0
    }

    /// Replaces a name in it that a model gave.
    fn redact(&mut self, by: &TextRedactor);

    /// What to do about it, if it needs advice of its own.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// Names: any text is one, and it is its own phrase.
macro_rules! names {
    ($($name:ty)+) => {$(
        impl ReasonPart for $name {
            fn from_text(text: &str) -> Option<Self> {
                Some(text.into())
            }

            fn phrase(&self) -> Cow<'_, str> {
                self.to_string().into()
            }

            fn weight(&self) -> usize {
                self.as_str().len()
            }

            fn redact(&mut self, by: &TextRedactor) {
                by.name(self);
            }
        }
    )+};
}

names! { AgentName RoleName ToolName }

impl ReasonPart for Box<str> {
    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn phrase(&self) -> Cow<'_, str> {
        (&**self).into()
    }

    fn weight(&self) -> usize {
        self.len()
    }

    fn redact(&mut self, by: &TextRedactor) {
        by.name(self);
    }
}
