//! The scenarios that the dashboard lists: those that come inside the program, and the files of
//! `./scenarios`, which win over a shipped one of the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::models;
use crate::app::state::{Entry, LiveOffer};
use crate::scenario::name::ScenarioName;
use crate::scenario::{Source, load, shipped};

/// The folder of a person's own scenarios.
pub const FOLDER: &str = "scenarios";

/// Reads every scenario there is, by name. A file that is wrong is listed with what is wrong.
pub fn read() -> Vec<Entry> {
    let mut all: BTreeMap<String, Entry> = shipped()
        .iter()
        .map(|one| {
            let source = Source { text: one.text.to_owned(), origin: one.origin() };
            (one.name.to_owned(), entry(one.name, one.path.to_owned(), Ok(source)))
        })
        .collect();
    for path in files(Path::new(FOLDER)) {
        let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
            continue;
        };
        let source = Source::read(&path).map_err(|error| vec![error.to_string()]);
        all.insert(name.clone(), entry(&name, path.display().to_string(), source));
    }
    all.into_values().collect()
}

/// A scenario that the command line names.
///
/// # Errors
/// Why there is none.
pub fn one(what: &str) -> Result<Entry, String> {
    let source = Source::find(what).map_err(|error| error.to_string())?;
    let name = Path::new(what).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(entry(&name, what.to_owned(), Ok(source)))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file())
        .collect()
}

fn entry(name: &str, path: String, source: Result<Source, Vec<String>>) -> Entry {
    let (text, loaded) = match source {
        Ok(source) => {
            let loaded = load(&source.text, source.origin, &[]);
            let lines = loaded.map(Arc::new).map_err(|problems| {
                problems.iter().map(|problem| problems.line(problem)).collect::<Vec<_>>()
            });
            (Arc::from(source.text), lines)
        }
        Err(lines) => (Arc::from(""), Err(lines)),
    };
    let live = match &loaded {
        Ok(scenario) => models::offer(scenario),
        Err(_) => LiveOffer::Missing { why: "the scenario cannot be run".to_owned() },
    };
    Entry { name: ScenarioName::from(name), path, text, loaded, live }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_listed_with_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken.toml");
        std::fs::write(&path, "title = 3\n").expect("written");
        std::fs::write(folder.path().join("notes.txt"), "no scenario").expect("written");
        assert_eq!(files(folder.path()), [path.clone()]);
        let entry = one(&path.display().to_string()).expect("found");
        assert_eq!(entry.name.as_str(), "broken");
        let problems = entry.loaded.expect_err("is wrong");
        assert!(problems[0].contains("broken.toml:1:"), "{problems:?}");
        assert!(read().iter().any(|entry| entry.loaded.is_ok()), "the shipped ones are good");
    }
}
