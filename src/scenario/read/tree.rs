//! The file as a tree of values with positions: parses TOML within a time limit, reports syntax
//! errors and what to do (a string or bracket that is not closed is often on another line), and
//! applies overrides, so each value also knows the override that it came from.

use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::{ReadContext, closest_name};

/// A byte range of the file or of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextSpan {
    /// 0 is the file; from 1 on, the override with that number.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl TextSpan {
    /// A byte range of the text with this number.
    pub fn new(text: usize, range: std::ops::Range<usize>) -> Self {
        Self { text, start: range.start, end: range.end }
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct TomlNode {
    /// Its position. For a table with a header that is the header.
    pub at: TextSpan,
    pub value: TomlValue,
}

/// A value of a file.
#[derive(Debug, Clone)]
pub(crate) enum TomlValue {
    Text(String),
    /// `None`: it does not fit into 64 bits.
    Integer(Option<i64>),
    Number(f64),
    Boolean(bool),
    Date(String),
    List(Vec<TomlNode>),
    Table(TomlTable),
}

/// Keys and values in the file's order.
#[derive(Debug, Clone, Default)]
pub(crate) struct TomlTable {
    pub entries: Vec<(TomlKey, TomlNode)>,
}

/// A key and its position.
#[derive(Debug, Clone)]
pub(crate) struct TomlKey {
    pub at: TextSpan,
    pub text: String,
}

impl TomlTable {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&TomlNode> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    /// The value under a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut TomlNode> {
        self.entries.iter_mut().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    pub(crate) fn from_toml(table: &DeTable<'_>, text: usize) -> Self {
        let entries = table
            .iter()
            .map(|(key, value)| {
                let at = TextSpan::new(text, key.span());
                let node = TomlNode::from_value(value.get_ref(), TextSpan::new(text, value.span()));
                (TomlKey { at, text: key.get_ref().to_string() }, node)
            })
            .collect();
        Self { entries }
    }
}

impl TomlNode {
    /// Converts a value of the TOML parser.
    pub fn from_value(value: &DeValue<'_>, at: TextSpan) -> Self {
        let value = match value {
            DeValue::String(text) => TomlValue::Text(text.to_string()),
            DeValue::Integer(digits) => {
                TomlValue::Integer(i64::from_str_radix(digits.as_str(), digits.radix()).ok())
            }
            DeValue::Float(digits) => {
                TomlValue::Number(digits.as_str().parse().unwrap_or(f64::NAN))
            }
            DeValue::Boolean(truth) => TomlValue::Boolean(*truth),
            DeValue::Datetime(date) => TomlValue::Date(date.to_string()),
            DeValue::Array(items) => TomlValue::List(
                items
                    .iter()
                    .map(|item| {
                        Self::from_value(item.get_ref(), TextSpan::new(at.text, item.span()))
                    })
                    .collect(),
            ),
            DeValue::Table(table) => TomlValue::Table(TomlTable::from_toml(table, at.text)),
        };
        Self { at, value }
    }

    /// A short description for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            TomlValue::Text(text) if text.chars().count() <= 24 && !text.contains('\n') => {
                format!("the string {text:?}")
            }
            TomlValue::Text(_) => "a string".to_owned(),
            TomlValue::Integer(Some(number)) => format!("the number {number}"),
            TomlValue::Integer(None) => "a number beyond 64 bits".to_owned(),
            TomlValue::Number(number) => format!("the number {number}"),
            TomlValue::Boolean(truth) => truth.to_string(),
            TomlValue::Date(date) => format!("the date {date}"),
            TomlValue::List(_) => "a list".to_owned(),
            TomlValue::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as JSON; dates become strings. `each` converts the strings.
    ///
    /// # Errors
    /// The position of a number that JSON cannot represent.
    pub fn json(&self, each: &mut impl FnMut(&str, TextSpan) -> Value) -> Result<Value, TextSpan> {
        Ok(match &self.value {
            TomlValue::Text(text) => each(text, self.at),
            TomlValue::Integer(number) => Value::from(number.ok_or(self.at)?),
            TomlValue::Number(number) => Value::Number(Number::from_f64(*number).ok_or(self.at)?),
            TomlValue::Boolean(truth) => Value::Bool(*truth),
            TomlValue::Date(date) => Value::String(date.clone()),
            TomlValue::List(items) => {
                Value::Array(items.iter().map(|item| item.json(each)).collect::<Result<_, _>>()?)
            }
            TomlValue::Table(table) => Value::Object(table.json(each)?),
        })
    }
}

