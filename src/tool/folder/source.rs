//! Sources of a folder's documents: the disk, or the corpus inside the program.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use include_dir::{Dir, include_dir};

use super::MAX_BYTES;
use super::address::Layout;
use super::cancellation::CancelFlag;
use super::skipped_files::{SkipReason, SkippedFiles};
use super::walk::{FileStamp, FoundFile, WalkFailed, walk};
use crate::base::contained;
use crate::base::iso_day::from_time;
use crate::base::regular;
use crate::base::regular::Links;
use crate::document;
use crate::document::{DocumentFormat, ExtractedDocument, Unreadable};

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
    /// The document of an address in [`canonical`](super::address::canonical) spelling.
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
            Self::Corpus => {
                super::walk::FolderListing { files: corpus_files(), ..Default::default() }
            }
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
        let read = contained::catch_panic(|| {
            document::read_while(*format, &bytes, None, &|| stop.check().is_ok())
        });
        let mut document = match read {
            Ok(Ok(document)) => document,
            Ok(Err(Unreadable::Empty)) => return Err(SkipReason::Empty),
            Ok(Err(Unreadable::Charset)) => return Err(SkipReason::Charset),
            Ok(Err(Unreadable::Broken(_))) | Err(_) => return Err(SkipReason::Broken),
        };
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
    let file =
        regular::open(&whole, OpenOptions::new().read(true), Links::Refused).map_err(|error| {
            match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::IsADirectory => SkipReason::Special,
                _ => SkipReason::Unopened,
            }
        })?;
    let about = file.metadata().map_err(|_| SkipReason::Unopened)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|_| SkipReason::Unopened)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SkipReason::TooLarge);
    }
    Ok((bytes, FileStamp::from_metadata(&about)))
}
