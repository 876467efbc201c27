//! The real binary in an environment of its own: no key, no settings and no log of the person who
//! runs the tests is seen or touched.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A home for one test.
pub struct Home(TempDir);

/// What a command came to.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// The one JSON value on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
    /// Standard output with a blank in place of each line's end and all that is blank around it.
    pub fn flat(&self) -> String {
        flat(&self.out)
    }
    /// Each line of standard output as JSON.
    pub fn lines(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(read).collect()
    }
}

/// Words with one blank between two.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Home {
    pub fn new() -> Self {
        super::pipe::default_signals();
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// The variables that the program sees.
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.path().join(name).display().to_string();
        vec![
            ("HOME", at("home")),
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_STATE_HOME", at("state")),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
    }

    /// The program, in this home.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtable"));
        command.args(args);
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        command.current_dir(self.path()).env_clear().envs(self.env());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// The program, in this home, started by another one with its first arguments.
    pub fn command_under(&self, under: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new(under[0]);
        command.args(&under[1..]).arg(env!("CARGO_BIN_EXE_roundtable")).args(args);
        self.settle(&mut command);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Ended {
        end(&mut self.command(args))
    }
}

/// Runs a command to its end.
pub fn end(command: &mut Command) -> Ended {
    let output = command.output().expect("the program starts");
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// What an outcome says, without ids and times. Calls that were in flight when the process was killed
/// are made again together, so which of several concurrent ones ends first, and how many overlap, may
/// differ.
pub fn without_times(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_timing = |key: &str| {
                key.ends_with("_ms") || matches!(key, "run_id" | "after" | "peak_in_flight")
            };
            let kept = fields.iter().filter(|(key, _)| !is_timing(key));
            kept.map(|(key, value)| {
                let mut value = without_times(value);
                if let (Value::Array(items), "history" | "trace") = (&mut value, key.as_str()) {
                    items.sort_by_key(Value::to_string);
                }
                (key.clone(), value)
            })
            .collect()
        }
        Value::Array(items) => items.iter().map(without_times).collect(),
        plain => plain.clone(),
    }
}

/// How long a program may run: a test whose program hangs fails, and does not hang too.
const LONGEST: Duration = Duration::from_secs(600);

/// A running program whose lines are read as they come.
pub struct Running {
    /// Its time limit, which ends with this: later its number may be that of another process.
    limit: Option<mpsc::Sender<()>>,
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    err: Option<BufReader<ChildStderr>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let out = child.stdout.take().map(BufReader::new);
        let err = child.stderr.take().map(BufReader::new);
        let (limit, ended) = mpsc::channel::<()>();
        let pid = child.id().to_string();
        thread::spawn(move || {
            if ended.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-s", "KILL", &pid]).status();
            }
        });
        Self { limit: Some(limit), child, out, err }
    }

    /// Its standard input.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    /// Reads lines until one is of this kind of event.
    pub fn until(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let out = self.out.as_mut().expect("a pipe");
            let read = out.read_line(&mut line).expect("a line");
            if read == 0 {
                panic!("ended before an event `{kind}`: {}", self.complaints());
            }
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if event["kind"] == kind {
                return event;
            }
        }
    }

    /// The lines of its standard output.
    pub fn lines(&mut self) -> impl Iterator<Item = std::io::Result<String>> {
        self.out.as_mut().expect("a pipe").lines()
    }

    /// Ends it as the system does when memory runs out.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.limit = None;
    }

    /// The next line that it writes to standard error.
    pub fn complains(&mut self) -> String {
        let mut line = String::new();
        self.err.as_mut().expect("a pipe").read_line(&mut line).expect("a line");
        line
    }

    /// All that it still writes to standard error.
    fn complaints(&mut self) -> String {
        let mut text = String::new();
        self.err.take().map(|mut err| err.read_to_string(&mut text)).transpose().expect("UTF-8");
        text
    }

    /// Stops reading, as `head` does.
    pub fn close_out(&mut self) {
        self.out = None;
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits for its end.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        let mut out = String::new();
        if let Some(mut rest) = self.out.take() {
            rest.read_to_string(&mut out).expect("UTF-8");
        }
        let err = self.complaints();
        (self.child.wait().expect("it ends"), out, err)
    }
}

impl Drop for Running {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says yes to a question on standard input.
pub fn press_enter(stdin: &mut ChildStdin) {
    stdin.write_all(b"\n").expect("it listens");
}
