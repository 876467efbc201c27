//! The scenarios that the dashboard lists: those that come inside the program, and the files of
//! `./scenarios`, which win over a shipped one of the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::models;
use crate::app::entry::{Entry, LiveOffer};
use crate::scenario::{Origin, Source, shipped};

/// The folder of a person's own scenarios.
pub const FOLDER: &str = "scenarios";

/// Reads every scenario there is, by name. A file that is wrong is listed with what is wrong.
pub fn read() -> Vec<Entry> {
    let mut all: BTreeMap<String, Entry> = shipped()
        .iter()
        .map(|one| {
            let source = Source { text: one.text.to_owned(), origin: one.origin() };
            (one.name.to_owned(), entry(one.path.to_owned(), source))
        })
        .collect();
    for path in files(Path::new(FOLDER)) {
        let entry = match Source::read(&path) {
            Ok(source) => entry(path.display().to_string(), source),
            Err(error) => {
                let shown = path.display().to_string();
                Entry::unreadable(shown, Origin::File(path), error.to_string())
            }
        };
        all.insert(entry.name.to_string(), entry);
    }
    all.into_values().collect()
}

/// A scenario that the command line names.
///
/// # Errors
/// Why there is none.
pub fn one(what: &str) -> Result<Entry, String> {
    let source = Source::find(what).map_err(|error| error.to_string())?;
    Ok(entry(what.to_owned(), source))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file())
        .collect()
}

fn entry(path: String, source: Source) -> Entry {
    let missing = LiveOffer::Missing { why: "the scenario cannot be run".to_owned() };
    let mut entry = Entry::of(path, source.origin, source.text.into(), missing);
    if let Some(scenario) = entry.scenario() {
        entry.live = models::offer(scenario);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::entry::Broken;

    #[test]
    fn a_file_that_is_wrong_is_listed_with_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken.toml");
        std::fs::write(&path, "title = 3\n").expect("written");
        std::fs::write(folder.path().join("notes.txt"), "no scenario").expect("written");
        assert_eq!(files(folder.path()), [path.clone()]);
        let entry = one(&path.display().to_string()).expect("found");
        assert_eq!(entry.name.as_str(), "broken");
        let Err(Broken::Problems(problems)) = entry.loaded else { panic!("it is wrong") };
        assert!(problems.to_string().contains("broken.toml:1:"), "{problems}");
        assert!(read().iter().any(|entry| entry.loaded.is_ok()), "the shipped ones are good");
    }
}
