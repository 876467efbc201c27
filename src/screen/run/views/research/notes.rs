//! The notes as items: conflicts and agreement between them, then the accepted and the refused
//! ones.

use std::collections::BTreeSet;

use super::items::{ItemList, ItemSign, ItemSubject, ItemText, PaneItem, single_spaced};
use crate::log::event::id::SourceNo;
use crate::log::facts::research::{NoteConflict, NoteId, NoteRefused};
use crate::log::world::World;
use crate::log::world::research::{NoteRow, Research};
use crate::screen::run::data::RunData;
use crate::words::format;
use crate::words::styled::{StyleRole, StyledPart};

/// Maximum rows of a claim or a quote; the inspector shows all of it.
const MAX_ROWS: usize = 4;

/// Maximum pairs of notes that are grouped; no run has as many.
const PAIRS: usize = 256;

/// The items of the notes pane in the world that is shown.
pub struct Notes<'a> {
    world: &'a World,
    research: &'a Research,
    confirmed: Vec<Vec<NoteId>>,
}

impl<'a> Notes<'a> {
    fn new(world: &'a World, research: &'a Research) -> Self {
        Self { world, research, confirmed: confirmed(research) }
    }

    /// Number of items before the first note. Conflicts and agreement are found after the notes
    /// were taken, but a reader has to see them first.
    pub(crate) fn above(&self) -> usize {
        self.conflicts().len() + self.confirmed.len()
    }

