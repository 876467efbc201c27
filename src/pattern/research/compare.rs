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
            let pairs = left.pairs(right);
            let against = left.against(right, &pairs);
            if against.is_empty() && left.domain != right.domain && left.confirms(right, &pairs) {
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
/// that confirm them. Behind notes that contradict each other stands none.
pub fn sources_of(cited: &[NoteId], notes: &[&Note], compared: &NotesCompared) -> usize {
    let at_odds = |it: &NoteConflict| cited.contains(&it.left) && cited.contains(&it.right);
    if compared.conflicts.iter().any(at_odds) {
        return 0;
    }
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

/// Figures of a quote that are looked at: a quote with more of them is a table, not a sentence.
const FIGURES: usize = 12;
/// Conflicts of two notes that are told.
const CONFLICTS: usize = 3;

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
            figures: figures(&note.quote).take(FIGURES).collect(),
            words: stems(&note.quote).into_iter().collect(),
        }
    }

    /// The figures of the same thing in both, each by its place.
    fn pairs(&self, other: &Read<'_>) -> Vec<(usize, usize)> {
        let rows = self.figures.iter().enumerate().flat_map(|(left, figure)| {
            let same = other.figures.iter().enumerate();
            let same = same.filter(|(_, right)| figure.is_of_the_same(right));
            same.map(move |(right, _)| (left, right))
        });
        rows.collect()
    }

    /// Where the other says another figure of the same thing. A quote that gives several figures of
    /// one thing contradicts only where none of them is the other's.
    fn against(&self, other: &Read<'_>, pairs: &[(usize, usize)]) -> Vec<NoteConflict> {
        let says_the_same =
            |left: usize, right: usize| self.figures[left].says_the_same(&other.figures[right]);
        let met = pairs.iter().copied().filter(|(left, right)| says_the_same(*left, *right));
        let (met_left, met_right): (BTreeSet<usize>, BTreeSet<usize>) = met.unzip();
        let apart = pairs
            .iter()
            .filter(|(left, right)| !met_left.contains(left) && !met_right.contains(right));
        let apart = apart.map(|(left, right)| NoteConflict {
            left: self.note.id.clone(),
            right: other.note.id.clone(),
            left_says: self.figures[*left].text.as_str().into(),
            right_says: other.figures[*right].text.as_str().into(),
        });
        let mut found: Vec<NoteConflict> = Vec::new();
        for conflict in apart {
            if found.len() < CONFLICTS && !found.contains(&conflict) {
                found.push(conflict);
            }
        }
        found
    }

    /// Whether both say the same: a figure of the same thing or, where neither has one, mostly the
    /// same words.
    fn confirms(&self, other: &Read<'_>, pairs: &[(usize, usize)]) -> bool {
        if self.figures.is_empty() && other.figures.is_empty() {
            let both = self.words.intersection(&other.words).count();
            let either = self.words.union(&other.words).count();
            return both >= 4 && both * 10 >= either * 6;
        }
        let figures =
            |(left, right): &(usize, usize)| (&self.figures[*left], &other.figures[*right]);
        pairs.iter().map(figures).any(|(left, right)| left.says_the_same(right))
    }
}
