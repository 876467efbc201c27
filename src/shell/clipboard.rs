//! The clipboard of the operator's terminal, also over SSH: OSC 52. tmux drops this sequence by
//! default, so inside tmux the text goes through tmux's own buffer.

use std::io::Write;
use std::process::{Command, Stdio};

use crossterm::clipboard::CopyToClipboard;
use crossterm::queue;

/// Bytes of text, before encoding, above which many terminals drop an OSC 52.
pub const MAX_OSC52_BYTES: usize = 74_994;

/// The escape sequence that copies a text to the terminal's clipboard.
pub fn osc52(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = queue!(bytes, CopyToClipboard::to_clipboard_from(text));
    bytes
}

/// Copies a text through tmux (3.2 or later) to tmux's buffer and the terminal's clipboard. `false`
/// outside tmux, or if tmux failed. It may block: do not call it in the loop.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_sent_to_the_clipboard_as_base64() {
        assert_eq!(osc52("hi"), b"\x1b]52;c;aGk=\x1b\\");
    }
}