impl TomlTable {
    /// The table as JSON: see [`TomlNode::json`].
    pub fn json(
        &self,
        each: &mut impl FnMut(&str, TextSpan) -> Value,
    ) -> Result<Map<String, Value>, TextSpan> {
        self.entries.iter().map(|(key, node)| Ok((key.text.clone(), node.json(each)?))).collect()
    }
}

impl TomlNode {
    /// A table that is not in the file.
    pub fn empty_table(at: TextSpan) -> Self {
        Self { at, value: TomlValue::Table(TomlTable::default()) }
    }
}

impl TomlNode {
    /// Moves all positions by an offset: the value was parsed from a part of its text.
    pub fn shift(&mut self, by: usize) {
        self.at.shift(by);
        match &mut self.value {
            TomlValue::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            TomlValue::Table(table) => {
                for (key, node) in &mut table.entries {
                    key.at.shift(by);
                    node.shift(by);
                }
            }
            _ => {}
        }
    }
}

impl TextSpan {
    fn shift(&mut self, by: usize) {
        self.start += by;
        self.end += by;
    }
}

/// Maximum number of tables in a file. The parser's time is quadratic in it if tables are repeated,
/// or come after their subtables.
pub(crate) const MAX_TABLES: usize = 10_000;

/// Parses the text. Returns the valid part of the TOML, and the errors.
pub(crate) fn parse(text: &str) -> Result<(Spanned<DeTable<'_>>, Vec<Error>), usize> {
    match headers(text).nth(MAX_TABLES) {
        Some(at) => Err(at),
        None => Ok(DeTable::parse_recoverable(text)),
    }
}

/// The byte offsets of lines that may be the header of a table. The parser accepts a lone carriage
/// return as a line break, too.
fn headers(text: &str) -> impl Iterator<Item = usize> {
    let mut begins = true;
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        let header = begins && byte == b'[';
        begins = match byte {
            b'\n' | b'\r' => true,
            b' ' | b'\t' => begins,
            _ => false,
        };
        header.then_some(at)
    })
}

/// The byte of `raw`, a TOML string with its quotes (or an unquoted text), at which byte `wanted`
/// of the decoded text begins. A position past the end gives the end.
pub(super) fn source_offset(raw: &str, wanted: usize) -> usize {
    let (quote, escapes) = if raw.starts_with("\"\"\"") {
        ("\"\"\"", true)
    } else if raw.starts_with("'''") {
        ("'''", false)
    } else if raw.starts_with('"') {
        ("\"", true)
    } else if raw.starts_with('\'') {
        ("'", false)
    } else {
        ("", false)
    };
    let mut at = quote.len();
    let end = raw.len() - if raw.len() >= 2 * at && raw.ends_with(quote) { at } else { 0 };
    if quote.len() == 3 {
        // A line break right after the opening quotes is not part of the text.
        let rest = &raw[at..end];
        at += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    }
    let mut decoded = 0;
    while at < end {
        let rest = &raw[at..end];
        let (taken, made) = if escapes { escaped_char(rest) } else { plain_char(rest) };
        if decoded + made > wanted {
            break;
        }
        decoded += made;
        at += taken;
    }
    at.min(raw.len())
}

/// The bytes of one character in the file and in the decoded text.
fn plain_char(rest: &str) -> (usize, usize) {
    let bytes = rest.chars().next().map_or(1, char::len_utf8);
    (bytes, bytes)
}

/// The same for a string with escapes.
fn escaped_char(rest: &str) -> (usize, usize) {
    let Some(escaped) = rest.strip_prefix('\\') else { return plain_char(rest) };
    let hex = |digits: usize| {
        let code = escaped.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (digits + 2, code.and_then(char::from_u32).map_or(1, char::len_utf8))
    };
    let (taken, made) = match escaped.bytes().next() {
        Some(b'x') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(b' ' | b'\t' | b'\r' | b'\n') => {
            // A backslash at the end of a line removes the white space after it.
            let kept = escaped.trim_start_matches([' ', '\t', '\r', '\n']);
            (rest.len() - kept.len(), 0)
        }
        _ => (2, 1),
    };
    // An invalid escape may end inside a character.
    let taken = (taken.max(1)..rest.len()).find(|at| rest.is_char_boundary(*at));
    (taken.unwrap_or(rest.len()), made)
}

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
        let (what, help) = explain_syntax_error(text, *at, error.message());
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
fn explain_syntax_error(text: &str, at: TextSpan, message: &str) -> (String, String) {
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

/// A string or a bracket that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclosed {
    /// Byte offset of its beginning.
    pub at: usize,
    pub opened: &'static str,
    pub missing: &'static str,
}

