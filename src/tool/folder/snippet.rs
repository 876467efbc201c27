//! Snippets of documents in search results: the best matching sentences.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tantivy::tokenizer::TextAnalyzer;
use unicode_segmentation::UnicodeSegmentation;

use super::words;

/// Most characters of a snippet.
pub(super) const CHARS: usize = 200;

/// Most sentences of a snippet.
const MAX_SENTENCES: usize = 4;

/// Bytes of a document that are searched for the best sentences.
const SEARCHED_BYTES: usize = 512 << 10;

/// The best run of consecutive sentences within one paragraph, with at most [`CHARS`] characters
/// and [`MAX_SENTENCES`] sentences: the one with the highest weight, then the fewest sentences, then the
/// first. `weights` has the weight of each stemmed query word. Without a match, the beginning of
/// the text.
pub(super) fn snippet(text: &str, weights: &HashMap<String, f32>) -> String {
    let text = text.get(..char_floor(text, SEARCHED_BYTES)).unwrap_or(text);
    let mut analyzer = words::analyzer();
    let mut best: Option<(f32, usize, String)> = None;
    for paragraph in text.split("\n\n") {
        // White space has no meaning here, but a line end would end a sentence.
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = matched_words(&mut analyzer, &paragraph, weights);
        if found.is_empty() && best.is_some() {
            continue;
        }
        for SentenceRun { place, sentences } in sentence_runs(&paragraph) {
            let weight = weight(&found, &place, weights) * ending_weight(&paragraph, &place);
            let better = best.as_ref().is_none_or(|(most, fewest, _)| {
                weight > *most || (weight >= *most && sentences < *fewest)
            });
            if better {
                best = Some((weight, sentences, snippet_text(&paragraph, place, &found)));
            }
        }
    }
    best.map_or_else(String::new, |(_, _, snippet)| snippet)
}

/// Query words in a paragraph, with their offsets.
fn matched_words(
    analyzer: &mut TextAnalyzer,
    paragraph: &str,
    weights: &HashMap<String, f32>,
) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut stream = analyzer.token_stream(paragraph);
    while stream.advance() {
        let token = stream.token();
        if weights.contains_key(&token.text) {
            found.push((token.offset_from, token.text.clone()));
        }
    }
    found
}

/// A heading counts less than a sentence with the same words.
fn ending_weight(paragraph: &str, place: &Range<usize>) -> f32 {
    let text = paragraph.get(place.clone()).unwrap_or_default().trim_end();
    if text.ends_with(['.', '!', '?', '…', '。', '！', '？', '"', '”', ')']) {
        1.0
    } else {
        0.8
    }
}

/// Consecutive sentences.
struct SentenceRun {
    place: Range<usize>,
    sentences: usize,
}

fn char_floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Sum of the weights of the query words in a part, each word counted once.
fn weight(found: &[(usize, String)], part: &Range<usize>, weights: &HashMap<String, f32>) -> f32 {
    let from = found.partition_point(|(at, _)| *at < part.start);
    let mut seen = HashSet::new();
    let within = found.iter().skip(from).take_while(|(at, _)| *at < part.end);
    within.filter(|(_, word)| seen.insert(word)).filter_map(|(_, word)| weights.get(word)).sum()
}

/// Sentences, and runs of them that fit into a snippet.
fn sentence_runs(paragraph: &str) -> Vec<SentenceRun> {
    let all: Vec<(usize, &str)> = paragraph.split_sentence_bound_indices().collect();
    let mut parts = Vec::new();
    for (first, (start, _)) in all.iter().enumerate() {
        let mut chars = 0;
        for (before, (at, sentence)) in all.iter().skip(first).take(MAX_SENTENCES).enumerate() {
            chars += sentence.chars().count();
            if before > 0 && chars > CHARS {
                break;
            }
            parts.push(SentenceRun { place: *start..at + sentence.len(), sentences: before + 1 });
        }
    }
    parts
}

/// Text of a part. A single sentence that is too long is cut around its first query word.
fn snippet_text(paragraph: &str, part: Range<usize>, found: &[(usize, String)]) -> String {
    let whole = paragraph.get(part.clone()).unwrap_or_default().trim_end();
    if whole.chars().count() <= CHARS {
        return whole.to_owned();
    }
    let first = found.iter().map(|(at, _)| *at).find(|at| part.contains(at));
    let first = first.map_or(0, |at| at - part.start);
    let chars_before = whole.get(..first).unwrap_or_default().chars().count();
    let total = whole.chars().count();
    let room = CHARS - 2;
    // A third of the space is for the text before the word.
    let from = chars_before.saturating_sub(CHARS / 3).min(total.saturating_sub(room));
    let mut cut: String = whole.chars().skip(from).take(room).collect();
    if from > 0 {
        // Removes a partial word at the start, unless it is most of the text.
        let word = cut.find(' ').filter(|at| *at < cut.len() / 4).map_or(0, |at| at + 1);
        cut = format!("…{}", cut.get(word..).unwrap_or(&cut));
    }
    if from + room < total {
        let end = cut.rfind(' ').filter(|at| *at > cut.len() / 2).unwrap_or(cut.len());
        cut.truncate(end);
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(text: &str, asked: &[(&str, f32)]) -> String {
        let weights = asked.iter().map(|(word, weight)| ((*word).to_owned(), *weight)).collect();
        snippet(text, &weights)
    }

    const TEXT: &str = "Welcome to the status page.\n\nThe gateway is up. Payments in the US\nfail \
                        at times. All else is well. Write to us.\n\nPayments are nice.";

    #[test]
    fn the_sentences_that_hold_most_of_what_was_asked() {
        let asked = [("payment", 1.0), ("fail", 2.0)];
        assert_eq!(best(TEXT, &asked), "Payments in the US fail at times.");
        let asked = [("gateway", 1.0), ("fail", 2.0)];
        assert_eq!(best(TEXT, &asked), "The gateway is up. Payments in the US fail at times.");
        assert_eq!(best(TEXT, &[("payment", 1.0)]), "Payments in the US fail at times.");
        assert_eq!(best(TEXT, &[("nowher", 1.0)]), "Welcome to the status page.");
        assert_eq!(best("", &[("nowher", 1.0)]), "");
    }

    #[test]
    fn a_long_sentence_is_cut_around_the_word() {
        let long = format!("{} needle {}", "word ".repeat(100), "грн ".repeat(100));
        let cut = best(&long, &[("needl", 1.0)]);
        assert!(cut.chars().count() <= CHARS, "{cut}");
        assert!(cut.contains(" needle ") && cut.starts_with("…word") && cut.ends_with("грн…"));
        let solid = "ж".repeat(5_000);
        let cut = best(&solid, &[]);
        assert!(cut.chars().count() <= CHARS && cut.ends_with('…'));
        let at_the_end = format!("{}needle", "x".repeat(900) + " ");
        let cut = best(&at_the_end, &[("needl", 1.0)]);
        assert!(cut.ends_with(" needle") && cut.chars().count() <= CHARS, "{cut}");
    }
}
