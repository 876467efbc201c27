//! Prints a command's output, and chooses the exit code if that fails.

use std::io::{self, Write};

use super::exit::Exit;
use super::message::print_message;

/// Writes a text. Returns `exit` if all of it was written, or if the reader closed the pipe (as
/// `head` does). On another error prints the reason to standard error and returns a failure.
pub fn print(text: &str, exit: Exit) -> Exit {
    let mut out = io::stdout();
    exit_after_write(out.write_all(text.as_bytes()).and_then(|()| out.flush()), exit)
}

/// The exit code after writing: `exit`, or a failure if the output could not be written.
pub fn exit_after_write(written: io::Result<()>, exit: Exit) -> Exit {
    let Err(why) = written else { return exit };
    if why.kind() == io::ErrorKind::BrokenPipe {
        return exit;
    }
    print_message(&format!("cannot write to standard output: {why}"));
    // The command's own failure is more important than the output's.
    if exit == Exit::Ok { Exit::Stopped } else { exit }
}
