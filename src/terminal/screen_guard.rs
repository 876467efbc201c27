//! The screen guard: takes the terminal (alternate screen, raw mode, mouse, bracketed paste, focus)
//! and restores it however the program ends: by dropping [`ScreenGuard`], in the panic hook of
//! [`install_hooks`], before an abort, or by [`end_now`].
//!
//! Restores the terminal when the process aborts: out of memory, a panic within a panic, a stack
//! overflow. A signal handler may not run arbitrary code, but it may write to a pipe, and block
//! there. So the aborting thread blocks at a full pipe until a waiting thread has restored the
//! terminal. Nothing is allocated on the way.

use std::io::{IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use crossterm::event::{EnableBracketedPaste, EnableFocusChange};
use crossterm::terminal::EnterAlternateScreen;
use crossterm::{Command, cursor, queue, terminal};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use signal_hook::consts::SIGABRT;
use signal_hook::low_level::pipe;

use super::console;
use crate::base::catch_panic;
use crate::base::visible::visible_output;

/// Whether the program has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while a frame is written, so that the terminal is not restored in the middle of one.
static WRITING: Mutex<()> = Mutex::new(());

/// The bytes that restore the terminal: they end synchronised update, focus, paste, mouse and
/// style, and show the normal screen and the cursor. Constant, since an out-of-memory abort uses
/// them too.
const RESTORE_BYTES: &[u8] =
    b"\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\
    \x1b[?1000l\x1b[0m\x1b[?1049l\x1b[?25h";

/// The bytes that keep the terminal's title.
const KEEP_TITLE: &[u8] = b"\x1b[22;2t";

/// The bytes that clear the title, and bring back the one that was kept, in terminals that keep one.
/// Constant as [`RESTORE_BYTES`].
const RESTORE_TITLE: &[u8] = b"\x1b]2;\x1b\\\x1b[23;2t";

/// Whether the program has changed the title.
static TITLED: AtomicBool = AtomicBool::new(false);

/// Timeout for the last bytes: with a stalled terminal (Ctrl-S, a broken link) the program ends
/// after this and the time for a frame.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_millis(400);

/// Whether restoring the terminal has timed out; then nothing more is written.
static STALLS: AtomicBool = AtomicBool::new(false);

/// Rust's exit code after a panic.
const PANICKED: i32 = 101;

/// Holds the terminal; restores it when dropped.
#[derive(Debug)]
#[must_use]
pub struct ScreenGuard {
    /// Whether the title is the program's too.
    titled: bool,
}

impl ScreenGuard {
    /// Takes the terminal; `titled`: its title too.
    ///
    /// # Errors
    /// If there is no terminal, or a mode cannot be set; the terminal is restored then.
    pub fn take(titled: bool) -> io::Result<Self> {
        let screen = Self { titled };
        #[cfg(unix)]
        if let Err(error) = before_abort(restore) {
            tracing::warn!("an abort will not restore the terminal: {error}");
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
        if self.titled {
            bytes.extend_from_slice(KEEP_TITLE);
            TITLED.store(true, Ordering::SeqCst);
        }
        write(&bytes).inspect_err(|_| restore())
    }

    /// Restores the terminal temporarily, for the shell or another program.
    pub fn leave(&self) {
        restore();
    }
}

impl Drop for ScreenGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the program has the terminal; without it nothing is drawn.
pub fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Whether both standard input and standard output are a terminal.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Writes to the terminal directly, without the buffer and lock of standard output: a blocked
/// writer must not keep the panic hook from restoring the terminal.
///
/// # Errors
/// The terminal's error.
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

/// Writes a frame; drops it if the program no longer has the terminal.
///
/// # Errors
/// As [`write()`].
pub fn write_frame(bytes: &[u8]) -> io::Result<()> {
    let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if is_taken() { write(bytes) } else { Ok(()) }
}

/// Like [`write()`], but times out after 0.4 s, or immediately if the terminal has stalled before.
/// So a stalled terminal does not keep the program from ending.
///
/// # Errors
/// As [`write()`]; `TimedOut` if the terminal stalls.
pub fn write_last(bytes: &[u8]) -> io::Result<()> {
    match STALLS.load(Ordering::SeqCst) {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => write_out(bytes, Instant::now() + LAST_WRITE_TIMEOUT),
    }
}

/// Writes until the deadline. One byte at a time: `poll` guarantees only that one byte does not
/// block. Allocates nothing.
#[cfg(unix)]
fn write_until(
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
    write_until(rustix::stdio::stdout(), bytes, deadline)
}

/// Writes without a deadline; a console of this system does not stall.
#[cfg(not(unix))]
fn write_out(bytes: &[u8], _deadline: Instant) -> io::Result<()> {
    write(bytes)
}

/// Takes the lock for writing when the current frame is done; `None` after the deadline: the
/// terminal stalls, or the caller itself holds the lock.
fn lock_until(deadline: Instant) -> Option<MutexGuard<'static, ()>> {
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

/// Restores the terminal, if the program has it. Errors are ignored: they cannot be shown.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        restore_now();
    }
}

