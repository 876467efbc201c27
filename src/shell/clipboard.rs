//! The clipboard of the terminal in front of the person, also over SSH: OSC 52. Inside tmux, which
//! swallows that by default, tmux itself is asked to hand it on.

use std::io::Write;
use std::process::{Command, Stdio};

use crossterm::clipboard::CopyToClipboard;
use crossterm::queue;

/// Many terminals drop an OSC 52 that is longer than this: bytes of text before encoding.
pub const MOST: usize = 74_994;

/// The bytes that put a text on the terminal's clipboard.
///
/// ```
/// assert_eq!(roundtable::shell::clipboard::osc52("hi"), b"\x1b]52;c;aGk=\x1b\\");
/// ```
pub fn osc52(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = queue!(bytes, CopyToClipboard::to_clipboard_from(text));
    bytes
}

/// Hands a text to tmux, which puts it on its own clipboard and the terminal's (tmux 3.2 or
/// later). `false` when there is no tmux, or it would not. It may take a while: not for the loop.
pub fn through_tmux(text: &str) -> bool {
    if std::env::var_os("TMUX").is_none() {
        return false;
    }
    let tmux = Command::new("tmux")
        .args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut tmux) = tmux else { return false };
    let given = tmux.stdin.take().is_some_and(|mut stdin| stdin.write_all(text.as_bytes()).is_ok());
    tmux.wait().is_ok_and(|status| status.success()) && given
}
