//! The scenarios that the dashboard lists: the shipped ones, and the files of `./scenarios`, which
//! replace a shipped one of the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::models;
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::scenario::{ScenarioOrigin, ScenarioSource, shipped};

/// The folder of the user's own scenarios.
pub const FOLDER: &str = "scenarios";

/// Reads every scenario, sorted by name. An invalid file is listed with its problems.
pub fn read() -> Vec<ScenarioEntry> {
    let shipped = shipped().iter().map(|one| {
        let source = ScenarioSource { text: one.text.to_owned(), origin: one.origin() };
        entry(one.path.to_owned(), source)
    });
    let mut all: BTreeMap<String, ScenarioEntry> = by_name(shipped).collect();
    all.extend(by_name(files(Path::new(FOLDER)).into_iter().map(|path| {
        let name = path.display().to_string();
        match ScenarioSource::read(&path) {
            Ok(source) => entry(name, source),
            Err(error) => {
                ScenarioEntry::unreadable(name, ScenarioOrigin::File(path), error.to_string())
            }
        }
    })));
    all.into_values().collect()
}

/// Reads a scenario that the command line names.
///
/// # Errors
/// Why it cannot be read.
pub fn read_one(what: &str) -> Result<ScenarioEntry, String> {
    let source = ScenarioSource::find(what).map_err(|error| error.to_string())?;
    Ok(entry(what.to_owned(), source))
}

fn by_name(
    entries: impl Iterator<Item = ScenarioEntry>,
) -> impl Iterator<Item = (String, ScenarioEntry)> {
    entries.map(|entry| (entry.name.as_str().to_owned(), entry))
}

/// The scenario files of a folder, unsorted; empty if the folder does not exist.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file())
        .collect()
}

fn entry(path: String, source: ScenarioSource) -> ScenarioEntry {
    let nothing = LiveOffer::Missing { why: "The scenario cannot be run.".to_owned() };
    let mut entry = ScenarioEntry::from_text(path, source.origin, source.text.into(), nothing);
    if let Ok(scenario) = &entry.loaded {
        entry.live = models::offer(scenario, None);
    }
    entry
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
        assert_eq!(files(folder.path()), std::slice::from_ref(&path));
        let entry = read_one(&path.display().to_string()).expect("found");
        assert_eq!(entry.name.as_str(), "broken");
        assert!(entry.error_summary().is_some_and(|fault| fault.contains("error")), "{entry:?}");
        let shipped = read().into_iter().filter(|entry| entry.loaded.is_ok()).count();
        assert_eq!(shipped, crate::scenario::shipped().len(), "the shipped ones are good");
    }
}
