//! Ranks documents for a query: BM25 over title, text, address and date. The order depends on the
//! documents only.
//!
//! Snippets of documents in search results: the best matching sentences.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{
    DocAddress, DocId, DocSet, Score, Searcher, SegmentOrdinal, SegmentReader, TERMINATED,
    TantivyDocument, Term,
};
use unicode_segmentation::UnicodeSegmentation;

use super::text_index;
use super::text_index::{DATED_BY_FILE, IndexFailed, LEFT_OUT, TextIndex};
use crate::base::stems::query_words;

/// Most different words of a query that are searched.
const MAX_WORDS: usize = 512;

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
        let searcher = self.searcher();
        let alive = LiveStatistics::new(&searcher)?;
        let nothing = Hits { words_left_out, ..Hits::default() };
        if alive.documents == 0 || asked.is_empty() || k == 0 {
            return Ok(nothing);
        }
        let query = self.query(&asked);
        let found = searcher.search_with_statistics_provider(&query, &AllMatches, &alive)?;
        let best = found.iter().map(|(score, _)| *score).fold(0.0, Score::max);
        if best <= 0.0 {
            return Ok(nothing);
        }
        let mut ranked: Vec<(u32, DocAddress)> =
            found.into_iter().map(|(score, at)| (thousandths(score, best), at)).collect();
        ranked.sort_unstable_by_key(|(score, _)| std::cmp::Reverse(*score));
        // All documents with the score of the last one are sorted by address before the cut.
        let last = ranked.get(k - 1).map_or(0, |(score, _)| *score);
        ranked.retain(|(score, _)| *score >= last);
        let mut named = Vec::with_capacity(ranked.len());
        for (score, at) in ranked {
            named.push((score, address(&searcher, at)?, at));
        }
        named.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        named.truncate(k);
        let weights = self.weights(&asked, &alive)?;
        let hits = named
            .into_iter()
            .map(|(score, address, at)| self.hit(&searcher, score, address, at, &weights))
            .collect::<Result<_, _>>()?;
        Ok(Hits { hits, words_left_out })
    }

    /// Searched fields and their weights.
    fn fields(&self) -> [(Field, Score); 4] {
        let fields = &self.fields;
        [(fields.title, 2.0), (fields.body, 1.0), (fields.place, 0.5), (fields.date, 0.5)]
    }

    fn query(&self, asked: &[String]) -> BooleanQuery {
        let each = asked.iter().flat_map(|word| {
            self.fields().into_iter().map(move |(field, weight)| {
                let term = Term::from_field_text(field, word);
                let term = TermQuery::new(term, IndexRecordOption::WithFreqs);
                let boosted: Box<dyn Query> = Box::new(BoostQuery::new(Box::new(term), weight));
                (Occur::Should, boosted)
            })
        });
        BooleanQuery::new(each.collect())
    }

    /// Weight of each query word: the rarer, the higher.
    fn weights(
        &self,
        asked: &[String],
        alive: &LiveStatistics<'_>,
    ) -> Result<HashMap<String, f32>, IndexFailed> {
        let mut weights = HashMap::new();
        for word in asked {
            let holding = alive.doc_freq(&Term::from_field_text(self.fields.body, word))?;
            let others = alive.documents.saturating_sub(holding);
            #[allow(clippy::cast_precision_loss)]
            let weight = (1.0 + (others as f32 + 0.5) / (holding as f32 + 0.5)).ln();
            weights.insert(word.clone(), weight);
        }
        Ok(weights)
    }

    fn hit(
        &self,
        searcher: &Searcher,
        score: u32,
        address: String,
        at: DocAddress,
        weights: &HashMap<String, f32>,
    ) -> Result<Hit, IndexFailed> {
        let document: TantivyDocument = searcher.doc(at)?;
        let text = |field: Field| {
            let value = document.get_first(field);
            value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
        };
        let columns = searcher.segment_reader(at.segment_ord).fast_fields();
        let dated_by_file = columns.u64(DATED_BY_FILE)?.first(at.doc_id) == Some(1);
        Ok(Hit {
            address,
            title: text(self.fields.title),
            snippet: snippet(&text(self.fields.body), weights),
            score,
            published_at: text(self.fields.date),
            dated_by_file,
        })
    }
}

fn address(searcher: &Searcher, at: DocAddress) -> Result<String, IndexFailed> {
    let columns = searcher.segment_reader(at.segment_ord).fast_fields();
    let mut address = String::new();
    if let Some(column) = columns.str("address")?
        && let Some(ordinal) = column.term_ords(at.doc_id).next()
    {
        column.ord_to_str(ordinal, &mut address)?;
    }
    Ok(address)
}

/// A score in thousandths of the best one, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn thousandths(score: Score, best: Score) -> u32 {
    ((f64::from(score) / f64::from(best) * 1_000.0).round() as u32).clamp(1, 1_000)
}

/// BM25 statistics of the current documents. The index itself also counts deleted and replaced
/// documents until it merges their segment, so the order would depend on the past.
struct LiveStatistics<'s> {
    searcher: &'s Searcher,
    documents: u64,
}

impl<'s> LiveStatistics<'s> {
    fn new(searcher: &'s Searcher) -> Result<Self, IndexFailed> {
        let mut documents = 0;
        for segment in searcher.segment_readers() {
            let left_out = segment.fast_fields().u64(LEFT_OUT)?;
            let is_one = |doc: &DocId| left_out.first(*doc) == Some(0);
            documents += segment.doc_ids_alive().filter(is_one).count() as u64;
        }
        Ok(Self { searcher, documents })
    }
}

impl Bm25StatisticsProvider for LiveStatistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let mut tokens = 0;
        for segment in self.searcher.segment_readers() {
            let lengths = segment.get_fieldnorms_reader(field)?;
            tokens +=
                segment.doc_ids_alive().map(|doc| u64::from(lengths.fieldnorm(doc))).sum::<u64>();
        }
        // At least 1, because it is a divisor, and perhaps no document has a date.
        Ok(tokens.max(1))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let mut holding = 0;
        for segment in self.searcher.segment_readers() {
            let inverted = segment.inverted_index(term.field())?;
            if !segment.has_deletes() {
                holding += u64::from(inverted.doc_freq(term)?);
                continue;
            }
            let Some(mut postings) = inverted.read_postings(term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                holding += u64::from(!segment.is_deleted(postings.doc()));
                postings.advance();
            }
        }
        Ok(holding)
    }
}

/// Collects every document with one of the words, with its score.
struct AllMatches;

struct SegmentMatches {
    segment: SegmentOrdinal,
    found: Vec<(Score, DocAddress)>,
}

impl Collector for AllMatches {
    type Fruit = Vec<(Score, DocAddress)>;
    type Child = SegmentMatches;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        _reader: &SegmentReader,
    ) -> tantivy::Result<Self::Child> {
        Ok(SegmentMatches { segment, found: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, fruits: Vec<Self::Fruit>) -> tantivy::Result<Self::Fruit> {
        Ok(fruits.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentMatches {
    type Fruit = Vec<(Score, DocAddress)>;

    fn collect(&mut self, doc: DocId, score: Score) {
        self.found.push((score, DocAddress::new(self.segment, doc)));
    }

    fn harvest(self) -> Self::Fruit {
        self.found
    }
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
pub(crate) fn snippet(text: &str, weights: &HashMap<String, f32>) -> String {
    let text = text.get(..char_floor(text, SEARCHED_BYTES)).unwrap_or(text);
    let mut analyzer = text_index::analyzer();
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
