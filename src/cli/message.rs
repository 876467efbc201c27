//! Messages to the operator on standard error, made safe here.

use std::io::{self, IsTerminal, Write};

use crate::base::visible::visible_output;

/// Prints a line to standard error, prefixed with the program's name.
pub fn print_message(text: &str) {
    print_on_stderr(&format!("roundtable: {text}\n"), false);
}

/// Prints a text to standard error; with `styled` its styles stay.
pub fn print_on_stderr(text: &str, styled: bool) {
    let _ = io::stderr().write_all(visible_output(text, styled).as_bytes());
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
