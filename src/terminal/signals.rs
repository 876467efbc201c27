//! The signals that the dashboard handles, on a thread of their own. On Unix: end (SIGTERM, SIGHUP,
//! SIGINT, SIGQUIT), suspend (SIGTSTP from outside; Ctrl-Z is a key), resume (SIGCONT), and a new
//! window size (SIGWINCH).
//!
//! Requests to end also go to a watchdog thread, which ends the program when the loop does not
//! react.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

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

/// Whether this process ignores a signal: `nohup` and `&` in a script start programs so. Known on Linux.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// From now on calls `take` with each of these signals, on a dedicated thread, instead of their
/// default effect. One that the process was started to ignore stays ignored.
///
/// # Errors
/// The system's error.
#[cfg(unix)]
pub fn handle_each(signals: &[i32], mut take: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let handled = signals.iter().filter(|signal| !is_ignored(**signal));
    let mut signals = signal_hook::iterator::Signals::new(handled)?;
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

/// How long the loop may take to react to a request to end.
pub const GRACE: Duration = Duration::from_millis(700);

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRequest {
    /// Ctrl-C. The loop decides about a single one; two without any reaction end the program.
    Interrupt,
    /// End the program with this exit code.
    End(u8),
}

/// Handle of the watchdog thread. Clones refer to the same thread.
#[derive(Debug, Clone)]
pub struct Watchdog {
    turns: Arc<AtomicU64>,
    /// The loop has taken a signal to end.
    taken: Arc<AtomicBool>,
    asks: mpsc::Sender<(EndRequest, u64)>,
}

impl Watchdog {
    /// Starts the thread. It calls `end` at most once, with an exit code.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(end: impl FnOnce(u8) + Send + 'static) -> io::Result<Self> {
        let (turns, taken) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (asks, asked) = mpsc::channel();
        let seen = (Arc::clone(&turns), Arc::clone(&taken));
        thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            if let Some(code) = watch(&asked, (&seen.0, &seen.1)) {
                end(code);
            }
        })?;
        Ok(Self { turns, taken, asks })
    }

    /// Reports that the loop is not stuck.
    pub fn heartbeat(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    /// Reports that the loop has taken a signal to end.
    pub fn end_taken(&self) {
        self.taken.store(true, Ordering::SeqCst);
    }

    /// Registers a request to end; `tell` forwards it to the loop.
    pub fn request_end(&self, ask: EndRequest, tell: impl FnOnce()) {
        // Read first: the loop may react to `tell` immediately.
        let turn = self.turns.load(Ordering::SeqCst);
        tell();
        // Fails only when the thread is already ending the program.
        let _ = self.asks.send((ask, turn));
    }
}

