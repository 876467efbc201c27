//! The scenarios that the dashboard lists: the shipped ones, and the files of `./scenarios`, which
//! replace a shipped one of the same name.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::models;
use crate::base::refused::Refused;
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::scenario::source::SourceError;
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
/// It cannot be read.
pub fn read_one(what: &str) -> Result<ScenarioEntry, SourceError> {
    let source = ScenarioSource::find(what)?;
    Ok(entry(what.to_owned(), source))
}

impl From<SourceError> for Refused {
    fn from(error: SourceError) -> Self {
        Self::new(error.to_string())
    }
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

/// Writes a new file and the folders of its path. A file that exists is not replaced.
///
/// # Errors
/// It cannot be written.
pub fn write_new(path: &Path, text: &str) -> Result<(), Refused> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Refused::new(format!("{shown} exists and is not replaced")).help("give another FILE")
        }
        _ => Refused::new(format!("cannot write {shown}")).because(error),
    };
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a file is worse than none.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// The entry of a scenario that was read. `path`: what a command line calls it.
pub fn entry(path: String, source: ScenarioSource) -> ScenarioEntry {
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
    fn lists_invalid_file_with_its_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken.toml");
        std::fs::write(&path, "title = 3\n").expect("written");
        std::fs::write(folder.path().join("notes.txt"), "no scenario").expect("written");
        assert_eq!(files(folder.path()), std::slice::from_ref(&path));
        let entry = read_one(&path.display().to_string()).expect("found");
        assert_eq!(entry.name.as_str(), "broken");
        let error = entry.first_error().expect("an error");
        assert!(error.starts_with("line 1: ") && error.ends_with(" errors more)"), "{error}");
        let shipped = read().into_iter().filter(|entry| entry.loaded.is_ok()).count();
        assert_eq!(shipped, crate::scenario::shipped().len(), "the shipped ones are good");
    }

    #[test]
    fn never_replaces_existing_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b.toml");
        write_new(&path, "one").expect("written");
        let why = write_new(&path, "two").expect_err("refused");
        assert!(why.what.contains("exists and is not replaced"), "{why}");
        assert_eq!(fs::read_to_string(&path).expect("read"), "one");
        assert!(write_new(&path.join("c.toml"), "three").is_err(), "a file is no folder");
    }
}
