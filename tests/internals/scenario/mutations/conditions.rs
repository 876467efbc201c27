//! Mistakes in conditions: wrong names, operators and functions.

use std::ops::Range;

use super::document::{Document, Site};
use super::mistake::{Dice, SeededMistake, misspell};

/// A piece of a condition outside of its strings, or the contents of one.
struct Token {
    range: Range<usize>,
    is_string: bool,
    /// It belongs to the argument of `has()`.
    is_guarded: bool,
}

/// The words and operators of the conditions at these places.
fn tokens(document: &Document, of_run: bool) -> Vec<Token> {
    let wanted = |site: &&Site| match of_run {
        true => site.is_at("expect.that"),
        false => site.is_at("script.when") || site.is_at("orchestrator.level.rules.when"),
    };
    let mut found = Vec::new();
    for site in document.sites.iter().filter(wanted) {
        let raw = &document.text[site.value.clone()];
        let quotes = if raw.starts_with("\"\"\"") { 3 } else { 1 };
        let end = site.value.end - quotes;
        let mut at = site.value.start + quotes;
        let mut guard = 0;
        while at < end {
            let rest = &document.text[at..end];
            let first = rest.chars().next().expect("a character");
            let length = match first {
                '\'' | '"' => {
                    let inner = rest[1..].find(first).expect("a closed string");
                    let range = at + 1..at + 1 + inner;
                    found.push(Token { range, is_string: true, is_guarded: false });
                    at += inner + 2;
                    continue;
                }
                _ if first.is_alphanumeric() || first == '_' => {
                    rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
                }
                '=' | '!' | '<' | '>' | '&' | '|' => {
                    rest.find(|c| !"=!<>&|".contains(c)).unwrap_or(rest.len()).min(2)
                }
                _ => first.len_utf8(),
            };
            if rest.starts_with("has(") {
                guard = at + rest.find(')').expect("a bracket");
            }
            let range = at..at + length;
            found.push(Token { range, is_string: false, is_guarded: at < guard });
            at += length;
        }
    }
    found
}

/// The names that a condition may begin with, and in which the file says what follows.
const FIRST: [&str; 26] = [
    "facts",
    "inputs",
    "flags",
    "goal",
    "round",
    "attempt",
    "role",
    "agent",
    "input",
    "message",
    "turn",
    "results",
    "members",
    "from",
    "aggregate",
    "url",
    "domain",
    "final_decision",
    "history",
    "outcome",
    "stop_reason",
    "degraded",
    "answer",
    "live",
    "elapsed_ms",
    "status",
];

fn names(document: &Document, dice: &mut Dice, of_run: bool) -> Vec<SeededMistake> {
    let tokens = tokens(document, of_run);
    let text = |index: usize| &document.text[tokens[index].range.clone()];
    let mut made = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let old = text(index);
        let is_function = document.text[token.range.end..].starts_with('(');
        if token.is_string || token.is_guarded || is_function {
            continue;
        }
        let is_field = document.text[..token.range.start].ends_with('.');
        let before = if is_field && index >= 2 { text(index - 2) } else { "" };
        let is_known = match is_field {
            false => FIRST.contains(&old),
            true => known_field(document, before, &document.text[..token.range.start], old),
        };
        if is_known
            && let Some(wrong) =
                misspell(old, dice, |word| document.taken.contains(word) || FIRST.contains(&word))
        {
            let line = document.line(token.range.start);
            made.push(SeededMistake::replace(token.range.clone(), &wrong, line).right(old));
        }
    }
    made
}

/// Whether the file says that this is a field of the name before it.
fn known_field(document: &Document, before: &str, text: &str, field: &str) -> bool {
    match before {
        "inputs" | "flags" | "facts" => document.names(before).contains(&field),
        "outcome" => true,
        "aggregate" => {
            let section = |site: &&Site| site.is_at("orchestrator.sections.*");
            field == "failed_tasks"
                || document.sites.iter().filter(section).any(|site| site.key_name() == field)
        }
        // A field in a table of the facts.
        _ => text.ends_with(&format!("facts.{before}.")),
    }
}

pub(super) fn wrong_name_in_condition(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    names(document, dice, false)
}

/// What people write in place of an operator or a function.
const OPERATORS: [(&str, &[&str]); 14] = [
    ("==", &["=", "==="]),
    ("!=", &["<>", "!=="]),
    ("&&", &["and", "AND", "&"]),
    ("||", &["or", "|"]),
    (">=", &["=>"]),
    ("<=", &["=<"]),
    ("!", &["not "]),
    ("in", &["within"]),
    ("size", &["len", "length", "count"]),
    ("contains", &["includes", "contain", "has"]),
    ("startsWith", &["startswith", "starts_with"]),
    ("exists", &["any", "exist"]),
    ("all", &["every", "each"]),
    ("number", &["num"]),
];

pub(super) fn wrong_operator(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for token in tokens(document, false).into_iter().chain(tokens(document, true)) {
        let old = &document.text[token.range.clone()];
        let row = OPERATORS.iter().find(|(right, _)| *right == old).filter(|_| !token.is_string);
        let Some((right, others)) = row else { continue };
        let is_word = right.starts_with(char::is_alphabetic) && *right != "in";
        if is_word && !document.text[token.range.end..].starts_with('(') {
            continue;
        }
        let wrong = *dice.pick(others);
        let mistake =
            SeededMistake::replace(token.range.clone(), wrong, document.line(token.range.start));
        let mistake = mistake.right(&format!("`{right}`"));
        made.push(mistake);
    }
    made
}

pub(super) fn wrong_expectation(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = names(document, dice, true);
    for token in &tokens(document, true) {
        let old = &document.text[token.range.clone()];
        let names = ["calls", "order", "cites"];
        // An address is no name.
        let before = &document.text[document.line_start(token.range.start)..token.range.start];
        let open = before.rfind(['(', ')']).filter(|at| before[*at..].starts_with('('));
        let is_argument = token.is_string
            && !old.contains('/')
            && open.is_some_and(|at| names.iter().any(|name| before[..at].ends_with(name)));
        let is_reason = token.is_string && before.ends_with("stop_reason == \"");
        let is_function = names.contains(&old) && document.text[token.range.end..].starts_with('(');
        // What follows the colon of a reason depends on the run.
        let old = if is_reason { old.split(':').next().unwrap_or(old) } else { old };
        if (is_argument || is_reason || (is_function && !token.is_string))
            && let Some(wrong) = misspell(old, dice, |word| document.taken.contains(word))
        {
            let range = token.range.start..token.range.start + old.len();
            let line = document.line(range.start);
            made.push(SeededMistake::replace(range, &wrong, line).right(old));
        }
    }
    made
}
