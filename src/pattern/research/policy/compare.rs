//! Compares the notes of several pages: which confirm each other, which contradict each other. It
//! compares the figures in their quotes, so it relies on what the pages say and not on the claims.
//! Pure.
//!
//! The figures of a text, each with its unit and the words around it that say what it measures.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::address::domain;
use crate::base::stems::stems;
use crate::log::facts::research::{Note, NoteConflict, NoteId, NotePair, NotesCompared};
use crate::log::world::research::unanswered::sentences;

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

/// A number in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotedFigure {
    /// The figure as the text spells it, with its unit: `99.95%`, `15 minutes`.
    pub text: String,
    /// The value; a length of time in seconds.
    pub value: f64,
    pub unit: Unit,
    /// The stems of the words around the figure.
    pub about: BTreeSet<String>,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Per cent, by its sign or its word.
    Percent,
    /// A length of time; the value is in seconds.
    Time,
    /// Money, with its currency sign.
    Money(char),
    /// A plain number; the words around it say what it counts.
    Count,
}

/// The figures of a text, in order. Dates, times of day and years are not figures.
pub fn figures(text: &str) -> impl Iterator<Item = QuotedFigure> + '_ {
    sentences(text).flat_map(|sentence| {
        let whole = subject_stems(&sentence);
        let of = |clause: &str| {
            let own = subject_stems(clause);
            // A clause of one word says too little, so the words of the whole sentence are used.
            let about = if own.len() < 2 { &whole } else { &own };
            let figures = figures_in_clause(clause).map(|(text, value, unit)| QuotedFigure {
                text,
                value,
                unit,
                about: about.clone(),
            });
            figures.collect::<Vec<_>>()
        };
        clauses(&sentence).flat_map(of).collect::<Vec<_>>()
    })
}

/// The clauses of a sentence, each about one thing.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let parts = sentence.split([';', '(', ')']);
    parts.flat_map(|part| part.split(", ")).flat_map(|part| part.split(" and "))
}

/// The stems of the words of a clause, without figures and units.
fn subject_stems(clause: &str) -> BTreeSet<String> {
    let words = clause.split_whitespace().flat_map(|token| token.split('-'));
    let plain =
        words.filter(|word| number(trimmed(word)).is_none() && seconds_of_unit(word).is_none());
    plain.flat_map(stems).collect()
}

fn figures_in_clause(clause: &str) -> impl Iterator<Item = (String, f64, Unit)> + '_ {
    let mut tokens = clause.split_whitespace().peekable();
    std::iter::from_fn(move || {
        loop {
            let token = trimmed(tokens.next()?);
            let (head, tail) = token.split_once('-').unwrap_or((token, ""));
            let Some((value, sign)) = number(head) else { continue };
            if let Some(unit) = sign {
                return Some((head.to_owned(), value, unit));
            }
            if !tail.is_empty() {
                let Some(seconds) = seconds_of_unit(tail) else { continue };
                return Some((format!("{head} {tail}"), value * seconds, Unit::Time));
            }
            let next = tokens.peek().map(|next| trimmed(next));
            if let Some(next) = next {
                if let Some(seconds) = seconds_of_unit(next) {
                    return Some((format!("{head} {next}"), value * seconds, Unit::Time));
                }
                if is_percent(next) {
                    return Some((format!("{head}%"), value, Unit::Percent));
                }
            }
            let is_year = head.len() == 4 && (1900.0..2100.0).contains(&value);
            if !is_year {
                return Some((head.to_owned(), value, Unit::Count));
            }
        }
    })
}

/// A token without the punctuation around it.
fn trimmed(token: &str) -> &str {
    let token = token.trim_matches(|c: char| "\"'“”‘’«»()[]{},;:!?*_".contains(c));
    token.strip_suffix('.').unwrap_or(token)
}

/// Parses a token as a number with an attached unit (`$`, `%`).
fn number(token: &str) -> Option<(f64, Option<Unit>)> {
    let (token, unit) = match token.chars().next()? {
        sign @ ('$' | '€' | '£') => (&token[sign.len_utf8()..], Some(Unit::Money(sign))),
        _ => match token.strip_suffix(['%', '٪']) {
            Some(bare) => (bare, Some(Unit::Percent)),
            None => (token, None),
        },
    };
    let plain = token.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    if !plain || !token.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text = match token.rsplit_once(',') {
        // 3,4 is a decimal; 6,240 is not.
        Some((whole, rest))
            if rest.len() != 3 && !rest.contains('.') && !whole.contains([',', '.']) =>
        {
            format!("{whole}.{rest}")
        }
        _ => token.replace(',', ""),
    };
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((value, unit))
}

fn is_percent(word: &str) -> bool {
    matches!(word.to_lowercase().as_str(), "%" | "percent" | "prozent" | "відсотків" | "відсотка")
}

/// The length of a unit of time in seconds.
fn seconds_of_unit(word: &str) -> Option<f64> {
    Some(match trimmed(word).to_lowercase().as_str() {
        "second" | "seconds" | "sekunden" | "секунд" => 1.0,
        "minute" | "minutes" | "min" | "minuten" | "хвилин" | "хвилини" => 60.0,
        "hour" | "hours" | "stunde" | "stunden" | "година" | "годин" | "години" => {
            3_600.0
        }
        "day" | "days" | "tag" | "tage" | "день" | "дні" | "днів" => 86_400.0,
        _ => return None,
    })
}

impl QuotedFigure {
    /// Whether both figures are about the same thing: they have the same unit, and their words
    /// match or the words of one contain those of the other.
    pub fn has_same_subject(&self, other: &QuotedFigure) -> bool {
        let (few, many) = if self.about.len() <= other.about.len() {
            (&self.about, &other.about)
        } else {
            (&other.about, &self.about)
        };
        let both = few.intersection(many).count();
        let either = few.len() + many.len() - both;
        let alike = both >= 2 && both * 10 >= either * 7;
        let within = few.len() >= 3 && both == few.len();
        self.unit == other.unit && (alike || within)
    }

    /// Whether both figures have the same value.
    pub fn has_same_value(&self, other: &QuotedFigure) -> bool {
        (self.value - other.value).abs() <= f64::EPSILON * self.value.abs().max(1.0)
    }
}
