//! Named pipes.

use std::path::Path;
use std::process::Command;

/// Makes a named pipe with `mkfifo`: a system call for it is not on every Unix.
pub fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success(), "a pipe at {}", path.display());
}
