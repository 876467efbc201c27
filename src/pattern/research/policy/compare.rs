//! Compares the notes of several pages: which confirm each other, which contradict each other. It
//! compares the figures in their quotes, so it relies on what the pages say and not on the claims.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::address::domain;
use super::figures::{QuotedFigure, figures};
use crate::base::stems::stems;
use crate::pattern::research::facts::{Note, NoteConflict, NotePair, NotesCompared};
use crate::pattern::research::ids::NoteId;

/// Compares notes with each other. A claim needs `min_independent_sources` domains; below 2, no
/// claim is unconfirmed.
pub fn compare(notes: &[&Note], min_independent_sources: u32) -> NotesCompared {
    let read: Vec<ComparedNote<'_>> =
        notes.iter().map(|note| ComparedNote::from_note(note)).collect();
    let (mut agree, mut conflicts) = (Vec::new(), Vec::new());
    for (place, left) in read.iter().enumerate() {
        for right in &read[place + 1..] {
            if left.note.url == right.note.url {
                continue;
            }
            let pairs = left.matching_figures(right);
            let against = left.find_conflicts(right, &pairs);
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
            count_sources(std::slice::from_ref(&note.id), notes, &compared)
                < min_independent_sources as usize
        });
        compared.unconfirmed = alone.map(|note| note.id.clone()).collect();
    }
    compared
}

/// The number of independent sources for these notes: their domains, and those of the notes that
/// confirm them. 0 if the notes contradict each other.
pub fn count_sources(cited: &[NoteId], notes: &[&Note], compared: &NotesCompared) -> usize {
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

/// The most figures of a quote that are compared: a quote with more is a table, not a sentence.
const MAX_FIGURES: usize = 12;
/// The most conflicts that are reported for two notes.
const MAX_CONFLICTS: usize = 3;

/// A note, prepared for comparison.
struct ComparedNote<'n> {
    note: &'n Note,
    domain: String,
    figures: Vec<QuotedFigure>,
    words: BTreeSet<String>,
}

impl<'n> ComparedNote<'n> {
    fn from_note(note: &'n Note) -> Self {
        Self {
            note,
            domain: domain(&note.url),
            figures: figures(&note.quote).take(MAX_FIGURES).collect(),
            words: stems(&note.quote).into_iter().collect(),
        }
    }

    /// The indexes of the figures that are about the same thing in both notes.
    fn matching_figures(&self, other: &ComparedNote<'_>) -> Vec<(usize, usize)> {
        let rows = self.figures.iter().enumerate().flat_map(|(left, figure)| {
            let same = other.figures.iter().enumerate();
            let same = same.filter(|(_, right)| figure.has_same_subject(right));
            same.map(move |(right, _)| (left, right))
        });
        rows.collect()
    }

    /// The conflicts: both notes give a figure of the same thing, but another number. If a quote
    /// gives several figures of one thing, one match with the other quote is enough to avoid a
    /// conflict.
    fn find_conflicts(
        &self,
        other: &ComparedNote<'_>,
        pairs: &[(usize, usize)],
    ) -> Vec<NoteConflict> {
        let says_the_same =
            |left: usize, right: usize| self.figures[left].has_same_value(&other.figures[right]);
        let met = pairs.iter().copied().filter(|(left, right)| says_the_same(*left, *right));
        let (met_left, met_right): (BTreeSet<usize>, BTreeSet<usize>) = met.unzip();
        let apart = pairs
            .iter()
            .filter(|(left, right)| !met_left.contains(left) && !met_right.contains(right));
        let apart = apart.map(|(left, right)| NoteConflict {
            left: self.note.id.clone(),
            right: other.note.id.clone(),
            left_figure: self.figures[*left].text.as_str().into(),
            right_figure: other.figures[*right].text.as_str().into(),
        });
        let mut found: Vec<NoteConflict> = Vec::new();
        for conflict in apart {
            if found.len() < MAX_CONFLICTS && !found.contains(&conflict) {
                found.push(conflict);
            }
        }
        found
    }

    /// Whether both notes say the same: they share a figure of the same thing or, without any
    /// figures, most of their words.
    fn confirms(&self, other: &ComparedNote<'_>, pairs: &[(usize, usize)]) -> bool {
        if self.figures.is_empty() && other.figures.is_empty() {
            let both = self.words.intersection(&other.words).count();
            let either = self.words.union(&other.words).count();
            return both >= 4 && both * 10 >= either * 6;
        }
        let figures =
            |(left, right): &(usize, usize)| (&self.figures[*left], &other.figures[*right]);
        pairs.iter().map(figures).any(|(left, right)| left.has_same_value(right))
    }
}
