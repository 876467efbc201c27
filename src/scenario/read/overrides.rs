//! `--set path=value`: sets a field of a scenario from outside the file.

use std::fmt;
use std::str::FromStr;

use toml::de::DeValue;

use super::tree::{TextSpan, TomlKey, TomlNode, TomlTable, TomlValue};
use super::{REFUSED_KEYS, tree};
use super::{ReadContext, closest_name, suggest_declared_name};

/// Sets one field before the scenario is checked: `budget.max_rounds=1`, `inputs.region=EU`,
/// `script[0].latency="2s"`. The value is TOML; if it is not valid TOML, it is a string. Where an
/// input or a fact is a string, the typed text is kept: `1.10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    text: String,
    /// Each name of the path, and its position in the text.
    path: Vec<(String, std::ops::Range<usize>)>,
    /// Byte offset of the value.
    value: usize,
    /// The value is a string, even if it looks like something else.
    literal: bool,
}

/// Why a text is not an override.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// There is no `=`.
    #[error("`=` is missing: write PATH=VALUE, such as budget.max_rounds=1")]
    NoValue,
    /// The path is not names with dots between them.
    #[error("the path before `=` is not a field: write names with dots, such as budget.max_rounds")]
    Path,
}

impl Override {
    /// Sets a field to a value that is TOML or, if it is not valid TOML or replaces a string of the
    /// inputs or facts, the text itself.
    ///
    /// # Errors
    /// The path is not valid.
    pub fn new(path: &str, value: &str) -> Result<Self, OverrideError> {
        format!("{path}={value}").parse()
    }

    /// Sets a field to a string, even if it looks like something else.
    ///
    /// # Errors
    /// The path is not valid.
    pub fn literal(path: &str, text: &str) -> Result<Self, OverrideError> {
        Ok(Self { literal: true, ..Self::new(path, text)? })
    }

