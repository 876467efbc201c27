//! Mistakes that make the file no TOML: strings and brackets that are not closed, and the syntax of
//! other languages.

use super::document::Document;
use super::mistake::{Dice, SeededMistake};
use crate::scenario::read::tree::TomlValue;

pub(super) fn unclosed(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| !site.has_header && !site.is_item) {
        let raw = &document.text[site.value.clone()];
        let line = document.line(site.value.start);
        let close = if raw.ends_with("\"\"\"") {
            "\"\"\""
        } else if raw.contains('\n') || !raw.ends_with(['"', '\'', ']', '}']) {
            continue;
        } else {
            &raw[raw.len() - 1..]
        };
        let range = site.value.end - close.len()..site.value.end;
        let mut mistake = SeededMistake::replace(range.clone(), "", line);
        // A long string has no right place: it begins on one line and should end on another.
        mistake.lines.push(document.line(range.start));
        made.push(mistake.right(&format!("`{close}`")).wrong(close));
    }
    for header in &document.headers {
        let at = header.line.start + document.text[header.line.clone()].find(']').expect("closed");
        let close = if header.is_list && dice.below(2) == 0 { at..at + 2 } else { at..at + 1 };
        made.push(
            SeededMistake::replace(close, "", document.line(at))
                .right("`]`")
                .right("`]]`")
                .wrong("]"),
        );
    }
    made
}

pub(super) fn other_syntax(document: &Document, dice: &mut Dice) -> Vec<SeededMistake> {
    let mut made = Vec::new();
    for site in document.sites.iter().filter(|site| site.is_line) {
        let line = document.line(site.key.start);
        let between = site.key.end..site.value.start;
        let Some(equals) = document.text[between.clone()].find('=').map(|at| between.start + at)
        else {
            continue;
        };
        made.push(match (&site.node.value, dice.below(3)) {
            (TomlValue::Boolean(truth), 0 | 1) => {
                let (wrong, right) = if *truth { ("True", "true") } else { ("False", "false") };
                SeededMistake::replace(site.value.clone(), wrong, line).right(right)
            }
            (TomlValue::Text(text), 1) if text.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                SeededMistake::replace(site.value.clone(), text, line).right(&format!("\"{text}\""))
            }
            (_, 2) => SeededMistake::replace(equals..equals + 1, "", line).right("`=`"),
            _ => SeededMistake::replace(equals..equals + 1, ":", line).right("`=`"),
        });
    }
    made
}
