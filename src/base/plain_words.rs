//! The words of a text as an exact search compares them: letters and digits, in lower case, in
//! compatibility form, without diacritics. Every character of a script that is written without blanks
//! (Chinese, Japanese, Thai and others) counts as one word, so a word of several characters is found as
//! a phrase.

use std::ops::Range;

use unicode_normalization::char::decompose_compatible;

/// Longest word in bytes; what follows is left out. Longer words are keys or encoded pictures.
const MAX_WORD_BYTES: usize = 64;

/// Calls `each` with every word of a text and its place in bytes, until it returns `false`.
fn each_word(text: &str, mut each: impl FnMut(&str, Range<usize>) -> bool) {
    let mut word = String::new();
    let mut start = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        if word.is_empty() {
            start = at;
        }
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                push(&mut word, c.to_ascii_lowercase());
                end = after;
                continue;
            }
        } else if is_alone(c) {
            if !word.is_empty() && !each(&word, start..end) {
                return;
            }
            word.clear();
            if !each(c.encode_utf8(&mut [0; 4]), at..after) {
                return;
            }
            continue;
        } else if c.is_alphanumeric() || (!word.is_empty() && is_mark(c)) {
            decompose_compatible(c, |part| {
                for part in part.to_lowercase().filter(|part| !is_diacritic(*part)) {
                    if part.is_alphanumeric() || is_mark(part) {
                        push(&mut word, part);
                    }
                }
            });
            end = after;
            continue;
        }
        if !word.is_empty() && !each(&word, start..end) {
            return;
        }
        word.clear();
    }
    if !word.is_empty() {
        each(&word, start..end);
    }
}

fn push(word: &mut String, c: char) {
    if word.len() + c.len_utf8() <= MAX_WORD_BYTES {
        word.push(c);
    }
}

/// What is left out of a word: combining diacritics, and the points of Hebrew and Arabic.
fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

/// Whether a character continues a word without being a letter.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

/// Whether a character belongs to a script that is written without blanks.
fn is_alone(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
        && (c.is_alphanumeric() || is_mark(c))
}

/// The words of a text with their places in bytes.
pub fn plain_words(text: &str) -> Vec<(Range<usize>, String)> {
    let mut words = Vec::new();
    each_word(text, |word, place| {
        words.push((place, word.to_owned()));
        true
    });
    words
}

/// Adds the words of a text to `words`, each followed by a blank, until that has `most` bytes.
pub fn push_plain_words(text: &str, words: &mut String, most: usize) {
    each_word(text, |word, _| {
        if words.len() + word.len() < most {
            words.push_str(word);
            words.push(' ');
        }
        words.len() + 1 < most
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> String {
        let mut words = String::new();
        push_plain_words(text, &mut words, 1_000);
        words.trim_end().to_owned()
    }

    #[test]
    fn words_are_compared_without_case_diacritics_and_punctuation() {
        for (text, words) in [
            ("No-go: 99.95% by Finance_Analyst!", "no go 99 95 by finance analyst"),
            ("Café, CAFE\u{301} and Ｃａｆé", "cafe cafe and cafe"),
            ("Αθήνα Ёлка Straße", "αθηνα елка straße"),
            ("東京都に住む", "東 京 都 に 住 む"),
            ("v2を公開", "v2 を 公 開"),
            ("한국어 검색", "한국어 검색"),
            ("हिन्दी में", "हिन्दी में"),
            ("\u{301} \u{0}a\u{7f}b", "a b"),
            ("", ""),
        ] {
            // Korean syllables are compared as their letters.
            let words: String = words.split(' ').map(|it| joined(it) + " ").collect();
            assert_eq!(joined(text), words.trim_end(), "{text}");
        }
    }

    #[test]
    fn places_are_those_in_the_text() {
        let text = "Ein Café in 東京.";
        let places: Vec<&str> =
            plain_words(text).into_iter().map(|(place, _)| &text[place]).collect();
        assert_eq!(places, ["Ein", "Café", "in", "東", "京"]);
    }

    #[test]
    fn long_words_and_long_texts_are_cut() {
        let text = format!("{} b", "a".repeat(500));
        assert_eq!(plain_words(&text)[0].1.len(), MAX_WORD_BYTES);
        let mut words = String::new();
        push_plain_words(&"abc ".repeat(100), &mut words, 10);
        assert_eq!(words, "abc abc ");
    }
}
