//! What the checks of scripted replies have in common. A row may break the contract of its step on
//! purpose, to show how a run stops, so each problem is a warning that names the stop reason.

use crate::scenario::file::reader::{ReadContext, closest_name};
use crate::scenario::file::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};

/// What a value says, as far as the file shows it.
pub(crate) enum ScriptedText<'n> {
    /// This text, trimmed.
    Text(&'n str),
    /// An input or a fact will be filled in.
    FilledIn,
    /// Not a string, or an empty one.
    Missing,
}

/// What a value says.
pub(crate) fn text(node: &TomlNode) -> ScriptedText<'_> {
    match &node.value {
        TomlValue::Text(text) if text.contains("{{") => ScriptedText::FilledIn,
        TomlValue::Text(text) if !text.trim().is_empty() => ScriptedText::Text(text.trim()),
        _ => ScriptedText::Missing,
    }
}

/// Whether an input or a fact will be filled in.
pub(crate) fn is_filled_in(node: &TomlNode) -> bool {
    matches!(text(node), ScriptedText::FilledIn)
}

/// Warns of a value that is not a text, with the consequence.
pub(crate) fn expect_text(node: &TomlNode, stop: &str, cx: &mut ReadContext) {
    if matches!(text(node), ScriptedText::Missing) {
        warn_wrong_type(node, "a string that is not empty", stop, cx);
    }
}

/// Warns of a value of the wrong type, with the consequence.
pub(crate) fn warn_wrong_type(node: &TomlNode, wanted: &str, stop: &str, cx: &mut ReadContext) {
    cx.warn(node.at, format!("expected {wanted}, found {}: {stop}", node.describe()), "");
}

/// Reads the value under a key, if there is one.
pub(crate) fn with_key(
    table: &TomlTable,
    key: &str,
    cx: &mut ReadContext,
    read: impl FnOnce(&TomlNode, &mut ReadContext),
) {
    if let Some(node) = table.get(key) {
        cx.at_key(key, |cx| read(node, cx));
    }
}

/// Reads the items of a list that must not be empty.
pub(crate) fn each_item(
    node: &TomlNode,
    stop: &str,
    cx: &mut ReadContext,
    mut read: impl FnMut(&TomlNode, &mut ReadContext),
) {
    match &node.value {
        TomlValue::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                cx.at_index(index, |cx| read(item, cx));
            }
        }
        _ if is_filled_in(node) => {}
        TomlValue::List(_) => cx.warn(node.at, format!("the list is empty: {stop}"), ""),
        _ => warn_wrong_type(node, "a list", stop, cx),
    }
}

/// Warns of missing keys, with the consequence: at a key that may be a typing mistake, else at `at`.
pub(crate) fn require_keys(
    table: &TomlTable,
    at: TextSpan,
    keys: &[&str],
    stop: &str,
    cx: &mut ReadContext,
) {
    for key in keys.iter().filter(|key| table.get(key).is_none()) {
        let (at, help) = match misspelt_key(table, key, keys) {
            Some(wrong) => (wrong.at, format!("rename `{}`", wrong.text)),
            None => (at, String::new()),
        };
        cx.at_key(key, |cx| cx.warn(at, format!("`{key}` is missing: {stop}"), help));
    }
}

/// The key of a table that is probably meant to be this one; `known` are those that belong there.
pub(crate) fn misspelt_key<'n>(
    table: &'n TomlTable,
    key: &str,
    known: &[&str],
) -> Option<&'n TomlKey> {
    let others = || table.entries.iter().map(|(other, _)| other);
    let others = || others().filter(|other| !known.contains(&other.text.as_str()));
    let near = closest_name(key, others().map(|other| other.text.as_str()))?;
    others().find(|other| other.text == near)
}
