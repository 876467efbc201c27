//! Lists the files of a folder without opening them.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::cancellation::{CancelFlag, WorkCancelled};
use super::skipped_files::{SkipReason, SkippedFiles};
use super::{MAX_BYTES, MAX_FILES};
use crate::document::DocumentFormat;

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Path relative to the folder.
    pub path: PathBuf,
    /// Format by its extension.
    pub format: DocumentFormat,
    /// Time of the last change and size: a file is read again if they differ.
    pub stamp: FileStamp,
}

/// Used to detect changes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileStamp {
    /// Time of the last change, in nanoseconds since 1970; 0 if unknown.
    pub modified: u64,
    /// Size in bytes.
    pub size: u64,
}

impl FileStamp {
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok();
        let modified = file.modified().ok().and_then(since);
        let nanos = modified.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { modified: nanos.unwrap_or(0), size: file.len() }
    }
}

/// Files of a folder sorted by path, and the skipped ones.
#[derive(Debug, Default)]
pub struct FolderListing {
    /// Files that may be documents.
    pub files: Vec<FoundFile>,
    /// Files skipped by name, kind or size.
    pub left_out: SkippedFiles,
}

/// Why a folder cannot be listed.
#[derive(Debug)]
pub enum WalkFailed {
    /// The folder cannot be read.
    Folder(io::Error),
    /// The call was cancelled.
    Stopped,
}

impl From<WorkCancelled> for WalkFailed {
    fn from(_: WorkCancelled) -> Self {
        Self::Stopped
    }
}

/// Lists a folder; `root` is its canonical path. Names are sorted by bytes, so the first
/// [`MAX_FILES`] are the same each time.
///
/// # Errors
/// The folder cannot be read, or the call was cancelled.
pub fn walk(root: &Path, stop: &CancelFlag) -> Result<FolderListing, WalkFailed> {
    let mut walked = FolderListing::default();
    // Stack of paths to visit, the next one last.
    let mut rest = child_paths(root, Path::new("")).map_err(WalkFailed::Folder)?;
    while let Some(path) = rest.pop() {
        stop.check()?;
        match classify(root, &path) {
            PathKind::Folder => match child_paths(root, &path) {
                Ok(inside) => rest.extend(inside),
                Err(_) => walked.left_out.count(SkipReason::Unopened),
            },
            PathKind::LeftOut(reason) => walked.left_out.count(reason),
            PathKind::File(_) if walked.files.len() >= MAX_FILES => {
                walked.left_out.count(SkipReason::TooMany);
            }
            PathKind::File(found) => walked.files.push(found),
        }
    }
    // The contents of a folder follow it at once, so the result is sorted by path components.
    Ok(walked)
}

enum PathKind {
    Folder,
    File(FoundFile),
    LeftOut(SkipReason),
}

fn classify(root: &Path, path: &Path) -> PathKind {
    if path.file_name().is_some_and(is_hidden) {
        return PathKind::LeftOut(SkipReason::Hidden);
    }
    let whole = root.join(path);
    let Ok(mut file) = fs::symlink_metadata(&whole) else {
        return PathKind::LeftOut(SkipReason::Unopened);
    };
    if file.is_symlink() {
        match link_target(root, &whole) {
            Ok(target) => file = target,
            Err(reason) => return PathKind::LeftOut(reason),
        }
    } else if file.is_dir() {
        return PathKind::Folder;
    }
    if !file.is_file() {
        return PathKind::LeftOut(SkipReason::Special);
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let Some(format) = extension.and_then(DocumentFormat::from_extension) else {
        return PathKind::LeftOut(SkipReason::OtherType);
    };
    if file.len() > MAX_BYTES {
        return PathKind::LeftOut(SkipReason::TooLarge);
    }
    PathKind::File(FoundFile {
        path: path.to_owned(),
        format,
        stamp: FileStamp::from_metadata(&file),
    })
}

/// Metadata of a link's target, if it is a file of this folder.
fn link_target(root: &Path, link: &Path) -> Result<Metadata, SkipReason> {
    let target = link.canonicalize().map_err(|_| SkipReason::Unopened)?;
    let inside = target.strip_prefix(root).map_err(|_| SkipReason::OutsideLink)?;
    if inside.iter().any(is_hidden) {
        return Err(SkipReason::Hidden);
    }
    let target = fs::symlink_metadata(&target).map_err(|_| SkipReason::Unopened)?;
    if target.is_dir() { Err(SkipReason::LinkedFolder) } else { Ok(target) }
}

fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Paths of a folder's contents, in reverse order.
fn child_paths(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        names.push(folder.join(entry?.file_name()));
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}
