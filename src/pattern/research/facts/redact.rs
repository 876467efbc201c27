//! The texts of sources, pages and notes.

use std::sync::Arc;

use super::{
    FoundSource, KeptSource, Note, NoteConflict, NotesCompared, PageRead, SourceOutcome,
    SourcesDeduped, SourcesFound,
};
use crate::event::redact::TextRedactor;

impl SourcesFound {
    /// Replaces the query and what the search says about each source.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { query, sources, unsearched } = self;
        by.text(query);
        for FoundSource { url, title, snippet, score: _, published_at } in Arc::make_mut(sources) {
            for text in [url, title, snippet, published_at] {
                by.text(text);
            }
        }
        let counts = std::mem::take(unsearched).into_iter().map(|(mut reason, count)| {
            by.word(&mut reason);
            (reason, count)
        });
        *unsearched = counts.collect();
    }
}

impl SourcesDeduped {
    /// Replaces the addresses.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { kept, dropped: _ } = self;
        for KeptSource { source: _, url, domain, trust: _ } in Arc::make_mut(kept) {
            by.text(url);
            by.text(domain);
        }
    }
}

impl PageRead {
    /// Replaces what the page says about itself.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self {
            source: _,
            call: _,
            url,
            title,
            published_at,
            age_days: _,
            chars: _,
            modified: _,
        } = self;
        for text in [url, title, published_at] {
            by.text(text);
        }
    }
}

impl Note {
    /// Replaces the claim, the quote and the page.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { id: _, claim, quote, url, title, published_at, modified: _ } = self;
        for text in [claim, quote, url, title, published_at] {
            by.text(text);
        }
    }
}

impl SourceOutcome {
    /// Replaces the address, or what the tool says.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        match self {
            Self::Denied { reason: _, location } => by.some(location),
            Self::Skipped { reason, text } => {
                by.word(reason);
                by.text(text);
            }
            Self::Read { notes: _, refused: _ } | Self::Cancelled => {}
        }
    }
}

impl NotesCompared {
    /// Replaces the figures that differ.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { agree: _, conflicts, unconfirmed: _ } = self;
        for NoteConflict { left: _, right: _, left_figure, right_figure } in
            Arc::make_mut(conflicts)
        {
            by.text(left_figure);
            by.text(right_figure);
        }
    }
}
