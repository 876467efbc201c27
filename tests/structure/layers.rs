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

/// The layer of a file by its name, in the folders of patterns and agents: the rows of the second
/// table, each with the names and the module of the layer.
fn layers_by_name() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let table = text.split("| file or folder |").nth(1).expect("the table of layers");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut layers = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [names, layer] = cells[..] else { panic!("a row of the table: {row}") };
        let layer = layer.split('`').nth(1).expect("a module").trim_end_matches('/');
        for name in names.split('`').skip(1).step_by(2) {
            layers.insert(name.trim_end_matches(".rs").to_owned(), layer.to_owned());
        }
    }
    layers
}

/// The module whose rules hold for a file: the one at the top or, in the folders of patterns and
/// agents, the one that the second table names.
fn layer<'a>(tree: &'a Tree, layers: &'a BTreeMap<String, String>, at: usize) -> &'a str {
    let module = &tree.files[at].module;
    let Some(top) = module.first() else { return "lib" };
    let (inside, otherwise) = match top.as_str() {
        "agents" => (1, "pattern"),
        "pattern" => (2, "pattern"),
        "panes" if module.len() == 2 => (1, "app"),
        "panes" => (2, "app"),
        _ => return top,
    };
    module.get(inside).and_then(|name| layers.get(name)).map_or(otherwise, String::as_str)
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let (tree, rules, layers) = (Tree::read(), rules(), layers_by_name());
    let mut broken = Vec::new();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for at in 0..tree.files.len() {
        let module = layer(&tree, &layers, at);
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let Some(may) = rules.get(module) else {
            broken.push(format!("no row for `{module}`"));
            continue;
        };
        for to in tree.named_by(at) {
            let other = layer(&tree, &layers, to);
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
        if !(0..tree.files.len()).any(|at| layer(&tree, &layers, at) == module) {
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
    let (tree, layers) = (Tree::read(), layers_by_name());
    for (at, file) in tree.files.iter().enumerate() {
        if !["app", "ui", "event", "narrate"].contains(&layer(&tree, &layers, at)) {
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
