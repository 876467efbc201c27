//! The `roundtable` binary; all code is in the library.

use std::process::ExitCode;

/// An event is allocated on one thread and freed on another, by its last reader. Most allocators of
/// C libraries take a lock for memory that another thread allocated; this one does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether standard output is closed can be seen only before `main`: Rust opens `/dev/null` in its place.
#[cfg(unix)]
#[ctor::ctor(unsafe)]
fn note_closed_stdout() {
    if rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err() {
        roundtable::bench::note_closed_stdout();
    }
}

fn main() -> ExitCode {
    roundtable::supervise_children();
    roundtable::bench::main()
}
