//! The parts of a question that no note says anything about. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::stems::stems;
use crate::pattern::research::policy::sentences::sentences;

/// Words that begin a question, also after `and`.
const QUESTION_WORDS: &[&str] = &[
    "are", "can", "could", "did", "do", "does", "had", "has", "have", "how", "is", "may", "must",
    "should", "was", "were", "what", "when", "where", "which", "who", "whom", "whose", "why",
    "will", "would",
];

/// Words that begin a request.
const REQUEST_WORDS: &[&str] = &[
    "compare",
    "describe",
    "explain",
    "find",
    "give",
    "list",
    "name",
    "show",
    "state",
    "summarise",
    "summarize",
    "tell",
];

/// The parts of a question that share no word with any quote, in the order of the question. Stop words
/// do not count. A question of one part gives none, because its answer cites a note. Linear time.
pub fn unanswered<'q>(question: &str, quotes: impl IntoIterator<Item = &'q str>) -> Vec<String> {
    let parts = question_parts(question);
    if parts.len() < 2 {
        return Vec::new();
    }
    let said: BTreeSet<String> = quotes.into_iter().flat_map(stems).collect();
    let is_open = |part: &String| {
        let words = content_words(part);
        !words.is_empty() && !words.iter().any(|word| said.contains(word))
    };
    parts.into_iter().filter(is_open).collect()
}

/// How many of the pages that were read have each content word of a question.
#[derive(Clone, Debug, Default)]
pub struct PageWords {
    pages: BTreeMap<String, u32>,
}

impl PageWords {
    /// No page yet.
    pub fn of(question: &str) -> Self {
        Self { pages: content_words(question).into_iter().map(|word| (word, 0)).collect() }
    }

    /// Counts a page. Linear time.
    pub fn add(&mut self, page: &str) {
        let words: BTreeSet<String> = stems(page).into_iter().collect();
        for (word, pages) in &mut self.pages {
            *pages += u32::from(words.contains(word));
        }
    }
}

/// The parts of a question whose rarest word is in no quote, in the order of the question: for answers
/// by rule, whose quotes may share only common words with the question. The rarest word is the one that
/// the fewest pages have; of several, one in a quote is enough. A question of one part counts too.
pub fn unanswered_by_rule<'q>(
    question: &str,
    quotes: impl IntoIterator<Item = &'q str>,
    words: &PageWords,
) -> Vec<String> {
    let said: BTreeSet<String> = quotes.into_iter().flat_map(stems).collect();
    let pages = |word: &String| words.pages.get(word).copied().unwrap_or_default();
    let is_open = |part: &String| {
        let words = content_words(part);
        let fewest = words.iter().map(pages).min();
        let mut rarest = words.iter().filter(|word| Some(pages(word)) == fewest);
        !words.is_empty() && !rarest.any(|word| said.contains(word))
    };
    question_parts(question).into_iter().filter(is_open).collect()
}

/// The stems of a part, without those of `how often`, `how long` and so on: they are the question, and
/// answers do not repeat them. `it` and `us` are a department and a country in capitals only.
fn content_words(part: &str) -> Vec<String> {
    let trimmed = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let mut after_how = false;
    let words = part.split_whitespace().filter(|word| {
        let word = trimmed(word);
        let is_asked = std::mem::replace(&mut after_how, word.eq_ignore_ascii_case("how"));
        let measures =
            ["far", "fast", "high", "large", "long", "many", "much", "often", "old", "soon"];
        !(matches!(&*word, "it" | "us") || is_asked && measures.contains(&&*word))
    });
    stems(&words.collect::<Vec<&str>>().join(" "))
}

/// The parts of a question: its sentences, divided where a second question begins after `and` or a
/// semicolon. Where some sentence asks, the others only say what it is about.
fn question_parts(question: &str) -> Vec<String> {
    let sentences: Vec<String> = sentences(question).collect();
    let asks = |sentence: &String| {
        let begins = |words: &[&str]| words.contains(&first_word(sentence).as_str());
        sentence.contains('?') || begins(QUESTION_WORDS) || begins(REQUEST_WORDS)
    };
    let some_ask = sentences.iter().any(asks);
    let asked = sentences.iter().filter(|sentence| !some_ask || asks(sentence));
    asked.flat_map(|sentence| divided(sentence)).collect()
}

/// The parts of one sentence.
fn divided(sentence: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut words = sentence.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let next = words.peek().map(|next| first_word(next));
        let is_and = matches!(word.to_lowercase().as_str(), "and" | "&");
        let second = is_and && next.is_some_and(|next| QUESTION_WORDS.contains(&next.as_str()));
        if !second {
            part.push_str(if part.is_empty() { "" } else { " " });
            part.push_str(word);
        }
        if second || part.ends_with(';') {
            parts.push(std::mem::take(&mut part));
        }
    }
    parts.push(part);
    let trimmed = parts.iter().map(|part| part.trim_end_matches([',', ';', ' ']));
    trimmed.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The first word of a text, in lower case.
fn first_word(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_which_no_note_says_anything_is_unanswered() {
        let quotes =
            ["The excess of the car insurance is 250 EUR.", "Mrs. Patel mended the boiler."];
        for (question, expected) in [
            ("What is the excess and who owns the boat?", &["who owns the boat?"][..]),
            ("What is the excess, and where is the lawnmower?", &["where is the lawnmower?"]),
            ("What is the excess? Where is the lawnmower?", &["Where is the lawnmower?"]),
            ("What is the excess; where is the lawnmower", &["where is the lawnmower"]),
            ("Who mended the boiler and what is the excess?", &[]),
            ("Where is the lawnmower?", &[]),
            ("Tell me the excess. List the lawnmowers.", &["List the lawnmowers."]),
            // Not a second question: what is said before it, two things, and words that say nothing.
            ("I have a yacht. What is the excess?", &[]),
            ("What are the excess and the lawnmower?", &[]),
            ("What is the excess and why is that?", &[]),
            ("How high is the excess, and is it over?", &[]),
            ("What is the excess, and who is in IT?", &["who is in IT?"]),
            ("Ask Mrs. Patel. The boiler. A yacht.", &["A yacht."]),
            ("", &[]),
        ] {
            assert_eq!(unanswered(question, quotes), expected, "{question}");
        }
        assert_eq!(unanswered("What is the yacht? Who is Ann?", []).len(), 2);
    }

    #[test]
    fn the_rarest_word_decides_by_rule() {
        let pages = [
            "A call is retried by the tool gateway. Tools answer in time.",
            "A tool that fails is called again. Its answer may be 429.",
        ];
        let quotes = ["A call is retried by the tool gateway."];
        for (question, expected) in [
            // Every word but one is common, and that one is in no page.
            (
                "Is a call retried when a tool answers 503?",
                &["Is a call retried when a tool answers 503?"][..],
            ),
            ("Is a call retried by the gateway?", &[]),
            // `retri` and `gateway` are equally rare.
            ("Is it retried? Does a tool answer 429?", &["Does a tool answer 429?"]),
            ("How often is a call retried?", &[]),
            ("How is it?", &[]),
            ("", &[]),
        ] {
            let mut words = PageWords::of(question);
            pages.iter().for_each(|page| words.add(page));
            assert_eq!(unanswered_by_rule(question, quotes, &words), expected, "{question}");
        }
    }
}
