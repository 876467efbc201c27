//! Stems of the words of a text, for indexes and for comparing texts: the words of
//! [`word_query`](super::word_query), without English suffixes.

use std::collections::{HashMap, HashSet};

use frostem::{Algorithm, Stemmer};

use super::word_query::each_word;

/// English stop words, including the fragments of contractions. Without `us` and `it`, which may be
/// a country and a department.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "being", "but", "by", "can", "could", "d", "did", "do", "does", "doing",
    "don", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into",
    "is", "its", "just", "ll", "m", "may", "me", "might", "more", "most", "must", "my", "no",
    "nor", "not", "of", "on", "only", "or", "other", "our", "out", "over", "own", "re", "s",
    "shall", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "to", "too", "up", "ve", "very", "was",
    "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why", "will",
    "with", "would", "you", "your",
];

/// Stems words, and remembers the stems: a text repeats most of its words.
pub struct StemCache {
    stemmer: Stemmer,
    stems: HashMap<String, String>,
}

impl Default for StemCache {
    fn default() -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English), stems: HashMap::new() }
    }
}

impl StemCache {
    /// The stem of a word.
    pub fn stem(&mut self, word: &str) -> &str {
        if !self.stems.contains_key(word) {
            self.stems.insert(word.to_owned(), self.stemmer.stem(word).into_owned());
        }
        self.stems.get(word).map_or("", String::as_str)
    }

    /// The stems of a text with a blank after each.
    pub fn joined(&mut self, text: &str) -> String {
        let mut joined = String::with_capacity(text.len());
        each_word(text, |word, _| {
            joined.push_str(self.stem(word));
            joined.push(' ');
            true
        });
        joined
    }
}

/// The stems of a text in order, with or without those of stop words.
fn stems_of(text: &str, with_stop_words: bool) -> Vec<String> {
    let stemmer = Stemmer::new(Algorithm::English);
    let mut stems = Vec::new();
    each_word(text, |word, _| {
        if with_stop_words || STOP_WORDS.binary_search(&word).is_err() {
            stems.push(stemmer.stem(word).into_owned());
        }
        true
    });
    stems
}

/// The stemmed words of a text in order, without stop words: used to compare texts.
pub fn stems(text: &str) -> Vec<String> {
    stems_of(text, false)
}

/// The different stemmed words of a query, in order. Stop words are left out, unless there are no
/// others.
pub fn query_words(query: &str) -> Vec<String> {
    let mut words = stems(query);
    if words.is_empty() {
        words = stems_of(query, true);
    }
    let mut seen = HashSet::new();
    words.retain(|stem| seen.insert(stem.clone()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted(), "they are found by binary search");
    }

    #[test]
    fn words_are_found_in_any_language() {
        for (query, words) in [
            ("Payments FAILED, at vendor.example.com", "payment fail vendor exampl com"),
            ("99.95% of 1,000 in 24/7, P1", "99.95 1,000 24 7 p1"),
            ("enterprise-sla_2023", "enterpris sla 2023"),
            ("What's the US status?", "us status"),
            ("l’eau et l'été", "l eau et ete"),
            ("STRASSE Straße ÜBER", "strass straße uber"),
            ("cafe\u{301}", "cafe"),
            ("оплата платежів", "оплата платежів"),
            ("支付 失败", "支 付 失 败"),
            ("ｆｕｌｌ", "full"),
            ("AND OR NOT \"a:b\" +x -y (z) *", "b x y z"),
            ("to be or not to be", "to be or not"),
            ("?! … 🎉", ""),
            ("", ""),
        ] {
            assert_eq!(query_words(query).join(" "), words, "{query}");
        }
    }
}
