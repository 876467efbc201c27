//! The key of the digests in redacted logs: a file next to the store. All redacted logs of a user have
//! the same key, so they can be compared with each other, and no one else can find a short text by
//! trying texts.

use std::io;
use std::path::Path;

use rustls::crypto::ring;

use crate::base::digest::hex;
use crate::base::private::TempFile;
use crate::base::regular;

/// Name of its file, in the folder of the store.
const FILE: &str = "redaction.key";

/// The key of the store in this file. Makes one if there is none. Blocks.
///
/// # Errors
/// That the key can be neither read nor made.
pub fn find_or_make(store: &Path) -> io::Result<[u8; 32]> {
    let path = store.with_file_name(FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let mut key = [0; 32];
    let random = ring::default_provider().secure_random;
    random.fill(&mut key).map_err(|_| io::Error::other("the system has no random numbers"))?;
    match TempFile::write_next_to(&path, hex(&key).as_bytes())?.rename_to(&path) {
        Ok(()) => Ok(key),
        // Another process has just made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    let text = regular::read(path, 1 << 10)?;
    key_of(&text).ok_or_else(|| io::Error::other(format!("{} has no key in it", path.display())))
}

fn key_of(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let mut key = [0; 32];
    if text.len() != 2 * key.len() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_one_key_and_a_damaged_one_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("runs.db");
        let key = find_or_make(&store).expect("made");
        assert_ne!(key, [0; 32]);
        assert_eq!(find_or_make(&store).expect("read"), key);
        let path = store.with_file_name(FILE);
        std::fs::write(&path, "short").expect("written");
        let error = find_or_make(&store).expect_err("no key");
        assert!(error.to_string().ends_with("redaction.key has no key in it"), "{error}");
        assert_eq!(std::fs::read(&path).expect("reads"), b"short");
    }
}
