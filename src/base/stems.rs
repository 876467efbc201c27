//! The words of a text and their stems, for indexes and for comparing texts: by the rules of Unicode,
//! so that any language has words; in compatibility form and lower case; English suffixes are removed.

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Longest word in bytes; longer ones are keys or encoded pictures.
pub const MAX_WORD_BYTES: usize = 120;

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

/// The stemmed words of a text in order, without stop words: used to compare texts.
pub fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::new(Algorithm::English);
    let telling = words(text).filter(|(_, word)| STOP_WORDS.binary_search(&&**word).is_err());
    telling.filter_map(|(_, word)| stem(&stemmer, &word)).collect()
}

/// The stem of a word; `None` if the word is too long.
fn stem(stemmer: &Stemmer, word: &str) -> Option<String> {
    (word.len() < MAX_WORD_BYTES).then(|| stemmer.stem(word).into_owned())
}

/// The different stemmed words of a query, in order. Stop words are left out, unless there are no
/// others.
pub fn query_words(query: &str) -> Vec<String> {
    let different = |stems: Vec<String>| {
        let mut seen = std::collections::HashSet::new();
        stems.into_iter().filter(|stem| seen.insert(stem.clone())).collect::<Vec<String>>()
    };
    let telling = different(stems(query));
    if !telling.is_empty() {
        return telling;
    }
    let stemmer = Stemmer::new(Algorithm::English);
    different(words(query).filter_map(|(_, word)| stem(&stemmer, &word)).collect())
}

/// All words of a text with their offsets, not stemmed.
pub fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.unicode_word_indices().flat_map(|(at, word)| split_word(at, word))
}

/// Unicode keeps `example.com` and `l'eau` together; here they are split, so that `example` and
/// `eau` are found. Numbers stay whole: `99.95`.
fn split_word(at: usize, word: &str) -> impl Iterator<Item = (usize, String)> {
    let number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    let joins = move |c: char| !number && (c.is_ascii_punctuation() || matches!(c, '’' | '·'));
    word.split(joins)
        // The parts are slices of the word, so their addresses give the offset.
        .map(move |part| (at + (part.as_ptr().addr() - word.as_ptr().addr()), part))
        .filter(|(_, part)| !part.is_empty())
        .map(|(at, part)| (at, part.nfkc().flat_map(char::to_lowercase).collect()))
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
            ("l’eau et l'été", "l eau et été"),
            ("STRASSE Straße ÜBER", "strass straße über"),
            ("cafe\u{301}", "café"),
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

    #[test]
    fn a_word_is_told_by_its_place() {
        let text = "The «grüne» vendor.example";
        let found: Vec<(usize, String)> = words(text).collect();
        for (at, word) in &found {
            assert!(text[*at..].to_lowercase().starts_with(word), "{at} {word}");
        }
        assert_eq!(found.len(), 4);
    }
}
