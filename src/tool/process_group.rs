//! A child process with all its descendants: killed together, whatever signals they handle or
//! ignore.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A program that leads its own process group. Dropping this kills the group.
///
/// The leader is not reaped before the group is killed, so the group's id cannot have been reused
/// by then.
pub(super) struct ProcessGroup {
    child: Child,
    /// Whether the group was killed and its leader may have been reaped.
    killed: bool,
    #[cfg(unix)]
    children: tokio::signal::unix::Signal,
}

impl ProcessGroup {
    /// Starts the program. Must be called within a tokio runtime.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        // The signal handler is installed before the child exists, so that its exit is not missed.
        #[cfg(unix)]
        let children = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        Ok(Self {
            child: command.spawn()?,
            killed: false,
            #[cfg(unix)]
            children,
        })
    }

    /// Standard input, output and error of the program; each can be taken once.
    pub(super) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits until the program has exited, then kills what is left of its group.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        while !self.leader_has_exited()? {
            if self.children.recv().await.is_none() {
                break;
            }
        }
        #[cfg(unix)]
        self.kill();
        let status = self.child.wait().await;
        self.killed = true;
        status
    }

    /// Whether the leader has exited; it is not reaped here.
    #[cfg(unix)]
    fn leader_has_exited(&self) -> io::Result<bool> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(head) = self.leader() else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(head), options)?.is_some())
    }

    /// Process id of the leader, which is the group's id.
    #[cfg(unix)]
    fn leader(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    #[cfg(unix)]
    fn kill(&self) {
        if let Some(head) = self.leader() {
            // An error means that the group is empty.
            let _ = rustix::process::kill_process_group(head, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.killed {
            // tokio reaps a dropped child in the background; on other systems than Unix it kills
            // the program too.
            #[cfg(unix)]
            self.kill();
        }
    }
}
