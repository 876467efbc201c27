//! Where files of ours live, and how they are written: for their owner's eyes alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// The folders of this user. On Linux and macOS those of the XDG rules, on Windows those of
/// `AppData`.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// What a person sets: `~/.config/roundtable`.
    pub config: PathBuf,
    /// What the program keeps: `~/.local/state/roundtable`.
    pub state: PathBuf,
}

impl Dirs {
    /// Finds the folders; makes none. `None` when the user has no home.
    pub fn find() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Some(Self { config: base.config_dir().join("roundtable"), state: state.join("roundtable") })
    }

    /// The log file.
    pub fn log(&self) -> PathBuf {
        self.state.join("roundtable.log")
    }

    /// The scenarios that a person trusts.
    pub fn trusted(&self) -> PathBuf {
        self.config.join("trusted")
    }
}

/// Makes a folder, and those above it, that only its owner may enter.
///
/// # Errors
/// What the file system says.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
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
pub fn append_private(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true))
}

/// Writes a whole file (0600) that must not be there yet.
///
/// # Errors
/// What the file system says; `AlreadyExists` when it is there.
pub fn write_new_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut open(path, OpenOptions::new().write(true).create_new(true))?, bytes)
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_private_dir(folder)?;
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
        write_new_private(&file, b"text").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&folder.path().join("made")), 0o700);
        let again = write_new_private(&file, b"other").expect_err("is there already");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        io::Write::write_all(&mut append_private(&file).expect("opens"), b"+").expect("appends");
        assert_eq!(fs::read(&file).expect("reads"), b"text+");
    }
}
