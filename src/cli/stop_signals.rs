//! What asks the program to stop: Ctrl-C and, on Unix, SIGTERM and SIGHUP.

use std::io;

/// The signals that ask for an end, as a stream of requests.
pub struct StopSignals {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl StopSignals {
    /// Listens from now on; what the signals did by themselves they do no more.
    ///
    /// # Errors
    /// What the system says.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            signals: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for the next request.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// None.
    #[cfg(not(unix))]
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next request.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        // Where Ctrl-C cannot be listened to it ends the program by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
