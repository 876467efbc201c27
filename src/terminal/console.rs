//! The terminal as the loop uses it: output of frames, input of keys, and handing it over to the
//! shell, the pager or the editor, which are ended when this program has to end. Tests have their
//! own implementation.

use std::io;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::event::Event;
use futures::Stream;
use ratatui::layout::Size;

#[cfg(unix)]
use super::keyboard::{KeyboardStart, ask_background};
use super::screen_guard::ScreenGuard;
use super::signals::Watchdog;
use super::surface::{Canvas, Surface};
use super::{screen_guard, terminal_size};

/// Source of keys: on Unix our own thread, elsewhere crossterm's.
#[cfg(unix)]
type Keys = super::keyboard::Keyboard;
#[cfg(not(unix))]
type Keys = crossterm::event::EventStream;

/// Shows a text and returns when the operator leaves it.
pub type Pager = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// Opens a file in an editor and returns when the operator leaves it.
pub type Editor = Box<dyn FnOnce(&Path) -> io::Result<()> + Send>;

/// A terminal.
pub trait Console {
    /// Destination of frames.
    type FrameSurface: Surface;
    /// Source of keys. Dropped before the terminal is handed over.
    type KeyInput: Stream<Item = io::Result<Event>> + Unpin;

    /// Creates the surface for drawing; called once.
    fn surface(&mut self) -> io::Result<Self::FrameSurface>;
    /// Starts reading keys.
    fn input(&mut self) -> io::Result<Self::KeyInput>;
    /// The current size.
    fn size(&self) -> Size;
    /// Restores the terminal for another program.
    fn leave(&mut self);
    /// Takes the terminal back after [`leave`](Self::leave).
    fn enter(&mut self) -> io::Result<()>;
    /// Suspends the program; returns when it resumes. `false`: it could not be suspended.
    fn stop(&mut self) -> bool;
    /// The function that shows a text in the operator's pager and returns when the pager ends. It
    /// runs on its own thread while the pager has the terminal.
    fn pager(&self) -> Pager;
    /// The function that opens a file in the operator's editor, as [`pager`](Self::pager) does.
    fn editor(&self) -> Editor;
    /// Asks the program that has the terminal to end, or kills it (`now`).
    fn end_program(&mut self, _now: bool) {}
    /// Restores the terminal for the shell after a program was ended.
    fn reclaim(&mut self) {}
    /// Reports that the loop is not stuck.
    fn heartbeat(&self) {}
    /// Reports that the loop has taken a signal to end.
    fn end_taken(&self) {}
}

/// The terminal that the program was started in.
pub struct Tty {
    screen: ScreenGuard,
    watchdog: Watchdog,
    /// Input that arrived while the terminal was queried.
    #[cfg(unix)]
    start: KeyboardStart,
}

impl Tty {
    /// Takes the terminal, with its title (`titled`). The watchdog ends the program if the loop does not
    /// answer Ctrl-C. `escape`: how long a lone ESC waits for the rest of a key; `None`: the default.
    ///
    /// # Errors
    /// As [`ScreenGuard::take`].
    pub fn take(watchdog: Watchdog, titled: bool, escape: Option<Duration>) -> io::Result<Self> {
        #[cfg(unix)]
        let mut start = KeyboardStart::default();
        #[cfg(unix)]
        if let Some(timeout) = escape {
            start.set_escape_timeout(timeout);
        }
        #[cfg(not(unix))]
        let _ = escape;
        Ok(Self {
            screen: ScreenGuard::take(titled)?,
            watchdog,
            #[cfg(unix)]
            start,
        })
    }

    /// The terminal's background colour as it writes it (`rgb:ffff/ffff/ffff`), if it answers within
    /// 50 ms. To be called before keys are read.
    #[cfg(unix)]
    pub fn ask_background(&mut self) -> Option<Vec<u8>> {
        ask_background(&io::stdin(), &mut self.start, screen_guard::write)
    }

