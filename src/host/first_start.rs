//! Whether the dashboard was opened before. The first time, it tells a new user what to do; then a file
//! in the state folder says that this was done. Its contents do not matter, so any number of processes may
//! write it, and where it cannot be written, the program only tells the same again.

use std::path::{Path, PathBuf};

use super::Dirs;
use crate::base::private_file;

/// What the file says to a person who finds it.
const ABOUT: &[u8] =
    b"roundtable has said on its first screen what to do. Without this file it says it again.\n";

/// The file that says that the dashboard was opened before. The default has none: nothing is remembered.
#[derive(Clone, Debug, Default)]
pub struct FirstStart {
    file: Option<PathBuf>,
}

impl FirstStart {
    /// The file of this user.
    pub fn of_user() -> Self {
        Self { file: Dirs::find().map(|dirs| dirs.started()) }
    }

    /// Whether the dashboard has not been opened before. Without a home directory nothing can be remembered,
    /// so the lines are not shown.
    pub fn is_first(&self) -> bool {
        self.file.as_deref().is_some_and(is_missing)
    }

    /// Remembers it. A folder that cannot be written is no error: the log of the program has the reason.
    pub fn remember(&self) {
        let Some(file) = self.file.as_deref().filter(|file| is_missing(file)) else { return };
        let made = file.parent().map_or(Ok(()), private_file::make_dir);
        if let Err(error) = made.and_then(|()| private_file::replace_file(file, ABOUT)) {
            tracing::info!(target: "roundtable::start", file = %file.display(), %error, "not remembered");
        }
    }
}

/// Whether there is nothing with this name. What cannot be read may be there.
fn is_missing(file: &Path) -> bool {
    matches!(file.try_exists(), Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_start_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = FirstStart { file: Some(folder.path().join("state/roundtable/started")) };
        let other = start.clone();
        assert!(start.is_first() && other.is_first());
        start.remember();
        other.remember();
        assert!(!start.is_first() && !other.is_first());
    }

    #[test]
    fn unwritable_folder_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "no folder").expect("written");
        let start = FirstStart { file: Some(folder.path().join("file/started")) };
        start.remember();
        let file = start.file.as_deref().expect("a path");
        assert!(!file.exists() && !FirstStart::default().is_first());
    }
}
