//! Files that only their owner can read: mode 0600, in folders of mode 0700.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use super::read_file;
use super::read_file::Links;

/// Creates a folder and its parents, accessible to the owner only.
///
/// # Errors
/// Any error of the file system.
pub fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| match error.kind() {
        // The system's error for a file at this path ("already exists") sounds like success.
        io::ErrorKind::AlreadyExists => {
            let text = format!("{} exists and is not a folder", path.display());
            io::Error::new(io::ErrorKind::NotADirectory, text)
        }
        _ => error,
    })
}

/// Opens a regular file for appending; creates it (0600) and its folder if they are missing.
///
/// # Errors
/// Any error of the file system, or that it is not a regular file.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    read_file::open_file(path, owned(path, &mut options)?, Links::Followed)
}

/// Replaces a file (0600) atomically: readers see the old content or the new content.
///
/// # Errors
/// Any error of the file system; the old file is unchanged then.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    TempFile::write_next_to(path, bytes)?.rename(path)
}

/// A complete temporary file (0600) without its final name. Removed on drop if it was not renamed.
#[derive(Debug)]
pub struct TempFile(PathBuf);

impl TempFile {
    /// Writes a temporary file next to `path`.
    ///
    /// # Errors
    /// Any error of the file system, such as a full disk; the temporary file is removed then.
    pub fn write_next_to(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        Self::fill_next_to(path, |file| file.write_all(bytes))
    }

    /// Lets `fill` write a temporary file next to `path`.
    ///
    /// # Errors
    /// As [`write_next_to`](Self::write_next_to), and those of `fill`.
    pub fn fill_next_to(
        path: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let written = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let mut file = create(&written)?;
        let written = Self(written);
        fill(&mut file)?;
        // Some file systems report a full disk only now.
        file.sync_all()?;
        Ok(written)
    }

    /// Its path until it is renamed.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file to `path` if that name is free.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken; another name can be tried then. Else any error of the
    /// file system.
    pub fn rename_to(&self, path: &Path) -> io::Result<()> {
        // Creates the target first: a rename alone would replace a file that another process just
        // created.
        create(path)?;
        fs::rename(&self.0, path).inspect_err(|_| drop(fs::remove_file(path)))
    }

    fn rename(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Fails if the file was renamed; other errors cannot be handled here.
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates a file that must not exist yet, and its folder.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    owned(path, &mut options)?.open(path)
}

/// Adds owner-only permissions to the options, and creates the folder of the file.
fn owned<'a>(path: &Path, options: &'a mut OpenOptions) -> io::Result<&'a mut OpenOptions> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_dir(folder)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_are_private_to_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("made/here/file");
        append(&file).expect("opens").write_all(b"text").expect("appends");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&folder.path().join("made")), 0o700);
        append(&file).expect("opens").write_all(b"+").expect("appends");
        assert_eq!(fs::read(&file).expect("reads"), b"text+");
        replace_file(&file, b"new").expect("put in place");
        assert_eq!((fs::read(&file).expect("reads"), mode(&file)), (b"new".to_vec(), 0o600));
        replace_file(&folder.path().join("made"), b"x").expect_err("a folder is there");
        assert_eq!(fs::read_dir(file.parent().expect("a folder")).expect("reads").count(), 1);
        assert_eq!(fs::read_dir(folder.path()).expect("reads").count(), 1, "nothing is left over");
    }
    #[test]
    fn names_complete_files_without_overwriting() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let names = || fs::read_dir(folder.path()).expect("reads").count();
        let first = TempFile::write_next_to(&at("a.md"), b"first").expect("written");
        assert!(!at("a.md").exists(), "no name yet");
        first.rename_to(&at("a.md")).expect("named");
        let second = TempFile::write_next_to(&at("a.md"), b"second").expect("written");
        let taken = second.rename_to(&at("a.md")).expect_err("is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        second.rename_to(&at("a-2.md")).expect("named");
        drop((first, second));
        let read = |name: &str| fs::read(at(name)).expect("reads");
        assert_eq!(
            (read("a.md"), read("a-2.md"), names()),
            (b"first".to_vec(), b"second".to_vec(), 2)
        );
        drop(TempFile::write_next_to(&at("b.md"), b"never named").expect("written"));
        assert_eq!(names(), 2, "nothing is left over");
    }
}
