//! The signals that the dashboard handles. On Unix: end (SIGTERM, SIGHUP, SIGINT, SIGQUIT), suspend
//! (SIGTSTP from outside; Ctrl-Z is a key), resume (SIGCONT), and a new window size (SIGWINCH).
//!
//! They are handled on their own thread, so a busy runtime does not delay them.

use std::io;

/// The exit code after SIGINT: 128 plus the signal's number, as in shells.
pub const INTERRUPTED: u8 = 130;

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSignal {
    /// End the program with this exit code: 128 plus the signal's number, as in shells.
    End(u8),
    /// Suspend the program.
    Suspend,
    /// The program was resumed; another program may have drawn on the terminal.
    Resumed,
    /// The window has a new size.
    Resized,
}

/// Makes a file at its size limit (`ulimit -f`) an error of the write, instead of ending the
/// program. Child processes keep the default.
#[cfg(unix)]
pub fn ignore_file_limit_signal() {
    use signal_hook::consts::SIGXFSZ;
    // The flag is not used: with any handler the write fails.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default()).inspect_err(|error| {
        tracing::debug!("a file at its size limit will end the program: {error}")
    });
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub fn ignore_file_limit_signal() {}

/// From now on calls `take` with each of these signals, on a dedicated thread, instead of their
/// default effect.
///
/// # Errors
/// The system's error.
#[cfg(unix)]
pub fn handle_each(signals: &[i32], mut take: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            take(signal);
        }
    })?;
    Ok(())
}

/// From now on calls `tell` with the meaning of each signal.
///
/// # Errors
/// The system's error.
#[cfg(unix)]
pub fn listen(tell: impl Fn(ProcessSignal) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
    let all = [
        (SIGTERM, ProcessSignal::End(143)),
        (SIGHUP, ProcessSignal::End(129)),
        (SIGINT, ProcessSignal::End(INTERRUPTED)),
        (SIGQUIT, ProcessSignal::End(131)),
        (SIGTSTP, ProcessSignal::Suspend),
        (SIGCONT, ProcessSignal::Resumed),
        (SIGWINCH, ProcessSignal::Resized),
    ];
    handle_each(&all.map(|(signal, _)| signal), move |signal| {
        all.iter().filter(|(of, _)| *of == signal).for_each(|(_, meaning)| tell(*meaning));
    })
}

/// From now on calls `tell` at each Ctrl-C. If that fails, Ctrl-C ends the program. Must be called
/// within a runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn listen(tell: impl Fn(ProcessSignal) + Send + 'static) -> io::Result<()> {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            tell(ProcessSignal::End(INTERRUPTED));
        }
    });
    Ok(())
}
