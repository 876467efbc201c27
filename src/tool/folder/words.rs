//! Splits a text into words for the index: by the rules of Unicode, so that any language has words;
//! in compatibility form and lower case; English suffixes are removed by a stemmer.

use tantivy::tokenizer::{
    Language, RemoveLongFilter, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Longest word in bytes; longer ones are keys or encoded pictures.
const LONGEST: usize = 120;

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

/// Tokenizer of the index.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordTokenizer)
        .filter(RemoveLongFilter::limit(LONGEST))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The stemmed words of a text in order, without stop words: used to compare texts.
pub fn stems(text: &str) -> Vec<String> {
    let mut analyzer = analyzer();
    let telling = words(text).filter(|(_, word)| STOP_WORDS.binary_search(&&**word).is_err());
    telling.flat_map(|(_, word)| stem_word(&mut analyzer, &word)).collect()
}

/// Stem of a word; empty if the word is too long.
fn stem_word(analyzer: &mut TextAnalyzer, word: &str) -> Vec<String> {
    let mut stems = Vec::with_capacity(1);
    analyzer.token_stream(word).process(&mut |token| stems.push(token.text.clone()));
    stems
}

/// The different stemmed words of a query, in order. Stop words are left out, unless there are no
/// others.
pub(super) fn query_words(query: &str) -> Vec<String> {
    let different = |stems: Vec<String>| {
        let mut seen = std::collections::HashSet::new();
        stems.into_iter().filter(|stem| seen.insert(stem.clone())).collect::<Vec<String>>()
    };
    let telling = different(stems(query));
    if !telling.is_empty() {
        return telling;
    }
    let mut analyzer = analyzer();
    different(words(query).flat_map(|(_, word)| stem_word(&mut analyzer, &word)).collect())
}

/// All words of a text with their offsets, not stemmed.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
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

/// Tokenizer that yields the words of a text.
#[derive(Clone)]
struct WordTokenizer;

struct WordStream<I> {
    words: I,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = tantivy::tokenizer::BoxTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        let token = Token { position: usize::MAX, ..Token::default() };
        tantivy::tokenizer::BoxTokenStream::new(WordStream { words: words(text), token })
    }
}

impl<I: Iterator<Item = (usize, String)>> TokenStream for WordStream<I> {
    fn advance(&mut self) -> bool {
        let Some((at, word)) = self.words.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = at;
        self.token.offset_to = at + word.len();
        self.token.text = word;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
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
