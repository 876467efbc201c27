//! Finds the text of a scenario: in a file, on standard input, or among the shipped ones, which are
//! part of the program.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use toml::de::DeValue;

use super::MAX_BYTES;
use super::read::{closest_name, tree};
use super::spec::ScenarioOrigin;
use crate::base::name::ScenarioName;
use crate::base::read_file;

/// The name of standard input on the command line. In messages the file is called `stdin`.
pub const STDIN: &str = "-";

/// The text of a scenario and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioSource {
    /// The text of the file.
    pub text: String,
    /// The file or the shipped scenario that it was read from.
    pub origin: ScenarioOrigin,
}

/// Why no text could be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no such file, and no shipped scenario with that name.
    #[error("there is no file {what} and no shipped scenario of that name{}", hint(.help))]
    NotFound {
        /// The requested name or path.
        what: String,
        /// A similar name.
        help: Option<String>,
    },
    /// The system could not read the file.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is larger than a scenario may be.
    #[error("{} is too large for a scenario: more than {MAX_BYTES} bytes", path.display())]
    TooLong {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{} is not a text file: byte {at} is not UTF-8", path.display())]
    NotText {
        /// Path of the file.
        path: PathBuf,
        /// The first invalid byte, from 0.
        at: usize,
    },
}

fn hint(help: &Option<String>) -> String {
    match help {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => " (`roundtable scenarios` lists them)".to_owned(),
    }
}

/// A similar name: of a scenario file in the same folder, of one in `./scenarios`, or of a shipped one.
fn similar(what: &str, shipped: &[&'static str]) -> Option<String> {
    let path = Path::new(what);
    let parent = path.parent().unwrap_or(Path::new(""));
    let plain = parent.as_os_str().is_empty();
    let here = scenario_files(if plain { Path::new(".") } else { parent });
    // Compared as it was written, with or without `.toml`.
    let bare = path.extension().is_none_or(|extension| extension != "toml");
    let listed = if plain && bare { scenario_files(Path::new("scenarios")) } else { Vec::new() };
    let here = here.iter().flat_map(|file| {
        let path = parent.join(file).display().to_string();
        let stem = bare.then(|| (path.trim_end_matches(".toml").to_owned(), path.clone()));
        stem.into_iter().chain([(path.clone(), path)])
    });
    let by_name = listed.iter().map(|file| file.trim_end_matches(".toml"));
    let by_name =
        by_name.chain(shipped.iter().copied()).map(|name| (name.to_owned(), name.to_owned()));
    let all: Vec<(String, String)> = here.chain(by_name).collect();
    let closest = closest_name(what, all.iter().map(|(name, _)| name.as_str()))?;
    all.iter().find(|(name, _)| name == closest).map(|(_, path)| path.clone())
}

/// The names of the scenario files in a folder.
fn scenario_files(folder: &Path) -> Vec<String> {
    /// Most files of one folder.
    const FILES: usize = 500;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(FILES);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}

impl ScenarioSource {
    /// Finds a scenario by the path of a file, as `-` on standard input, by the name of a file in
    /// `./scenarios`, or by the name (or repository path) of a shipped scenario. A file takes
    /// precedence. A pipe is read to its end (`<(generate)`, `/dev/stdin`), unless it sends nothing
    /// for [`read_file::SILENCE`].
    ///
    /// # Errors
    /// There is no such scenario, or it cannot be read.
    pub fn find(what: &str) -> Result<Self, SourceError> {
        if what == STDIN {
            let read = read_file::read_within(io::stdin().lock(), MAX_BYTES);
            return Self::from(Path::new("stdin"), read);
        }
        let path = Path::new(what);
        if path.is_file() {
            return Self::read(path);
        }
        // A file in the folder that the dashboard lists, by its name.
        let listed = Path::new("scenarios").join(format!("{what}.toml"));
        if !what.contains(['/', '\\', '.']) && listed.is_file() {
            return Self::read(&listed);
        }
        let all = shipped();
        if let Some(shipped) = all.iter().find(|one| one.name == what || one.path == what) {
            return Ok(Self { text: shipped.text.to_owned(), origin: shipped.origin() });
        }
        // The output of a program through a pipe is read like a file, as long as it keeps coming.
        if read_file::is_pipe(path) {
            return Self::from(path, read_file::read_pipe(path, MAX_BYTES, read_file::SILENCE));
        }
        if path.exists() {
            return Self::read(path);
        }
        let shipped: Vec<_> = all.iter().map(|shipped| shipped.name).collect();
        let help = similar(what, &shipped);
        Err(SourceError::NotFound { what: what.to_owned(), help })
    }

    /// Reads a regular file.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        Self::from(path, read_file::read_file(path, MAX_BYTES))
    }

    /// Builds the source from the bytes that were read.
    fn from(path: &Path, read: io::Result<Vec<u8>>) -> Result<Self, SourceError> {
        let bytes = read.map_err(|source| match source.kind() {
            io::ErrorKind::FileTooLarge => SourceError::TooLong { path: path.to_owned() },
            _ => SourceError::Unreadable { path: path.to_owned(), source },
        })?;
        let text = String::from_utf8(bytes).map_err(|error| SourceError::NotText {
            path: path.to_owned(),
            at: error.utf8_error().valid_up_to(),
        })?;
        Ok(Self { text, origin: ScenarioOrigin::File(path.to_owned()) })
    }
}

