//! The parts of a question that no note says anything about. Pure.
//!
//! Splits a text into sentences, for the rules that quote and compare. Pure. (Words are compared by
//! the same stems as in the folder index.)

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::base::stems::stems;

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

/// Abbreviations that always have a word after them.
const BEFORE_A_WORD: &[&str] = &[
    "approx", "ca", "capt", "cf", "col", "dr", "drs", "e.g", "esp", "ft", "gen", "gov", "hon",
    "i.e", "incl", "lt", "maj", "messrs", "mr", "mrs", "ms", "mt", "pres", "prof", "rep", "resp",
    "rev", "sen", "sgt", "viz", "vs",
];

/// Abbreviations if a number follows; without one they may be the last word of a sentence.
const BEFORE_A_NUMBER: &[&str] = &[
    "apr", "art", "aug", "ch", "dec", "eq", "feb", "fig", "figs", "jan", "jul", "jun", "mar", "no",
    "nos", "nov", "oct", "p", "para", "pp", "ref", "sec", "sep", "sept", "tab", "vol",
];

/// Abbreviations that may be the last word of a sentence.
const AFTER_A_NAME: &[&str] =
    &["ave", "bros", "co", "corp", "dept", "inc", "jr", "ltd", "sr", "st"];

/// Words that often begin a sentence and rarely follow a name.
const BEGINNINGS: &[&str] = &[
    "a", "after", "all", "also", "an", "and", "as", "at", "because", "before", "both", "but", "by",
    "did", "do", "does", "each", "every", "for", "from", "he", "her", "his", "how", "however", "i",
    "if", "in", "is", "it", "its", "many", "most", "my", "no", "not", "on", "one", "or", "our",
    "she", "since", "so", "some", "that", "the", "their", "then", "there", "these", "they", "this",
    "those", "to", "we", "what", "when", "where", "which", "while", "who", "why", "with", "you",
    "your",
];

/// The most bytes of an abbreviation.
const ABBREVIATION_BYTES: usize = 12;

/// The most words of a heading.
const HEADING_WORDS: usize = 6;

/// The sentences of a text, paragraph by paragraph, trimmed. A line break inside a paragraph does
/// not end a sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    paragraphs(text).flat_map(|paragraph| {
        let parts: Vec<String> = sentence_parts(&paragraph)
            .into_iter()
            .map(|(_, sentence)| sentence.trim().to_owned())
            .filter(|sentence| !sentence.is_empty())
            .collect();
        parts
    })
}

/// The sentences of a text without those of code blocks.
pub fn prose_sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    paragraphs(text)
        .filter(|paragraph| !is_code(paragraph))
        .flat_map(|paragraph| sentences(&paragraph).collect::<Vec<String>>())
}

/// Whether a paragraph is code rather than prose: at least a quarter of its words have the signs of
/// code. The text of a page no longer has the marks of code blocks.
fn is_code(paragraph: &str) -> bool {
    let has_signs = |word: &&str| {
        let is_operator = matches!(*word, "+" | "|" | "&&" | "||" | "->" | "=>" | "$" | ">>>");
        let has_letter = word.contains(char::is_alphabetic);
        let is_table = has_letter && word.starts_with('[') && word.ends_with(']');
        is_operator
            || is_table
            || word.contains(['{', '}', '=', '<', '>', ';', '`', '\\'])
            || ["::", "();", "):", "()"].iter().any(|sign| word.contains(sign))
            || word.starts_with("--")
    };
    let words = paragraph.split_whitespace();
    let (count, signs) = (words.clone().count(), words.filter(has_signs).count());
    signs > 0 && signs * 4 >= count
}

/// The parts of one paragraph that are sentences, each with its offset in bytes; together they are
/// the paragraph. They end as Unicode says, but not at an abbreviation, an initial, or the number of
/// a list item.
pub fn sentence_parts(paragraph: &str) -> Vec<(usize, &str)> {
    let mut parts: Vec<(usize, &str)> = Vec::new();
    for (at, part) in paragraph.split_sentence_bound_indices() {
        match parts.last_mut() {
            Some((start, before)) if goes_on(before, part) => {
                *before = &paragraph[*start..at + part.len()];
            }
            _ => parts.push((at, part)),
        }
    }
    parts
}

/// Whether the full stop at the end of a text belongs to an abbreviation, so that the sentence
/// continues with the next part.
fn goes_on(before: &str, next: &str) -> bool {
    let Some(rest) = before.trim_end().strip_suffix('.') else { return false };
    let word = rest.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    if word.is_empty() || word.len() > ABBREVIATION_BYTES {
        return false;
    }
    let first = next.split_whitespace().next().unwrap_or_default();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let begins = || BEGINNINGS.contains(&first.to_lowercase().as_str());
    let lower = word.to_lowercase();
    let is = |list: &[&str]| list.contains(&lower.as_str());
    let is_list_item =
        || rest.trim().len() == word.len() && word.bytes().all(|it| it.is_ascii_digit());
    is(BEFORE_A_WORD)
        || (is(BEFORE_A_NUMBER) && first.starts_with(|c: char| c.is_ascii_digit()))
        || ((is(AFTER_A_NAME) || is_initials(word)) && !first.is_empty() && !begins())
        || is_list_item()
}

