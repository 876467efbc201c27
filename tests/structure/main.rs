//! The structure of the code, counted. Each count has a ceiling that only goes down; `cargo test --test
//! structure -- --nocapture` prints the table and the items behind each figure.

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
    let mut table: Vec<(String, usize, usize)> = Vec::new();
    let matches = matches_on_patterns(&tree);
    println!("matches on patterns: {matches:?}");
    table.push((
        "matches on patterns and kinds of tool outside the registries".into(),
        matches.iter().map(|(_, count)| count).sum(),
        MATCHES,
    ));
    let accessors = accessors_of_patterns(&tree);
    println!("accessors of patterns: {accessors:#?}");
    table.push((
        "accessors of patterns outside their places".into(),
        accessors.iter().map(|(_, count)| count).sum(),
        ACCESSORS,
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
    let short = files_up_to(&tree, 40);
    println!("files of at most 40 lines: {short:?}");
    table.push((
        "files of at most 40 lines".into(),
        short.len(),
        tree.files.len() * SHORT_FILES_PERCENT / 100,
    ));
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
const MATCHES: usize = 0;
const ACCESSORS: usize = 0;
const PUBLIC_ITEMS: usize = 280;
const DUPLICATE_TYPES: usize = 0;
const LONG_FILES: usize = 0;
const SHORT_FILES_PERCENT: usize = 5;
const BINARIES: usize = 5;

/// A longer name is not read in a list of tests, and not typed as a filter.
#[test]
fn test_names_have_six_words() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut long = Vec::new();
    for path in ["src", "tests"].into_iter().flat_map(|folder| files(&root.join(folder), "rs")) {
        let text = std::fs::read_to_string(&path).expect("a source file");
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            if !line.starts_with("#[test]") && !line.starts_with("#[tokio::test") {
                continue;
            }
            let name = lines.find_map(|line| line.split_once("fn ")).map_or("", |(_, rest)| rest);
            let name = name.split('(').next().unwrap_or_default();
            if name.split('_').count() > 6 {
                long.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "more than six words:\n{}", long.join("\n"));
}

/// Padding whose width comes from data is `words::measure::padded`: that of `format!` panics above 65,535.
#[test]
fn no_format_pads_by_data_width() {
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let pads = code.split('{').skip(1).any(|part| {
                let inside = part.split('}').next().unwrap_or_default();
                !inside.contains(' ')
                    && inside.split_once(':').is_some_and(|(_, spec)| {
                        let spec = spec
                            .trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '.');
                        spec.ends_with('$') || spec.contains("$.") || spec.contains('*')
                    })
            });
            assert!(!pads, "{path}:{}: {line}", number + 1);
        }
    }
}

/// Text reaches standard output and standard error through `cli/streams.rs`, which makes
/// it safe; the screen, the panic hook and the log have their own ways.
#[test]
fn streams_are_written_in_one_place() {
    const WRITERS: &[&str] = &[
        "src/main.rs",
        "src/cli/streams.rs",
        "src/cli/validate.rs",
        "src/terminal/screen_guard.rs",
        "src/host/program_log.rs",
        "src/tool/process_group.rs",
    ];
    for (path, text) in sources() {
        if WRITERS.contains(&path.as_str()) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let writes = ["println!", "print!(", "io::stdout", "io::stderr", "stdio::std"]
                .iter()
                .any(|it| code.contains(it));
            let only_asks =
                code.contains(".is_terminal()") || code.contains("rustix::stdio::stdout()");
            assert!(!writes || only_asks, "{path}:{}: {line}", number + 1);
        }
    }
}

/// The sources of the library, without tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    files(&root.join("src"), "rs").into_iter().map(move |path| {
        let name = path.strip_prefix(root).expect("below it").display().to_string();
        (name, std::fs::read_to_string(&path).expect("a source"))
    })
}
