//! The text files that a scenario names with `prompt_file`: read from the scenario's folder, or taken
//! from the log of a run.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::base::regular::{self, Links};

/// The texts of prompt files by their paths, as the scenario writes these.
pub(crate) type PromptFileTexts = BTreeMap<String, Arc<str>>;

/// Maximum size of all prompt files of a scenario together, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// What is appended to the key of a prompt for the key that names its file.
pub(crate) const FILE_SUFFIX: &str = "_file";

/// Where the texts of prompt files come from.
#[derive(Debug)]
enum PromptFileOrigin {
    /// The folder of the scenario's file.
    Folder(PathBuf),
    /// There is no such folder: the scenario was shipped, or came through a pipe.
    NoFolder {
        /// What to do.
        help: &'static str,
    },
    /// They were read before.
    Stored(PromptFileTexts),
}

/// Why a prompt file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptFileError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub help: String,
}

/// Reads prompt files, and keeps the texts of those that the scenario uses.
#[derive(Debug)]
pub(crate) struct PromptFiles {
    origin: PromptFileOrigin,
    used: PromptFileTexts,
    /// Bytes of all uses: a file that two prompts name counts twice.
    bytes: u64,
}

impl PromptFiles {
    /// The prompt files below a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self::new(PromptFileOrigin::Folder(folder))
    }

    /// There is no folder; `help` says what to do.
    pub fn without_folder(help: &'static str) -> Self {
        Self::new(PromptFileOrigin::NoFolder { help })
    }

    /// Texts that were read before: no file is read.
    pub fn stored(texts: PromptFileTexts) -> Self {
        Self::new(PromptFileOrigin::Stored(texts))
    }

    fn new(origin: PromptFileOrigin) -> Self {
        Self { origin, used: PromptFileTexts::new(), bytes: 0 }
    }

    /// The texts that were used so far.
    pub fn take_used(&mut self) -> PromptFileTexts {
        std::mem::take(&mut self.used)
    }

    /// The text of a file, by its path as the scenario writes it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn text(&mut self, path: &str) -> Result<Arc<str>, PromptFileError> {
        let stored = match &self.origin {
            PromptFileOrigin::Stored(texts) => texts.get(path),
            _ => self.used.get(path),
        };
        let text = match (stored.cloned(), &self.origin) {
            (Some(text), _) => {
                self.bytes += text.len() as u64;
                text
            }
            (None, PromptFileOrigin::Folder(folder)) => {
                let found = locate(folder, path)?;
                let most = MAX_BYTES.saturating_sub(self.bytes);
                let file = regular::open(&found, OpenOptions::new().read(true), Links::Refused);
                match file.and_then(|file| regular::read_whole(file, most)) {
                    Ok(bytes) => {
                        self.bytes += bytes.len() as u64;
                        decode(path, bytes)?.into()
                    }
                    // After this one no further file is read.
                    Err(why) if why.kind() == io::ErrorKind::FileTooLarge => {
                        self.bytes = MAX_BYTES + 1;
                        return Err(too_large());
                    }
                    Err(why) => return Err(unreadable(folder, path, &why)),
                }
            }
            (None, PromptFileOrigin::NoFolder { help }) => {
                let what = "this scenario has no folder: it was not read from a file";
                return Err(error(what, *help));
            }
            (None, PromptFileOrigin::Stored(_)) => {
                let what = format!("the text of {path} is not stored with this scenario");
                return Err(error(what, "set the text itself"));
            }
        };
        if self.bytes > MAX_BYTES {
            return Err(too_large());
        }
        self.used.insert(path.to_owned(), Arc::clone(&text));
        Ok(text)
    }
}

fn error(what: impl Into<String>, help: impl Into<String>) -> PromptFileError {
    PromptFileError { what: what.into(), help: help.into() }
}

fn too_large() -> PromptFileError {
    error("the prompt files are too large", format!("at most {MAX_BYTES} bytes in all"))
}

fn unreadable(folder: &Path, path: &str, why: &io::Error) -> PromptFileError {
    let help = format!("the path starts at the scenario's folder, {}", folder.display());
    error(format!("cannot read {path}: {why}"), help)
}

/// The file that a path names in a folder, after all links.
fn locate(folder: &Path, path: &str) -> Result<PathBuf, PromptFileError> {
    if !is_inside(path) {
        let help = "name a file of that folder or below it, such as `prompts/risk.md`";
        return Err(error(format!("`{path}` is not a path inside the scenario's folder"), help));
    }
    let resolved = |path: &Path| path.canonicalize();
    let root = resolved(folder).map_err(|why| unreadable(folder, path, &why))?;
    let found = resolved(&root.join(path)).map_err(|why| unreadable(folder, path, &why))?;
    if !found.starts_with(&root) {
        let what = format!("{path} is a link to a file outside the scenario's folder");
        return Err(error(what, "copy that file into the folder"));
    }
    Ok(found)
}

/// Whether a path names something below a folder, on every system.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains(['\\', ':', '\0'])
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The text of a file. Lines end as on Unix, so that a prompt does not depend on the system.
fn decode(path: &str, bytes: Vec<u8>) -> Result<String, PromptFileError> {
    let text = String::from_utf8(bytes).map_err(|wrong| {
        let at = wrong.utf8_error().valid_up_to();
        error(format!("{path} is not a text file: byte {at} is not UTF-8"), "save it as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    match text.trim().is_empty() {
        true => Err(error(format!("{path} is empty"), "write the prompt in it")),
        false => Ok(text),
    }
}
