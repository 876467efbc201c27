//! Which process plays a run. Each process has a file in a folder next to the database and holds a
//! lock on it until it ends. The system releases the lock however the process ends, so an owner whose
//! file is not locked is gone. (Process numbers repeat, and differ between containers.)

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::base::private;

/// This process as the owner of runs.
pub struct Owner {
    name: String,
    folder: PathBuf,
    file: File,
}

impl Owner {
    /// Creates and locks the file of this process.
    ///
    /// # Errors
    /// Any error of the file system.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        private::make_dir(folder)?;
        loop {
            let name = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
            let path = folder.join(&name);
            let file = private::append(&path)?;
            match file.try_lock() {
                // Another process may have taken the file for one left over, and removed it.
                Ok(()) if path.exists() => {
                    let owner = Self { name, folder: folder.to_owned(), file };
                    owner.remove_dead();
                    return Ok(owner);
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Its name, as in the rows of its runs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process with this name still runs.
    pub fn is_alive(&self, name: &str) -> bool {
        if name == self.name {
            return true;
        }
        is_file_name(name) && is_locked(&self.folder.join(name))
    }

    /// Removes the files of processes that have ended.
    fn remove_dead(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_file_name(name)) else { continue };
            let Ok(file) = OpenOptions::new().append(true).open(entry.path()) else { continue };
            // Removed under its lock, so that a process that is about to lock it sees that.
            if name != self.name && file.try_lock().is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(&self.name));
        let _ = self.file.unlock();
    }
}

/// What a row says is data: it must not name a file elsewhere.
fn is_file_name(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_locked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().append(true).open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
