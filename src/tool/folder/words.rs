//! Words of a text as the index has them: found by the rules of Unicode, so that any language has
//! words, in their compatible form and lower case, and their English endings off. What has no
//! English ending stays as it is.

use tantivy::tokenizer::{
    Language, RemoveLongFilter, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Words of more bytes are none that anybody asks for: keys, encoded pictures.
const LONGEST: usize = 120;

/// English words that say nothing of what is looked for, what is left of words at an apostrophe
/// among them. Not among them: `us` and `it`, which may be a country and a department.
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

/// How a text is taken apart for the index.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words)
        .filter(RemoveLongFilter::limit(LONGEST))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The words of a text by their stems, in order, those that say nothing left out: what texts are
/// compared by.
pub fn stems(text: &str) -> Vec<String> {
    let mut analyzer = analyzer();
    let telling = words(text).filter(|(_, word)| STOP_WORDS.binary_search(&&**word).is_err());
    telling.flat_map(|(_, word)| stemmed(&mut analyzer, &word)).collect()
}

/// The stems of a word: one, or none where it is too long for one.
fn stemmed(analyzer: &mut TextAnalyzer, word: &str) -> Vec<String> {
    let mut stems = Vec::with_capacity(1);
    analyzer.token_stream(word).process(&mut |token| stems.push(token.text.clone()));
    stems
}

/// The different words of what a person asks, as the index has them, in the order of the question.
/// Stop words decide nothing and are left out, unless there are no others.
pub(super) fn asked(query: &str) -> Vec<String> {
    let different = |stems: Vec<String>| {
        let mut seen = std::collections::HashSet::new();
        stems.into_iter().filter(|stem| seen.insert(stem.clone())).collect::<Vec<String>>()
    };
    let telling = different(stems(query));
    if !telling.is_empty() {
        return telling;
    }
    let mut analyzer = analyzer();
    different(words(query).flat_map(|(_, word)| stemmed(&mut analyzer, &word)).collect())
}

/// The words of a text with the place of each, stop words among them, endings on.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.unicode_word_indices().flat_map(|(at, word)| parts(at, word))
}

/// Unicode keeps `example.com` and `l'eau` together; whoever looks for `example` or `eau` finds them
/// here. Numbers stay whole: `99.95`.
fn parts(at: usize, word: &str) -> impl Iterator<Item = (usize, String)> {
    let number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    let joins = move |c: char| !number && (c.is_ascii_punctuation() || matches!(c, '’' | '·'));
    word.split(joins)
        // The parts are slices of the word: where one stands is how far it is from its beginning.
        .map(move |part| (at + (part.as_ptr().addr() - word.as_ptr().addr()), part))
        .filter(|(_, part)| !part.is_empty())
        .map(|(at, part)| (at, part.nfkc().flat_map(char::to_lowercase).collect()))
}

/// The words of a text, one after another.
#[derive(Clone)]
struct Words;

struct WordStream<I> {
    words: I,
    token: Token,
}

impl Tokenizer for Words {
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
        assert!(STOP_WORDS.is_sorted(), "they are found by halving");
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
            assert_eq!(asked(query).join(" "), words, "{query}");
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
