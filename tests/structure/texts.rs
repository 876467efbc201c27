//! Everything that the project says to people, piece by piece, each with its place: string literals
//! and comments of the sources, the documents, and what the program prints about itself.

use std::path::Path;

use clap::CommandFactory;
use roundtable::bench::{Cli, keys_markdown};
use roundtable::schema;
use serde_json::Value;

/// Lines that belong together, so that a phrase may go over a line's end.
pub struct Piece {
    /// The file, or what prints the text.
    pub source: String,
    /// The text in one line.
    pub text: String,
    /// Where each line starts in the text, and its number.
    starts: Vec<(usize, usize)>,
}

impl Piece {
    fn new(source: &str) -> Self {
        Self { source: source.to_owned(), text: String::new(), starts: Vec::new() }
    }

    fn add(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), number));
        self.text.push_str(line.trim());
    }

    /// The number of the line with this byte of the text.
    pub fn line(&self, at: usize) -> usize {
        self.starts.iter().rev().find(|(start, _)| *start <= at).map_or(0, |(_, number)| *number)
    }
}

/// What a source has besides code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A string literal.
    Text,
    /// One line of a doc comment.
    Doc,
    /// One line of any other comment.
    Comment,
}

/// A string or one line of a comment, as `source[from..to]`.
pub struct Token {
    pub kind: TokenKind,
    pub from: usize,
    pub to: usize,
    /// The text, without quotes, slashes and line ends that the compiler drops.
    pub text: String,
}

/// The strings and comments of a source.
pub fn tokens(source: &str) -> Vec<Token> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if rest.starts_with("//") {
            let to = at + rest.find('\n').unwrap_or(rest.len());
            let line = &source[at..to];
            let doc =
                line.starts_with("//!") || (line.starts_with("///") && !line.starts_with("////"));
            let kind = if doc { TokenKind::Doc } else { TokenKind::Comment };
            let text = line.trim_start_matches(['/', '!']).trim().to_owned();
            found.push(Token { kind, from: at, to, text });
            at = to;
        } else if rest.starts_with("/*") {
            let to = at + rest.find("*/").expect("the end of a comment") + 2;
            found.push(Token { kind: TokenKind::Comment, from: at, to, text: rest.into() });
            at = to;
        } else if let Some(hashes) = raw_start(rest).filter(|_| !in_word) {
            let open = rest.find('"').expect("a quote") + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            let close = open + rest[open..].find(&end).expect("the end of a string");
            let to = at + close + end.len();
            let text = rest[open..close].to_owned();
            found.push(Token { kind: TokenKind::Text, from: at, to, text });
            at = to;
        } else if rest.starts_with('"') {
            let mut to = at + 1;
            while bytes[to] != b'"' {
                to += if bytes[to] == b'\\' { 2 } else { 1 };
            }
            let text = unwrapped(&source[at + 1..to]);
            to += 1;
            found.push(Token { kind: TokenKind::Text, from: at, to, text });
            at = to;
        } else if rest.starts_with('\'') {
            at += character(rest);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// The number of hashes if a raw string starts here.
fn raw_start(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let body = after.trim_start_matches('#');
    body.starts_with('"').then(|| after.len() - body.len())
}

/// The bytes of a character literal, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // The escaped character may be a quote itself.
            let end = rest[3..].find('\'').expect("the end of a character");
            3 + end + 1
        }
        Some(_) => match chars.next() {
            Some((end, '\'')) => end + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// A literal without the line ends that a backslash removes.
fn unwrapped(literal: &str) -> String {
    let mut text = String::new();
    let mut parts = literal.split("\\\n");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        text.push_str(part.trim_start());
    }
    text
}

