//! Disk location of a folder's index: in the user's cache directory, under a hash of the folder,
//! its base URL and the version of the index.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, META_LOCK, MmapDirectory};

use super::address::Layout;
use super::text_index::{IndexFailed, TextIndex, VERSION};
use crate::base::digest::hex;
use crate::base::private;

/// Hexadecimal digits of a directory name.
const DIGITS: usize = 32;

/// Unused indices are removed after this time: their folder may be gone, or their version obsolete.
const UNUSED_AFTER: Duration = Duration::from_secs(90 * 86_400);

/// Most indices that are checked, and removed, at once.
const MAX_CHECKED: usize = 1_000;
const MAX_REMOVED: usize = 20;

/// The user's cache directory of this program; `None` without a home directory.
pub fn user_cache_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(etcetera::BaseStrategy::cache_dir(&base).join("roundtable"))
}

/// Directory of the index of the folder `root` (its canonical path) below `cache`.
pub fn index_path(cache: &Path, root: &Path, layout: &Layout) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    let base = match layout {
        Layout::Under(base) => base.as_str(),
        Layout::Mirror => "",
    };
    // Length prefixes keep the two parts apart.
    for part in [root.as_os_str().as_encoded_bytes(), base.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name = hex(&hash.finalize());
    name.truncate(DIGITS);
    cache.join("folders").join(name)
}

/// Opens the index in this directory. A damaged one, or one of another program, is rebuilt.
///
/// # Errors
/// [`IndexFailed::Busy`] if it has to be rebuilt while another process writes it;
/// [`IndexFailed::Broken`] if nothing can be stored there.
pub fn open_index(place: &Path) -> Result<TextIndex, IndexFailed> {
    private::make_dir(place)?;
    remove_unused(place, SystemTime::now());
    let opened = open_or_renew(place);
    restrict_access(place)?;
    opened
}

fn open_or_renew(place: &Path) -> Result<TextIndex, IndexFailed> {
    match TextIndex::on_disk(place) {
        Err(IndexFailed::Broken(why)) => {
            tracing::warn!(place = %place.display(), why, "rebuilding an index");
            clear(place)?;
            TextIndex::on_disk(place)
        }
        opened => opened,
    }
}

/// Removes everything in this directory except its locks.
///
/// # Errors
/// Same as [`open_index`].
pub fn clear(place: &Path) -> Result<(), IndexFailed> {
    let directory = MmapDirectory::open(place).map_err(tantivy::TantivyError::from)?;
    let _lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(tantivy::TantivyError::from)?;
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let is_lock = path.file_name().is_some_and(|name| {
            [&INDEX_WRITER_LOCK.filepath, &META_LOCK.filepath].iter().any(|lock| *lock == name)
        });
        if !is_lock {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Restricts the directory and its files to their owner. The index library creates files that
/// others can read, and the directory may have been readable before.
///
/// # Errors
/// The error of the file system.
pub fn restrict_access(place: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let close = |path: &Path, to: u32| match fs::symlink_metadata(path) {
            Ok(about) if about.is_symlink() || about.permissions().mode() & 0o777 == to => Ok(()),
            Ok(_) => fs::set_permissions(path, fs::Permissions::from_mode(to)),
            Err(error) => Err(error),
        };
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(place)? {
            match close(&entry?.path(), 0o600) {
                // Another process has merged it away.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
    }
    #[cfg(not(unix))]
    let _ = place;
    Ok(())
}

/// Marks this index as used now, and removes others that were not used for long. Errors are
/// ignored; the next call tries again.
fn remove_unused(place: &Path, now: SystemTime) {
    let _ = fs::File::open(place).and_then(|folder| folder.set_modified(now));
    let Some(all) = place.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let unused = all.flatten().take(MAX_CHECKED).filter(|entry| {
        let is_index = entry.file_name().to_str().is_some_and(|name| {
            name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let is_old = |about: fs::Metadata| {
            let used = about.modified().ok();
            about.is_dir()
                && used.and_then(|used| now.duration_since(used).ok()) > Some(UNUSED_AFTER)
        };
        is_index && entry.path() != place && entry.metadata().is_ok_and(is_old)
    });
    for entry in unused.take(MAX_REMOVED) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_used_for_long_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_841_600);
        let make = |name: &str, days: u64| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("made");
            fs::write(path.join("meta.json"), "{}").expect("written");
            let used = now - Duration::from_secs(days * 86_400);
            fs::File::open(&path).and_then(|it| it.set_modified(used)).expect("dated");
            path
        };
        let own = make(&"0".repeat(DIGITS), 400);
        let (old, new) = (make(&"a".repeat(DIGITS), 91), make(&"b".repeat(DIGITS), 89));
        let foreign = make("something-else", 400);
        remove_unused(&own, now);
        assert_eq!(
            [&own, &old, &new, &foreign].map(|path| path.exists()),
            [true, false, true, true]
        );
        let used = fs::metadata(&own).and_then(|about| about.modified()).expect("dated");
        assert_eq!(used, now);
    }

    #[test]
    fn a_place_tells_folders_and_addresses_apart() {
        let cache = Path::new("/cache");
        let under = |base: &str| Layout::Under(base.to_owned());
        let places = [
            index_path(cache, Path::new("/a"), &Layout::Mirror),
            index_path(cache, Path::new("/b"), &Layout::Mirror),
            index_path(cache, Path::new("/a"), &under("http://x/")),
            index_path(cache, Path::new("/ahttp://x/"), &Layout::Mirror),
        ];
        for (at, one) in places.iter().enumerate() {
            assert!(one.starts_with("/cache/folders"));
            assert!(places.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(places.first(), Some(&index_path(cache, Path::new("/a"), &Layout::Mirror)));
    }
}
