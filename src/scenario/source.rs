//! Where a scenario's text is found: a person's file, or one that comes inside the program.

use std::io;
use std::path::{Path, PathBuf};

use super::load::MAX_BYTES;
use super::model::Origin;
use super::reader::closest;
use super::shipped::shipped;
use crate::regular;

/// What standard input is called on the command line. Problems of it are told of the file `stdin`.
pub const STDIN: &str = "-";

/// A scenario's text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The text.
    pub text: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Why there is no text to read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No such file, and no shipped scenario of that name.
    #[error("no file {what} and no scenario of that name comes with roundtable{}", hint(.help))]
    NotFound {
        /// What was asked for.
        what: String,
        /// A name that is close.
        help: Option<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// More bytes than a scenario may have.
    #[error("{} is no scenario: more than {MAX_BYTES} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{} is no text: byte {at} is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is wrong, from 0.
        at: usize,
    },
}

fn hint(help: &Option<String>) -> String {
    match help {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => " (`roundtable scenarios` lists them)".to_owned(),
    }
}

impl Source {
    /// Finds a scenario by the path of a file, as `-` on standard input, by the name of a file in
    /// `./scenarios`, or by the name (or the repository path) of one that comes inside the program. A file
    /// wins. A pipe is read to its end (`<(generate)`, `/dev/stdin`), unless it stays silent for
    /// [`regular::SILENCE`].
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn find(what: &str) -> Result<Self, SourceError> {
        if what == STDIN {
            let read = regular::read_whole(io::stdin().lock(), MAX_BYTES);
            return Self::from(Path::new("stdin"), read);
        }
        let path = Path::new(what);
        if path.is_file() {
            return Self::read(path);
        }
        // A file of the folder that the dashboard lists, by its name.
        let listed = Path::new("scenarios").join(format!("{what}.toml"));
        if !what.contains(['/', '\\', '.']) && listed.is_file() {
            return Self::read(&listed);
        }
        let all = shipped();
        if let Some(shipped) = all.iter().find(|one| one.name == what || one.path == what) {
            return Ok(Self { text: shipped.text.to_owned(), origin: shipped.origin() });
        }
        // What a program writes into a pipe is as good as a file, as long as it comes.
        if regular::is_pipe(path) {
            return Self::from(path, regular::read_pipe(path, MAX_BYTES, regular::SILENCE));
        }
        if path.exists() {
            return Self::read(path);
        }
        let help = closest(what, all.iter().map(|shipped| shipped.name)).map(str::to_owned);
        Err(SourceError::NotFound { what: what.to_owned(), help })
    }

    /// Reads a person's file: a regular one.
    ///
    /// # Errors
    /// It cannot be read, is too long, or is no text.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        Self::from(path, regular::read(path, MAX_BYTES))
    }

    /// The scenario that was read here.
    fn from(path: &Path, read: io::Result<Vec<u8>>) -> Result<Self, SourceError> {
        let bytes = read.map_err(|source| match source.kind() {
            io::ErrorKind::FileTooLarge => SourceError::TooLong { path: path.to_owned() },
            _ => SourceError::Unreadable { path: path.to_owned(), source },
        })?;
        let text = String::from_utf8(bytes).map_err(|error| SourceError::NotText {
            path: path.to_owned(),
            at: error.utf8_error().valid_up_to(),
        })?;
        Ok(Self { text, origin: Origin::File(path.to_owned()) })
    }
}
