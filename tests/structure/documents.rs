//! What the documents for engineers name exists: each file, folder, type and function in backticks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event as Part, Options, Parser, Tag, TagEnd};
use regex_lite::Regex;

use super::counts::flat;
use super::files;
use super::tree::Tree;

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

/// The pages that people read, as paths from the root.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = files::files(&root.join("docs"), "md");
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        pages.push(root.join(page));
    }
    pages.push(root.join("assets/site/SUMMARY.md"));
    pages
}

/// Links from one document to another, or into the repository. Nothing on the network is asked.
#[test]
fn document_links_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut missing, mut seen) = (Vec::new(), 0);
    for page in pages(root) {
        let text = std::fs::read_to_string(&page).expect("a document");
        // Its paths are those of the site, which has the folders of the repository.
        let folder = if page.ends_with("SUMMARY.md") { Some(root) } else { page.parent() };
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            seen += 1;
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                // It is made with the site.
                "pictures.md" if page.ends_with("SUMMARY.md") => continue,
                file => folder.expect("a folder").join(file),
            };
            let has_heading = || {
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                heading.is_empty() || anchors(&text).contains(heading)
            };
            if !target.exists() || !has_heading() {
                missing.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "lead nowhere:\n{}", missing.join("\n"));
    assert!(seen > 400, "{seen} links");
}

/// The table of contents of the site has each page once, and README.md those for users.
#[test]
fn every_page_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = |file: &str| {
        let text = std::fs::read_to_string(root.join(file)).expect("a list");
        links(&text).into_iter().filter(|link| link.starts_with("docs/")).collect::<Vec<_>>()
    };
    let (mut contents, readme) = (listed("assets/site/SUMMARY.md"), listed("README.md"));
    let mut pages: Vec<String> = files::files(&root.join("docs"), "md")
        .iter()
        .map(|page| page.strip_prefix(root).expect("below the root").display().to_string())
        .collect();
    contents.sort();
    pages.sort();
    assert_eq!(contents, pages);
    let is_for_users =
        |page: &&String| !page.starts_with("docs/rules/") && !page.ends_with("releasing.md");
    for page in pages.iter().filter(is_for_users) {
        assert!(readme.contains(page), "README.md does not list {page}");
    }
}

/// Where the links and images of a page lead.
fn links(text: &str) -> Vec<String> {
    let parts = Parser::new_ext(text, Options::ENABLE_TABLES);
    let found = parts.filter_map(|part| match part {
        Part::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    });
    found.collect()
}

/// The anchors of a page's headings, as GitHub and the site make them: small letters, `-` for blanks, and a
/// number where the same comes again.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut anchors, mut heading) = (BTreeSet::new(), None::<String>);
    for part in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (part, &mut heading) {
            (Part::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Part::Text(text) | Part::Code(text), Some(heading)) => *heading += &text,
            (Part::End(TagEnd::Heading(_)), _) => {
                let plain = heading.take().unwrap_or_default().to_lowercase();
                let kept = plain.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let again = (1..).map(|nth| format!("{anchor}-{nth}"));
                let free =
                    [anchor.clone()].into_iter().chain(again).find(|it| !anchors.contains(it));
                anchors.extend(free);
            }
            _ => {}
        }
    }
    anchors
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# `[tools.NAME]`, *again*\n\n## How to add …\n\n## Same\n\n### Same\n\n```toml\n# no heading\n```\n";
    let made: Vec<_> = anchors(page).into_iter().collect();
    assert_eq!(made, ["how-to-add-", "same", "same-1", "toolsname-again"]);
    let text =
        "[a](b.md#c) ![d](e.svg) [f][g] `[no](link.md)`\n\n| [t](u.md) |\n| --- |\n\n[g]: h.md\n";
    assert_eq!(links(text), ["b.md#c", "e.svg", "h.md", "u.md"]);
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

/// What a new pattern touches is listed: the router, as the smallest one, is named in no other file.
#[test]
fn places_of_a_pattern_are_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    let between = |from: &str, to: &str| {
        let part = text.split(from).nth(1).expect("the section");
        part.split(to).next().expect("its end").to_owned()
    };
    let sections = between("## The six places of a pattern", "## ")
        + &between("**A pattern**:", "**An event**");
    let listed: BTreeSet<String> =
        sections.split('`').skip(1).step_by(2).map(|path| path.replace('X', "router")).collect();
    let mut missing = Vec::new();
    for file in Tree::read().files {
        let mut words = Vec::new();
        flat(&file.tokens, &mut words);
        // Not OpenRouter, and no documentation.
        let is_it =
            |word: &String| word.starts_with("Router") || word == "router" || word == "\"router\"";
        let names_it = words.iter().any(is_it);
        let is_test = file.path.ends_with("/tests.rs");
        if names_it && !is_test && !listed.contains(&file.path) {
            missing.push(file.path);
        }
    }
    assert!(missing.is_empty(), "not in the lists of ARCHITECTURE.md: {missing:?}");
}
