//! A scenario file with the places where a person may make a mistake: its entries, its headers and
//! what the JSON schema says of them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use serde_json::Value;

use crate::scenario::read::tree;
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlTable, TomlValue};
use crate::scenario::schema;

static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// A scenario file without mistakes.
pub(super) struct Document {
    pub name: String,
    pub text: &'static str,
    /// All entries of all tables, and all items of lists that are not tables.
    pub sites: Vec<Site>,
    pub headers: Vec<Header>,
    pub root: &'static TomlTable,
    /// All keys of the file and of the format.
    pub taken: BTreeSet<String>,
}

/// An entry of a table, or an item of a list.
pub(super) struct Site {
    /// The keys that lead to it, without indices.
    pub path: Vec<String>,
    /// Where its key is; for an item where the item is.
    pub key: Range<usize>,
    pub value: Range<usize>,
    pub node: &'static TomlNode,
    /// The table that has the entry or the list.
    pub owner: &'static TomlTable,
    /// Its schema, `Null` if the format does not say anything.
    pub schema: &'static Value,
    /// The schema of the table that has it.
    pub owner_schema: &'static Value,
    pub is_item: bool,
    /// It has one line, and the line has nothing else.
    pub is_line: bool,
    /// The value is a table with a header of its own.
    pub has_header: bool,
}

/// The header of a table.
pub(super) struct Header {
    pub line: Range<usize>,
    /// Its names, each with its place in the file.
    pub names: Vec<(String, Range<usize>)>,
    pub is_list: bool,
    /// The schema of its table.
    pub schema: &'static Value,
}

impl Site {
    pub fn key_name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub fn is_at(&self, pattern: &str) -> bool {
        let wanted: Vec<&str> = pattern.split('.').collect();
        let mut pairs = wanted.iter().zip(&self.path);
        wanted.len() == self.path.len() && pairs.all(|(want, step)| *want == "*" || want == step)
    }

    /// The format knows the key.
    pub fn is_known(&self) -> bool {
        !self.is_item && self.owner_schema["properties"][self.key_name()].is_object()
    }

    pub fn string(&self) -> Option<&'static str> {
        match &self.node.value {
            TomlValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The table of the format that has this key: `budget`, `agents`, `script`.
    pub fn table_name(&self) -> String {
        let mut schema: &Value = &SCHEMA;
        let mut found = String::new();
        for step in &self.path[..self.path.len() - 1] {
            if schema["properties"][step].is_object() {
                found.clone_from(step);
            }
            schema = member(schema, step);
            schema = if schema["items"].is_object() { &schema["items"] } else { schema };
        }
        found
    }
}

impl Document {
    pub fn read(name: &str, text: &'static str) -> Self {
        let (parsed, errors) = tree::parse(text).expect("few tables");
        assert!(errors.is_empty(), "{name}");
        let root: &'static TomlTable =
            Box::leak(Box::new(TomlTable::from_toml(parsed.get_ref(), 0)));
        let mut document = Self {
            name: name.to_owned(),
            text,
            sites: Vec::new(),
            headers: Vec::new(),
            root,
            taken: BTreeSet::new(),
        };
        document.add_table(root, &SCHEMA, &mut Vec::new());
        document.sites.sort_by_key(|site| (site.key.start, site.value.start));
        document.add_headers();
        let keys = document.sites.iter().map(|site| site.key_name().to_owned());
        document.taken = keys.collect();
        add_keys(&SCHEMA, &mut document.taken);
        document
    }

