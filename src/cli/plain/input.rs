//! The lines that are typed. A thread of its own reads them, so that a terminal that sends nothing blocks
//! nothing.

use std::io::{BufRead, Read, stdin};
use std::thread;

use tokio::sync::mpsc;

use crate::cli::streams::stdin_is_terminal;

/// The longest line, in bytes; the rest of a longer one is the next line.
const MAX_LINE: u64 = 1 << 20;
/// Lines that are read before the first of them had its effect.
const AHEAD: usize = 64;
/// Ends of input in a terminal that are passed on: the second one ends the program.
const MAX_ENDS: usize = 3;

/// What was typed.
pub(super) enum Input {
    Line(String),
    /// Ctrl-D, or the end of a pipe or a file.
    End,
}

/// Reads lines until the input ends; in a terminal more may follow an end.
pub(super) fn read_lines() -> mpsc::Receiver<Input> {
    let (send, lines) = mpsc::channel(AHEAD);
    let is_terminal = stdin_is_terminal();
    // Without a thread no line arrives, which is the end of the input.
    let _ = thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let mut ends = 0;
        loop {
            let mut bytes = Vec::new();
            let read = stdin().lock().take(MAX_LINE).read_until(b'\n', &mut bytes);
            let input = match read {
                Ok(0) | Err(_) => Input::End,
                Ok(_) => Input::Line(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
            };
            let is_end = matches!(input, Input::End);
            ends = if is_end { ends + 1 } else { 0 };
            if send.blocking_send(input).is_err() || is_end && (!is_terminal || ends >= MAX_ENDS) {
                return;
            }
        }
    });
    lines
}
