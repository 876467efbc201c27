//! The filter of a list on the first screen: a line that is typed, kept, cleared and recalled.

use super::key::KeyPress;
use super::run::active_filter::FilterStatus;
use super::run::filter_input::FilterInput;

/// The filter of a list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    text: String,
    typing: Option<FilterInput>,
    /// The last filter that was used, which the arrow up recalls.
    last: String,
}

impl ListFilter {
    /// What is filtered for; empty: everything is listed.
    pub fn text(&self) -> &str {
        self.typing.as_ref().map_or(self.text.as_str(), FilterInput::text)
    }

    /// Whether a filter is typed or set.
    pub fn is_on(&self) -> bool {
        self.typing.is_some() || !self.text.is_empty()
    }

    /// Whether a filter is typed.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// The filter, while there is one.
    pub fn status(&self) -> Option<FilterStatus<'_>> {
        let (text, last, typing) = match &self.typing {
            Some(typed) => (typed.text(), typed.last(), Some(typed.cursor())),
            None if self.text.is_empty() => return None,
            None => (self.text.as_str(), "", None),
        };
        Some(FilterStatus { text, last, typing, error: None, percent: 100 })
    }

    /// Begins to type the filter.
    pub(super) fn begin(&mut self) {
        self.typing = Some(FilterInput::new(self.text.clone(), self.last.clone()));
    }

    /// Keeps the filter that was typed.
    pub(super) fn keep(&mut self) {
        if let Some(typed) = self.typing.take() {
            self.text = typed.text().trim().to_owned();
            self.remember();
        }
    }

    /// Removes the filter; returns whether there was one.
    pub(super) fn clear(&mut self) -> bool {
        let was = self.is_on();
        if let Some(typed) = self.typing.take() {
            self.text = typed.text().trim().to_owned();
        }
        self.remember();
        self.text.clear();
        was
    }

    fn remember(&mut self) {
        if !self.text.is_empty() {
            self.last.clone_from(&self.text);
        }
    }

    /// Handles a key of the filter; returns whether it has a meaning there.
    pub(super) fn on_key(&mut self, key: KeyPress) -> bool {
        self.typing.as_mut().is_some_and(|typed| typed.on_key(key))
    }

    /// Inserts a text into the filter; returns whether one is typed.
    pub(super) fn on_paste(&mut self, text: &str) -> bool {
        let Some(typed) = &mut self.typing else { return false };
        typed.insert(text);
        true
    }
}
