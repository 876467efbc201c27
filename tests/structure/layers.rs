//! The import rule: a folder of `src` is a layer, and uses only the layers below it.

use std::path::Path;

use super::tree::Tree;

/// The one arrow that goes up: the reader of a file knows the tables of patterns.
const UPWARDS: (&str, &str) = ("scenario", "pattern");

/// The layers from top to bottom, as the table of `ARCHITECTURE.md` lists them.
fn layers() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let table = text.split("| layer |").nth(1).expect("the table of layers");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let folder = |row: &str| row.split('`').nth(1).map(|it| it.trim_end_matches('/').to_owned());
    rows.map(|row| folder(row).expect("a folder")).collect()
}

#[test]
fn layers_import_only_what_is_below() {
    let (tree, layers) = (Tree::read(), layers());
    let place = |layer: &str| layers.iter().position(|it| it == layer);
    let mut broken = Vec::new();
    let mut goes_up = false;
    for at in 0..tree.files.len() {
        let file = &tree.files[at];
        let Some(layer) = file.module.first().filter(|_| file.module.len() > 1 || is_folder(file))
        else {
            continue;
        };
        let Some(own) = place(layer) else {
            broken.push(format!("{}: the table has no row for `{layer}`", file.path));
            continue;
        };
        for to in tree.named_by(at) {
            let Some(other) = tree.files[to].module.first() else { continue };
            let Some(target) = place(other) else { continue };
            if (layer.as_str(), other.as_str()) == UPWARDS {
                goes_up = true;
            } else if target < own {
                broken.push(format!("{}: `{layer}` is below `{other}`", file.path));
            }
        }
    }
    for layer in &layers {
        if !tree.files.iter().any(|file| file.module.first() == Some(layer)) {
            broken.push(format!("the table has a row for `{layer}`, which does not exist"));
        }
    }
    assert!(goes_up, "`UPWARDS` is no longer needed");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether it is the `mod.rs` of a folder; `main.rs` and `bench.rs` are above all layers.
fn is_folder(file: &super::tree::File) -> bool {
    file.path.ends_with("/mod.rs")
}

/// What `screen`, `words` and the events may not name: no terminal, no runtime and no clock of its own.
#[test]
fn pure_layers_name_no_clock_or_terminal() {
    let clock = ["Instant::now", "SystemTime"];
    let outside = ["tokio ::", "crossterm ::", "std :: fs", "std :: env", "std :: thread"];
    let mut broken = Vec::new();
    let tree = Tree::read();
    for file in &tree.files {
        let pure = |it: &String| ["screen", "words"].contains(&it.as_str());
        let is_log = file.path.starts_with("log/event") || file.path.starts_with("log/world");
        if !is_log && !file.path.starts_with("log/facts") && !file.module.first().is_some_and(pure)
        {
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