/// The first string or bracket of a text that is not closed.
fn find_unclosed(text: &str) -> Option<Unclosed> {
    let mut scan = UnclosedSearch { text, at: 0, open: Vec::new(), last: '\n' };
    while scan.at < text.len() {
        if let Err(unclosed) = scan.line() {
            return Some(unclosed);
        }
    }
    scan.open.last().copied()
}

struct UnclosedSearch<'t> {
    text: &'t str,
    at: usize,
    /// The brackets that are open.
    open: Vec<Unclosed>,
    /// The last character that is not white space and not in a comment.
    last: char,
}

impl<'t> UnclosedSearch<'t> {
    /// Reads a line, and the further lines of a string that begins on it.
    fn line(&mut self) -> Result<(), Unclosed> {
        let line = self.rest_of_line();
        match self.open.last() {
            None if line.trim_start().starts_with('[') => return self.header(),
            Some(open) if self.is_new_entry(open, line) => return Err(*open),
            _ => {}
        }
        while let Some(c) = self.text[self.at..].chars().next() {
            let at = self.at;
            match c {
                '\n' => {
                    self.at += 1;
                    return Ok(());
                }
                '#' => {
                    self.at += self.rest_of_line().len();
                    continue;
                }
                '"' => {
                    self.string("\"", "\"\"\"")?;
                    continue;
                }
                // An apostrophe inside a word begins no string.
                '\'' if !self.text[..at].ends_with(char::is_alphanumeric) => {
                    self.string("'", "'''")?;
                    continue;
                }
                '[' => self.open.push(Unclosed { at, opened: "[", missing: "]" }),
                '{' => self.open.push(Unclosed { at, opened: "{", missing: "}" }),
                ']' | '}' => {
                    if let Some(open) = self.open.pop()
                        && !open.missing.starts_with(c)
                    {
                        return Err(open);
                    }
                }
                _ => {}
            }
            if !c.is_whitespace() {
                self.last = c;
            }
            self.at += c.len_utf8();
        }
        Ok(())
    }

    fn rest_of_line(&self) -> &'t str {
        self.text[self.at..].split('\n').next().unwrap_or_default()
    }

    /// Whether a line begins an entry or a table that cannot be inside this bracket.
    fn is_new_entry(&self, open: &Unclosed, line: &str) -> bool {
        let goes_on = matches!(self.last, ',' | '[' | '{' | '=');
        match begins_entry(line) {
            true => open.opened == "[" || !goes_on,
            false => begins_table(line) && !goes_on,
        }
    }

    /// Reads the header of a table.
    fn header(&mut self) -> Result<(), Unclosed> {
        let line = self.rest_of_line();
        let at = self.at + line.len() - line.trim_start().len();
        let (opened, missing) = match line.trim_start().starts_with("[[") {
            true => ("[[", "]]"),
            false => ("[", "]"),
        };
        if !line.contains(missing) {
            return Err(Unclosed { at, opened, missing });
        }
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Ok(())
    }

    /// Reads the string that begins with the quote here.
    fn string(&mut self, quote: &'static str, long: &'static str) -> Result<(), Unclosed> {
        let start = self.at;
        let rest = &self.text[start..];
        let is_long = rest.starts_with(long);
        let quote = if is_long { long } else { quote };
        let unclosed = Unclosed { at: start, opened: quote, missing: quote };
        let inner = &rest[quote.len()..];
        let limit = if is_long { inner } else { self.rest_of_line().get(1..).unwrap_or_default() };
        let length = end_of_string(limit, quote).ok_or(unclosed)?;
        self.at = start + quote.len() + length + quote.len();
        self.last = '"';
        if is_long {
            // Up to two quotes may come before the three.
            let more = self.text[self.at..]
                .bytes()
                .take(2)
                .take_while(|byte| quote.as_bytes()[0] == *byte);
            self.at += more.count();
            let after = self.rest_of_line().trim_start();
            let is_end = after.is_empty() || after.starts_with(['#', ',', ']', '}']);
            let body = &inner[..length];
            let mut lines = body.lines();
            // The quotes that close it should begin the string of another entry.
            let is_next = lines.next_back().is_some_and(|line| {
                body.contains('\n') && begins_entry(line) && line.trim_end().ends_with('=')
            });
            if is_next || (!is_end && lines.any(|line| begins_entry(line) || begins_table(line))) {
                return Err(unclosed);
            }
        }
        Ok(())
    }
}

/// The length of a string up to the quote that closes it.
fn end_of_string(text: &str, quote: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(quote) {
            return Some(at);
        }
        let mut chars = text[at..].chars();
        let first = chars.next()?;
        at += first.len_utf8();
        if first == '\\' && quote.starts_with('"') {
            at += chars.next().map_or(0, char::len_utf8);
        }
    }
    None
}

