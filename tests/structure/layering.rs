//! The import rule of `ARCHITECTURE.md`: a room uses only the rooms that it may. The sources are
//! read as text, so that a path inside a macro counts too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::sources::{code, files};

/// Each room with the rooms that it may import; itself always. `*` is all of them.
const RULES: &[(&str, &[&str])] = &[
    ("regular", &[]),
    ("scenario", &["regular"]),
    ("net", &[]),
    ("private", &["regular"]),
    ("decide", &["scenario"]),
    ("event", &["scenario"]),
    ("bus", &["event"]),
    ("llm", &["net", "regular", "decide", "event", "scenario"]),
    ("tool", &["net", "private", "regular", "bus", "event", "scenario"]),
    ("run", &["tool", "llm", "bus", "event", "scenario"]),
    ("pattern", &["run", "tool", "llm", "decide", "bus", "event", "scenario"]),
    ("engine", &["pattern", "run", "tool", "llm", "net", "bus", "event", "scenario"]),
    ("record", &["bus", "event"]),
    ("app", &["event", "scenario"]),
    ("ui", &["app", "event"]),
    ("shell", &["*"]),
    ("cli", &["*"]),
    ("lib", &["*"]),
    ("main", &["*"]),
];

/// The rooms that a source names: what follows `crate::`, or opens a brace after it.
fn imports(source: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for after in code(source).split("crate::").skip(1) {
        let named = |text: &str| -> String {
            text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match after.strip_prefix('{') {
            None => {
                rooms.insert(named(after));
            }
            Some(list) => {
                let (mut depth, mut start) = (0, true);
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && !c.is_whitespace() => {
                            rooms.insert(named(&list[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

#[test]
fn rooms_import_only_what_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rules: BTreeMap<_, _> = RULES.iter().copied().collect();
    let mut found = Vec::new();
    files(&src, &mut found);
    let mut broken = Vec::new();
    for path in found {
        let inside = path.strip_prefix(&src).expect("below src");
        let room = inside.components().next().expect("a name").as_os_str().to_string_lossy();
        let room = room.trim_end_matches(".rs").to_owned();
        let Some(may) = rules.get(room.as_str()) else {
            broken.push(format!("{}: no rule for the room `{room}`", inside.display()));
            continue;
        };
        let source = std::fs::read_to_string(&path).expect("a source");
        for import in imports(&source) {
            if import != room && !may.contains(&"*") && !may.contains(&import.as_str()) {
                broken.push(format!("{}: `{room}` may not import `{import}`", inside.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Rooms that have no terminal, no runtime and no clock of their own, with what they must not name.
#[test]
fn what_is_pure_names_no_terminal_no_runtime_and_no_clock() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let clock = ["Instant::now", "SystemTime"];
    let outside = ["tokio::", "crossterm::", "std::fs", "std::env", "std::thread"];
    let mut broken = Vec::new();
    for room in ["app", "ui", "event", "pattern"] {
        let mut found = Vec::new();
        files(&src.join(room), &mut found);
        for path in found {
            let is_policy = path.file_name().is_some_and(|name| name == "policy.rs");
            if room == "pattern" && !is_policy {
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("a source");
            let code = code(source.split("#[cfg(test)]").next().unwrap_or_default());
            for line in code.lines() {
                for name in clock.iter().chain(&outside).filter(|name| line.contains(**name)) {
                    broken.push(format!("{}: `{name}`: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let source = "use crate::bus::Bus;\nuse crate::{event::{Seq, kind::By}, llm, run::Gate};\nfn f() { crate::ui::render() }\n// crate::cli\n";
    let found: Vec<_> = imports(source).into_iter().collect();
    assert_eq!(found, ["bus", "event", "llm", "run", "ui"]);
}
