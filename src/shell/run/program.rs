//! The programs that get the terminal for a while, and why.

use std::io;
use std::path::PathBuf;

use tokio::task::JoinHandle;

/// Why the terminal is handed over.
pub(super) enum TerminalHandoff {
    /// To the shell: the program is suspended.
    Stop,
    /// To the pager, with this text.
    Page(String),
    /// To the editor, with this file.
    Edit(PathBuf),
}

/// A program that has the terminal.
pub(super) struct TerminalProgram {
    pub kind: ProgramKind,
    pub task: JoinHandle<io::Result<()>>,
}

/// What a program that gets the terminal does.
#[derive(Clone, Copy)]
pub(super) enum ProgramKind {
    Pager,
    Editor,
}

/// The end of the program that has the terminal; waits forever if there is none.
pub(super) async fn end_of(program: &mut Option<TerminalProgram>) -> io::Result<()> {
    match program {
        Some(program) => {
            (&mut program.task).await.unwrap_or_else(|gone| Err(io::Error::other(gone)))
        }
        None => std::future::pending().await,
    }
}
