//! Lists and reads the documents of a folder, from the disk or from the corpus inside the program.
//! Skipped files are counted by reason, never ignored silently.

use crate::base::worded;
use std::collections::HashMap;
use std::fs::{Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use include_dir::{Dir, include_dir};
use serde_json::{Map, Value};

use super::address::Layout;
use super::index::{CancelFlag, WorkCancelled};
use super::{MAX_BYTES, MAX_FILES};
use crate::base::read_file;
use crate::base::read_file::Links;
use crate::base::time::from_time;
use crate::tool::text;
use crate::tool::text::{DocumentFormat, ExtractedDocument, Unreadable};

static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/corpus");

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DocumentSource {
    /// The shipped corpus.
    Corpus,
    /// A folder on disk, by its canonical path.
    Folder(PathBuf),
}

/// A document with its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Address (URL) of the document.
    pub address: String,
    /// File of the document.
    pub file: FoundFile,
}

/// All documents of a folder by address.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Sorted by path.
    pub entries: Vec<CatalogueEntry>,
    /// Files that were skipped without opening them.
    pub left_out: SkippedFiles,
    by_address: HashMap<String, usize>,
}

impl Catalogue {
    /// The document of an address in [canonical](crate::tool::folder::address::canonical_address) spelling.
    pub fn find(&self, address: &str) -> Option<&CatalogueEntry> {
        self.entries.get(*self.by_address.get(address)?)
    }
}

/// A document that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPage {
    /// Title, text and date; the date may be that of the file.
    pub document: ExtractedDocument,
    /// Whether the date is that of the file's last change, because the document states none.
    pub dated_by_file: bool,
}

impl DocumentSource {
    /// Lists the documents.
    ///
    /// # Errors
    /// The folder cannot be read, or the call was cancelled.
    pub fn catalogue(&self, layout: &Layout, stop: &CancelFlag) -> Result<Catalogue, WalkFailed> {
        let mut walked = match self {
            Self::Corpus => FolderListing { files: corpus_files(), ..Default::default() },
            Self::Folder(root) => walk(root, stop)?,
        };
        let addresses = layout.addresses(walked.files.iter().map(|file| file.path.as_path()));
        let mut catalogue = Catalogue::default();
        for (file, address) in walked.files.into_iter().zip(addresses) {
            match address {
                None => walked.left_out.count(SkipReason::NoAddress),
                Some(address) => {
                    catalogue.by_address.insert(address.clone(), catalogue.entries.len());
                    catalogue.entries.push(CatalogueEntry { address, file });
                }
            }
        }
        catalogue.left_out = walked.left_out;
        Ok(catalogue)
    }

    /// Reads a document. Check `stop` afterwards: the result of a cancelled read says nothing about
    /// the document.
    ///
    /// # Errors
    /// Why the file is not a document.
    pub fn read(
        &self,
        entry: &CatalogueEntry,
        stop: &CancelFlag,
    ) -> Result<FolderPage, SkipReason> {
        let FoundFile { path, format, .. } = &entry.file;
        let (bytes, stamp) = match self {
            Self::Corpus => {
                (CORPUS.get_file(path).ok_or(SkipReason::Unopened)?.contents().to_vec(), None)
            }
            Self::Folder(root) => {
                let (bytes, stamp) = read_bytes(root, path)?;
                (bytes, Some(stamp))
            }
        };
        // PDFs are binary. Other texts have no NUL bytes, except in UTF-16.
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        if *format != DocumentFormat::Pdf && !utf16 && bytes.contains(&0) {
            return Err(SkipReason::Binary);
        }
        let read = text::read(*format, bytes, None, &|| stop.check().is_ok());
        let mut document = read.map_err(|why| match why {
            Unreadable::Empty => SkipReason::Empty,
            Unreadable::Charset => SkipReason::Charset,
            Unreadable::Broken(_) => SkipReason::Broken,
        })?;
        if document.title.trim().is_empty() {
            let stem = path.file_stem().unwrap_or_default();
            document.title = stem.to_string_lossy().into_owned();
        }
        let mut dated_by_file = false;
        if let Some(stamp) = stamp.filter(|_| document.published_at.is_empty()) {
            let day = from_time(UNIX_EPOCH + Duration::from_nanos(stamp.modified));
            dated_by_file = stamp.modified > 0 && day.is_some();
            document.published_at = day.filter(|_| dated_by_file).unwrap_or_default();
        }
        Ok(FolderPage { document, dated_by_file })
    }
}

