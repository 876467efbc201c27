//! Plans and notes without a model: a note quotes a sentence of the page that matches the question
//! best. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::sentences::{is_heading, prose_sentences};
use super::policy::{Draft, MIN_QUOTE_CHARS};
use crate::base::stems::stems;

/// The most characters of a sentence that becomes a note: longer ones are rarely real sentences.
const SENTENCE_CHARS: usize = 400;

/// The plan without a model (`propose_research_plan` in the research source document): it searches
/// for the question itself.
pub fn plan(question: &str) -> serde_json::Value {
    let steps = crate::pattern::research::spec::ResearchStep::ALL.iter().enumerate().map(|(place, step)| {
        let args = match place {
            0 => serde_json::json!({ "query": question }),
            _ => serde_json::json!({}),
        };
        serde_json::json!({ "id": format!("r{}", place + 1), "action": step.action(), "args": args })
    });
    steps.collect::<Vec<_>>().into()
}

/// The sentences that match a question best, at most `most`, best first. Each is both claim and
/// quote. A word counts more if fewer sentences contain it. Sentences that share no word with the
/// question, or score less than half of the best, are left out, and so are code blocks and headings:
/// `title` is that of the page. Linear time.
pub fn notes(question: &str, title: &str, page: &str, most: u32) -> Vec<Draft> {
    let asked: BTreeSet<String> = stems(question).into_iter().collect();
    let mut seen = BTreeSet::new();
    let all: Vec<(String, BTreeSet<String>)> = prose_sentences(page)
        .filter(|sentence| {
            let chars = sentence.chars().count();
            (MIN_QUOTE_CHARS..=SENTENCE_CHARS).contains(&chars)
                && !is_heading(sentence)
                && sentence != title.trim()
                && seen.insert(sentence.clone())
        })
        .map(|sentence| {
            let own: BTreeSet<String> = stems(&sentence).into_iter().collect();
            let shared = own.intersection(&asked).cloned().collect();
            (sentence, shared)
        })
        .collect();
    let mut spread: BTreeMap<&str, usize> = BTreeMap::new();
    for word in all.iter().flat_map(|(_, words)| words) {
        *spread.entry(word).or_default() += 1;
    }
    let weight = |word: &String| {
        let among = spread.get(word.as_str()).copied().unwrap_or(1);
        (1.0 + all.len() as f64 / among as f64).ln()
    };
    let mut ranked: Vec<(f64, usize)> = all
        .iter()
        .enumerate()
        .map(|(place, (_, words))| (words.iter().map(weight).sum(), place))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    ranked.sort_by(|(left, at), (right, other)| right.total_cmp(left).then(at.cmp(other)));
    let best = ranked.first().map_or(0.0, |(score, _)| *score);
    let good = ranked.into_iter().take_while(|(score, _)| *score * 2.0 >= best);
    good.take(most as usize)
        .filter_map(|(_, place)| {
            let (sentence, _) = all.get(place)?;
            Some(Draft { claim: sentence.clone(), quote: sentence.clone() })
        })
        .collect()
}
