//! Ranks documents for a query (BM25 over title, text, address and date; the order depends on the
//! documents only), and quotes their best matching sentences.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::text_index::{IndexFailed, TextIndex};
use crate::base::stems::{StemCache, query_words};
use crate::base::word_query::each_word;

/// Most different words of a query that are searched.
const MAX_WORDS: usize = 512;

/// The searched parts of a document and their weights.
pub(super) const PARTS: [(&str, f64); 4] =
    [("title", 2.0), ("body", 1.0), ("place", 0.5), ("date", 0.5)];

/// Scores of documents by their ids, and weights of words.
type WordScores = (HashMap<i64, f64>, HashMap<String, f64>);

/// A document that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Address (URL) of the document.
    pub address: String,
    /// Title of the document.
    pub title: String,
    /// Best matching sentences.
    pub snippet: String,
    /// Score in thousandths of the best hit's score.
    pub score: u32,
    /// Date as `YYYY-MM-DD`, or empty.
    pub published_at: String,
    /// Whether the date is that of the file's last change.
    pub dated_by_file: bool,
}

/// Result of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// Best first; equal scores by address.
    pub hits: Vec<Hit>,
    /// Number of different words beyond the first 512, which were not searched.
    pub words_left_out: usize,
}

impl TextIndex {
    /// Finds the `k` best documents. Every word counts, rare ones more. Stop words count only if
    /// there are no others.
    ///
    /// # Errors
    /// [`IndexFailed::Broken`]
    pub fn search(&self, query: &str, k: usize) -> Result<Hits, IndexFailed> {
        let mut asked = query_words(query);
        let words_left_out = asked.len().saturating_sub(MAX_WORDS);
        asked.truncate(MAX_WORDS);
        let nothing = Hits { words_left_out, ..Hits::default() };
        if asked.is_empty() || k == 0 {
            return Ok(nothing);
        }
        let (scores, weights) = self.scores(&asked)?;
        let best = scores.values().copied().fold(0.0, f64::max);
        if best <= 0.0 {
            return Ok(nothing);
        }
        let mut ranked: Vec<(u32, i64)> =
            scores.into_iter().map(|(id, score)| (thousandths(score, best), id)).collect();
        ranked.sort_unstable_by_key(|(score, _)| std::cmp::Reverse(*score));
        // All documents with the score of the last one are sorted by address before the cut.
        let last = ranked.get(k - 1).map_or(0, |(score, _)| *score);
        ranked.retain(|(score, _)| *score >= last);
        let mut address =
            self.connection.prepare_cached("SELECT address FROM file WHERE id = ?1")?;
        let mut named: Vec<(u32, String, i64)> = Vec::with_capacity(ranked.len());
        for (score, id) in ranked {
            named.push((score, address.query_row([id], |row| row.get(0))?, id));
        }
        named.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        named.truncate(k);
        let hits = named
            .into_iter()
            .map(|(score, address, id)| self.hit(score, address, id, &weights))
            .collect::<Result<_, _>>()?;
        Ok(Hits { hits, words_left_out })
    }

