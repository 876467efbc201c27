//! A child process with all its descendants: killed together, even if they handle or ignore signals,
//! and also if this program is killed.
//!
//! A descendant may leave the group (`setsid`, a daemon). On Linux those are found in `/proc`: by their parents,
//! and by a variable of the environment that all of them inherit. Only one that has cleared its environment
//! and whose parent has ended is not found.
//!
//! Nothing runs in a program that is killed (`kill -9`, out of memory). So each group has a
//! supervisor: this program, started a second time. It waits at a pipe and kills the group when the
//! other end of the pipe is closed, because this process has ended. It leads the group, and the
//! program joins the group before its first instruction, so there is no moment without it.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::io;
use std::io::{Read as _, Write as _};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// First argument of a supervisor.
const SUPERVISE: &str = "--supervise-process-group";

/// The variable by which descendants are found: the marks of the group and of the groups around it, each after
/// a slash.
const MARKS: &str = "ROUNDTABLE_STARTED_BY";

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
            let mark = args.next().and_then(|mark| mark.into_string().ok()).unwrap_or_default();
            kill_at_end_of_input(Duration::from_millis(grace), &mark);
        }
        SUPERVISES.store(true, Ordering::Relaxed);
    }
}

/// Waits for the end of standard input, then ends the process group and with it this process.
#[cfg(unix)]
fn kill_at_end_of_input(grace: Duration, mark: &str) -> ! {
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
    kill_descendants(getpgrp().as_raw_pid(), mark);
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
    /// there is a `grace`, and SIGKILL after it. `mark`: of the processes that may have left the group; may be
    /// empty.
    ///
    /// Returns when it handles signals: a program that signals its whole group at once must not end it.
    pub(crate) async fn start(grace: Duration, mark: &str) -> io::Result<Option<Self>> {
        if !SUPERVISES.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The file may have been replaced by a newer version meanwhile; the link leads to the one that runs.
        let itself = std::path::Path::new("/proc/self/exe");
        let program = if itself.exists() { itself.to_owned() } else { std::env::current_exe()? };
        let mut command = Command::new(program);
        command.arg(SUPERVISE).arg(grace.as_millis().to_string()).arg(mark);
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

/// A mark that no other group has.
fn new_mark() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Kills the processes of a group, those with the mark, and all their descendants, except this process.
#[cfg(target_os = "linux")]
fn kill_descendants(group: i32, mark: &str) {
    use rustix::process::{Pid, Signal, getpid, kill_process};
    let own = getpid().as_raw_pid();
    let mut killed = BTreeSet::from([own]);
    // A process that was forked meanwhile is found by the next pass.
    loop {
        let mut is_last = true;
        for pid in descendants(group, mark, own) {
            if killed.insert(pid) {
                is_last = false;
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            }
        }
        if is_last {
            return;
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_descendants(_: i32, _: &str) {}

/// The processes that [`kill_descendants`] ends. Nothing is a descendant of `own`.
#[cfg(target_os = "linux")]
fn descendants(group: i32, mark: &str, own: i32) -> BTreeSet<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let (mut found, mut parents) = (BTreeSet::new(), Vec::new());
    for pid in pids.filter(|pid| *pid != own) {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name of the program, in parentheses, may have spaces and parentheses.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        let state = fields.next();
        let mut number = || fields.next().and_then(|number| number.parse::<i32>().ok());
        let (Some(parent), Some(of_group)) = (number(), number()) else { continue };
        // What has ended has no environment.
        if matches!(state, Some("Z" | "X")) {
            continue;
        }
        parents.push((pid, parent));
        if of_group == group || has_mark(pid, mark) {
            found.insert(pid);
        }
    }
    loop {
        let before = found.len();
        for (pid, parent) in &parents {
            if found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a process has inherited the mark.
#[cfg(target_os = "linux")]
fn has_mark(pid: i32, mark: &str) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let mut variables = environment.split(|byte| *byte == 0);
    let marks = variables.find_map(|it| it.strip_prefix(MARKS.as_bytes())?.strip_prefix(b"="));
    let mut marks = marks.unwrap_or_default().split(|byte| *byte == b'/');
    !mark.is_empty() && marks.any(|it| it == mark.as_bytes())
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
    /// What its descendants are found by.
    mark: String,
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
        let mark = new_mark();
        let supervisor = Supervisor::start(Duration::ZERO, &mark).await?;
        let around = std::env::var(MARKS).unwrap_or_default();
        command.env(MARKS, format!("{around}/{mark}"));
        #[cfg(unix)]
        command.process_group(supervisor.as_ref().and_then(Supervisor::group).unwrap_or(0));
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        Ok(Self {
            child: command.spawn()?,
            supervisor,
            mark,
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
        let own = || self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = self.supervisor.as_ref().map_or_else(own, Supervisor::group) {
            kill_descendants(group, &self.mark);
        }
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
