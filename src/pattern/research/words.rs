//! Words of a text by their stems, and its sentences: what rules compare. Pure.

use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// English words that say nothing by themselves.
const EMPTY: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "before",
    "but",
    "by",
    "can",
    "could",
    "current",
    "currently",
    "did",
    "do",
    "does",
    "each",
    "for",
    "from",
    "had",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "may",
    "more",
    "most",
    "no",
    "not",
    "now",
    "of",
    "on",
    "once",
    "or",
    "our",
    "per",
    "should",
    "so",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "to",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// The stem of a word in lower case.
pub fn stem(word: &str) -> String {
    static ENGLISH: OnceLock<Stemmer> = OnceLock::new();
    let english = ENGLISH.get_or_init(|| Stemmer::create(Algorithm::English));
    english.stem(&word.to_lowercase()).into_owned()
}

/// The stems of a text's words in order, those that say nothing left out.
pub fn stems(text: &str) -> Vec<String> {
    let words = text.unicode_words().filter(|word| !is_empty(word));
    words.map(stem).collect()
}

/// Whether a word says nothing by itself.
pub fn is_empty(word: &str) -> bool {
    EMPTY.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// The sentences of a text, paragraph by paragraph, white space around them trimmed. A line that
/// ends in the middle of a paragraph ends no sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    paragraphs(text).flat_map(|paragraph| {
        let bounds: Vec<String> = paragraph
            .split_sentence_bounds()
            .map(|sentence| sentence.trim().to_owned())
            .filter(|sentence| !sentence.is_empty())
            .collect();
        bounds
    })
}

/// The paragraphs of a text: what stands between blank lines, its white space folded.
fn paragraphs(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut lines = text.lines();
    let mut done = false;
    std::iter::from_fn(move || {
        let mut paragraph = String::new();
        while !done {
            let Some(line) = lines.next() else {
                done = true;
                break;
            };
            let mut words = line.split_whitespace().peekable();
            if words.peek().is_none() {
                if paragraph.is_empty() {
                    continue;
                }
                break;
            }
            for word in words {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(word);
            }
        }
        (!paragraph.is_empty()).then_some(paragraph)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_as_its_search_needs() {
        assert!(EMPTY.is_sorted());
    }

    #[test]
    fn words_meet_by_their_stems() {
        assert_eq!(stems("The failed Payments are failing."), ["fail", "payment", "fail"]);
        assert_eq!(stems("P1 SLA: 99.95%"), ["p1", "sla", "99.95"]);
    }

    #[test]
    fn sentences_end_where_people_see_them_end() {
        let text =
            "Uptime is 99.95%. For P1, target\nis 15 minutes.\n\n\nNo. 5 is next, e.g. here!";
        let all: Vec<String> = sentences(text).collect();
        let expected =
            ["Uptime is 99.95%.", "For P1, target is 15 minutes.", "No. 5 is next, e.g. here!"];
        assert_eq!(all, expected);
    }
}
