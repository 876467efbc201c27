//! The figures of a text, each with its unit and the words around it that say what it measures.
//! Pure.

use std::collections::BTreeSet;

use super::sentences::sentences;
use crate::base::stems::stems;

/// A number in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotedFigure {
    /// The figure as the text spells it, with its unit: `99.95%`, `15 minutes`.
    pub text: String,
    /// The value; a length of time in seconds.
    pub value: f64,
    /// The unit.
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
