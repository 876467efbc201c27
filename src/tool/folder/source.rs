//! Where the documents of a folder come from: the disk, or the program itself.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use include_dir::{Dir, include_dir};

use super::MAX_BYTES;
use super::address::Layout;
use super::left_out::{LeftOut, Reason};
use super::stop::Stop;
use super::walk::{Found, Stamp, WalkFailed, walk};
use crate::regular::{self, Links};
use crate::tool::contained;
use crate::tool::document::day::of_time;
use crate::tool::document::{self, Document, Format, Unreadable};

static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/corpus");

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// What is shipped.
    Corpus,
    /// A folder: its path without links.
    Folder(PathBuf),
}

/// A document as it is found by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub address: String,
    /// The file.
    pub file: Found,
}

/// All documents of a folder by their addresses.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Sorted by their paths.
    pub entries: Vec<Entry>,
    /// What was left out by looking at it.
    pub left_out: LeftOut,
    by_address: HashMap<String, usize>,
}

impl Catalogue {
    /// The document of an address as [`canonical`](super::address::canonical) writes it.
    pub fn find(&self, address: &str) -> Option<&Entry> {
        self.entries.get(*self.by_address.get(address)?)
    }
}

/// A document that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its title and text, and its date, be it the file's own.
    pub document: Document,
    /// Its date is that of the file's last change: nothing in it says when it was published.
    pub dated_by_file: bool,
}

impl Source {
    /// Looks what documents there are.
    ///
    /// # Errors
    /// The folder cannot be read, or the call was dropped.
    pub fn catalogue(&self, layout: &Layout, stop: &Stop) -> Result<Catalogue, WalkFailed> {
        let mut walked = match self {
            Self::Corpus => super::walk::Walked { files: shipped(), ..Default::default() },
            Self::Folder(root) => walk(root, stop)?,
        };
        let addresses = layout.assign(walked.files.iter().map(|file| file.path.as_path()));
        let mut catalogue = Catalogue::default();
        for (file, address) in walked.files.into_iter().zip(addresses) {
            match address {
                None => walked.left_out.count(Reason::NoAddress),
                Some(address) => {
                    catalogue.by_address.insert(address.clone(), catalogue.entries.len());
                    catalogue.entries.push(Entry { address, file });
                }
            }
        }
        catalogue.left_out = walked.left_out;
        Ok(catalogue)
    }

    /// Reads a document, as long as it is wanted: ask `stop` after it, for what was given up says
    /// nothing of the document.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(&self, entry: &Entry, stop: &Stop) -> Result<Page, Reason> {
        let Found { path, format, .. } = &entry.file;
        let (bytes, stamp) = match self {
            Self::Corpus => {
                (CORPUS.get_file(path).ok_or(Reason::Unopened)?.contents().to_vec(), None)
            }
            Self::Folder(root) => {
                let (bytes, stamp) = bytes_of(root, path)?;
                (bytes, Some(stamp))
            }
        };
        // A PDF is binary by nature; elsewhere no text has a NUL, but in UTF-16.
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        if *format != Format::Pdf && !utf16 && bytes.contains(&0) {
            return Err(Reason::Binary);
        }
        let read = contained::call(|| {
            document::read_while(*format, &bytes, None, &|| stop.check().is_ok())
        });
        let mut document = match read {
            Ok(Ok(document)) => document,
            Ok(Err(Unreadable::Empty)) => return Err(Reason::Empty),
            Ok(Err(Unreadable::Charset)) => return Err(Reason::Charset),
            Ok(Err(Unreadable::Broken(_))) | Err(_) => return Err(Reason::Broken),
        };
        if document.title.trim().is_empty() {
            let stem = path.file_stem().unwrap_or_default();
            document.title = stem.to_string_lossy().into_owned();
        }
        let mut dated_by_file = false;
        if let Some(stamp) = stamp.filter(|_| document.published_at.is_empty()) {
            let day = of_time(UNIX_EPOCH + Duration::from_nanos(stamp.modified));
            dated_by_file = stamp.modified > 0 && day.is_some();
            document.published_at = day.filter(|_| dated_by_file).unwrap_or_default();
        }
        Ok(Page { document, dated_by_file })
    }
}

/// The files that come inside the program.
fn shipped() -> Vec<Found> {
    fn gather(dir: &Dir<'_>, found: &mut Vec<Found>) {
        for file in dir.files() {
            let extension = file.path().extension().and_then(|extension| extension.to_str());
            let Some(format) = extension.and_then(Format::of_extension) else { continue };
            let stamp = Stamp { modified: 0, size: file.contents().len() as u64 };
            found.push(Found { path: file.path().to_owned(), format, stamp });
        }
        dir.dirs().for_each(|dir| gather(dir, found));
    }
    let mut found = Vec::new();
    gather(&CORPUS, &mut found);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The bytes of a file of this folder. It is looked at again before it is opened, for it may have
/// become a link in the meantime.
fn bytes_of(root: &Path, path: &Path) -> Result<(Vec<u8>, Stamp), Reason> {
    let whole = root.join(path).canonicalize().map_err(|_| Reason::Unopened)?;
    if !whole.starts_with(root) {
        return Err(Reason::LeadsOut);
    }
    // Not through a link that has come there either.
    let file =
        regular::open(&whole, OpenOptions::new().read(true), Links::Refused).map_err(|error| {
            match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::IsADirectory => Reason::Special,
                _ => Reason::Unopened,
            }
        })?;
    let about = file.metadata().map_err(|_| Reason::Unopened)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|_| Reason::Unopened)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Reason::TooLarge);
    }
    Ok((bytes, Stamp::of(&about)))
}
