//! Where the index of a folder is kept on the disk: below the user's folder of what can be made again,
//! under a name that says which folder, which addresses and which form of the index it is of.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, META_LOCK, MmapDirectory};

use super::address::Layout;
use super::text_index::{IndexFailed, TextIndex, VERSION};
use crate::private;

/// Hexadecimal digits of a name.
const DIGITS: usize = 32;

/// Where what can be made again is kept of this user; `None` when there is no home.
pub fn of_user() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(etcetera::BaseStrategy::cache_dir(&base).join("roundtable"))
}

/// Where the index of the folder `root`, its path without links, is kept below `cache`.
pub fn place(cache: &Path, root: &Path, layout: &Layout) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    let base = match layout {
        Layout::Under(base) => base.as_str(),
        Layout::Mirror => "",
    };
    // Each with its length before it, so that no two of them run into each other.
    for part in [root.as_os_str().as_encoded_bytes(), base.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    name.truncate(DIGITS);
    cache.join("folders").join(name)
}

/// Opens the index that is kept there. One that is broken, or is none of ours, is made anew.
///
/// # Errors
/// [`IndexFailed::Busy`] where it would have to be made anew while another process writes it;
/// [`IndexFailed::Broken`] where nothing can be kept there.
pub fn open(place: &Path) -> Result<TextIndex, IndexFailed> {
    make_private(place)?;
    match TextIndex::kept_in(place) {
        Err(IndexFailed::Broken(why)) => {
            tracing::warn!(place = %place.display(), why, "an index is made anew");
            clear(place)?;
            TextIndex::kept_in(place)
        }
        opened => opened,
    }
}

/// Takes away everything that is kept there.
///
/// # Errors
/// As [`open`].
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

/// Makes the folder, open to its owner alone; one that was there before may have been open to others.
fn make_private(place: &Path) -> std::io::Result<()> {
    private::make_dir(place)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_tells_folders_and_addresses_apart() {
        let cache = Path::new("/cache");
        let under = |base: &str| Layout::Under(base.to_owned());
        let places = [
            place(cache, Path::new("/a"), &Layout::Mirror),
            place(cache, Path::new("/b"), &Layout::Mirror),
            place(cache, Path::new("/a"), &under("http://x/")),
            place(cache, Path::new("/ahttp://x/"), &Layout::Mirror),
        ];
        for (at, one) in places.iter().enumerate() {
            assert!(one.starts_with("/cache/folders"));
            assert!(places.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(places.first(), Some(&place(cache, Path::new("/a"), &Layout::Mirror)));
    }
}
