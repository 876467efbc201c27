//! The scenarios that the arguments of a command name.

use std::path::Path;

use crate::host::catalogue;
use crate::scenario::{STDIN, ScenarioSource};

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
        Err(error) => vec![Err(error_text(error))],
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
