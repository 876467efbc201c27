//! The files below a folder.

use std::path::{Path, PathBuf};

/// The files with this extension below a folder, in order.
pub fn files(under: &Path, extension: &str) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(under)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}
