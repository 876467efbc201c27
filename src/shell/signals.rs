//! What the system tells the dashboard. On Unix: to end (SIGTERM, SIGHUP, SIGINT, SIGQUIT), to go
//! to the background (SIGTSTP from outside; Ctrl-Z is a key), that it is back (SIGCONT), that the
//! window has another size (SIGWINCH).
//!
//! Signals are taken on a thread of their own: none waits for a runtime that has no thread free.

use std::io;

/// The exit code after SIGINT: 128 and the signal's number, as a shell has it.
pub const INTERRUPTED: u8 = 130;

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// End now, with this exit code: 128 and the signal's number, as a shell has it.
    End(u8),
    /// Go to the background.
    Stop,
    /// It was stopped by force and goes on: somebody else may have drawn on the terminal.
    Back,
    /// The window has another size.
    Resized,
}

/// A file that may grow no further (`ulimit -f`) is from now on an error of who writes it, not the
/// end of the program. Programs that we start have the signal as it was.
#[cfg(unix)]
pub fn outlive_file_limit() {
    use signal_hook::consts::SIGXFSZ;
    // Nobody looks at the flag: that there is a handler makes the write fail.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())
        .inspect_err(|error| tracing::debug!("a file that is too large ends the program: {error}"));
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn outlive_file_limit() {}

/// Calls `take` with each of these signals, on a thread of their own, from now on; what the signals
/// did by themselves they do no more.
///
/// # Errors
/// What the system says.
#[cfg(unix)]
pub fn each(signals: &[i32], mut take: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            take(signal);
        }
    })?;
    Ok(())
}

/// Tells what the signals mean, from now on.
///
/// # Errors
/// What the system says.
#[cfg(unix)]
pub fn listen(tell: impl Fn(Told) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
    let all = [
        (SIGTERM, Told::End(143)),
        (SIGHUP, Told::End(129)),
        (SIGINT, Told::End(INTERRUPTED)),
        (SIGQUIT, Told::End(131)),
        (SIGTSTP, Told::Stop),
        (SIGCONT, Told::Back),
        (SIGWINCH, Told::Resized),
    ];
    each(&all.map(|(signal, _)| signal), move |signal| {
        all.iter().filter(|(of, _)| *of == signal).for_each(|(_, told)| tell(*told));
    })
}

/// Tells of Ctrl-C, from now on; where it cannot be listened to it ends the program by itself. To
/// be called within a runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn listen(tell: impl Fn(Told) + Send + 'static) -> io::Result<()> {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            tell(Told::End(INTERRUPTED));
        }
    });
    Ok(())
}