    /// The number of a line, from 1.
    pub fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    /// Where the line with this byte begins.
    pub fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |found| found + 1)
    }

    /// Where the line with this byte ends, behind its line break.
    pub fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |found| at + found + 1)
    }

    /// The header before this byte.
    pub fn header_before(&self, at: usize) -> Option<usize> {
        self.headers.iter().rposition(|header| header.line.start < at)
    }

    /// The line of the table that a removed entry was in.
    pub fn table_line(&self, at: usize) -> usize {
        self.header_before(at).map_or(1, |index| self.line(self.headers[index].line.start))
    }

    /// The keys of a table of the file.
    pub fn names(&self, table: &str) -> Vec<&'static str> {
        match self.root.get(table).map(|node| &node.value) {
            Some(TomlValue::Table(table)) => {
                table.entries.iter().map(|(key, _)| key.text.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn add_table(
        &mut self,
        table: &'static TomlTable,
        schema: &'static Value,
        path: &mut Vec<String>,
    ) {
        let schema = variant(schema, "object");
        for (key, node) in &table.entries {
            path.push(key.text.clone());
            let inner = member(schema, &key.text);
            self.add_site(path, key.at, node, table, inner, schema, false);
            match &node.value {
                TomlValue::Table(table) => self.add_table(table, inner, path),
                TomlValue::List(items) => {
                    let of_items = &variant(inner, "array")["items"];
                    for item in items {
                        match &item.value {
                            TomlValue::Table(table) => self.add_table(table, of_items, path),
                            _ => self.add_site(path, item.at, item, table, of_items, schema, true),
                        }
                    }
                }
                _ => {}
            }
            path.pop();
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a site")]
    fn add_site(
        &mut self,
        path: &[String],
        key: TextSpan,
        node: &'static TomlNode,
        owner: &'static TomlTable,
        schema: &'static Value,
        owner_schema: &'static Value,
        is_item: bool,
    ) {
        let (key, value) = (key.start..key.end, node.at.start..node.at.end);
        let own_line = self.text[self.line_start(key.start)..key.start].trim().is_empty();
        let rest = self.text[value.end..self.line_end(value.end)].trim();
        let ends = rest.is_empty() || rest.starts_with('#');
        let is_line = !is_item && own_line && ends && self.line(key.start) == self.line(value.end);
        // The key of a table with a header is inside its value's place.
        let has_header =
            !is_item && (value.start < key.end || !self.text[key.end..value.start].contains('='));
        self.sites.push(Site {
            path: path.to_vec(),
            key,
            value,
            node,
            owner,
            schema,
            owner_schema,
            is_item,
            is_line,
            has_header,
        });
    }

    fn add_headers(&mut self) {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let (start, end) = (at, at + line.len());
            at = end;
            let is_inside = |site: &Site| {
                !site.has_header && site.value.start < start && site.value.end > start
            };
            if !line.starts_with('[') || self.sites.iter().any(is_inside) {
                continue;
            }
            let is_list = line.starts_with("[[");
            let open = start + if is_list { 2 } else { 1 };
            let close = start + line.find(']').expect("a closed header");
            let mut schema: &'static Value = &SCHEMA;
            let mut names = Vec::new();
            let mut from = open;
            while from < close {
                let rest = &self.text[from..close];
                let length = match rest.strip_prefix('"') {
                    Some(quoted) => quoted.find('"').expect("a closed name") + 2,
                    None => rest.find('.').unwrap_or(rest.len()),
                };
                let name = rest[..length].trim_matches('"').to_owned();
                schema = member(variant(schema, "object"), &name);
                schema = if schema["items"].is_object() { &schema["items"] } else { schema };
                names.push((name, from..from + length));
                from += length + 1;
            }
            self.headers.push(Header { line: start..end, names, is_list, schema });
        }
    }
}

/// The schema of a key of a table.
fn member(schema: &'static Value, key: &str) -> &'static Value {
    match &schema["properties"][key] {
        Value::Null => &schema["additionalProperties"],
        found => found,
    }
}

/// The form of this type, where a schema has several.
pub(super) fn variant(schema: &'static Value, kind: &str) -> &'static Value {
    let forms = schema["oneOf"].as_array().filter(|_| schema["type"].is_null());
    forms.and_then(|forms| forms.iter().find(|form| form["type"] == kind)).unwrap_or(schema)
}

fn add_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        keys.insert(key.clone());
        add_keys(inner, keys);
    }
    add_keys_of(&schema["additionalProperties"], keys);
    add_keys_of(&schema["items"], keys);
}

fn add_keys_of(schema: &Value, keys: &mut BTreeSet<String>) {
    if schema.is_object() {
        add_keys(schema, keys);
    }
}
