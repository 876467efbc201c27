//! Restores the terminal when the process aborts: out of memory, a panic within a panic, a stack
//! overflow. A signal handler may not run arbitrary code, but it may write to a pipe, and block
//! there. So the aborting thread blocks at a full pipe until a waiting thread has restored the
//! terminal. Nothing is allocated on the way.

use std::io::{PipeReader, PipeWriter, Read};
use std::{io, thread};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use signal_hook::consts::SIGABRT;
use signal_hook::low_level::pipe;

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
