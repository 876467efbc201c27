//! What the documents for engineers name exists: each file, folder, type and function in backticks.

use std::collections::BTreeSet;
use std::path::Path;

use regex_lite::Regex;

use super::files;

/// The documents that name code.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/glossary.md",
    "docs/rules/decisions.md",
    "docs/rules/faults.md",
    "docs/rules/patterns.md",
];

/// Names with capitals that are not of this project, or not of its code.
const FOREIGN: &[&str] =
    &["Retry-After", "Location", "PATH", "User-Agent", "Accept", "SIGTERM", "None", "Vec"];

/// All files of the repository that a document may name, from its root and from `src/`.
fn known_files(root: &Path) -> Vec<String> {
    let folders = ["src", "tests", "benches", "docs", "scenarios", "assets"];
    let mut known = Vec::new();
    for folder in folders {
        for extension in ["rs", "md", "toml", "txt", "jsonl", "snap"] {
            for path in files::files(&root.join(folder), extension) {
                let below = path.strip_prefix(root).expect("below the root").display().to_string();
                known.push(below);
            }
        }
    }
    known
}

#[test]
fn documented_paths_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = known_files(root);
    let quoted = Regex::new(r"`([a-z0-9_./*-]+(?:\.rs|\.md|\.toml|/))`").expect("a pattern");
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document)).expect("a document");
        for (nth, line) in text.lines().enumerate() {
            for found in quoted.captures_iter(line) {
                let named = &found[1];
                let path = named.trim_start_matches("./").replace('*', "");
                let exists = match path.strip_suffix('/') {
                    // A folder: named from the root, from `src/`, or from a folder above it.
                    Some(folder) => known.iter().any(|file| {
                        file.starts_with(&format!("{folder}/"))
                            || file.contains(&format!("/{folder}/"))
                    }),
                    None => {
                        root.join(&path).exists()
                            || known.iter().any(|file| file.ends_with(&format!("/{path}")))
                    }
                };
                if !exists && !path.starts_with('/') {
                    missing.push(format!("{document}:{}: `{named}`", nth + 1));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} do not exist:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn documented_types_and_functions_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let word = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").expect("a pattern");
    let mut known = BTreeSet::new();
    for folder in ["src", "tests"] {
        for path in files::files(&root.join(folder), "rs") {
            let text = std::fs::read_to_string(path).expect("a source");
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                known.extend(word.find_iter(line).map(|found| found.as_str().to_owned()));
            }
        }
    }
    // `Type`, `Type::name`, `module::name` and `Type { … }`, with or without parentheses at the end.
    let quoted =
        Regex::new(r"`([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*(?:::[A-Za-z_]+)*|[a-z_]+(?:::[A-Za-z_]+)+)(?:\(\))?`")
            .expect("a pattern");
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document)).expect("a document");
        for (nth, line) in text.lines().enumerate() {
            for found in quoted.captures_iter(line) {
                let named = &found[1];
                let exists = named.split("::").all(|part| known.contains(part));
                if !exists && !FOREIGN.contains(&named) {
                    missing.push(format!("{document}:{}: `{named}`", nth + 1));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} do not exist:\n{}", missing.len(), missing.join("\n"));
}

/// Links from one document to another, or into the repository.
#[test]
fn document_links_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let link = Regex::new(r"\]\(([^()\s]+)\)").expect("a pattern");
    let mut pages = files::files(&root.join("docs"), "md");
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let mut missing = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a document");
        for found in link.captures_iter(&text).filter(|found| !found[1].contains("://")) {
            let (file, heading) = found[1].split_once('#').unwrap_or((&found[1], ""));
            let folder = page.parent().expect("a folder");
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let has_heading = || {
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                heading.is_empty() || anchors(&text).contains(heading)
            };
            if !target.exists() || !has_heading() {
                missing.push(format!("{}: {}", page.display(), &found[1]));
            }
        }
    }
    assert!(missing.is_empty(), "lead nowhere:\n{}", missing.join("\n"));
}

/// The anchors of a page's headings, as they are shown on the web: small letters, `-` for blanks.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let plain = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(plain).collect()
}

/// Names of several words in the links of comments: rustdoc checks only those that it documents.
#[test]
fn comment_links_resolve() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let word = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").expect("a pattern");
    let link = Regex::new(r"\[`(?:[A-Za-z0-9_]+::)*([A-Za-z0-9]+_[A-Za-z0-9_]+)(?:\(\))?`\]")
        .expect("a pattern");
    let texts: Vec<(String, String)> = files::files(&src, "rs")
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source");
            (path.strip_prefix(&src).expect("below src").display().to_string(), text)
        })
        .collect();
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let mut known = BTreeSet::new();
    for line in texts.iter().flat_map(|(_, text)| text.lines()).filter(|line| !is_comment(line)) {
        known.extend(word.find_iter(line).map(|found| found.as_str()));
    }
    let mut missing = Vec::new();
    for (path, text) in &texts {
        for (nth, line) in text.lines().enumerate().filter(|(_, line)| is_comment(line)) {
            for found in link.captures_iter(line).filter(|found| !known.contains(&found[1])) {
                missing.push(format!("{path}:{}: `{}`", nth + 1, &found[1]));
            }
        }
    }
    assert!(missing.is_empty(), "{} do not exist:\n{}", missing.len(), missing.join("\n"));
}
