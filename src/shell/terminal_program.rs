//! The programs that get the terminal for a while: the operator's pager and editor. They are ended
//! when this program has to end.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The program that has the terminal.
static SHOWN: Mutex<Option<Child>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Child>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows a text in `$PAGER`, else `less`, else `more`; returns when the pager ends.
///
/// # Errors
/// If none of them can be started.
pub fn show_in_pager(text: &str) -> io::Result<()> {
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

/// Lets the operator edit a file in `$VISUAL`, else `$EDITOR`, else `vi`; returns when the editor
/// ends.
///
/// # Errors
/// If it cannot be started.
pub fn edit(path: &Path) -> io::Result<()> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The path is an argument of the shell and not a part of its command.
    *running() = Some(shell_with(&editor, path).spawn()?);
    match wait()? {
        Some(127) => {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("editor `{editor}` not found")))
        }
        _ => Ok(()),
    }
}

/// Waits for the program's end; returns its exit code.
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

/// Asks the program to end, or kills it (`now`). Does nothing if there is none.
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

/// Limit on the number of a program's processes.
#[cfg(unix)]
const MAX_PROCESSES: usize = 32;

/// A process and, if the system lists them, its descendants: the program runs in a shell.
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

/// Does nothing: the program ends with its window.
#[cfg(not(unix))]
pub fn stop(_now: bool) {}

/// Whether a program has the terminal.
pub fn is_running() -> bool {
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

#[cfg(unix)]
fn shell_with(command: &str, path: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{command} \"$1\"")).arg("sh").arg(path);
    shell
}

#[cfg(not(unix))]
fn shell_with(command: &str, path: &Path) -> Command {
    let mut shell = Command::new(command);
    shell.arg(path);
    shell
}