    /// The names of the path to the field.
    pub fn path(&self) -> Vec<&str> {
        self.path.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The original text: `PATH=VALUE`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value; `number` is the position of the override, from 1.
    fn node(&self, number: usize) -> TomlNode {
        let given = &self.text[self.value..];
        if self.literal {
            return self.typed(number);
        }
        match DeValue::parse(given) {
            Ok(value) => {
                let lead = given.len() - given.trim_start().len();
                let at =
                    TextSpan::new(number, self.value + lead..self.value + given.trim_end().len());
                let mut node = TomlNode::from_value(value.get_ref(), at);
                node.shift(self.value);
                node.at = at;
                node
            }
            Err(_) => self.typed(number),
        }
    }

    /// Its value as the string that was typed.
    fn typed(&self, number: usize) -> TomlNode {
        let at = TextSpan::new(number, self.value..self.text.len());
        TomlNode { at, value: TomlValue::Text(self.text[self.value..].to_owned()) }
    }

    /// Puts its value into the place of another. Data of a run (`inputs`, `facts`) keeps the type of the
    /// value that is replaced; elsewhere the format decides.
    fn replace(&self, slot: &mut TomlNode, new: TomlNode, data: bool, cx: &mut ReadContext) {
        use TomlValue::{Boolean, Integer, List, Number, Table, Text};
        let wanted = match (&slot.value, &new.value) {
            _ if !data => None,
            (Text(_), Text(_)) => None,
            (Text(_), _) => {
                *slot = self.typed(new.at.text);
                return;
            }
            (Integer(_) | Number(_), Integer(_) | Number(_)) => None,
            (Integer(_) | Number(_), _) => Some("a number"),
            (Boolean(_), Boolean(_)) => None,
            (Boolean(_), _) => Some("true or false"),
            (List(_), List(_)) => None,
            (List(_), _) => Some("a list"),
            // A new entry is an empty table.
            (Table(old), new) if !old.entries.is_empty() && !matches!(new, Table(_)) => {
                Some("a table")
            }
            _ => None,
        };
        match wanted {
            None => *slot = new,
            Some(wanted) => {
                let given = match &new.value {
                    Text(text) => format!("{text:?}"),
                    _ => self.text[self.value..].trim().to_owned(),
                };
                let what = format!("{given} replaces {wanted}");
                cx.error(new.at, what, format!("write {wanted}, or change the file"));
            }
        }
    }

    /// Applies it to the file.
    pub(crate) fn apply(&self, number: usize, root: &mut TomlTable, cx: &mut ReadContext) {
        let node = self.node(number);
        let mut path: Vec<(&str, TextSpan)> = self
            .path
            .iter()
            .map(|(name, range)| (name.as_str(), TextSpan::new(number, range.clone())))
            .collect();
        // `inputs.region=EU` sets the value of the input, not the input.
        if let [("inputs", _), (name, at)] = path[..]
            && !matches!(node.value, TomlValue::Table(_))
        {
            let inputs = match root.get("inputs").map(|inputs| &inputs.value) {
                Some(TomlValue::Table(inputs)) => inputs,
                _ => &TomlTable::default(),
            };
            if inputs.get(name).is_none() {
                let names = inputs.entries.iter().map(|(key, _)| key.text.as_str());
                let help = suggest_declared_name("inputs", name, names);
                cx.error(at, format!("`{name}` is not an input of this scenario"), help);
                return;
            }
            path.push(("value", at));
        }
        let Some(((last, last_at), steps)) = path.split_last() else { return };
        let mut table = root;
        let root_name = steps.first().map(|(name, _)| *name);
        let in_facts = root_name == Some("facts");
        let data = in_facts || root_name == Some("inputs");
        for (name, at) in steps {
            if in_facts {
                warn_of_new_fact(table, name, *at, cx);
            }
            let Some(slot) = slot_mut(table, name, *at, cx) else { return };
            let Some(next) = as_table_mut(slot, name, *at, cx) else { return };
            table = next;
        }
        if in_facts {
            warn_of_new_fact(table, last, *last_at, cx);
        }
        if let Some(slot) = slot_mut(table, last, *last_at, cx) {
            self.replace(slot, node, data, cx);
        }
    }
}

/// The values that overrides give to a file, each with the names of its path (`rows[2]` is an item of a
/// list). One that does not fit the file is left out.
pub(crate) fn values_in_force(text: &str, overrides: &[Override]) -> Vec<(Vec<String>, TomlNode)> {
    let Ok((document, _)) = tree::parse(text) else { return Vec::new() };
    let mut root = TomlTable::from_toml(document.get_ref(), 0);
    let mut cx = ReadContext::new(String::new(), text, Vec::new(), REFUSED_KEYS);
    for (index, set) in overrides.iter().enumerate() {
        set.apply(index + 1, &mut root, &mut cx);
    }
    let value = |set: &Override| {
        let mut path: Vec<String> = set.path().into_iter().map(str::to_owned).collect();
        let is_table = matches!(set.node(1).value, TomlValue::Table(_));
        if path.len() == 2 && path.first().is_some_and(|first| first == "inputs") && !is_table {
            path.push("value".to_owned());
        }
        let mut found =
            TomlNode { at: TextSpan::new(0, 0..0), value: TomlValue::Table(root.clone()) };
        for name in &path {
            found = item_of(&found, name)?.clone();
        }
        Some((path, found))
    };
    overrides.iter().filter_map(value).collect()
}

/// The value under a name; `name[2]` is an item of a list.
fn item_of<'t>(node: &'t TomlNode, name: &str) -> Option<&'t TomlNode> {
    let TomlValue::Table(table) = &node.value else { return None };
    let Some((key, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) else {
        return table.get(name);
    };
    match &table.get(key)?.value {
        TomlValue::List(items) => items.get(index.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Warns of a fact that the file does not have, but has one with a name like it.
fn warn_of_new_fact(table: &TomlTable, name: &str, at: TextSpan, cx: &mut ReadContext) {
    let known = || table.entries.iter().map(|(key, _)| key.text.as_str());
    if !name.ends_with(']')
        && table.get(name).is_none()
        && let Some(near) = closest_name(name, known())
    {
        cx.warn(at, format!("the file has no fact `{name}`"), format!("did you mean `{near}`?"));
    }
}

/// The value under a name; creates an empty table if there is none. `name[2]` is an item of a list.
fn slot_mut<'t>(
    table: &'t mut TomlTable,
    name: &str,
    at: TextSpan,
    cx: &mut ReadContext,
) -> Option<&'t mut TomlNode> {
    let Some((key, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) else {
        if table.get(name).is_none() {
            table.entries.push((TomlKey { at, text: name.to_owned() }, TomlNode::empty_table(at)));
        }
        return table.get_mut(name);
    };
    let Some(TomlValue::List(items)) = table.get_mut(key).map(|node| &mut node.value) else {
        cx.error(at, format!("`{key}` is not a list"), "");
        return None;
    };
    let count = items.len();
    let item = index.parse::<usize>().ok().and_then(|index| items.get_mut(index));
    if item.is_none() {
        let help = match count {
            0 => "the list is empty".to_owned(),
            _ => format!("{key}[0] to {key}[{}]", count - 1),
        };
        cx.error(at, format!("`{name}` is not in the list"), help);
    }
    item
}

/// The table in which a field is set.
fn as_table_mut<'t>(
    node: &'t mut TomlNode,
    name: &str,
    at: TextSpan,
    cx: &mut ReadContext,
) -> Option<&'t mut TomlTable> {
    match &mut node.value {
        TomlValue::Table(table) => Some(table),
        TomlValue::List(_) => {
            cx.error(at, format!("`{name}` is a list"), format!("set an item: {name}[0]"));
            None
        }
        _ => {
            cx.error(at, format!("`{name}` is not a table and has no fields to set"), "");
            None
        }
    }
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let mut path = Vec::new();
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let (name, length) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let end = quoted.find('"').ok_or(OverrideError::Path)?;
                    (&quoted[..end], end + 2)
                }
                None => {
                    let end = rest.find(['.', '=']).ok_or(OverrideError::NoValue)?;
                    (rest[..end].trim(), end)
                }
            };
            if name.is_empty() || path.len() >= 64 {
                return Err(OverrideError::Path);
            }
            path.push((name.to_owned(), at..at + length));
            at += length;
            match text[at..].chars().next() {
                Some('.') => at += 1,
                Some('=') => break,
                Some(_) => return Err(OverrideError::Path),
                None => return Err(OverrideError::NoValue),
            }
        }
        Ok(Self { text: text.to_owned(), path, value: at + 1, literal: false })
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_has_a_path() {
        let set: Override = "budget.max_rounds=1".parse().expect("an override");
        assert_eq!(set.path(), ["budget", "max_rounds"]);
    }
}
