//! The import rule: a module uses only the modules that the table in `ARCHITECTURE.md` allows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::tree::Tree;

/// What each module may import, as the table says it; `all` allows everything.
fn rules() -> BTreeMap<String, BTreeSet<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let table = text.split("| module |").nth(1).expect("the table of modules");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, .., may] = cells[..] else { panic!("a row of the table: {row}") };
        let names = |cell: &str| -> BTreeSet<String> {
            let quoted = cell.split('`').skip(1).step_by(2);
            quoted.map(|it| it.trim_end_matches(".rs").trim_end_matches('/').to_owned()).collect()
        };
        let may = match may {
            "all" => BTreeSet::from(["all".to_owned()]),
            "crates only" => BTreeSet::new(),
            _ => names(may),
        };
        (names(name).into_iter().next().expect("a module"), may)
    })
    .collect()
}

/// The module at the top that a file belongs to.
fn top(tree: &Tree, at: usize) -> &str {
    tree.files[at].module.first().map_or("lib", String::as_str)
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let (tree, rules) = (Tree::read(), rules());
    let mut broken = Vec::new();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for at in 0..tree.files.len() {
        let module = top(&tree, at);
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let Some(may) = rules.get(module) else {
            broken.push(format!("no row for `{module}`"));
            continue;
        };
        for to in tree.named_by(at) {
            let other = top(&tree, to);
            if other != module && other != "lib" {
                used.entry(module).or_default().insert(other);
                if !may.contains("all") && !may.contains(other) {
                    let (from, to) = (&tree.files[at].path, &tree.files[to].path);
                    broken.push(format!("{from}: `{module}` may not import `{other}` ({to})"));
                }
            }
        }
    }
    for (module, may) in &rules {
        let used = used.get(module.as_str());
        for name in may.iter().filter(|name| *name != "all") {
            if !used.is_some_and(|used| used.contains(name.as_str())) {
                broken.push(format!("the table allows `{module}` to import `{name}`: it does not"));
            }
        }
        if !tree.files.iter().any(|file| file.module.first() == Some(module)) {
            broken.push(format!("the table has a row for `{module}`, which does not exist"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What each module may not name: no terminal, no runtime and no clock of its own.
#[test]
fn pure_modules_name_no_terminal_no_runtime_and_no_clock() {
    let clock = ["Instant::now", "SystemTime"];
    let outside = ["tokio ::", "crossterm ::", "std :: fs", "std :: env", "std :: thread"];
    let mut broken = Vec::new();
    for file in &Tree::read().files {
        let pure = match file.module.first().map(String::as_str) {
            Some("app" | "ui" | "event" | "narrate") => true,
            Some("pattern") => file.module.last().is_some_and(|name| name == "policy"),
            _ => false,
        };
        if !pure {
            continue;
        }
        let code = file.tokens.to_string();
        let dense = code.replace(" :: ", "::").replace(":: ", "::").replace(" ::", "::");
        for name in clock.iter().chain(&outside) {
            let name = name.replace(' ', "");
            if dense.match_indices(&*name).any(|(at, _)| {
                // `super::fs::` or a longer word is not the crate.
                !dense[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
            }) {
                broken.push(format!("{}: `{name}`", file.path));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
