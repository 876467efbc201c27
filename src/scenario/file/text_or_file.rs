//! A string of a scenario that may be in a separate file: `prompt`, or `prompt_file`.

use serde_json::{Value, json};

use super::prompt_files::FILE_SUFFIX;
use super::reader::ReadContext;
use super::shape::{FormatShape as _, NonBlankString};
use super::tree::{TomlNode, TomlTable, TomlValue};

/// The key that names the file of a text.
pub(crate) fn file_key(key: &str) -> String {
    format!("{key}{FILE_SUFFIX}")
}

/// Which of two keys of a table holds the text.
#[derive(Clone, Copy)]
pub(crate) enum GivenText<'t> {
    /// The text itself.
    Text(&'t TomlNode),
    /// The path of a file with the text.
    File(&'t TomlNode),
    /// Both are set in the same place; the path.
    Both(&'t TomlNode),
}

impl<'t> GivenText<'t> {
    /// Which key of a table is in force: a later override replaces the one that came before it.
    pub fn of(table: &'t TomlTable, key: &str) -> Option<Self> {
        match (table.get(key), table.get(&file_key(key))) {
            (None, None) => None,
            (Some(text), None) => Some(Self::Text(text)),
            (None, Some(file)) => Some(Self::File(file)),
            (Some(text), Some(file)) if text.at.text > file.at.text => Some(Self::Text(text)),
            (Some(text), Some(file)) if text.at.text < file.at.text => Some(Self::File(file)),
            (Some(_), Some(file)) => Some(Self::Both(file)),
        }
    }
}

/// Reads the text under a key of a table, or in the file that its other key names. `about` is the
/// help for a text that is required and missing.
pub(crate) fn read_text_or_file(
    node: &TomlNode,
    key: &str,
    about: Option<String>,
    cx: &mut ReadContext,
) -> Option<NonBlankString> {
    let TomlValue::Table(table) = &node.value else { return None };
    match GivenText::of(table, key) {
        None => {
            if let Some(about) = about {
                cx.report_missing_key(node, about);
            }
            None
        }
        Some(GivenText::Text(node)) => NonBlankString::read(node, cx),
        Some(GivenText::File(node)) => cx.at_key_suffix(FILE_SUFFIX, |cx| {
            let path = NonBlankString::read(node, cx)?;
            match cx.prompt_files().text(&path.text) {
                Ok(text) => {
                    let at = cx.include_text(path.at, path.text, &text);
                    Some(NonBlankString { at, text: text.to_string() })
                }
                Err(wrong) => {
                    cx.error(path.at, wrong.what, wrong.help);
                    None
                }
            }
        }),
        Some(GivenText::Both(node)) => {
            let what = format!("`{key}` and `{}` are both set", file_key(key));
            cx.at_key_suffix(FILE_SUFFIX, |cx| cx.error(node.at, what, "remove one of them"));
            None
        }
    }
}

/// The JSON schema of a key that names the file of a text: what the path alone decides.
pub(crate) fn file_schema(key: &str) -> Value {
    json!({
        "type": "string",
        "pattern": r"^[^/\\:][^\\:]*$",
        "not": { "pattern": r"(^|/)\.\.(/|$)" },
        "description": format!(
            "A text file with `{key}`, in place of it: its path from the folder of the scenario, \
             in that folder or below it."
        ),
    })
}
