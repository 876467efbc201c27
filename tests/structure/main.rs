//! The structure of the code, counted. Each count has a ceiling that only goes down;
//! `cargo test --test structure -- --nocapture` prints the table and what is behind each figure.

mod counts;
mod documents;
#[path = "../support/files.rs"]
mod files;
mod layers;
mod phrases;
mod texts;
mod tree;

use counts::*;
use files::files;
use tree::Tree;

/// The test binaries: a folder of `tests` with a `main.rs` each, and the library's own, which has the
/// tests in `src` and `tests/internals`.
fn test_binaries() -> usize {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let binaries = std::fs::read_dir(root.join("tests"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").exists()
        })
        .count();
    binaries + 1
}

#[test]
fn counts_stay_below_their_ceilings() {
    let tree = Tree::read();
    let mut table = Vec::new();
    for (pattern, files) in shared_files(&tree) {
        println!("{pattern} is named in: {}", files.join(" "));
        table.push((format!("shared files that name {pattern}"), files.len(), SHARED_FILES));
    }
    let matches = matches_on_patterns(&tree);
    println!("matches on patterns: {matches:?}");
    table.push((
        "matches on patterns outside the registries".into(),
        matches.iter().map(|(_, count)| count).sum(),
        MATCHES,
    ));
    table.push(("public items".into(), public_items(&tree), PUBLIC_ITEMS));
    let duplicates = duplicate_types(&tree);
    println!("type names used more than once in a folder: {duplicates:#?}");
    table.push((
        "type names used more than once in a folder".into(),
        duplicates.len(),
        DUPLICATE_TYPES,
    ));
    let long = files_over(&tree, 800);
    println!("files over 800 lines: {long:?}");
    table.push(("files over 800 lines".into(), long.len(), LONG_FILES));
    table.push(("test binaries".into(), test_binaries(), BINARIES));
    println!("\n| count | now | ceiling |\n| --- | --: | --: |");
    for (what, now, ceiling) in &table {
        println!("| {what} | {now} | {ceiling} |");
    }
    println!("| lines in src | {} | |", tree.files.iter().map(|file| file.lines).sum::<usize>());
    let over: Vec<_> = table.iter().filter(|(_, now, ceiling)| now > ceiling).collect();
    assert!(over.is_empty(), "above the ceiling: {over:?}");
}

// The ceilings. Lower a ceiling when you get below it.
/// How many files outside a pattern's own folders may name it.
const SHARED_FILES: usize = 12;
const MATCHES: usize = 0;
const PUBLIC_ITEMS: usize = 279;
const DUPLICATE_TYPES: usize = 0;
const LONG_FILES: usize = 0;
const BINARIES: usize = 5;
