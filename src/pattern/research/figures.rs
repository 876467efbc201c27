//! The figures of a text, each with its unit and the words around it that say what it is of. Pure.

use std::collections::BTreeSet;

use super::sentences::sentences;
use crate::tool::folder::words::stems;

/// A figure of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// As it stands in the text, with its unit: `99.95%`, `15 minutes`.
    pub text: String,
    /// Its value.
    pub value: f64,
    /// What it is counted in.
    pub unit: Unit,
    /// The stems of the words around it.
    pub about: BTreeSet<String>,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Per cent.
    Percent,
    /// A length of time; the value is in seconds.
    Time,
    /// Money, by its sign.
    Money(char),
    /// Something that the words around it say.
    Count,
}

/// The figures of a text, in order. Dates, times of the day and years are none.
pub fn figures(text: &str) -> impl Iterator<Item = Figure> + '_ {
    sentences(text).flat_map(|sentence| {
        let whole = about(&sentence);
        let of = |clause: &str| {
            let own = about(clause);
            // A clause of one word says too little: the sentence around it says of what.
            let about = if own.len() < 2 { &whole } else { &own };
            let figures = in_clause(clause).map(|(text, value, unit)| Figure {
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

/// The parts of a sentence that say one thing each.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let parts = sentence.split([';', '(', ')']);
    parts.flat_map(|part| part.split(", ")).flat_map(|part| part.split(" and "))
}

/// The stems of the words of a clause that are neither figures nor units.
fn about(clause: &str) -> BTreeSet<String> {
    let words = clause.split_whitespace().flat_map(|token| token.split('-'));
    let plain = words.filter(|word| number(trimmed(word)).is_none() && time(word).is_none());
    plain.flat_map(stems).collect()
}

fn in_clause(clause: &str) -> impl Iterator<Item = (String, f64, Unit)> + '_ {
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
                let Some(seconds) = time(tail) else { continue };
                return Some((format!("{head} {tail}"), value * seconds, Unit::Time));
            }
            let next = tokens.peek().map(|next| trimmed(next));
            if let Some(next) = next {
                if let Some(seconds) = time(next) {
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

/// The number that a token is, with the unit that stands on it.
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

/// The seconds of a unit of time.
fn time(word: &str) -> Option<f64> {
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

impl Figure {
    /// Whether both are figures of the same thing: counted alike, and the words around them are the
    /// same, or those of one among those of the other.
    pub fn is_of_the_same(&self, other: &Figure) -> bool {
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

    /// Whether both say the same number.
    pub fn says_the_same(&self, other: &Figure) -> bool {
        (self.value - other.value).abs() <= f64::EPSILON * self.value.abs().max(1.0)
    }
}