/// Whether a word without its last full stop is single letters with full stops between them: `J`,
/// `U.S`.
fn is_initials(word: &str) -> bool {
    let is_letter = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    word != "I" && word.split('.').all(is_letter)
}

/// Whether a text is a heading rather than a sentence: a few words without a full stop that give no
/// figure and no value after a colon.
pub fn is_heading(text: &str) -> bool {
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || "\"')]}”’»".contains(c));
    !end.ends_with(|c: char| ".!?…:;。！？".contains(c))
        && !end.contains(|c: char| c.is_numeric() || c == ':')
        && end.split_whitespace().nth(HEADING_WORDS).is_none()
}

/// The paragraphs of a text: separated by blank lines, their white space folded.
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
    fn part_without_note_is_unanswered() {
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
            // Not a second question: a statement before the question, two things, and words without
            // content.
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

    #[test]
    fn splits_sentences_at_natural_ends() {
        let text =
            "Uptime is 99.95%. For P1, target\nis 15 minutes.\n\n\nNo. 5 is next, e.g. here!";
        let all: Vec<String> = sentences(text).collect();
        let expected =
            ["Uptime is 99.95%.", "For P1, target is 15 minutes.", "No. 5 is next, e.g. here!"];
        assert_eq!(all, expected);
    }

    #[test]
    fn abbreviation_does_not_end_sentence() {
        for (text, expected) in [
            (
                "The boiler was arranged with Mrs. Patel. She came.",
                &["The boiler was arranged with Mrs. Patel.", "She came."][..],
            ),
            ("Ask Dr. No. He knows.", &["Ask Dr. No.", "He knows."]),
            ("See e.g. Harbor Ltd. for it.", &["See e.g. Harbor Ltd. for it."]),
            ("It is No. 5 Elm Street. Yes.", &["It is No. 5 Elm Street.", "Yes."]),
            ("Is it there? No. Look again.", &["Is it there?", "No.", "Look again."]),
            ("J. R. R. Tolkien wrote it. So?", &["J. R. R. Tolkien wrote it.", "So?"]),
            ("The U.S. Army has it. Good.", &["The U.S. Army has it.", "Good."]),
            (
                "He lives in the U.S. The car is there.",
                &["He lives in the U.S.", "The car is there."],
            ),
            ("Open at 9 a.m. Monday. Then not.", &["Open at 9 a.m. Monday.", "Then not."]),
            ("Due on Jan. 5 Monday. Paid.", &["Due on Jan. 5 Monday.", "Paid."]),
            ("Sold by Harbor Inc. The price is 5.", &["Sold by Harbor Inc.", "The price is 5."]),
            ("Take plan B. It is 5. Then go.", &["Take plan B.", "It is 5.", "Then go."]),
            ("1. Open the lid. 2. Close it.", &["1. Open the lid.", "2. Close it."]),
            ("(Mr. Lee said so.) And Prof. Wu.", &["(Mr. Lee said so.)", "And Prof. Wu."]),
            ("Mr.", &["Mr."]),
            ("ඳ\u{2000}. Ab", &["ඳ .", "Ab"]),
            ("Than I. Perhaps.", &["Than I.", "Perhaps."]),
        ] {
            let all: Vec<String> = sentences(text).collect();
            assert_eq!(all, expected, "{text}");
            let parts: String = sentence_parts(text).into_iter().map(|(_, part)| part).collect();
            assert_eq!(parts, text, "nothing is lost");
        }
    }

    #[test]
    fn code_is_not_prose() {
        for code in [
            "[tools.http]\ntimeout_s = 5\nretries = { max_attempts = 3 }",
            "{ \"code\": 503, \"retry\": true }",
            "$ roundtable run checkout-launch --live",
            "def wait(n): return n + 1",
            "let x = call::<T>();",
            "<td>503</td>",
        ] {
            assert_eq!(prose_sentences(code).count(), 0, "{code}");
        }
        for prose in [
            "A tool that answers 503 is retried (at most 3 times) [1].",
            "Set `retries = 2` where a call is idempotent, as the page on calls says in detail.",
            "It costs < 5 EUR a month for most of the teams that we asked.",
            "See [2] and [3] for it.",
        ] {
            assert_eq!(prose_sentences(prose).count(), 1, "{prose}");
        }
    }

    #[test]
    fn heading_is_short_without_statement() {
        for heading in ["Notes on car insurance", "Car insurance (private)", "Who to call"] {
            assert!(is_heading(heading), "{heading}");
        }
        for sentence in [
            "The excess is high.",
            "Is it insured?",
            "“It is.”",
            "Excess 250 EUR",
            "Insurer: Harbor",
            "Call the plumber about the boiler on the second floor",
        ] {
            assert!(!is_heading(sentence), "{sentence}");
        }
    }
}
