//! The screen guard: takes the terminal (alternate screen, raw mode, mouse, bracketed paste,
//! focus) and gives it back, whichever way the program ends: by dropping [`Screen`], in the one
//! panic hook that [`install_hooks`] sets, before an abort, or by [`end_now`].

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use std::{process, thread};

use crossterm::event::{EnableBracketedPaste, EnableFocusChange};
use crossterm::terminal::EnterAlternateScreen;
use crossterm::{Command, cursor, queue, terminal};

use super::pager;

use crate::tool::contained;

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while a frame is on its way: the terminal is given back after it, never in the middle.
static WRITING: Mutex<()> = Mutex::new(());

/// What gives the terminal back: no synchronised update, no focus, no pastes, no mouse, no look,
/// the normal screen, a cursor. Made beforehand, since an abort for want of memory needs it too.
const BACK: &[u8] =
    b"\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\
    \x1b[?1000l\x1b[0m\x1b[?1049l\x1b[?25h";

/// How long the last bytes may take before the program ends without them: a terminal that stalls
/// (Ctrl-S, a link that hangs) takes no longer to leave than this and the time for a frame.
const STALLED: Duration = Duration::from_millis(400);

/// Whether the terminal did not take the bytes that give it back: it is asked for no more.
static STALLS: AtomicBool = AtomicBool::new(false);

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
        #[cfg(unix)]
        if let Err(error) = super::abort::before_abort(restore) {
            tracing::warn!("an abort will leave the terminal as it is: {error}");
        }
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal again after [`leave`](Self::leave).
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn enter(&self) -> io::Result<()> {
        #[cfg(unix)]
        modes::keep();
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

/// As [`write()`], but waits no longer than 0.4 s, and not at all where the terminal has
/// stalled before: a program that is told to end does so also before a terminal that takes no more
/// bytes.
///
/// # Errors
/// As [`write()`]; `TimedOut` when the terminal stalls.
pub fn write_last(bytes: &[u8]) -> io::Result<()> {
    match STALLS.load(Ordering::SeqCst) {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => write_out(bytes, Instant::now() + STALLED),
    }
}

/// Writes as long as the terminal takes bytes until then. A byte at a time: only of one is it known
/// beforehand that writing it does not wait. Allocates nothing.
#[cfg(unix)]
fn write_by(
    terminal: std::os::fd::BorrowedFd<'_>,
    bytes: &[u8],
    deadline: Instant,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    for byte in bytes {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let mut room = [PollFd::new(&terminal, PollFlags::OUT)];
            match poll(&mut room, Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => match rustix::io::write(terminal, std::slice::from_ref(byte)) {
                    Ok(1..) => break,
                    Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn write_out(bytes: &[u8], deadline: Instant) -> io::Result<()> {
    write_by(rustix::stdio::stdout(), bytes, deadline)
}

/// Writes; a console here does not stall.
#[cfg(not(unix))]
fn write_out(bytes: &[u8], _deadline: Instant) -> io::Result<()> {
    write(bytes)
}

/// The turn to write, once the frame on its way is through; `None` when that takes too long, as
/// before a terminal that stalls, or when the writer itself is what failed.
fn turn_by(deadline: Instant) -> Option<MutexGuard<'static, ()>> {
    loop {
        match WRITING.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Gives the terminal back. Does nothing when it is not ours, and never fails: there is no one
/// left to tell.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        give_back();
    }
}

fn give_back() {
    let start = Instant::now();
    // After the frame that is on its way, unless that one does not get on.
    let turn = turn_by(start + STALLED / 2);
    if write_out(BACK, start + STALLED).is_err() {
        STALLS.store(true, Ordering::SeqCst);
    }
    drop(turn);
    let _ = terminal::disable_raw_mode();
}

/// Gives the terminal back after a pager that was ended in the middle: it is as it was before,
/// whatever that one has left.
pub fn give_back_after_pager() {
    give_back();
    #[cfg(unix)]
    modes::put_back();
}

/// Ends the program at once, from whichever thread: the terminal is given back, and nothing else is
/// waited for. A pager that has the terminal ends too.
pub fn end_now(code: u8) -> ! {
    if pager::is_shown() {
        pager::end(true);
        give_back_after_pager();
    }
    restore();
    let line = "roundtable: ended at once; its runs were not waited for\n";
    let _ = write_last(line.as_bytes());
    leave_now(code)
}

/// Ends the process, whatever its other threads hold.
#[cfg(unix)]
pub fn leave_now(code: u8) -> ! {
    signal_hook::low_level::exit(code.into())
}

/// Ends the process.
#[cfg(not(unix))]
pub fn leave_now(code: u8) -> ! {
    process::exit(code.into())
}

/// The modes of the line as they were before the terminal was ours.
#[cfg(unix)]
mod modes {
    use std::sync::{Mutex, PoisonError};

    use rustix::stdio::stdin;
    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub(super) fn keep() {
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = tcgetattr(stdin()).ok();
    }

    pub(super) fn put_back() {
        if let Some(before) = &*BEFORE.lock().unwrap_or_else(PoisonError::into_inner) {
            // A terminal that is gone has no modes.
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
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
    use crossterm::event::{DisableBracketedPaste, DisableFocusChange, DisableMouseCapture};
    use crossterm::style;
    use crossterm::terminal::{EndSynchronizedUpdate, LeaveAlternateScreen};

    use super::*;

    #[test]
    fn what_gives_the_terminal_back_is_what_took_it_the_other_way_round() {
        let mut bytes = Vec::new();
        queue!(
            bytes,
            EndSynchronizedUpdate,
            DisableFocusChange,
            DisableBracketedPaste,
            DisableMouseCapture,
            style::SetAttribute(style::Attribute::Reset),
            LeaveAlternateScreen,
            cursor::Show,
        )
        .expect("in memory");
        assert_eq!(String::from_utf8_lossy(BACK), String::from_utf8_lossy(&bytes));
    }
    #[cfg(unix)]
    #[test]
    fn a_terminal_that_stalls_holds_nothing_up() {
        use std::io::Read;
        use std::os::fd::AsFd;
        let soon = || Instant::now() + Duration::from_secs(60);
        let (mut flows, terminal) = io::pipe().expect("a pipe");
        write_by(terminal.as_fd(), BACK, soon()).expect("it flows");
        let mut read = vec![0; BACK.len()];
        flows.read_exact(&mut read).expect("written");
        assert_eq!(read, BACK);

        let (_reads_nothing, stalled) = super::super::abort::full().expect("a pipe");
        let error = write_by(stalled.as_fd(), BACK, Instant::now()).expect_err("it stalls");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
