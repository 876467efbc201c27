//! The `roundtable` binary; all code is in the library.

use std::process::ExitCode;

/// An event is allocated on one thread and freed on another, by its last reader. Most allocators of
/// C libraries take a lock for memory that another thread allocated; this one does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    roundtable::bench::main()
}
