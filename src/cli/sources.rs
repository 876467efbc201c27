//! The scenarios that the arguments of a command name.

use std::path::Path;

use crate::host::catalogue;
use crate::scenario::{STDIN, ScenarioSource, SourceError, closest_name};

/// The scenarios that an argument names (for a folder its files, by name), or errors. `before`: the
/// arguments before it.
pub fn sources_named(what: &str, before: &[String]) -> Vec<Result<ScenarioSource, String>> {
    if what == STDIN && before.iter().any(|other| other == what) {
        return vec![Err("- is given twice: standard input can be read only once".to_owned())];
    }
    let folder = Path::new(what);
    match ScenarioSource::find(what) {
        Ok(source) => vec![Ok(source)],
        Err(_) if folder.is_dir() => {
            let mut files = catalogue::files(folder);
            files.sort();
            match files.is_empty() {
                true => vec![Err(format!("no .toml file in {what}"))],
                false => files
                    .iter()
                    .map(|file| ScenarioSource::read(file).map_err(error_text))
                    .collect(),
            }
        }
        Err(SourceError::NotFound { what, help: None }) => {
            let parent = folder.parent().unwrap_or(Path::new(""));
            let help = similar_folder(&what, parent).map(|name| format!("{name}/"));
            vec![Err(SourceError::NotFound { what, help }.to_string())]
        }
        Err(error) => vec![Err(error_text(error))],
    }
}

/// A folder in the parent with a name like this one.
fn similar_folder(what: &str, parent: &Path) -> Option<String> {
    /// Most entries of the parent.
    const ENTRIES: usize = 500;
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten().take(ENTRIES);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| parent.join(entry.file_name()).display().to_string()).collect();
    names.sort();
    closest_name(what, names.iter().map(String::as_str)).map(str::to_owned)
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
