//! The import rule: a folder of `src` is a layer, and uses only the layers below it.

use std::path::Path;

use super::tree::Tree;

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
            if target < own {
                broken.push(format!("{}: `{layer}` is below `{other}`", file.path));
            }
        }
    }
    for layer in &layers {
        if !tree.files.iter().any(|file| file.module.first() == Some(layer)) {
            broken.push(format!("the table has a row for `{layer}`, which does not exist"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether it is the `mod.rs` of a folder; `main.rs` and `bench.rs` are above all layers.
fn is_folder(file: &super::tree::File) -> bool {
    file.path.ends_with("/mod.rs")
}

/// What `screen`, `words` and the events may not name: no terminal, no runtime and no clock of its own.
#[test]
fn pure_layers_avoid_clock_and_terminal() {
    let clocks = ["Instant::now", "SystemTime"];
    let outside = ["tokio::", "crossterm::", "std::fs", "std::env", "std::thread"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut broken = Vec::new();
    for file in &Tree::read().files {
        let pure = ["screen/", "words/", "log/event/", "log/facts/", "log/world/"];
        if !pure.iter().any(|layer| file.path.starts_with(layer)) {
            continue;
        }
        let code = file.tokens.to_string().replace(" ::", "::").replace(":: ", "::");
        let names = |name: &str, may_follow: &dyn Fn(char) -> bool| {
            code.match_indices(name).any(|(at, _)| !code[..at].ends_with(may_follow))
        };
        let found = clocks.into_iter().filter(|name| names(name, &is_word));
        // After `::` it is not the crate.
        let crates = outside.into_iter().filter(|it| names(it, &|c| is_word(c) || c == ':'));
        broken.extend(found.chain(crates).map(|name| format!("{}: `{name}`", file.path)));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
