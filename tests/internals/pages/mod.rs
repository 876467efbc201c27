//! Parts of the documents that are made from the tables of the code: keys, commands, keys of files,
//! exit codes, stop reasons, variables, providers, scenarios. A part is between two markers. `just docs`
//! writes them all again.

mod commands;
mod events;
mod file_keys;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use crate::cli::args::Cli;
use crate::cli::plain::words::words_markdown;
use crate::screen::windows::help::keys_markdown;

/// The variable with which the pages are written instead of compared.
const WRITE: &str = "ROUNDTABLE_WRITE_DOCS";

/// A generated part: the name in its markers, and what makes its text.
type PagePart = (&'static str, fn() -> String);

const PARTS: &[PagePart] = &[
    ("attributes", tables::attributes),
    ("commands", commands::markdown),
    ("configuration keys", file_keys::configuration),
    ("events", events::markdown),
    ("exit codes", tables::exit_codes),
    ("guarded variables", tables::guarded_variables),
    ("keys", keys_markdown),
    ("own attributes", tables::own_attributes),
    ("plain words", words_markdown),
    ("providers", tables::providers),
    ("scenario keys", file_keys::scenarios),
    ("shipped scenarios", tables::shipped_scenarios),
    ("stop reasons", tables::stop_reasons),
    ("variables", tables::variables),
];

/// README.md and the pages of `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).expect("a folder");
    let paths = docs.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// A page with its parts made again, and the names of the parts.
fn renewed(text: &str) -> (String, Vec<String>) {
    let (mut page, mut rest, mut names) = (String::new(), text, Vec::new());
    while let Some((before, after)) = rest.split_once("<!-- begin ") {
        let (name, after) = after.split_once(": made by `just docs` -->\n").expect("a marker");
        let end = format!("<!-- end {name} -->");
        let (_, after) = after.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
        let part = PARTS.iter().find(|(known, _)| *known == name);
        let (_, make) = part.unwrap_or_else(|| panic!("no part is called {name}"));
        let made = make();
        page += &format!(
            "{before}<!-- begin {name}: made by `just docs` -->\n\n{}\n\n{end}",
            made.trim_end()
        );
        names.push(name.to_owned());
        rest = after;
    }
    (page + rest, names)
}

#[test]
fn generated_docs_match_code() {
    let writes = std::env::var_os(WRITE).is_some();
    let (mut seen, mut stale) = (BTreeSet::new(), Vec::new());
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        let (fresh, names) = renewed(&text);
        seen.extend(names);
        if fresh == text {
            continue;
        }
        match writes {
            true => std::fs::write(&path, fresh).expect("written"),
            false => stale.push(path.display().to_string()),
        }
    }
    assert!(stale.is_empty(), "stale: {stale:?}; `just docs` writes them again");
    let all: BTreeSet<String> = PARTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(seen, all, "each part has a place");
}

/// Also those that no test runs.
#[test]
fn every_command_in_the_documents_parses() {
    let mut seen = 0;
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        for line in text.lines() {
            let line = line.trim_start();
            let command = line.strip_prefix("$ ").or_else(|| line.strip_prefix("- run: "));
            for part in command.unwrap_or_default().split('|') {
                let Some(rest) = part.trim_start().strip_prefix("roundtable ") else { continue };
                let parsed = Cli::try_parse_from(
                    std::iter::once("roundtable".to_owned()).chain(words(rest)),
                );
                assert!(parsed.is_ok(), "{}: {part}: {parsed:?}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 80, "{seen} commands");
}

/// The words of a command, up to a redirection or a comment. Quotes keep blanks.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '>') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

/// Text in a cell of a table, with `code` left as it is.
fn cell_with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(nth, part)| match nth % 2 {
        0 => cell(part),
        _ => format!("`{}`", part.replace('|', "\\|")),
    });
    parts.collect()
}
