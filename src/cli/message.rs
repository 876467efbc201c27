//! Messages to the operator on standard error.

use std::io::{self, Write};

/// Prints a line to standard error, prefixed with the program's name.
pub fn print_message(text: &str) {
    let _ = writeln!(io::stderr(), "roundtable: {text}");
}
