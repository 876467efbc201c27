//! A child process with all its descendants: killed together, even if they handle or ignore signals,
//! and also if this program is killed.
//!
//! Nothing runs in a program that is killed (`kill -9`, out of memory). So each group has a
//! supervisor: this program, started a second time. It waits at a pipe and kills the group when the
//! other end of the pipe is closed, because this process has ended. It leads the group, and the
//! program joins the group before its first instruction, so there is no moment without it.

use std::io;
use std::io::{Read as _, Write as _};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// First argument of a supervisor.
const SUPERVISE: &str = "--supervise-process-group";

/// Whether this program becomes a supervisor where it is started as one.
static SUPERVISES: AtomicBool = AtomicBool::new(false);

/// Ends the child processes of this program also if it is killed (`kill -9`): a program that embeds the
/// engine calls this first in its `main`, before it reads its arguments.
///
/// Each process group of a `command` tool then has a supervisor, which is this program started a second
/// time. In the supervisor this function does not return. Without this call the processes of a tool end with
/// its attempt, its run and a normal end of the program, but not if the program is killed. On other systems
/// than Unix it does nothing.
pub fn supervise_children() {
    #[cfg(unix)]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|first| first == SUPERVISE) {
            let grace = args.next().and_then(|ms| ms.to_str()?.parse().ok()).unwrap_or(0);
            kill_at_end_of_input(Duration::from_millis(grace));
        }
        SUPERVISES.store(true, Ordering::Relaxed);
    }
}

/// Waits for the end of standard input, then ends the process group and with it this process.
#[cfg(unix)]
fn kill_at_end_of_input(grace: Duration) -> ! {
    use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};
    use tokio::signal::unix::{SignalKind, signal};
    // A person who starts it in a shell must not lose the group of the shell.
    if getpgrp() != getpid() {
        std::process::exit(2);
    }
    // A program that signals its whole group (`kill 0`) must not end its supervisor: a signal that is
    // handled has no default action.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let inside = runtime.as_ref().ok().map(|runtime| runtime.enter());
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
    ] {
        let _ = signal(kind);
    }
    drop(inside);
    if io::stdout().write_all(b".").and_then(|()| io::stdout().flush()).is_err() {
        std::process::exit(2);
    }
    let mut input = io::stdin().lock();
    loop {
        match input.read(&mut [0; 64]) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    if !grace.is_zero() {
        let _ = kill_current_process_group(Signal::TERM);
        std::thread::sleep(grace);
    }
    let _ = kill_current_process_group(Signal::KILL);
    std::process::exit(0)
}

/// A process that leads a group and kills it when this program ends, however it ends. Dropping it kills the
/// group.
pub(crate) struct Supervisor {
    child: Child,
    /// The other end of its pipe.
    _pipe: Option<ChildStdin>,
}

impl Supervisor {
    /// Starts one, if this program can be one. After the end of this program the group gets SIGTERM first if
    /// there is a `grace`, and SIGKILL after it.
    ///
    /// Returns when it handles signals: a program that signals its whole group at once must not end it.
    pub(crate) async fn start(grace: Duration) -> io::Result<Option<Self>> {
        if !SUPERVISES.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The file may have been replaced by a newer version meanwhile; the link leads to the one that runs.
        let itself = std::path::Path::new("/proc/self/exe");
        let program = if itself.exists() { itself.to_owned() } else { std::env::current_exe()? };
        let mut command = Command::new(program);
        command.arg(SUPERVISE).arg(grace.as_millis().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let (pipe, ready) = (child.stdin.take(), child.stdout.take());
        let supervisor = Self { child, _pipe: pipe };
        if let Some(mut ready) = ready {
            ready.read_u8().await?;
        }
        Ok(Some(supervisor))
    }

    /// Id of the process group that it leads.
    pub(crate) fn group(&self) -> Option<i32> {
        i32::try_from(self.child.id()?).ok()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // It has not been waited for, so the id of its group is still its own.
        kill_group(self.group());
    }
}

fn kill_group(group: Option<i32>) {
    #[cfg(unix)]
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        // An error means that the group is empty.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = group;
}

/// Whether a child has exited; it is not reaped here.
#[cfg(unix)]
fn has_exited(child: &Child) -> io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let Some(id) = id else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(id), options)?.is_some())
}

/// A program in a process group of its own. Dropping this kills the group.
///
/// The leader, which is the supervisor or else the program, is not reaped before the group is killed, so the
/// group's id cannot have been reused by then.
pub(crate) struct ProcessGroup {
    child: Child,
    supervisor: Option<Supervisor>,
    /// Whether the group was killed and the program may have been reaped.
    killed: bool,
    #[cfg(unix)]
    children: tokio::signal::unix::Signal,
}

impl ProcessGroup {
    /// Starts the program. Must be called within a tokio runtime.
    pub(crate) async fn start(command: &mut Command) -> io::Result<Self> {
        // The signal handler is installed before the child exists, so that its exit is not missed.
        #[cfg(unix)]
        let children = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
        let supervisor = Supervisor::start(Duration::ZERO).await?;
        #[cfg(unix)]
        command.process_group(supervisor.as_ref().and_then(Supervisor::group).unwrap_or(0));
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        Ok(Self {
            child: command.spawn()?,
            supervisor,
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

    /// Waits until the program has exited, then kills the rest of its group.
    ///
    /// # Errors
    /// The system's error, or that the supervisor has exited: nothing would end the group with this program.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        while !has_exited(&self.child)? {
            if let Some(supervisor) = &self.supervisor
                && has_exited(&supervisor.child)?
            {
                return Err(io::Error::other("the process that supervises it was killed"));
            }
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

    fn kill(&mut self) {
        match self.supervisor.take() {
            Some(supervisor) => drop(supervisor),
            None => kill_group(self.child.id().and_then(|id| i32::try_from(id).ok())),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.killed {
            // tokio reaps a dropped child in the background; on other systems than Unix it kills
            // the program too.
            self.kill();
        }
    }
}
