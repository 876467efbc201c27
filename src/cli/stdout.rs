//! What a command prints, whole, on standard output, and how the command ends where that fails.

use std::io::{self, Write};

use super::exit::Exit;
use super::run::say;

/// Writes a text. Gives `exit` where all of it was written, or where the reader closed the pipe (as
/// `head` does): it wants no more. No success where standard output cannot be written, with the reason
/// on standard error.
pub fn print(text: &str, exit: Exit) -> Exit {
    let mut out = io::stdout();
    ended(out.write_all(text.as_bytes()).and_then(|()| out.flush()), exit)
}

/// How a command ends that has written its output like this, and would end with `exit`.
pub fn ended(written: io::Result<()>, exit: Exit) -> Exit {
    let Err(why) = written else { return exit };
    if why.kind() == io::ErrorKind::BrokenPipe {
        return exit;
    }
    say(&format!("standard output cannot be written: {why}"));
    // What the command found says more than that it could not be read.
    if exit == Exit::Ok { Exit::Stopped } else { exit }
}
