//! Reports the syntax errors of a file, and what to do.

use std::ops::Range;

use toml::de::Error;

use super::reader::{ReadContext, closest_name};
use super::tree::TextSpan;
use super::unclosed::find_unclosed;

/// Maximum number of syntax errors that are reported: one of them often causes the next.
const SYNTAX_ERRORS: usize = 20;

/// Reports the syntax errors of a text alone: all other problems would follow from them.
pub(crate) fn report_syntax_errors(text: &str, errors: &[Error], cx: &mut ReadContext) {
    let mut places: Vec<(TextSpan, &Error)> = errors
        .iter()
        .map(|error| (TextSpan::new(0, error.span().unwrap_or_default()), error))
        .collect();
    places.sort_by_key(|(at, _)| at.start);
    // The first error at a position names the cause.
    places.dedup_by_key(|(at, _)| at.start);
    let unclosed = find_unclosed(text);
    if let Some(unclosed) = &unclosed {
        // The parser reports where it stops to understand, often lines after the cause.
        let line = text[..unclosed.at].rfind('\n').map_or(0, |at| at + 1);
        places.retain(|(at, _)| at.start < line);
    }
    // Only the first one is examined: there may be one for each line.
    let duplicate = places.iter().find(|(_, error)| error.message() == "duplicate key");
    let misspelt = duplicate.and_then(|(at, _)| misspelt_header(text, *at));
    if let Some((header, meant)) = misspelt {
        let what = format!("unknown key `{}`", &text[header.clone()]);
        cx.error(TextSpan::new(0, header.clone()), what, format!("did you mean `{meant}`?"));
        places.retain(|(at, _)| at.start < header.start);
    }
    for (at, error) in places.iter().take(SYNTAX_ERRORS) {
        let (what, help) = explain(text, *at, error.message());
        cx.error(*at, format!("not TOML: {what}"), help);
    }
    cx.count_errors(places.len().saturating_sub(SYNTAX_ERRORS));
    if let Some(unclosed) = unclosed {
        let at = TextSpan::new(0, unclosed.at..unclosed.at + unclosed.opened.len());
        let what = match unclosed.opened {
            "[" | "[[" | "{" => format!("`{}` is not closed", unclosed.opened),
            _ => "the string is not closed".to_owned(),
        };
        cx.error(at, format!("not TOML: {what}"), format!("add `{}`", unclosed.missing));
    }
}

/// Where the header before a duplicate table has a name that is almost the first name of that table,
/// and that name: in a list of tables, a misspelt `[[header]]` makes the next `[header.part]` a
/// duplicate.
fn misspelt_header(text: &str, duplicate: TextSpan) -> Option<(Range<usize>, &str)> {
    let mut headers = text[..duplicate.start].rmatch_indices("\n[").map(|(at, _)| at + 1);
    let meant = &text[header_name(text, headers.next()?)];
    let before = header_name(text, headers.next()?);
    let name = &text[before.clone()];
    let is_near = name != meant && closest_name(name, [meant]).is_some();
    is_near.then_some((before, meant))
}

/// The place of the first name of a header.
fn header_name(text: &str, header: usize) -> Range<usize> {
    let start = header + text[header..].len() - text[header..].trim_start_matches('[').len();
    start..start + word_at(text, start).len()
}

/// What is wrong, and what to do.
fn explain(text: &str, at: TextSpan, message: &str) -> (String, String) {
    let raw = text.get(at.start..at.end).unwrap_or_default();
    if message == "duplicate key" {
        let line = text[..at.start].rsplit('\n').next().unwrap_or_default();
        let help = match line.trim_start().starts_with('[') {
            true => "put the keys of both tables under one header",
            false => "keep one of the two",
        };
        return (format!("duplicate key `{raw}`"), help.to_owned());
    }
    if message.starts_with("string values must be quoted") {
        return match raw {
            "" => ("a value is missing".to_owned(), String::new()),
            raw if is_unquoted(raw) => (message.to_owned(), format!("write {raw:?}")),
            _ => (message.to_owned(), String::new()),
        };
    }
    // The parser takes `team` for `true`, and `never` for `nan`.
    let is_literal = ["invalid boolean", "invalid float"].iter().any(|it| message.starts_with(it));
    let word = word_at(text, at.start);
    if is_literal && is_word(word) {
        let truth = word.to_lowercase();
        return match truth.as_str() {
            "true" | "false" => (message.to_owned(), format!("write {truth}")),
            _ => ("string values must be quoted".to_owned(), format!("write {word:?}")),
        };
    }
    (message.to_owned(), String::new())
}

/// The word that begins here.
fn word_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether a text needs only quotes to be a string: `checkout`, `500ms..900ms`.
fn is_unquoted(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.bytes().all(is_part)
}

fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_part)
}
