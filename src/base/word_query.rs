//! Words to search for. Typed text never becomes the syntax of a query: it is split into words, and
//! a text without words finds nothing.
//!
//! Words are letters and digits in lower case, in compatibility form, without diacritics. In
//! scripts without blanks (Chinese, Japanese, Thai and others) each character is a word, so a word
//! of several characters is found as a phrase.

use std::ops::Range;

use unicode_normalization::char::decompose_compatible;

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

/// Longest word in bytes; what follows is left out. Longer words are keys or encoded pictures.
const MAX_WORD_BYTES: usize = 64;

/// Calls `each` with every word of a text and its place in bytes, until it returns `false`. A number
/// such as 99.95 or 1,000 is one word.
pub fn each_word(text: &str, mut each: impl FnMut(&str, Range<usize>) -> bool) {
    let mut word = String::new();
    let mut start = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        if word.is_empty() {
            start = at;
        }
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                push(&mut word, c.to_ascii_lowercase());
                end = after;
                continue;
            }
            let is_digit = |c: char| c.is_ascii_digit();
            if matches!(c, '.' | ',')
                && word.starts_with(is_digit)
                && word.chars().all(|c| is_digit(c) || matches!(c, '.' | ','))
                && text.get(after..).is_some_and(|rest| rest.starts_with(is_digit))
            {
                push(&mut word, c);
                continue;
            }
        } else if is_alone(c) {
            if !word.is_empty() && !each(&word, start..end) {
                return;
            }
            word.clear();
            if !each(c.encode_utf8(&mut [0; 4]), at..after) {
                return;
            }
            continue;
        } else if c.is_alphanumeric() || (!word.is_empty() && is_mark(c)) {
            decompose_compatible(c, |part| {
                for part in part.to_lowercase().filter(|part| !is_diacritic(*part)) {
                    if part.is_alphanumeric() || is_mark(part) {
                        push(&mut word, part);
                    }
                }
            });
            end = after;
            continue;
        }
        if !word.is_empty() && !each(&word, start..end) {
            return;
        }
        word.clear();
    }
    if !word.is_empty() {
        each(&word, start..end);
    }
}

fn push(word: &mut String, c: char) {
    if word.len() + c.len_utf8() <= MAX_WORD_BYTES {
        word.push(c);
    }
}

/// What is left out of a word: combining diacritics, and the points of Hebrew and Arabic.
fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

/// Whether a character continues a word without being a letter.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

/// Whether a character belongs to a script that is written without blanks.
fn is_alone(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
        && (c.is_alphanumeric() || is_mark(c))
}

/// The words of a text with their places in bytes.
pub fn plain_words(text: &str) -> Vec<(Range<usize>, String)> {
    let mut words = Vec::new();
    each_word(text, |word, place| {
        words.push((place, word.to_owned()));
        true
    });
    words
}

/// Adds the words of a text to `words`, each followed by a blank, until that has `most` bytes.
pub fn push_plain_words(text: &str, words: &mut String, most: usize) {
    each_word(text, |word, _| {
        if words.len() + word.len() < most {
            words.push_str(word);
            words.push(' ');
        }
        words.len() + 1 < most
    });
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
    fn finds_words_prefixes_and_phrases() {
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

    fn joined(text: &str) -> String {
        let mut words = String::new();
        push_plain_words(text, &mut words, 1_000);
        words.trim_end().to_owned()
    }

    #[test]
    fn matching_ignores_case_diacritics_and_punctuation() {
        for (text, words) in [
            ("No-go: 99.95% by Finance_Analyst!", "no go 99.95 by finance analyst"),
            ("Café, CAFE\u{301} and Ｃａｆé", "cafe cafe and cafe"),
            ("Αθήνα Ёлка Straße", "αθηνα елка straße"),
            ("東京都に住む", "東 京 都 に 住 む"),
            ("v2を公開", "v2 を 公 開"),
            ("한국어 검색", "한국어 검색"),
            ("हिन्दी में", "हिन्दी में"),
            ("\u{301} \u{0}a\u{7f}b", "a b"),
            ("", ""),
        ] {
            // Korean syllables are compared as their letters.
            let words: String = words.split(' ').map(|it| joined(it) + " ").collect();
            assert_eq!(joined(text), words.trim_end(), "{text}");
        }
    }

    #[test]
    fn places_are_those_in_the_text() {
        let text = "Ein Café in 東京.";
        let places: Vec<&str> =
            plain_words(text).into_iter().map(|(place, _)| &text[place]).collect();
        assert_eq!(places, ["Ein", "Café", "in", "東", "京"]);
    }

    #[test]
    fn truncates_long_words_and_texts() {
        let text = format!("{} b", "a".repeat(500));
        assert_eq!(plain_words(&text)[0].1.len(), MAX_WORD_BYTES);
        let mut words = String::new();
        push_plain_words(&"abc ".repeat(100), &mut words, 10);
        assert_eq!(words, "abc abc ");
    }
}
