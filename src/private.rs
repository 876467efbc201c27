//! Files for their owner's eyes alone: 0600, in folders of 0700.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a folder, and those above it, that only its owner may enter.
///
/// # Errors
/// What the file system says.
pub fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file at its end, making it (0600) and its folder where they are missing.
///
/// # Errors
/// What the file system says.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true))
}

/// Writes a whole file (0600) that must not be there yet.
///
/// # Errors
/// What the file system says; `AlreadyExists` when it is there.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut open(path, OpenOptions::new().write(true).create_new(true))?, bytes)
}

/// Puts a whole file (0600) in place of what is there, at once: whoever reads it has the old one or
/// the new one.
///
/// # Errors
/// What the file system says; then what was there is there still.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let put = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if put.is_err() {
        // Nothing is there, or nothing can be done about it.
        let _ = fs::remove_file(&beside);
    }
    put
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_dir(folder)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_we_write_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("made/here/file");
        write_new(&file, b"text").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&folder.path().join("made")), 0o700);
        let again = write_new(&file, b"other").expect_err("is there already");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        io::Write::write_all(&mut append(&file).expect("opens"), b"+").expect("appends");
        assert_eq!(fs::read(&file).expect("reads"), b"text+");
        replace(&file, b"new").expect("put in place");
        assert_eq!((fs::read(&file).expect("reads"), mode(&file)), (b"new".to_vec(), 0o600));
        replace(&folder.path().join("made"), b"x").expect_err("a folder is there");
        assert_eq!(fs::read_dir(file.parent().expect("a folder")).expect("reads").count(), 1);
        assert_eq!(fs::read_dir(folder.path()).expect("reads").count(), 1, "nothing is left over");
    }
}
