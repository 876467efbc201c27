//! Named pipes, processes that hold one open, and the signals that children are started with.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

/// Makes the signals of an interrupt default ones in the children that this process starts: one that is
/// started by `nohup`, or by `&` in a script, ignores them, and so would they. What a process handles is
/// default in its children.
pub fn default_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT] {
            if roundtable::bench::is_ignored(signal) {
                signal_hook::flag::register(signal, std::sync::Arc::default()).expect("handled");
            }
        }
    });
}

/// Makes a named pipe with `mkfifo`: a system call for it is not on every Unix.
pub fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success(), "a pipe at {}", path.display());
}

/// Reads so many numbers of processes; the pipe is given back to be read to its end.
pub async fn processes(path: PathBuf, many: usize) -> (Vec<Pid>, BufReader<File>) {
    let read = move || {
        let mut pipe = BufReader::new(File::open(path).expect("the pipe"));
        let pids = (0..many).map(|_| {
            let mut line = String::new();
            pipe.read_line(&mut line).expect("a line");
            Pid::from_raw(line.trim().parse().expect("a number")).expect("a process")
        });
        (pids.collect(), pipe)
    };
    tokio::task::spawn_blocking(read).await.expect("numbers")
}

/// Waits until all of them are gone: dead and reaped.
pub async fn gone(pids: Vec<Pid>, mut pipe: BufReader<File>) {
    let gone = async {
        let end = move || pipe.read_to_end(&mut Vec::new());
        tokio::task::spawn_blocking(end).await.expect("a thread").expect("the pipe ends");
        for pid in pids {
            while test_kill_process(pid).is_ok() {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("somebody lives on");
}
