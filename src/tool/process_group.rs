//! A program with everything that it starts: ended together, whatever each of them does about
//! signals.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A program that runs at the head of a process group of its own. Dropping this kills the group.
///
/// The head is not reaped before the group is killed, so the group's number cannot have become
/// somebody else's by then.
pub(super) struct ProcessGroup {
    child: Child,
    /// Whether the group was killed and its head may have been reaped.
    over: bool,
    #[cfg(unix)]
    children: tokio::signal::unix::Signal,
}

impl ProcessGroup {
    /// Starts it. Must be called within a tokio runtime.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        // Listened to before there is a child, so that no end is missed.
        #[cfg(unix)]
        let children = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        Ok(Self {
            child: command.spawn()?,
            over: false,
            #[cfg(unix)]
            children,
        })
    }

    /// Its input, answer and complaints, each once.
    pub(super) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits until the program has ended, and ends what it left behind.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        while !self.head_has_ended()? {
            if self.children.recv().await.is_none() {
                break;
            }
        }
        #[cfg(unix)]
        self.kill();
        let status = self.child.wait().await;
        self.over = true;
        status
    }

    /// Whether the head has ended; it stays to be reaped.
    #[cfg(unix)]
    fn head_has_ended(&self) -> io::Result<bool> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(head) = self.head() else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(head), options)?.is_some())
    }

    /// The head's number, which is the group's.
    #[cfg(unix)]
    fn head(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    #[cfg(unix)]
    fn kill(&self) {
        if let Some(head) = self.head() {
            // An error means that nobody is left in it.
            let _ = rustix::process::kill_process_group(head, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.over {
            // What is dropped unreaped, tokio reaps in the background; elsewhere than on Unix it
            // kills the program too.
            #[cfg(unix)]
            self.kill();
        }
    }
}
