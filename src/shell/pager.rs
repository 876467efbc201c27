//! Shows texts in the operator's pager, and ends the pager when the program has to end.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The running pager.
static SHOWN: Mutex<Option<Child>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Child>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows a text in `$PAGER`, else `less`, else `more`; returns when the pager ends.
///
/// # Errors
/// If none of them can be started.
pub fn show(text: &str) -> io::Result<()> {
    let wanted = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pagers = match &wanted {
        Some(pager) => vec![pager.as_str()],
        None => vec!["less", "more"],
    };
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for pager in pagers {
        match shell(pager).stdin(Stdio::piped()).spawn() {
            Ok(mut child) => {
                let stdin = child.stdin.take();
                *running() = Some(child);
                if let Some(mut stdin) = stdin {
                    // Fails if the operator leaves the pager early.
                    let _ = stdin.write_all(text.as_bytes());
                }
                match wait()? {
                    Some(127) => {}
                    _ => return Ok(()),
                }
                failed =
                    io::Error::new(io::ErrorKind::NotFound, format!("pager `{pager}` not found"));
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Waits for the pager's end; returns its exit code.
#[cfg(unix)]
fn wait() -> io::Result<Option<i32>> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = running().as_ref().map(Child::id);
    let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    if let Some(pid) = pid {
        // NOWAIT keeps the process as a zombie until the lock is held, so its id cannot be reused.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    }
    let ended = running().take();
    ended.map_or(Ok(None), |mut child| child.wait().map(|status| status.code()))
}

#[cfg(not(unix))]
fn wait() -> io::Result<Option<i32>> {
    let child = running().take();
    child.map_or(Ok(None), |mut child| child.wait().map(|status| status.code()))
}

/// Asks the pager to end, or kills it (`now`). Does nothing if there is none.
#[cfg(unix)]
pub fn stop(now: bool) {
    use rustix::process::{Pid, Signal, kill_process};
    let shown = running();
    let Some(shell) = shown.as_ref().map(Child::id) else { return };
    let signal = if now { Signal::KILL } else { Signal::TERM };
    for pid in process_tree(shell) {
        if let Some(pid) = pid.try_into().ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Limit on the number of a pager's processes.
#[cfg(unix)]
const MAX_PROCESSES: usize = 32;

/// A process and, if the system lists them, its descendants: `$PAGER` runs in a shell.
#[cfg(unix)]
fn process_tree(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(pid) = family.get(next).filter(|_| family.len() < MAX_PROCESSES) {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        family.extend(
            children
                .iter()
                .flat_map(|pids| pids.split(' '))
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
        next += 1;
    }
    family
}

/// Does nothing: the pager ends with its window.
#[cfg(not(unix))]
pub fn end(_now: bool) {}

/// Whether a pager is running.
pub fn is_shown() -> bool {
    running().is_some()
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}
