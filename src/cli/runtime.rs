//! The runtimes of commands.

use std::time::Duration;

use crate::cli::exit::Exit;
use crate::cli::message::print_message;

/// How long a command waits at its end for blocking threads.
const BLOCKING_GRACE: Duration = Duration::from_millis(200);

/// Runs to completion; abandons blocking threads after [`BLOCKING_GRACE`].
pub(super) fn run_to_end(
    runtime: tokio::runtime::Runtime,
    work: impl Future<Output = Exit>,
) -> Exit {
    let exit = runtime.block_on(work);
    runtime.shutdown_timeout(BLOCKING_GRACE);
    exit
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Exit> {
    build_runtime(&mut builder())
}

pub(super) fn builder() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    builder
}

pub(super) fn build_runtime(
    builder: &mut tokio::runtime::Builder,
) -> Result<tokio::runtime::Runtime, Exit> {
    builder.build().map_err(|error| {
        print_message(&format!("cannot start: {error}"));
        Exit::Stopped
    })
}