static DIR: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// A shipped scenario.
#[derive(Debug, Clone, Copy)]
pub struct ShippedScenario {
    /// Its name, such as `checkout-launch`: the file name without the extension.
    pub name: &'static str,
    /// Its path in the repository, such as `scenarios/checkout-launch.toml`.
    pub path: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl ShippedScenario {
    /// Its origin: the path in the repository.
    pub fn origin(&self) -> ScenarioOrigin {
        ScenarioOrigin::Shipped(self.path)
    }

    /// Its entry in a list of scenarios.
    pub fn listing(&self) -> ScenarioListing {
        ScenarioListing::read(self.name, self.text)
    }
}

/// All shipped scenarios, sorted by name.
pub fn shipped() -> &'static [ShippedScenario] {
    static ALL: LazyLock<Vec<ShippedScenario>> = LazyLock::new(|| {
        let mut all: Vec<ShippedScenario> = DIR
            .files()
            .filter_map(|file| {
                let stem = file.path().to_str()?.strip_suffix(".toml")?;
                let path: &'static str = format!("scenarios/{stem}.toml").leak();
                let name = path.strip_prefix("scenarios/")?.strip_suffix(".toml")?;
                Some(ShippedScenario { name, path, text: file.contents_utf8()? })
            })
            .collect();
        all.sort_by_key(|shipped| shipped.name);
        all
    });
    &ALL
}

/// The entry of a scenario in a list, read without checking the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioListing {
    /// The file name without its extension.
    pub name: ScenarioName,
    /// Its title, or its name if it has none.
    pub title: String,
    /// Its `about` text; may be empty.
    pub about: String,
    /// Its pattern as written; may be empty.
    pub pattern: String,
}

impl ScenarioListing {
    /// Reads the fields of a list entry. Other faults of the file do not matter here.
    pub fn read(name: &str, text: &str) -> Self {
        let document = tree::parse(text).map(|(document, _)| document).ok();
        let field = |key: &str| {
            let found = document.as_ref().and_then(|document| document.get_ref().get(key));
            match found.map(|value| value.get_ref()) {
                Some(DeValue::String(text)) => text.to_string(),
                _ => String::new(),
            }
        };
        let title = Some(field("title")).filter(|title| !title.trim().is_empty());
        Self {
            name: ScenarioName::from(name),
            title: title.unwrap_or_else(|| name.to_owned()),
            about: field("about"),
            pattern: field("pattern"),
        }
    }
}
