//! What the system tells the dashboard. On Unix: to end (SIGTERM, SIGHUP, SIGINT), to go to the
//! background (SIGTSTP from outside; Ctrl-Z is a key), that it is back (SIGCONT).

use std::io;

/// The exit code after SIGINT: 128 and the signal's number, as a shell has it.
pub const INTERRUPTED: u8 = 130;

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

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// End now, with this exit code: 128 and the signal's number, as a shell has it.
    End(u8),
    /// Go to the background.
    Stop,
    /// It was stopped by force and goes on: somebody else may have drawn on the terminal.
    Back,
}

/// The signals as they come.
pub struct Signals {
    #[cfg(unix)]
    all: [(tokio::signal::unix::Signal, Told); 5],
}

impl Signals {
    /// Listens from now on; what the signals did by themselves they do no more.
    ///
    /// # Errors
    /// What the system says.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
        use tokio::signal::unix::{SignalKind, signal};
        let listen =
            |number, told| Ok::<_, io::Error>((signal(SignalKind::from_raw(number))?, told));
        Ok(Self {
            all: [
                listen(SIGTERM, Told::End(143))?,
                listen(SIGHUP, Told::End(129))?,
                listen(SIGINT, Told::End(INTERRUPTED))?,
                listen(SIGTSTP, Told::Stop)?,
                listen(SIGCONT, Told::Back)?,
            ],
        })
    }

    /// Waits for the next.
    #[cfg(unix)]
    pub async fn next(&mut self) -> Told {
        std::future::poll_fn(|cx| {
            for (signal, told) in &mut self.all {
                if signal.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*told);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// None.
    #[cfg(not(unix))]
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> Told {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Told::End(INTERRUPTED),
            Err(_) => std::future::pending().await,
        }
    }
}
