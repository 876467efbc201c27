//! The screen guard: takes the terminal (alternate screen, raw mode, mouse, bracketed paste,
//! focus) and gives it back, whichever way the program ends: by dropping [`Screen`], or in the one
//! panic hook that [`install_hooks`] sets.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};
use std::{process, thread};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange,
};
use crossterm::terminal::{EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{Command, cursor, queue, style, terminal};

use crate::tool::contained;

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while a frame is on its way: the terminal is given back after it, never in the middle.
static WRITING: Mutex<()> = Mutex::new(());

/// How long the last bytes may take before the program ends without them.
const STALLED: Duration = Duration::from_secs(1);

/// The exit code of a program that panicked, as Rust has it.
const PANICKED: i32 = 101;

/// Holds the terminal; gives it back when dropped.
#[derive(Debug)]
#[must_use]
pub struct Screen(());

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When there is none, or it does not do what is asked of it; it is given back then.
    pub fn take() -> io::Result<Self> {
        let screen = Self(());
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal again after [`leave`](Self::leave).
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn enter(&self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let mut bytes = Vec::new();
        queue!(
            bytes,
            EnterAlternateScreen,
            CaptureMouse,
            EnableBracketedPaste,
            EnableFocusChange,
            cursor::Hide,
            terminal::Clear(terminal::ClearType::All),
        )?;
        write(&bytes).inspect_err(|_| restore())
    }

    /// Gives the terminal back for a while: the program is suspended, or another one is shown.
    pub fn leave(&self) {
        restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal is ours now: nothing is drawn while it is not.
pub fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Whether both ends of the terminal are there: keys come from it and pictures go to it.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Writes to the terminal as it is, past the buffers and the lock of standard output: a writer
/// that a stalled terminal holds up must not keep the hook of a panic from restoring it.
///
/// # Errors
/// What the terminal says.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let mut terminal = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
        terminal.write_all(bytes)
    }
    #[cfg(not(unix))]
    {
        let mut terminal = io::stdout().lock();
        terminal.write_all(bytes)?;
        terminal.flush()
    }
}

/// Writes a frame while the terminal is ours; one that comes too late is dropped.
///
/// # Errors
/// As [`write()`].
pub fn write_frame(bytes: &[u8]) -> io::Result<()> {
    let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if is_taken() { write(bytes) } else { Ok(()) }
}

/// As [`write()`], but waits no longer than a second: a program that is told to end does so
/// also before a terminal that takes no more bytes.
///
/// # Errors
/// As [`write()`]; `TimedOut` when the terminal stalls.
pub fn write_last(bytes: &[u8]) -> io::Result<()> {
    let owned = bytes.to_vec();
    within(STALLED, move || write(&owned))
}

/// Does something on a thread of its own that is left behind when it takes longer than this.
fn within(
    limit: Duration,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let (done, result) = mpsc::channel();
    thread::Builder::new().spawn(move || drop(done.send(work())))?;
    result.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The turn to write, once the frame on its way is through; `None` when that takes too long, as
/// before a terminal that stalls, or when the writer itself is what failed.
fn turn_soon() -> Option<MutexGuard<'static, ()>> {
    let patience = Instant::now() + STALLED / 2;
    loop {
        match WRITING.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < patience => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Gives the terminal back. Does nothing when it is not ours, and never fails: there is no one
/// left to tell.
fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    let _ = queue!(
        bytes,
        EndSynchronizedUpdate,
        DisableFocusChange,
        DisableBracketedPaste,
        DisableMouseCapture,
        style::SetAttribute(style::Attribute::Reset),
        LeaveAlternateScreen,
        cursor::Show,
    );
    // After the frame that is on its way, unless that one does not get on.
    let _ = within(STALLED, move || {
        let _turn = turn_soon();
        write(&bytes)
    });
    let _ = terminal::disable_raw_mode();
}

/// Clicks, the wheel and drags, without the mere motion of crossterm's own command: a mouse that
/// is moved over an idle dashboard wakes nothing.
struct CaptureMouse;

impl Command for CaptureMouse {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str("\x1b[?1000h\x1b[?1002h\x1b[?1006h")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        crossterm::event::EnableMouseCapture.execute_winapi()
    }

    #[cfg(windows)]
    fn is_ansi_code_supported(&self) -> bool {
        false
    }
}

/// Sets the hooks for panics and for reports of errors; a second call changes nothing.
///
/// A panic that the gateway contains is a failed attempt of a run: it is logged and nothing else.
/// Any other restores the terminal first, so that its report can be read, and ends the program
/// with exit code 101, on whichever thread it came.
pub fn install_hooks() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return;
    }
    let plain = !io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
    let blank = color_eyre::config::HookBuilder::blank();
    let themed = if plain { blank.theme(color_eyre::config::Theme::new()) } else { blank };
    let (panic_hook, eyre_hook) = themed
        .display_env_section(false)
        .panic_section(
            "This is a bug of roundtable: its log file may say more (`roundtable doctor`).",
        )
        .into_hooks();
    if eyre_hook.install().is_err() {
        tracing::debug!("another hook reports errors");
    }
    std::panic::set_hook(Box::new(move |info| {
        if contained::is_contained() {
            tracing::warn!("contained: {info}");
            return;
        }
        tracing::error!("{info}");
        let was_shown = is_taken();
        restore();
        let _ = writeln!(io::stderr(), "{}", panic_hook.panic_report(info));
        if was_shown {
            process::exit(PANICKED);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_stalls_holds_nothing_up() {
        let (let_go, gate) = mpsc::channel::<()>();
        let stalled = move || gate.recv().map_err(io::Error::other);
        let error = within(Duration::from_millis(1), stalled).expect_err("it stalls");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(let_go);
        within(Duration::from_secs(60), || Ok(())).expect("it flows");
    }
}
