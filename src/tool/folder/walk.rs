//! Lists the files of a folder without opening them.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::left_out::{LeftOut, Reason};
use super::stop::{Stop, Stopped};
use super::{MAX_BYTES, MAX_FILES};
use crate::tool::document::Format;

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Path relative to the folder.
    pub path: PathBuf,
    /// Format by its extension.
    pub format: Format,
    /// Time of the last change and size: a file is read again if they differ.
    pub stamp: Stamp,
}

/// Used to detect changes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Time of the last change, in nanoseconds since 1970; 0 if unknown.
    pub modified: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Stamp {
    pub(super) fn of(file: &Metadata) -> Self {
        let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok();
        let modified = file.modified().ok().and_then(since);
        let nanos = modified.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { modified: nanos.unwrap_or(0), size: file.len() }
    }
}

/// Files of a folder sorted by path, and the skipped ones.
#[derive(Debug, Default)]
pub struct Walked {
    /// Files that may be documents.
    pub files: Vec<Found>,
    /// Files skipped by name, kind or size.
    pub left_out: LeftOut,
}

/// Why a folder cannot be listed.
#[derive(Debug)]
pub enum WalkFailed {
    /// The folder cannot be read.
    Folder(io::Error),
    /// The call was cancelled.
    Stopped,
}

impl From<Stopped> for WalkFailed {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Lists a folder; `root` is its canonical path. Names are sorted by bytes, so the first
/// [`MAX_FILES`] are the same each time.
///
/// # Errors
/// The folder cannot be read, or the call was cancelled.
pub fn walk(root: &Path, stop: &Stop) -> Result<Walked, WalkFailed> {
    let mut walked = Walked::default();
    // Stack of paths to visit, the next one last.
    let mut rest = names(root, Path::new("")).map_err(WalkFailed::Folder)?;
    while let Some(path) = rest.pop() {
        stop.check()?;
        match look(root, &path) {
            Look::Folder => match names(root, &path) {
                Ok(inside) => rest.extend(inside),
                Err(_) => walked.left_out.count(Reason::Unopened),
            },
            Look::LeftOut(reason) => walked.left_out.count(reason),
            Look::File(_) if walked.files.len() >= MAX_FILES => {
                walked.left_out.count(Reason::TooMany);
            }
            Look::File(found) => walked.files.push(found),
        }
    }
    // The contents of a folder follow it at once, so the result is sorted by path components.
    Ok(walked)
}

enum Look {
    Folder,
    File(Found),
    LeftOut(Reason),
}

fn look(root: &Path, path: &Path) -> Look {
    if path.file_name().is_some_and(is_hidden) {
        return Look::LeftOut(Reason::Hidden);
    }
    let whole = root.join(path);
    let Ok(mut file) = fs::symlink_metadata(&whole) else {
        return Look::LeftOut(Reason::Unopened);
    };
    if file.is_symlink() {
        match behind(root, &whole) {
            Ok(target) => file = target,
            Err(reason) => return Look::LeftOut(reason),
        }
    } else if file.is_dir() {
        return Look::Folder;
    }
    if !file.is_file() {
        return Look::LeftOut(Reason::Special);
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let Some(format) = extension.and_then(Format::of_extension) else {
        return Look::LeftOut(Reason::OtherType);
    };
    if file.len() > MAX_BYTES {
        return Look::LeftOut(Reason::TooLarge);
    }
    Look::File(Found { path: path.to_owned(), format, stamp: Stamp::of(&file) })
}

/// Metadata of a link's target, if it is a file of this folder.
fn behind(root: &Path, link: &Path) -> Result<Metadata, Reason> {
    let target = link.canonicalize().map_err(|_| Reason::Unopened)?;
    let inside = target.strip_prefix(root).map_err(|_| Reason::LeadsOut)?;
    if inside.iter().any(is_hidden) {
        return Err(Reason::Hidden);
    }
    let target = fs::symlink_metadata(&target).map_err(|_| Reason::Unopened)?;
    if target.is_dir() { Err(Reason::LinkedFolder) } else { Ok(target) }
}

fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Paths of a folder's contents, in reverse order.
fn names(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        names.push(folder.join(entry?.file_name()));
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}
