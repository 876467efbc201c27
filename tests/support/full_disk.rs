//! A disk that is full for one process: none of its files can grow. Needs no rights.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Starts a program so that a file that cannot grow is an error that it sees, not its end.
pub const UNDER: [&str; 4] = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

/// Fills the disk of this process, or gives it room again.
pub fn set_full(pid: u32, full: bool) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    let limit = Rlimit { current: full.then_some(0), maximum: None };
    prlimit(Some(pid), Resource::Fsize, limit).expect("the limit is set");
}