/// Waits until the program has to be ended; `None`: all handles are dropped.
fn watch(
    asked: &mpsc::Receiver<(EndRequest, u64)>,
    (turns, taken): (&AtomicU64, &AtomicBool),
) -> Option<u8> {
    let mut vigil = EndRequests::default();
    loop {
        let left = vigil.until.as_ref().map(|due| due.at.saturating_duration_since(Instant::now()));
        let next = match left {
            Some(left) => asked.recv_timeout(left),
            None => asked.recv().map_err(RecvTimeoutError::from),
        };
        match next {
            Ok((ask, turn)) => vigil.register(ask, turn, Instant::now()),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let (turn, is_taken) = (turns.load(Ordering::SeqCst), taken.load(Ordering::SeqCst));
        if let Some(code) = vigil.exit_code(turn, is_taken, Instant::now()) {
            return Some(code);
        }
    }
}

/// The requests to end, and the loop's deadline.
#[derive(Debug, Default)]
struct EndRequests {
    /// The turn of the loop when Ctrl-C was last pressed.
    interrupted: Option<u64>,
    until: Option<LoopDeadline>,
}

/// The deadline for the loop's next turn.
#[derive(Debug)]
struct LoopDeadline {
    at: Instant,
    turn: u64,
    code: u8,
    /// Whether a signal is to be taken: one turn of the loop does not show that it was.
    is_signal: bool,
}

impl EndRequests {
    fn register(&mut self, ask: EndRequest, turn: u64, now: Instant) {
        let (code, is_signal) = match ask {
            EndRequest::End(code) => (code, true),
            EndRequest::Interrupt if self.interrupted == Some(turn) => (INTERRUPTED, false),
            EndRequest::Interrupt => {
                self.interrupted = Some(turn);
                return;
            }
        };
        if self.until.is_none() {
            self.until = Some(LoopDeadline { at: now + GRACE, turn, code, is_signal });
        }
    }

    /// The exit code, if the deadline has passed and the loop has not turned. A loop that has turned
    /// has another deadline until it takes the signal.
    fn exit_code(&mut self, turn: u64, is_taken: bool, now: Instant) -> Option<u8> {
        let due = self.until.take_if(|due| due.turn != turn || now >= due.at)?;
        if due.turn == turn {
            return (!(due.is_signal && is_taken)).then_some(due.code);
        }
        if due.is_signal && !is_taken {
            self.until = Some(LoopDeadline { at: now + GRACE, turn, ..due });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_stuck_loop_and_spares_running() {
        use EndRequest::{End, Interrupt};
        let start = Instant::now();
        // Requests with their turns, the turn at the deadline, and the expected exit code.
        for (asks, turn, ends) in [
            (&[(Interrupt, 5)][..], 5, None),
            (&[(Interrupt, 5), (Interrupt, 5)], 5, Some(INTERRUPTED)),
            (&[(Interrupt, 5), (Interrupt, 5)], 6, None),
            (&[(Interrupt, 5), (Interrupt, 6)], 6, None),
            (&[(Interrupt, 5), (Interrupt, 6), (Interrupt, 6)], 6, Some(INTERRUPTED)),
            (&[(End(143), 5)], 5, Some(143)),
            (&[(End(143), 5)], 6, None),
            (&[(End(143), 5), (Interrupt, 5), (End(129), 5)], 5, Some(143)),
        ] {
            // One that is stuck takes no signal.
            let is_taken = ends.is_none();
            let mut vigil = EndRequests::default();
            for (ask, turn) in asks {
                vigil.register(*ask, *turn, start);
            }
            assert_eq!(
                vigil.exit_code(turn, true, start + GRACE / 2),
                None,
                "{asks:?}: not before its time"
            );
            assert_eq!(vigil.exit_code(turn, is_taken, start + GRACE), ends, "{asks:?} at {turn}");
            assert_eq!(vigil.exit_code(turn, true, start + 2 * GRACE), None, "once");
        }
    }

    #[test]
    fn ends_loop_stuck_before_signal() {
        let start = Instant::now();
        let mut vigil = EndRequests::default();
        vigil.register(EndRequest::End(143), 5, start);
        let turned = start + GRACE / 2;
        assert_eq!(vigil.exit_code(6, false, turned), None);
        assert_eq!(vigil.exit_code(6, false, turned + GRACE / 2), None, "it has another deadline");
        assert_eq!(vigil.exit_code(6, false, turned + GRACE), Some(143));
        let mut vigil = EndRequests::default();
        vigil.register(EndRequest::End(143), 5, start);
        assert_eq!(vigil.exit_code(6, false, turned), None);
        assert_eq!(vigil.exit_code(6, true, turned + GRACE), None, "it was taken meanwhile");
    }

    #[test]
    fn watchdog_thread_ends_stuck_loop() {
        let (end, ended) = mpsc::channel();
        let watchdog =
            Watchdog::start(move |code| end.send(code).expect("the test waits")).expect("a thread");
        let (tell, sent) = mpsc::channel();
        watchdog.request_end(EndRequest::End(143), || tell.send(()).expect("the test looks"));
        sent.try_recv().expect("the loop was told");
        assert_eq!(ended.recv(), Ok(143));
    }
}