    /// The terminal's background colour, which is not queried on this system.
    #[cfg(not(unix))]
    pub fn ask_background(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl Console for Tty {
    type FrameSurface = Canvas;
    type KeyInput = Keys;

    fn surface(&mut self) -> io::Result<Canvas> {
        // `write_frame` drops a frame that is still queued after the terminal was restored.
        Canvas::new(self.size(), screen_guard::write_frame)
    }

    #[cfg(unix)]
    fn input(&mut self) -> io::Result<Keys> {
        use std::os::fd::AsFd;

        use super::keyboard::is_interrupt;
        use super::signals::EndRequest;
        let watchdog = self.watchdog.clone();
        Keys::read(
            io::stdin().as_fd().try_clone_to_owned()?,
            std::mem::take(&mut self.start),
            move |event, give| match is_interrupt(&event) {
                true => watchdog.request_end(EndRequest::Interrupt, || give(event)),
                false => give(event),
            },
        )
    }

    #[cfg(not(unix))]
    fn input(&mut self) -> io::Result<Keys> {
        Ok(Keys::new())
    }

    fn size(&self) -> Size {
        terminal_size()
    }

    fn leave(&mut self) {
        self.screen.leave();
    }

    fn enter(&mut self) -> io::Result<()> {
        self.screen.enter()
    }

    fn stop(&mut self) -> bool {
        stop_process()
    }

    fn pager(&self) -> Pager {
        Box::new(show_in_pager)
    }

    fn editor(&self) -> Editor {
        Box::new(edit_file)
    }

    fn end_program(&mut self, now: bool) {
        stop_program(now);
    }

    fn reclaim(&mut self) {
        screen_guard::restore_after_program();
    }

    fn heartbeat(&self) {
        self.watchdog.heartbeat();
    }

    fn end_taken(&self) {
        self.watchdog.end_taken();
    }
}

/// Suspends the program, and returns when it resumes. `false`: it could not be suspended.
#[cfg(unix)]
pub(crate) fn stop_process() -> bool {
    use rustix::process::{Signal, kill_current_process_group};
    // The whole group, as a terminal's Ctrl-Z does: a launcher before it, such as npm's, must stop too, or
    // the shell never gets the terminal back.
    kill_current_process_group(Signal::STOP)
        .inspect_err(|error| tracing::warn!("cannot suspend: {error}"))
        .is_ok()
}

/// Suspends the program, which this system cannot.
#[cfg(not(unix))]
pub(crate) fn stop_process() -> bool {
    false
}

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
        match shell_command(pager).stdin(Stdio::piped()).spawn() {
            Ok(mut child) => {
                let stdin = child.stdin.take();
                *running() = Some(child);
                if let Some(mut stdin) = stdin {
                    // Fails if the operator leaves the pager early.
                    let _ = stdin.write_all(text.as_bytes());
                }
                match wait_for_program()? {
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
/// If it cannot be started, or fails: what it left in the file does not count then.
pub fn edit_file(path: &Path) -> io::Result<()> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The path is an argument of the shell and not a part of its command.
    *running() = Some(shell_command_with(&editor, path).spawn()?);
    match wait_for_program()? {
        Some(127) => {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("editor `{editor}` not found")))
        }
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::other(format!("`{editor}` ended with exit code {code}"))),
        None => Err(io::Error::other(format!("`{editor}` was stopped"))),
    }
}

/// Waits for the program's end; returns its exit code.
#[cfg(unix)]
fn wait_for_program() -> io::Result<Option<i32>> {
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
fn wait_for_program() -> io::Result<Option<i32>> {
    let child = running().take();
    child.map_or(Ok(None), |mut child| child.wait().map(|status| status.code()))
}

/// Asks the program to end, or kills it (`now`). Does nothing if there is none.
#[cfg(unix)]
pub fn stop_program(now: bool) {
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
pub fn stop_program(_now: bool) {}

/// Whether a program has the terminal.
pub fn is_program_running() -> bool {
    running().is_some()
}

#[cfg(unix)]
fn shell_command(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(not(unix))]
fn shell_command(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

#[cfg(unix)]
fn shell_command_with(command: &str, path: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{command} \"$1\"")).arg("sh").arg(path);
    shell
}

#[cfg(not(unix))]
fn shell_command_with(command: &str, path: &Path) -> Command {
    let mut shell = Command::new(command);
    shell.arg(path);
    shell
}
