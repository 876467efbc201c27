//! What files there are in a folder: each looked at, none opened.

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
    /// Its path within the folder.
    pub path: PathBuf,
    /// What it is, by its name.
    pub format: Format,
    /// When it was changed last and how large it is: what is not the same is read again.
    pub stamp: Stamp,
}

/// What tells that a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// When it was changed last, in nanoseconds since 1970; 0: not known.
    pub modified: u64,
    /// Bytes.
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

/// The files of a folder, sorted by their paths, and what was left out.
#[derive(Debug, Default)]
pub struct Walked {
    /// The files that may be documents.
    pub files: Vec<Found>,
    /// What was left out by its name, its kind or its size.
    pub left_out: LeftOut,
}

/// Why a folder has no files to show.
#[derive(Debug)]
pub enum WalkFailed {
    /// It cannot be read.
    Folder(io::Error),
    /// The call was dropped.
    Stopped,
}

impl From<Stopped> for WalkFailed {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Looks through a folder, `root` being its path without links. Names come in the order of their
/// bytes, so the first [`MAX_FILES`] are the same ones each time.
///
/// # Errors
/// The folder itself cannot be read, or the call was dropped.
pub fn walk(root: &Path, stop: &Stop) -> Result<Walked, WalkFailed> {
    let mut walked = Walked::default();
    // What is still to be looked at, the next last.
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
    // A folder's names follow it at once, so the order is that of the paths' parts.
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

/// The file behind a link, where it is one of this folder.
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

/// The paths of what is in a folder, the first last.
fn names(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        names.push(folder.join(entry?.file_name()));
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}
