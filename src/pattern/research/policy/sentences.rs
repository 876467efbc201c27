//! Splits a text into sentences, for the rules that quote and compare. Pure. (Words are compared by
//! the same stems as in the folder index.)

use unicode_segmentation::UnicodeSegmentation;

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
    fn sentences_end_where_people_see_them_end() {
        let text =
            "Uptime is 99.95%. For P1, target\nis 15 minutes.\n\n\nNo. 5 is next, e.g. here!";
        let all: Vec<String> = sentences(text).collect();
        let expected =
            ["Uptime is 99.95%.", "For P1, target is 15 minutes.", "No. 5 is next, e.g. here!"];
        assert_eq!(all, expected);
    }

    #[test]
    fn an_abbreviation_does_not_end_a_sentence() {
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
    fn a_heading_has_few_words_and_says_nothing() {
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