/// Whether a line looks like `key = …`.
fn begins_entry(line: &str) -> bool {
    let Some((key, _)) = line.split_once('=') else { return false };
    let key = key.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_part)
}

/// Whether a line looks like the header of a table.
fn begins_table(line: &str) -> bool {
    let line = line.trim();
    let name = line.strip_prefix("[[").or_else(|| line.strip_prefix('['));
    let Some((name, after)) = name.and_then(|name| name.split_once(']')) else { return false };
    let after = after.trim_start_matches(']').trim_start();
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (after.is_empty() || after.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toml::de::DeValue;

    use super::{find_unclosed, headers, source_offset};

    #[test]
    fn a_header_begins_a_line() {
        let found = |text| headers(text).collect::<Vec<_>>();
        assert_eq!(found("[a]\n\t [[b]]\r[c]\r\n\n[d]"), [0, 6, 12, 18]);
        assert_eq!(found("a = [1]\nb = [\n1 [\n"), Vec::<usize>::new());
    }

    #[test]
    fn finds_characters_behind_quotes_and_escapes() {
        for (raw, wanted, expected) in [
            ("bare", 2, 2),
            ("'abc'", 1, 2),
            (r#""a\tbc""#, 2, 4),
            (r#""\u00e4b""#, 2, 7),
            ("\"\"\"\nab\"\"\"", 1, 5),
            ("'''\r\nab'''", 0, 5),
            ("\"\"\"a\\\n   b\"\"\"", 1, 9),
            ("'ä€b'", 5, 6),
            ("'abc'", 99, 4),
            ("\"", 0, 1),
        ] {
            assert_eq!(source_offset(raw, wanted), expected, "{raw} {wanted}");
        }
    }

    proptest! {
        #[test]
        fn finds_mark_at_any_place(
            before in r#"([a-zä🙂 ]|\\[tn"\\]|\\u00e4|\\U0001F642|\\x41|\n|\\\n +)*"#,
        ) {
            let raw = format!("\"\"\"{before}#\"\"\"");
            if let Ok(value) = DeValue::parse(&raw) {
                let text = value.get_ref().as_str().unwrap_or_default().to_owned();
                let at = source_offset(&raw, text.find('#').unwrap_or_default());
                prop_assert_eq!(&raw[at..=at], "#", "{} {}", raw, at);
            }
        }

        #[test]
        fn offset_is_always_character_boundary(
            raw in r#"(\PC|["'\\xuU0]){0,20}"#,
            wanted in 0_usize..40,
        ) {
            prop_assert!(raw.is_char_boundary(source_offset(&raw, wanted)));
        }
    }

    #[test]
    fn finds_start_of_unclosed_part() {
        for (text, found) in [
            ("a = \"b\nc = 1", Some((4, "\""))),
            ("a = { b = \"c, d = \"e\" }", Some((20, "\""))),
            ("a = 'b", Some((4, "'"))),
            ("a = [1, 2\nb = 3", Some((4, "]"))),
            ("a = [1, 2,\nb = 3", Some((4, "]"))),
            ("a = [\"x\"\n\n[[b]]\nc = 1", Some((4, "]"))),
            ("a = { b = 1\n[c]", Some((4, "}"))),
            ("a = [{ b = { c = 1 }]", Some((5, "}"))),
            ("[a\nb = 1", Some((0, "]"))),
            ("[[a]\nb = 1", Some((0, "]]"))),
            ("a = \"\"\"\nb\n[c]\nd = \"\"\"\ne\n\"\"\"", Some((4, "\"\"\""))),
            ("a = \"\"\"b", Some((4, "\"\"\""))),
            ("a = [", Some((4, "]"))),
        ] {
            let found_here = find_unclosed(text).map(|it| (it.at, it.missing));
            assert_eq!(found_here, found, "{text}");
        }
    }

    #[test]
    fn what_is_closed_is_not_reported() {
        for text in [
            "a = \"b # [\" # {\n[c.\"d\"]\ne = [\n  1, # [\n  [2],\n]",
            "a = { b = [\n  { c = 1 },\n], d = 2,\n  e = 3 }",
            "a = \"\"\"\nb = [\n\"\"\" # c\nd = \"\\\"\"",
            "a = [\n  \"b\"\n  , \"c\"]",
            "a = it's\nb = 1 ]",
            "a = \"\"\"b\"\"\"\"\"\n",
        ] {
            assert_eq!(find_unclosed(text), None, "{text}");
        }
    }
}