/// Files of the corpus inside the program.
fn corpus_files() -> Vec<FoundFile> {
    fn gather(dir: &Dir<'_>, found: &mut Vec<FoundFile>) {
        for file in dir.files() {
            let extension = file.path().extension().and_then(|extension| extension.to_str());
            let Some(format) = extension.and_then(DocumentFormat::from_extension) else { continue };
            let stamp = FileStamp { modified: 0, size: file.contents().len() as u64 };
            found.push(FoundFile { path: file.path().to_owned(), format, stamp });
        }
        dir.dirs().for_each(|dir| gather(dir, found));
    }
    let mut found = Vec::new();
    gather(&CORPUS, &mut found);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Reads a file of this folder. Its path is checked again first, because it may have become a link
/// since it was listed.
fn read_bytes(root: &Path, path: &Path) -> Result<(Vec<u8>, FileStamp), SkipReason> {
    let whole = root.join(path).canonicalize().map_err(|_| SkipReason::Unopened)?;
    if !whole.starts_with(root) {
        return Err(SkipReason::OutsideLink);
    }
    // Refuses a link that appears after the check.
    let file = read_file::open_file(&whole, OpenOptions::new().read(true), Links::Refused)
        .map_err(|error| match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::IsADirectory => SkipReason::Special,
            _ => SkipReason::Unopened,
        })?;
    let about = file.metadata().map_err(|_| SkipReason::Unopened)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|_| SkipReason::Unopened)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SkipReason::TooLarge);
    }
    Ok((bytes, FileStamp::from_metadata(&about)))
}

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
    fn from_metadata(file: &Metadata) -> Self {
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

/// Why something in a folder is not one of its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// Name starts with a dot. A hidden folder counts once, whatever it contains.
    Hidden,
    /// A link to a target outside the folder.
    OutsideLink,
    /// A link to a folder inside: its files are found under their own names.
    LinkedFolder,
    /// Neither a file nor a folder: a pipe, socket or device. It is not opened.
    Special,
    /// Extension of no supported format.
    OtherType,
    /// Larger than [`MAX_BYTES`](crate::tool::folder::MAX_BYTES).
    TooLarge,
    /// Beyond the first [`MAX_FILES`](crate::tool::folder::MAX_FILES).
    TooMany,
    /// No address: in a mirror, its first folder is not a host name.
    NoAddress,
    /// Cannot be opened or read.
    Unopened,
    /// The extension says text, but the content is binary.
    Binary,
    /// In a charset that cannot be decoded.
    Charset,
    /// Contains no text.
    Empty,
    /// The parser failed.
    Broken,
}

// An index stores the position of a reason in this table: append only, or raise
// [`VERSION`](crate::tool::folder::text_index::VERSION).
worded! { SkipReason + ALL {
    Hidden = "hidden", OutsideLink = "leads_out", LinkedFolder = "linked_folder",
    Special = "special", OtherType = "other_type", TooLarge = "too_large", TooMany = "too_many",
    NoAddress = "no_address", Unopened = "unopened", Binary = "binary", Charset = "charset",
    Empty = "empty", Broken = "broken",
} }

impl SkipReason {
    /// Position in [`ALL`](Self::ALL), from 1; stored in the index.
    pub(crate) fn code(self) -> u64 {
        self as u64 + 1
    }

    /// The reason of a code; `None` for 0, a readable file.
    pub(super) fn from_code(code: u64) -> Option<Self> {
        let place = usize::try_from(code.checked_sub(1)?).ok()?;
        Some(Self::ALL.get(place).copied().unwrap_or(Self::Broken))
    }
}

/// Number of skipped files by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFiles([u64; SkipReason::ALL.len()]);

impl SkippedFiles {
    /// Counts one more file.
    pub fn count(&mut self, reason: SkipReason) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
        self
    }

    /// Count of a reason.
    pub fn count_of(&self, reason: SkipReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// JSON for the tool's result: the reasons with a count above 0.
    pub fn to_json(&self) -> Value {
        let counts = SkipReason::ALL.iter().map(|reason| (*reason, self.count_of(*reason)));
        let reasons: Map<String, Value> = counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.word().to_owned(), count.into()))
            .collect();
        Value::Object(reasons)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn skip_reason_round_trips_by_code() {
        for reason in SkipReason::ALL {
            assert_eq!(SkipReason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(SkipReason::from_code(0), None);
        let mut left_out = SkippedFiles::default();
        left_out.count(SkipReason::TooLarge);
        left_out.count(SkipReason::Broken);
        left_out.count(SkipReason::Broken);
        assert_eq!(left_out.to_json(), json!({ "too_large": 1, "broken": 2 }));
    }
}
