//! The `roundtable` program: everything it does lives in the library.

use std::process::ExitCode;

/// Facts are made on one thread and freed on another, by whoever read them last. Threads that free
/// what others made wait for each other in the allocator of most C libraries, and do not in this one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    roundtable::cli::main()
}
