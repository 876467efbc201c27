//! Words that somebody looks for in texts. They are never the syntax of a query: whatever is typed is
//! words, and what has none asks for nothing.

use std::ops::Range;

use super::plain_words::plain_words;

/// Shortest beginning of a word in bytes that finds longer words too.
const MIN_PREFIX: usize = 2;

/// Words and phrases that a text must all have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordQuery {
    terms: Vec<WordTerm>,
}

/// Words that follow each other in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordTerm {
    /// The words, at least one, as [`plain_words`] gives them.
    pub words: Vec<String>,
    /// Whether the last word may be the beginning of a longer one.
    pub is_prefix: bool,
}

impl WordQuery {
    /// Reads words that are separated by blanks, and phrases in double quotes.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            rest = query.push_first(rest).trim_start();
        }
        query
    }

    /// Adds the word or the phrase that a text begins with, and returns what follows it. A word also
    /// finds the longer words that begin with it, and so does the end of a phrase without its closing
    /// quote, which is being typed; otherwise the words of a phrase are whole.
    pub fn push_first<'t>(&mut self, text: &'t str) -> &'t str {
        let (term, rest, is_whole) = match text.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((term, rest)) => (term, rest, true),
                None => (quoted, "", false),
            },
            None => {
                let end = text.find(char::is_whitespace).unwrap_or(text.len());
                let (term, rest) = text.split_at(end);
                (term, rest, false)
            }
        };
        let words: Vec<String> = plain_words(term).into_iter().map(|(_, word)| word).collect();
        if let Some(last) = words.last() {
            let is_prefix = !is_whole && last.len() >= MIN_PREFIX;
            let term = WordTerm { words, is_prefix };
            if !self.terms.contains(&term) {
                self.terms.push(term);
            }
        }
        rest
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Its words and phrases.
    pub fn terms(&self) -> &[WordTerm] {
        &self.terms
    }

    /// Where a text has its words, in bytes; in order and without overlaps.
    pub fn places_in(&self, text: &str) -> Vec<Range<usize>> {
        let words = plain_words(text);
        let mut places: Vec<Range<usize>> = Vec::new();
        for term in &self.terms {
            for found in words.windows(term.words.len()) {
                let (Some((first, _)), Some((last, _))) = (found.first(), found.last()) else {
                    continue;
                };
                if term.is_at(found) {
                    places.push(first.start..last.end);
                }
            }
        }
        places.sort_by_key(|place| (place.start, place.end));
        places.dedup_by(|later, earlier| {
            let overlaps = later.start < earlier.end;
            earlier.end = if overlaps { earlier.end.max(later.end) } else { earlier.end };
            overlaps
        });
        places
    }
}

impl WordTerm {
    fn is_at(&self, found: &[(Range<usize>, String)]) -> bool {
        let last = self.words.len().saturating_sub(1);
        self.words.iter().zip(found).enumerate().all(|(at, (wanted, (_, word)))| {
            match self.is_prefix && at == last {
                true => word.starts_with(wanted),
                false => word == wanted,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let query = WordQuery::parse(text);
        let shown = |term: &WordTerm| term.words.join(" ") + if term.is_prefix { "*" } else { "" };
        query.terms().iter().map(shown).collect()
    }

    #[test]
    fn whatever_is_typed_is_words() {
        for (text, expected) in [
            ("gift cards", &["gift*", "cards*"][..]),
            ("\"gift cards\" Refund", &["gift cards", "refund*"]),
            ("\"gift ca", &["gift ca*"]),
            ("no-go", &["no go*"]),
            ("a OR b* NEAR(c)", &["a", "or*", "b", "near c"]),
            ("x \" y\" \"\" z z", &["x", "y", "z"]),
            ("--- *** \"\" ^", &[]),
            ("", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_words_beginnings_and_phrases() {
        let text = "The verdict: gift cards. A gift, no card; Verdicts.";
        let found = |query: &str| {
            let places = WordQuery::parse(query).places_in(text);
            places.into_iter().map(|place| &text[place]).collect::<Vec<_>>()
        };
        assert_eq!(found("verd"), ["verdict", "Verdicts"]);
        assert_eq!(found("\"verdict\""), ["verdict"]);
        assert_eq!(found("\"gift card\""), [""; 0]);
        assert_eq!(found("\"gift cards\" gift"), ["gift cards", "gift"]);
        assert_eq!(found("nothing"), [""; 0]);
    }
}
