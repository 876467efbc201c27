//! Signals that stop a headless run: Ctrl-C and, on Unix, SIGTERM and SIGHUP. They are handled on
//! their own thread, so a busy runtime does not delay them.

use std::io;

use crate::shell::screen;

/// Calls `first` at the first signal; at the second, ends the program immediately with this exit
/// code.
///
/// # Errors
/// The system's error; then the signals keep their default effect.
#[cfg(unix)]
pub fn on_stop(first: impl FnOnce() + Send + 'static, code: u8) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut first = Some(first);
    crate::shell::signals::handle_each(&[SIGINT, SIGTERM, SIGHUP], move |_| match first.take() {
        Some(first) => first(),
        None => screen::exit_now(code),
    })
}

/// Calls `first` at the first Ctrl-C and ends the program at the second. Must be called within a
/// runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn on_stop(first: impl FnOnce() + Send + 'static, code: u8) -> io::Result<()> {
    tokio::spawn(async move {
        let mut first = Some(first);
        // If Ctrl-C cannot be handled, it ends the program by default.
        while tokio::signal::ctrl_c().await.is_ok() {
            match first.take() {
                Some(first) => first(),
                None => screen::exit_now(code),
            }
        }
    });
    Ok(())
}
