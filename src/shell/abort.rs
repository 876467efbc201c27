//! Gives the terminal back when the process aborts: memory that is not there, a panic within a panic,
//! an overflowing stack. No code of ours can run in a handler of a signal, but a handler may write to
//! a pipe, and wait while it does: the thread that aborts is held at a pipe without room until another
//! one, which was waiting for this, has restored the terminal. Nothing is allocated on the way.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::thread;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use signal_hook::consts::SIGABRT;
use signal_hook::low_level::pipe;

/// Calls `restore` on a thread of its own before an abort ends the process, from now on.
///
/// # Errors
/// When there is no pipe or no thread to be had.
pub fn before_abort(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (mut woken, wake) = io::pipe()?;
    let (gate, hold) = full()?;
    let held = hold.try_clone()?;
    thread::Builder::new().name("abort".to_owned()).spawn(move || {
        if woken.read_exact(&mut [0]).is_ok() {
            restore();
        }
        // Whoever waits at it goes on.
        drop(gate);
    })?;
    // In this order: the handler wakes the thread, then waits for it.
    pipe::register(SIGABRT, wake)?;
    pipe::register(SIGABRT, hold)?;
    // The registry makes its pipes such that a handler never waits; this one is to wait.
    let flags = fcntl_getfl(&held)?;
    fcntl_setfl(&held, flags - OFlags::NONBLOCK)?;
    Ok(())
}

/// A pipe that has room for not a byte more.
pub(super) fn full() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    fcntl_setfl(&writer, fcntl_getfl(&writer)? | OFlags::NONBLOCK)?;
    // Whole pages first, then what is left of the last one.
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