    /// BM25 of each document by its id, and the weight of each word in texts: the rarer, the higher.
    fn scores(&self, asked: &[String]) -> Result<WordScores, IndexFailed> {
        let sql = "SELECT count(*) FROM file WHERE skipped = 0";
        let documents: u32 = self.connection.query_row(sql, [], |row| row.get(0))?;
        let (mut scores, mut weights) = (HashMap::new(), HashMap::new());
        for (part, boost) in PARTS {
            // A word in quotes is no operator. A number such as 99.95 becomes a phrase.
            let mut matches = self.connection.prepare_cached(&format!(
                "SELECT rowid, -bm25({part}) FROM {part} WHERE {part} MATCH '\"' || ?1 || '\"'"
            ))?;
            for word in asked {
                let found = matches
                    .query_map([word], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<Vec<(i64, f64)>>>()?;
                let holding = u32::try_from(found.len()).unwrap_or(u32::MAX);
                let others = f64::from(documents.saturating_sub(holding));
                let ratio = (others + 0.5) / (f64::from(holding) + 0.5);
                let weight = (1.0 + ratio).ln();
                // The weight in bm25() is almost 0 for words of more than half of the documents: in a
                // small folder these are many.
                let factor = boost * weight / ratio.ln().max(1e-6);
                for (id, score) in found {
                    *scores.entry(id).or_default() += factor * score;
                }
                if part == "body" {
                    weights.insert(word.clone(), weight);
                }
            }
        }
        Ok((scores, weights))
    }

    fn hit(
        &self,
        score: u32,
        address: String,
        id: i64,
        weights: &HashMap<String, f64>,
    ) -> Result<Hit, IndexFailed> {
        let mut page = self
            .connection
            .prepare_cached("SELECT title, date, dated_by_file, body FROM page WHERE id = ?1")?;
        Ok(page.query_row([id], |row| {
            Ok(Hit {
                address,
                title: row.get(0)?,
                snippet: snippet(&row.get::<_, String>(3)?, weights),
                score,
                published_at: row.get(1)?,
                dated_by_file: row.get(2)?,
            })
        })?)
    }
}

/// A score in thousandths of the best one, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn thousandths(score: f64, best: f64) -> u32 {
    ((score / best * 1_000.0).round() as u32).clamp(1, 1_000)
}

/// Most characters of a snippet.
const CHARS: usize = 200;

/// Most sentences of a snippet.
const MAX_SENTENCES: usize = 4;

/// Bytes of a document that are searched for the best sentences.
const SEARCHED_BYTES: usize = 512 << 10;

/// The best run of consecutive sentences within one paragraph, with at most [`CHARS`] characters
/// and [`MAX_SENTENCES`] sentences: the one with the highest weight, then the fewest sentences, then the
/// first. `weights` has the weight of each stemmed query word. Without a match, the beginning of
/// the text.
pub(crate) fn snippet(text: &str, weights: &HashMap<String, f64>) -> String {
    let text = text.get(..char_floor(text, SEARCHED_BYTES)).unwrap_or(text);
    let mut stems = StemCache::default();
    let mut best: Option<(f64, usize, String)> = None;
    for paragraph in text.split("\n\n") {
        // White space has no meaning here, but a line end would end a sentence.
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = matched_words(&mut stems, &paragraph, weights);
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
    stems: &mut StemCache,
    paragraph: &str,
    weights: &HashMap<String, f64>,
) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    each_word(paragraph, |word, place| {
        let stem = stems.stem(word);
        if weights.contains_key(stem) {
            found.push((place.start, stem.to_owned()));
        }
        true
    });
    found
}

/// A heading counts less than a sentence with the same words.
fn ending_weight(paragraph: &str, place: &Range<usize>) -> f64 {
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
fn weight(found: &[(usize, String)], part: &Range<usize>, weights: &HashMap<String, f64>) -> f64 {
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

    fn best(text: &str, asked: &[(&str, f64)]) -> String {
        let weights = asked.iter().map(|(word, weight)| ((*word).to_owned(), *weight)).collect();
        snippet(text, &weights)
    }

    const TEXT: &str = "Welcome to the status page.\n\nThe gateway is up. Payments in the US\nfail \
                        at times. All else is well. Write to us.\n\nPayments are nice.";

    #[test]
    fn picks_sentences_with_most_terms() {
        let asked = [("payment", 1.0), ("fail", 2.0)];
        assert_eq!(best(TEXT, &asked), "Payments in the US fail at times.");
        let asked = [("gateway", 1.0), ("fail", 2.0)];
        assert_eq!(best(TEXT, &asked), "The gateway is up. Payments in the US fail at times.");
        assert_eq!(best(TEXT, &[("payment", 1.0)]), "Payments in the US fail at times.");
        assert_eq!(best(TEXT, &[("nowher", 1.0)]), "Welcome to the status page.");
        assert_eq!(best("", &[("nowher", 1.0)]), "");
    }

    #[test]
    fn cuts_long_sentence_around_word() {
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