    fn conflicts(&self) -> &'a [NoteConflict] {
        &self.research.compared.conflicts
    }

    /// A source as its number and domain: `#1 official-status.example.com`.
    fn source(&self, no: SourceNo) -> String {
        let domain = self.research.source(no).map_or("", |row| &*row.domain);
        format!("{no} {domain}").trim_end().to_owned()
    }

    fn note(&self, row: &'a NoteRow) -> PaneItem<'a> {
        let note = &row.note;
        let issue = self.research.verified.as_ref().and_then(|verified| {
            verified.issues.iter().find(|it| it.note == note.id).map(|it| it.issue)
        });
        let answered = self.research.answered.is_some();
        let (lead, word, how) = match issue {
            Some(issue) => (ItemSign::Failed, issue.phrase(), StyleRole::Failed),
            None if self.research.is_cited(&note.id) => (ItemSign::Done, "cited", StyleRole::Done),
            None if answered => (ItemSign::Off, "not cited", StyleRole::Dim),
            None if self.research.verified.is_some() => {
                (ItemSign::Done, "verified", StyleRole::Done)
            }
            None if self.world.progress.is_live() => (ItemSign::Waiting, "taken", StyleRole::Dim),
            None => (ItemSign::Off, "taken", StyleRole::Dim),
        };
        let mut parts = Vec::new();
        // A note taken by a rule has its quote as its claim: show it once.
        let same = note.claim.trim() == note.quote.trim();
        if !same {
            parts.push(ItemText::of(single_spaced(&note.claim), StyleRole::Text, MAX_ROWS));
        }
        let look = if same { StyleRole::Text } else { StyleRole::Dim };
        parts.push(ItemText::of(format!("\"{}\"", single_spaced(&note.quote)), look, MAX_ROWS));
        let mut tail = vec![StyledPart::new(how, format!(" {word}"))];
        if issue.is_none() && self.research.compared.unconfirmed.contains(&note.id) {
            tail.push(StyledPart::new(StyleRole::Retry, " ! unconfirmed"));
        }
        let against = self.conflicts().iter().filter_map(|it| match () {
            () if it.left == note.id => Some(&it.right),
            () if it.right == note.id => Some(&it.left),
            () => None,
        });
        let mut against: Vec<&str> = against.map(NoteId::as_str).collect();
        against.dedup();
        if !against.is_empty() {
            tail.push(StyledPart::new(
                StyleRole::Retry,
                format!(" ! conflicts with {}", against.join(" ")),
            ));
        }
        let source = self.source(row.source);
        parts.push(ItemText { tail, ..ItemText::of(source, StyleRole::Dim, 2) });
        let name = note.id.as_str().into();
        PaneItem { subject: ItemSubject::Note(note.id.clone()), name, sign: lead, parts }
    }

    fn refused(&self, note: &'a NoteRefused) -> PaneItem<'a> {
        let mut parts = Vec::new();
        if note.claim.trim() != note.quote.trim() && !note.claim.is_empty() {
            parts.push(ItemText::of(single_spaced(&note.claim), StyleRole::Dim, MAX_ROWS));
        }
        parts.push(ItemText::of(
            format!("\"{}\"", single_spaced(&note.quote)),
            StyleRole::Dim,
            MAX_ROWS,
        ));
        let tail = vec![StyledPart::new(
            StyleRole::Refused,
            format!(" refused: {}", note.reason.phrase()),
        )];
        parts.push(ItemText { tail, ..ItemText::of(self.source(note.source), StyleRole::Dim, 2) });
        PaneItem { subject: ItemSubject::Text, name: "".into(), sign: ItemSign::Refused, parts }
    }

    fn conflict(&self, conflict: &'a NoteConflict) -> PaneItem<'a> {
        let side = |id: &NoteId| self.research.note(id);
        let head = format!(
            "conflict: {} says {}, {} says {}",
            conflict.left, conflict.left_figure, conflict.right, conflict.right_figure
        );
        let quote = |id: &NoteId| {
            let row = side(id);
            let quote = row.map_or_else(String::new, |row| single_spaced(&row.note.quote));
            let source = row.map_or_else(String::new, |row| self.source(row.source));
            format!("{id} \"{quote}\" {source}")
        };
        let quotes = ItemText {
            other: Some(quote(&conflict.right).into()),
            ..ItemText::of(quote(&conflict.left), StyleRole::Dim, MAX_ROWS + 1)
        };
        let parts = vec![ItemText::of(head, StyleRole::Retry, 3), quotes];
        let about = ItemSubject::Pair(conflict.left.clone(), conflict.right.clone());
        PaneItem { subject: about, name: "".into(), sign: ItemSign::Alert, parts }
    }

    fn agreement(&self, group: &[NoteId]) -> PaneItem<'a> {
        let domains = domains(self.research, group);
        let ids: Vec<&str> = group.iter().map(NoteId::as_str).collect();
        let count = format::count_noun(domains as u64, "domain");
        let text = format!("{} agree: confirmed by {count}", ids.join(" "));
        let about = match group {
            [left, right, ..] => ItemSubject::Pair(left.clone(), right.clone()),
            _ => ItemSubject::Text,
        };
        let parts = vec![ItemText::of(text, StyleRole::Text, 3)];
        PaneItem { subject: about, name: "".into(), sign: ItemSign::Done, parts }
    }
}

/// Number of different domains among these notes.
fn domains(research: &Research, ids: &[NoteId]) -> usize {
    let of = |id: &NoteId| Some(&*research.source(research.note(id)?.source)?.domain);
    ids.iter().filter_map(of).collect::<BTreeSet<&str>>().len()
}

/// The notes that agree, in groups; each in the order in which it first appears.
fn confirmed(research: &Research) -> Vec<Vec<NoteId>> {
    let mut groups: Vec<Vec<NoteId>> = Vec::new();
    for pair in research.compared.agree.iter().take(PAIRS) {
        let at = |id: &NoteId, groups: &[Vec<NoteId>]| groups.iter().position(|it| it.contains(id));
        match (at(&pair.left, &groups), at(&pair.right, &groups)) {
            (None, None) => groups.push(vec![pair.left.clone(), pair.right.clone()]),
            (Some(group), None) => groups[group].push(pair.right.clone()),
            (None, Some(group)) => groups[group].push(pair.left.clone()),
            (Some(one), Some(other)) if one != other => {
                let (keep, drop) = (one.min(other), one.max(other));
                let moved = groups.remove(drop);
                groups[keep].extend(moved);
            }
            _ => {}
        }
    }
    groups
}

impl ItemList for Notes<'_> {
    fn count(&self) -> usize {
        self.above() + self.research.notes.len() + self.research.refused.len()
    }

    fn item(&self, at: usize) -> Option<PaneItem<'_>> {
        if let Some(conflict) = self.conflicts().get(at) {
            return Some(self.conflict(conflict));
        }
        let at = at - self.conflicts().len();
        if let Some(group) = self.confirmed.get(at) {
            return Some(self.agreement(group));
        }
        let at = at - self.confirmed.len();
        if let Some(row) = self.research.notes.get(at) {
            return Some(self.note(row));
        }
        let note = self.research.refused.get(at - self.research.notes.len())?;
        Some(self.refused(note))
    }

    fn names(&self) -> u16 {
        let longest = self.research.notes.last().map_or(0, |row| row.note.id.as_str().len());
        u16::try_from(longest).unwrap_or(u16::MAX).clamp(2, 6)
    }
}

/// The items of the notes in the world that is shown.
pub fn note_items(run: &RunData) -> Option<Notes<'_>> {
    let world = run.shown();
    world.research().map(|research| Notes::new(world, research))
}
