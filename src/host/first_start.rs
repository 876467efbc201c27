//! Whether the dashboard was opened before. The first time, it shows a new user what to do, and writes a file
//! into the state folder that says so. Its contents do not matter, so any number of processes may write it.
//! Where it cannot be written, nothing is shown: otherwise it would be shown at each start.

use std::path::Path;

use super::Dirs;
use crate::base::private_file;

/// What the file says to a person who finds it.
const ABOUT: &[u8] =
    b"roundtable has said on its first screen what to do. Without this file it says it again.\n";

/// Whether this is the first start of this user; from now on it is not.
pub fn is_first_start() -> bool {
    Dirs::find().is_some_and(|dirs| is_first(&dirs.started()))
}

fn is_first(file: &Path) -> bool {
    if !matches!(file.try_exists(), Ok(false)) {
        return false;
    }
    let made = file.parent().map_or(Ok(()), private_file::make_dir);
    let written = made.and_then(|()| private_file::replace_file(file, ABOUT));
    if let Err(error) = &written {
        tracing::info!(target: "roundtable::start", file = %file.display(), %error, "not remembered");
    }
    written.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_start_is_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state/roundtable/started");
        assert!(is_first(&file) && !is_first(&file));
    }

    #[test]
    fn unwritable_folder_has_no_first() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "no folder").expect("written");
        assert!(!is_first(&folder.path().join("file/started")));
    }
}
