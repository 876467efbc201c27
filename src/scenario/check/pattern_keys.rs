//! Which part of a file belongs to which pattern. Keys of another pattern are reported and removed
//! before the file is read, so that they cause no further errors.

use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};
use crate::scenario::pattern_row::PatternRow;
use crate::scenario::patterns::ROWS;

/// Returns the pattern of a file: the one that it names or, if that is invalid, the one whose table
/// it has. Reports and removes keys of other patterns. Adds the pattern's own table if it is
/// missing, so that its required keys are reported.
pub(crate) fn settle_pattern(
    file: &mut TomlTable,
    root: TextSpan,
    cx: &mut ReadContext,
) -> &'static PatternRow {
    let named = match file.get("pattern").map(|node| &node.value) {
        Some(TomlValue::Text(text)) => ROWS.iter().find(|own| own.name == text),
        _ => None,
    };
    let Some(own) = named else {
        let guess = ROWS.iter().find(|own| file.get(own.name).is_some());
        return guess.unwrap_or(&ROWS[0]);
    };
    for other in ROWS.iter().filter(|other| other.pattern != own.pattern) {
        remove_foreign_keys(file, |key| other.has(key) && !own.has(key), other, own, cx);
        if let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget") {
            cx.at_key("budget", |cx| {
                remove_foreign_keys(budget, |key| other.budget.contains(&key), other, own, cx);
            });
        }
    }
    if let Some(TomlNode { value: TomlValue::Table(budget), .. }) = file.get_mut("budget") {
        cx.at_key("budget", |cx| remove_misplaced_limits(budget, own, cx));
    }
    if file.get(own.name).is_none() {
        let key = TomlKey { at: root, text: own.name.to_owned() };
        file.entries.push((key, TomlNode::empty_table(root)));
    }
    own
}

fn remove_foreign_keys(
    table: &mut TomlTable,
    is: impl Fn(&str) -> bool,
    other: &PatternRow,
    own: &PatternRow,
    cx: &mut ReadContext,
) {
    table.entries.retain(|(key, _)| {
        let strange = is(&key.text);
        if strange {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` belongs to the pattern {}", key.text, other.name);
                cx.error(key.at, what, format!("this scenario has pattern = \"{}\"", own.name));
            });
        }
        !strange
    });
}

/// Reports and removes limits that are set elsewhere; they are not limits of the run.
fn remove_misplaced_limits(budget: &mut TomlTable, own: &PatternRow, cx: &mut ReadContext) {
    budget.entries.retain(|(key, _)| {
        let place = (own.misplaced_limit)(&key.text);
        if let Some(place) = &place {
            cx.at_key(&key.text, |cx| {
                let what = format!("`{}` is not a limit of the run", key.text);
                cx.error(key.at, what, format!("move it to {place}"));
            });
        }
        place.is_none()
    });
}
