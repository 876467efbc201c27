//! The `roundtable` program: everything it does lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    roundtable::cli::main()
}