/// The parts of a source that are compiled for tests alone.
fn tests(source: &str, tokens: &[Token]) -> Vec<std::ops::Range<usize>> {
    let mut code = source.as_bytes().to_vec();
    for token in tokens {
        code[token.from..token.to].fill(b' ');
    }
    for quote in ["'{'", "'}'", "';'", "b'{'", "b'}'"] {
        while let Some(at) = find(&code, quote.as_bytes()) {
            code[at..at + quote.len()].fill(b' ');
        }
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = find(&code[from..], b"#[cfg(test)]") {
        let start = from + at;
        let (mut end, mut depth) = (start, 0);
        while end < code.len() {
            match code[end] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            end += 1;
            if depth == 0 && matches!(code[end - 1], b'}' | b';') {
                break;
            }
        }
        found.push(start..end);
        from = end;
    }
    found
}

fn find(code: &[u8], what: &[u8]) -> Option<usize> {
    code.windows(what.len()).position(|part| part == what)
}

/// The pieces of a source of the library, without its tests.
pub fn of_source(path: &str, source: &str) -> Vec<Piece> {
    let tokens = tokens(source);
    let tests = tests(source, &tokens);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut last: Option<(TokenKind, usize)> = None;
    let (mut line, mut counted) = (1, 0);
    for token in tokens {
        line += source[counted..token.from].matches('\n').count();
        counted = token.from;
        if tests.iter().any(|test| test.contains(&token.from)) {
            continue;
        }
        // A comment continues while its lines follow each other; a string is a piece of its own.
        let continues = token.kind != TokenKind::Text && last == Some((token.kind, line - 1));
        if !continues {
            pieces.push(Piece::new(path));
        }
        let text = match token.kind {
            TokenKind::Text => without_placeholders(&token.text),
            TokenKind::Doc | TokenKind::Comment => token.text,
        };
        if let Some(piece) = pieces.last_mut() {
            piece.add(line, &text);
        }
        last = Some((token.kind, line));
    }
    pieces
}

/// A format string without the names in braces, which no reader sees.
fn without_placeholders(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}') {
            Some((name, behind)) if !name.contains(['{', ' ']) => {
                out.push('_');
                rest = behind;
            }
            _ => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

/// The paragraphs, rows and items of a document.
pub fn of_document(path: &str, text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut open = false;
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['|', '#', '`']) || line.starts_with("- ") {
            open = false;
        }
        if line.is_empty() {
            continue;
        }
        if !open {
            pieces.push(Piece::new(path));
            open = true;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.add(nth + 1, line);
        }
    }
    pieces
}

/// All texts of the project.
pub fn all() -> Vec<Piece> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pieces = Vec::new();
    for path in files(root, "src", "rs") {
        // A module of its own for tests has no `#[cfg(test)]` inside.
        if !path.ends_with("/tests.rs") && !path.contains("/tests/") {
            pieces.extend(of_source(&path, &read(root, &path)));
        }
    }
    let mut documents = files(root, "docs", "md");
    documents.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned),
    );
    for path in documents {
        pieces.extend(of_document(&path, &read(root, &path)));
    }
    help(Cli::command(), &mut pieces);
    pieces.extend(of_document("the table of keys", &keys_markdown()));
    descriptions(&schema(), "", &mut pieces);
    pieces
}

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files with this extension below a folder, as paths below `root`.
pub fn files(root: &Path, folder: &str, extension: &str) -> Vec<String> {
    let found = super::files::files(&root.join(folder), extension);
    let below =
        |path: &Path| path.strip_prefix(root).expect("below the root").display().to_string();
    found.iter().map(|path| below(path)).collect()
}

/// The long help of a command and of all below it.
fn help(mut command: clap::Command, pieces: &mut Vec<Piece>) {
    let name = format!("{} --help", command.get_name());
    let text = command.render_long_help().to_string();
    pieces.extend(of_document(&name, &text));
    let below: Vec<clap::Command> = command.get_subcommands().cloned().collect();
    for command in below {
        help(command, pieces);
    }
}

/// The descriptions in a JSON schema.
fn descriptions(value: &Value, at: &str, pieces: &mut Vec<Piece>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => {
                        pieces.extend(of_document(&format!("JSON schema {at}"), text));
                    }
                    value => descriptions(value, &format!("{at}/{name}"), pieces),
                }
            }
        }
        Value::Array(items) => {
            for (nth, item) in items.iter().enumerate() {
                descriptions(item, &format!("{at}/{nth}"), pieces);
            }
        }
        _ => {}
    }
}
