//! What asks a headless run to stop: Ctrl-C and, on Unix, SIGTERM and SIGHUP. They are taken on a
//! thread of their own, whatever the runtime is doing.

use std::io;

use crate::shell::screen;

/// Calls `first` when the program is asked to stop; asked once more, it ends at once with this exit
/// code, whatever is still going on.
///
/// # Errors
/// What the system says; then the signals do what they do by themselves.
#[cfg(unix)]
pub fn on_stop(first: impl FnOnce() + Send + 'static, code: u8) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut first = Some(first);
    crate::shell::signals::each(&[SIGINT, SIGTERM, SIGHUP], move |_| match first.take() {
        Some(first) => first(),
        None => screen::leave_now(code),
    })
}

/// Calls `first` at the first Ctrl-C and ends the program at the second. To be called within a
/// runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn on_stop(first: impl FnOnce() + Send + 'static, code: u8) -> io::Result<()> {
    tokio::spawn(async move {
        let mut first = Some(first);
        // Where Ctrl-C cannot be listened to it ends the program by itself.
        while tokio::signal::ctrl_c().await.is_ok() {
            match first.take() {
                Some(first) => first(),
                None => screen::leave_now(code),
            }
        }
    });
    Ok(())
}