fn restore_now() {
    let start = Instant::now();
    // Waits for the current frame, but not for the whole timeout.
    let turn = lock_until(start + LAST_WRITE_TIMEOUT / 2);
    let title = if TITLED.swap(false, Ordering::SeqCst) { RESTORE_TITLE } else { &[] };
    let deadline = start + LAST_WRITE_TIMEOUT;
    if write_out(RESTORE_BYTES, deadline).and_then(|()| write_out(title, deadline)).is_err() {
        STALLS.store(true, Ordering::SeqCst);
    }
    drop(turn);
    let _ = terminal::disable_raw_mode();
}

/// Restores the terminal after a program was killed, including the line modes that it may have
/// changed.
pub fn restore_after_program() {
    restore_now();
    #[cfg(unix)]
    modes::put_back();
}

/// Ends this program immediately, from any thread: kills the program that has the terminal, restores the
/// terminal, and waits for nothing else.
pub fn end_now(code: u8) -> ! {
    if console::is_program_running() {
        console::stop_program(true);
        restore_after_program();
    }
    restore();
    let line = "roundtable: ended immediately; its runs were not finished\n";
    let _ = write_last(line.as_bytes());
    exit_now(code)
}

/// Ends the process without running exit handlers, which could block on another thread.
#[cfg(unix)]
pub fn exit_now(code: u8) -> ! {
    signal_hook::low_level::exit(code.into())
}

/// Ends the process.
#[cfg(not(unix))]
pub fn exit_now(code: u8) -> ! {
    process::exit(code.into())
}

/// The terminal's line modes from before the program took it.
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
            // Fails if the terminal is closed.
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// Reports clicks, the wheel and drags, but not plain motion as crossterm's command does: moving
/// the mouse over an idle dashboard must not wake it.
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

/// Sets the hooks for panics and error reports; a second call has no effect.
///
/// A panic that the gateway catches is a failed attempt of a run and is only logged. Any other
/// panic, on any thread, restores the terminal, so that its report can be read, and ends the
/// program with exit code 101.
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
            "This is a bug in roundtable; for details see its log file (`roundtable doctor`).",
        )
        .into_hooks();
    if eyre_hook.install().is_err() {
        tracing::debug!("another error hook is already installed");
    }
    std::panic::set_hook(Box::new(move |info| {
        if catch_panic::is_catching() {
            tracing::warn!("caught: {info}");
            return;
        }
        tracing::error!("{info}");
        let was_shown = is_taken();
        restore();
        let report = format!("{}\n", panic_hook.panic_report(info));
        let _ = io::stderr().write_all(visible_output(&report, !plain).as_bytes());
        if was_shown {
            process::exit(PANICKED);
        }
    }));
}

/// From now on, an abort calls `restore` on a dedicated thread before the process ends.
///
/// # Errors
/// If a pipe or thread cannot be created.
pub fn before_abort(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (mut woken, wake) = io::pipe()?;
    let (gate, hold) = full_pipe()?;
    let held = hold.try_clone()?;
    thread::Builder::new().name("abort".to_owned()).spawn(move || {
        if woken.read_exact(&mut [0]).is_ok() {
            restore();
        }
        // Closing the reader unblocks the aborting thread.
        drop(gate);
    })?;
    // In this order: the handler wakes the thread, then waits for it.
    pipe::register(SIGABRT, wake)?;
    pipe::register(SIGABRT, hold)?;
    // `register` makes a pipe non-blocking; the handler must block at this one.
    let flags = fcntl_getfl(&held)?;
    fcntl_setfl(&held, flags - OFlags::NONBLOCK)?;
    Ok(())
}

/// A pipe whose buffer is full.
pub(super) fn full_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    fcntl_setfl(&writer, fcntl_getfl(&writer)? | OFlags::NONBLOCK)?;
    // Whole pages first, then single bytes.
    for size in [4096, 1] {
        loop {
            match rustix::io::write(&writer, &[0; 4096][..size]) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{DisableBracketedPaste, DisableFocusChange, DisableMouseCapture};
    use crossterm::style;
    use crossterm::terminal::{EndSynchronizedUpdate, LeaveAlternateScreen};

    use super::*;

    #[test]
    fn restore_undoes_setup_in_reverse() {
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
        assert_eq!(String::from_utf8_lossy(RESTORE_BYTES), String::from_utf8_lossy(&bytes));
    }
    #[cfg(unix)]
    #[test]
    fn stalled_terminal_blocks_nothing() {
        use std::io::Read;
        use std::os::fd::AsFd;
        let soon = || Instant::now() + Duration::from_secs(60);
        let (mut flows, terminal) = io::pipe().expect("a pipe");
        write_until(terminal.as_fd(), RESTORE_BYTES, soon()).expect("it flows");
        let mut read = vec![0; RESTORE_BYTES.len()];
        flows.read_exact(&mut read).expect("written");
        assert_eq!(read, RESTORE_BYTES);

        let (_reads_nothing, stalled) = full_pipe().expect("a pipe");
        let error =
            write_until(stalled.as_fd(), RESTORE_BYTES, Instant::now()).expect_err("it stalls");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
