//! Starts a program: with pseudo-terminals where it had a terminal, so that its colours, progress bars and prompts stay,
//! and with pipes elsewhere.

use std::io;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

type OutputReader = Box<dyn AsyncRead + Send + Unpin>;

/// A program that has been started.
pub(super) struct Started {
    pub(super) child: Child,
    /// Its standard output and its standard error.
    pub(super) outputs: [Option<OutputReader>; 2],
    /// `None`: its input is that of this program.
    pub(super) input: Option<ProgramInput>,
    /// Gives its terminals the size of the terminal of this program.
    pub(super) resizing: Option<JoinHandle<()>>,
}

/// Takes lines for the input of a program.
pub struct ProgramInput {
    to: Box<dyn AsyncWrite + Send + Unpin>,
    /// What ends a line, and what ends the input.
    keys: [&'static [u8]; 2],
}

impl ProgramInput {
    /// Writes lines until there are no more, then closes the input.
    pub async fn write(mut self, mut lines: mpsc::UnboundedReceiver<String>) {
        let [enter, end] = self.keys;
        while let Some(line) = lines.recv().await {
            if self.to.write_all(&[line.as_bytes(), enter].concat()).await.is_err() {
                return;
            }
            let _ = self.to.flush().await;
        }
        let _ = self.to.write_all(end).await;
    }
}

fn with_pipes(mut child: Child, resizing: Option<JoinHandle<()>>) -> Started {
    let out = child.stdout.take().map(|it| Box::new(it) as OutputReader);
    let err = child.stderr.take().map(|it| Box::new(it) as OutputReader);
    let input = child.stdin.take().map(|to| ProgramInput { to: Box::new(to), keys: [b"\n", b""] });
    Started { child, outputs: [out, err], input, resizing }
}

/// Starts a program. `is_apart`: it gets its own input and process group. `on_terminal`: whether its standard output and
/// its standard error are pseudo-terminals. If it is apart and its output is one, it gets a session, and its input is
/// the same terminal.
///
/// # Errors
/// It cannot be started.
pub(super) fn start(
    command: Command,
    is_apart: bool,
    on_terminal: [bool; 2],
) -> io::Result<Started> {
    with_terminals::start(command, is_apart, on_terminal)
}

/// Other systems than Unix have only pipes here.
#[cfg(not(unix))]
mod with_terminals {
    use super::{Command, Started, Stdio, io, with_pipes};

    pub(super) fn start(
        mut command: Command,
        is_apart: bool,
        _on_terminal: [bool; 2],
    ) -> io::Result<Started> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_apart {
            command.stdin(Stdio::piped());
        }
        Ok(with_pipes(command.spawn()?, None))
    }
}

#[cfg(unix)]
mod with_terminals {
    use std::os::fd::{AsFd as _, OwnedFd};

    use pty_process::{Pts, Pty};
    use rustix::termios::{OptionalActions, OutputModes, Winsize};
    use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
    use tokio::signal::unix::{SignalKind, signal};

    use super::{Command, JoinHandle, ProgramInput, Started, Stdio, io, with_pipes};

    pub(super) fn start(
        mut command: Command,
        is_apart: bool,
        [out, err]: [bool; 2],
    ) -> io::Result<Started> {
        let [out, err] = [out, err].map(|wanted| wanted.then(open).transpose());
        let [out, err] = [out, err].map(|it| it.inspect_err(note_missing).unwrap_or_default());
        let of_pty = |(pty, _): &(Pty, Pts)| pty.as_fd().try_clone_to_owned();
        let sizes = [&out, &err].into_iter().flatten().map(of_pty).collect::<io::Result<_>>()?;
        let resizing = follow_size(sizes);
        let errors = stream(err.as_ref())?;
        let mut started = match out {
            Some((pty, pts)) if is_apart => {
                let session = pty_process::Command::from(command).stderr(errors);
                let child = session.spawn(pts).map_err(into_io)?;
                let (from, to) = pty.into_split();
                // The return key, and Ctrl-D.
                let input = ProgramInput { to: Box::new(to), keys: [b"\r", b"\x04"] };
                let mut started = with_pipes(child, resizing);
                started.outputs[0] = Some(Box::new(from));
                Started { input: Some(input), ..started }
            }
            out => {
                command.stdout(stream(out.as_ref())?).stderr(errors);
                if is_apart {
                    command.stdin(Stdio::piped()).process_group(0);
                }
                let mut started = with_pipes(command.spawn()?, resizing);
                if let Some((pty, _)) = out {
                    started.outputs[0] = Some(Box::new(pty));
                }
                started
            }
        };
        if let Some((pty, _)) = err {
            started.outputs[1] = Some(Box::new(pty));
        }
        Ok(started)
    }

    fn into_io(error: pty_process::Error) -> io::Error {
        match error {
            pty_process::Error::Io(error) => error,
            error => io::Error::other(error),
        }
    }

    /// Some sandboxes have no pseudo-terminals.
    fn note_missing(error: &io::Error) {
        tracing::warn!("the program gets a pipe in place of a terminal: {error}");
    }

    /// A pseudo-terminal of the size of this program's terminal. What is written to it arrives as it is.
    fn open() -> io::Result<(Pty, Pts)> {
        let (pty, pts) = pty_process::open().map_err(into_io)?;
        let mut modes = tcgetattr(&pts)?;
        modes.output_modes.remove(OutputModes::OPOST);
        tcsetattr(&pts, OptionalActions::Now, &modes)?;
        if let Some(size) = size() {
            tcsetwinsize(&pty, size)?;
        }
        Ok((pty, pts))
    }

    /// The program's end of a terminal; without one a pipe.
    fn stream(terminal: Option<&(Pty, Pts)>) -> io::Result<Stdio> {
        let pts = terminal.map(|(_, pts)| pts.as_fd().try_clone_to_owned()).transpose()?;
        Ok(pts.map_or_else(Stdio::piped, Stdio::from))
    }

    fn size() -> Option<Winsize> {
        let sizes = [rustix::stdio::stdout(), rustix::stdio::stderr()].map(tcgetwinsize);
        sizes.into_iter().flatten().find(|size| size.ws_col > 0 && size.ws_row > 0)
    }

    fn follow_size(of: Vec<OwnedFd>) -> Option<JoinHandle<()>> {
        let mut changes = signal(SignalKind::window_change()).ok().filter(|_| !of.is_empty())?;
        Some(tokio::spawn(async move {
            while changes.recv().await.is_some() {
                let Some(size) = size() else { continue };
                for terminal in &of {
                    let _ = tcsetwinsize(terminal, size);
                }
            }
        }))
    }
}
