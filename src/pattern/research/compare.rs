//! What notes of several pages say of one another: which confirm each other, which contradict. By
//! the figures in their quotes, so that what is compared is what pages say, not what is claimed of
//! them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::address::domain;
use super::figures::{Figure, figures};
use crate::event::kind::{Note, NoteConflict, NoteId, NotePair, NotesCompared};
use crate::tool::folder::words::stems;

/// Holds notes against one another. A claim needs `min_independent_sources` domains; below 2 none
/// is unconfirmed.
pub fn compare(notes: &[&Note], min_independent_sources: u32) -> NotesCompared {
    let read: Vec<Read<'_>> = notes.iter().map(|note| Read::of(note)).collect();
    let (mut agree, mut conflicts) = (Vec::new(), Vec::new());
    for (place, left) in read.iter().enumerate() {
        for right in &read[place + 1..] {
            if left.note.url == right.note.url {
                continue;
            }
            let against = left.against(right);
            if against.is_empty() && left.domain != right.domain && left.confirms(right) {
                agree.push(NotePair { left: left.note.id.clone(), right: right.note.id.clone() });
            }
            conflicts.extend(against);
        }
    }
    let mut compared =
        NotesCompared { agree: agree.into(), conflicts: conflicts.into(), unconfirmed: [].into() };
    if min_independent_sources > 1 {
        let alone = notes.iter().filter(|note| {
            sources_of(std::slice::from_ref(&note.id), notes, &compared)
                < min_independent_sources as usize
        });
        compared.unconfirmed = alone.map(|note| note.id.clone()).collect();
    }
    compared
}

/// How many independent sources stand behind these notes: their domains, and those of the notes
/// that confirm them.
pub fn sources_of(cited: &[NoteId], notes: &[&Note], compared: &NotesCompared) -> usize {
    let by_id: BTreeMap<&NoteId, &Note> = notes.iter().map(|note| (&note.id, *note)).collect();
    let confirming = compared.agree.iter().flat_map(|pair| {
        let left = cited.contains(&pair.right).then_some(&pair.left);
        let right = cited.contains(&pair.left).then_some(&pair.right);
        left.into_iter().chain(right)
    });
    let domains: BTreeSet<String> =
        cited.iter().chain(confirming).filter_map(|id| Some(domain(&by_id.get(id)?.url))).collect();
    domains.len()
}

/// A note as it is compared.
struct Read<'n> {
    note: &'n Note,
    domain: String,
    figures: Vec<Figure>,
    words: BTreeSet<String>,
}

impl<'n> Read<'n> {
    fn of(note: &'n Note) -> Self {
        Self {
            note,
            domain: domain(&note.url),
            figures: figures(&note.quote),
            words: stems(&note.quote).into_iter().collect(),
        }
    }

    /// The figures of the same thing in both.
    fn pairs<'a>(&'a self, other: &'a Read<'_>) -> impl Iterator<Item = (&'a Figure, &'a Figure)> {
        self.figures.iter().flat_map(|left| {
            let same = other.figures.iter().filter(|right| left.is_of_the_same(right));
            same.map(move |right| (left, right))
        })
    }

    /// Where the other says another figure of the same thing. A quote that gives several figures of
    /// one thing contradicts only where none of them is the other's.
    fn against(&self, other: &Read<'_>) -> Vec<NoteConflict> {
        let mut found: Vec<NoteConflict> = Vec::new();
        for (left, right) in self.pairs(other) {
            let met = self.pairs(other).any(|(l, r)| {
                l.says_the_same(r) && (l.is_of_the_same(left) || r.is_of_the_same(right))
            });
            if met || left.says_the_same(right) {
                continue;
            }
            let conflict = NoteConflict {
                left: self.note.id.clone(),
                right: other.note.id.clone(),
                left_says: left.text.as_str().into(),
                right_says: right.text.as_str().into(),
            };
            if !found.contains(&conflict) {
                found.push(conflict);
            }
        }
        found
    }

    /// Whether both say the same: a figure of the same thing or, where neither has one, mostly the
    /// same words.
    fn confirms(&self, other: &Read<'_>) -> bool {
        if self.figures.is_empty() && other.figures.is_empty() {
            let both = self.words.intersection(&other.words).count();
            let either = self.words.union(&other.words).count();
            return both >= 4 && both * 10 >= either * 6;
        }
        self.pairs(other).any(|(left, right)| left.says_the_same(right))
    }
}
