//! A local program as a tool: JSON on its standard input, JSON on its standard output, no shell,
//! and only the environment variables that the scenario names.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

use super::process_group::ProcessGroup;
use super::{Environment, NotReady, ToolSettings};
use crate::base::visible::visible_within;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::Redactor;
use crate::net::error::size;
use crate::scenario::tools::command::CommandSpec;
use crate::tool;

/// Most bytes of standard error that are kept; the last ones are kept.
const STDERR_BYTES: usize = 8 << 10;
/// Most characters of a program's name that a message quotes.
const NAME_CHARS: usize = 60;
/// Size of a read buffer in bytes.
const PIECE: usize = 16 << 10;

/// A tool that runs a program for each attempt.
#[derive(Debug)]
pub struct CommandTool {
    spec: Arc<CommandSpec>,
    env: ToolSettings,
    /// Value of `PATH`, where programs are looked up.
    path: Option<String>,
}

impl CommandTool {
    /// A tool that runs this program, its variables looked up in `env`.
    ///
    /// # Errors
    /// Every variable that is not set.
    pub fn new(spec: Arc<CommandSpec>, env: Environment<'_>) -> Result<Self, Vec<NotReady>> {
        let settings = ToolSettings::look_up(&spec.env, env)?;
        Ok(Self { env: settings, path: env("PATH"), spec })
    }

    async fn run(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let mut group = self.start().await?;
        let (stdin, stdout, stderr) = group.pipes();
        let cap = usize::try_from(self.spec.max_bytes).unwrap_or(usize::MAX);
        let answer =
            async { read_within(stdout, cap).await.map_err(|error| self.read_error(&error)) };
        let answer = async { answer.await?.ok_or_else(|| self.too_large(cap)) };
        let ended = async { group.wait().await.map_err(|error| self.wait_error(&error)) };
        let complaints = async { Ok(read_tail(stderr).await) };
        let fed = async {
            write_args(stdin, request.args).await;
            Ok(())
        };
        // The first failure cancels the others; the process group is killed when it is dropped
        // here.
        let (answer, status, complaints, ()) = tokio::try_join!(answer, ended, complaints, fed)?;
        if !status.success() {
            return Err(self.exit_error(status, &complaints));
        }
        let from = format!("the output of {}", self.name());
        let whole = tool::parse_json(&answer, &from, &self.env.redactor)?;
        tool::check_integers(&answer, whole, &from, &self.env.redactor)
    }

    async fn start(&self) -> Result<ProcessGroup, Box<AttemptFailed>> {
        let started = start_program(&self.spec, &self.env, self.path.as_deref(), None).await;
        started.map_err(|text| AttemptFailed::new(FailureClass::Tool, text))
    }

    fn name(&self) -> String {
        program_name(&self.spec)
    }

    fn too_large(&self, cap: usize) -> Box<AttemptFailed> {
        let text = format!(
            "{} printed more than {} and was killed: print less, or raise max_bytes",
            self.name(),
            size(cap)
        );
        AttemptFailed::new(FailureClass::TooLarge, text)
    }

    fn read_error(&self, error: &io::Error) -> Box<AttemptFailed> {
        let text = format!("{} cannot be read from: {error}", self.name());
        AttemptFailed::new(FailureClass::Tool, text)
    }

    fn wait_error(&self, error: &io::Error) -> Box<AttemptFailed> {
        let text = format!("{} was ended early: {error}", self.name());
        AttemptFailed::new(FailureClass::Tool, text)
    }

    /// The error of a program that failed, with the line of its standard error that says why.
    fn exit_error(&self, status: ExitStatus, complaints: &[u8]) -> Box<AttemptFailed> {
        let said = telling_line(complaints, &self.env.redactor);
        let text = format!("{} ended with {}: {said}", self.name(), describe_exit(status));
        AttemptFailed::new(FailureClass::Tool, text)
    }
}

impl Tool for CommandTool {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.run(request))
    }
}

/// Whether a program is named by a path relative to the working directory, such as `./stock.sh`.
pub fn is_relative(program: &str) -> bool {
    has_folder(program) && !Path::new(program).is_absolute()
}

/// Whether a program is named by a path, and not looked up.
pub fn has_folder(program: &str) -> bool {
    program.contains(std::path::MAIN_SEPARATOR) || program.contains('/')
}

/// Path of a program. A name with a slash is a path; any other is looked up in the folders of
/// `path`. Done here because the child process gets no `PATH`.
pub(crate) fn find_program(program: &str, path: Option<&str>) -> Option<PathBuf> {
    if has_folder(program) {
        let program = Path::new(program);
        return program.is_file().then(|| program.to_owned());
    }
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|candidate| is_program(candidate))
}

/// What to do about a program that is not in PATH.
pub(crate) fn not_found_advice(program: &str) -> String {
    if program.contains(char::is_whitespace) {
        "write its arguments in args".to_owned()
    } else if Path::new(program).is_file() {
        format!("did you mean ./{}, which is not in PATH?", visible_within(program, 100))
    } else {
        "install it, or give its full path".to_owned()
    }
}

/// Whether a file may be run.
#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether a file may be run.
#[cfg(not(unix))]
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn program_name(spec: &CommandSpec) -> String {
    visible_within(&spec.program, NAME_CHARS)
}

/// Starts a program in a process group, with pipes and with these variables only.
pub(super) async fn start_program(
    spec: &CommandSpec,
    env: &ToolSettings,
    path: Option<&str>,
    folder: Option<&Path>,
) -> Result<ProcessGroup, String> {
    let name = program_name(spec);
    let Some(program) = find_program(&spec.program, path) else {
        return Err(match spec.program.contains('/') {
            true => {
                let place = std::path::absolute(&spec.program).unwrap_or_default();
                let place = visible_within(&place.display().to_string(), 300);
                format!("program {name} not found: there is no {place}")
            }
            false => format!("program {name} not found: {}", not_found_advice(&spec.program)),
        });
    };
    // A relative path would begin in the other folder.
    let program = match folder {
        Some(_) => std::path::absolute(&program).unwrap_or(program),
        None => program,
    };
    let mut command = Command::new(program);
    command.args(&spec.args).env_clear();
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    command.envs(env.values.iter().map(|(name, value)| (name, value.expose())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ProcessGroup::start(&mut command).await.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => ": make it executable",
            io::ErrorKind::NotFound => ": is the interpreter of its first line installed?",
            _ => "",
        };
        format!("{name} cannot be started ({error}){advice}")
    })
}

/// Exit code or signal, in words.
pub(super) fn describe_exit(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// Writes the arguments to the program. A program may ignore its input or close it.
async fn write_args(stdin: Option<ChildStdin>, args: &Map<String, Value>) {
    let Some(mut stdin) = stdin else { return };
    let mut line = serde_json::to_vec(args).unwrap_or_default();
    line.push(b'\n');
    let _ = stdin.write_all(&line).await;
    let _ = stdin.shutdown().await;
}

/// Reads everything, or returns `None` if it is more than `cap` bytes.
async fn read_within(
    from: Option<impl AsyncRead + Unpin>,
    cap: usize,
) -> io::Result<Option<Vec<u8>>> {
    let (Some(mut from), mut whole) = (from, Vec::new()) else { return Ok(Some(Vec::new())) };
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(Some(whole));
        }
        if whole.len() + read > cap {
            return Ok(None);
        }
        whole.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
}

/// The last bytes of standard error, from a line start on.
async fn read_tail(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut last = OutputTail::new(STDERR_BYTES);
    let Some(mut from) = from else { return Vec::new() };
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        last.push(piece.get(..read).unwrap_or_default());
    }
    last.whole_lines().into_owned()
}

/// The last bytes of an output.
#[derive(Debug)]
pub(super) struct OutputTail {
    last: Vec<u8>,
    /// Whether earlier bytes were dropped.
    is_cut: bool,
    cap: usize,
}

impl OutputTail {
    /// Keeps at most `cap` bytes.
    pub(super) fn new(cap: usize) -> Self {
        Self { last: Vec::new(), is_cut: false, cap }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.last.extend_from_slice(piece);
        if let Some(surplus @ 1..) = self.last.len().checked_sub(self.cap) {
            self.last.drain(..surplus);
            self.is_cut = true;
        }
    }

    /// The bytes from a line start on. A line cut in the middle is dropped: the redactor does not
    /// recognise half a secret.
    pub(super) fn whole_lines(&self) -> Cow<'_, [u8]> {
        if !self.is_cut {
            return Cow::Borrowed(&self.last);
        }
        let start =
            self.last.iter().position(|byte| *byte == b'\n').map_or(usize::MAX, |at| at + 1);
        match self.last.get(start..) {
            Some(lines @ [_, ..]) => Cow::Borrowed(lines),
            _ => Cow::Borrowed(b"(one line, too long to show)"),
        }
    }
}

/// The line of standard error that says why a program ended, ready to quote.
pub(super) fn telling_line(output: &[u8], redactor: &Redactor) -> String {
    let output = String::from_utf8_lossy(output);
    let redacted = redactor.redact(&output);
    let lines: Vec<&str> = redacted.lines().filter(|line| !line.trim().is_empty()).collect();
    match reason(&lines).or(lines.last()) {
        None => "nothing on standard error".to_owned(),
        Some(line) => tool::quoted_text(line, redactor),
    }
}

/// Lines with which programs end whatever the reason was.
const CLOSING_LINES: [&str; 9] = [
    "Node.js v",
    "Bun v",
    "npm notice",
    "npm error A complete log",
    "npm ERR! A complete log",
    "note: run with `RUST_BACKTRACE=",
    "note: Some details are omitted",
    "info Visit https://yarnpkg.com",
    "exit status ",
];
/// What npm says of each error before the reason.
const NPM_FIELDS: [&str; 5] = ["code ", "errno ", "syscall ", "path ", "dest "];

/// The line with the reason, by the forms in which languages report an error that nothing has handled.
/// For others, such as Python, it is the last one.
fn reason<'a>(lines: &'a [&'a str]) -> Option<&'a &'a str> {
    let is_indented = |line: &str| line.starts_with([' ', '\t']);
    // Rust: the message follows the place.
    let mut from_panic = lines.iter().skip_while(|line| !line.contains(" panicked at "));
    if let Some(panic) = from_panic.next() {
        return from_panic.next().filter(|_| panic.ends_with(':')).or(Some(panic));
    }
    if lines.iter().any(|line| line.starts_with("goroutine ")) {
        return lines
            .iter()
            .find(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "));
    }
    for start in ["Caused by: ", "Exception in thread "] {
        if let Some(line) = lines.iter().rfind(|line| line.starts_with(start)) {
            return Some(line);
        }
    }
    if lines.iter().any(|line| line.starts_with("Node.js v")) {
        // Frames and fields of the error are indented.
        let is_own = |line: &str| !is_indented(line) && line != "}" && !line.starts_with("(Use `");
        let mut own = lines.iter().filter(|line| is_own(line));
        let is_error = |line: &&&str| {
            let name = line.split([':', ' ']).next().unwrap_or_default();
            name.ends_with("Error") || name.ends_with("Rejection")
        };
        if let Some(line) = own.clone().rfind(is_error) {
            return Some(line);
        }
        return own.rfind(|line| !line.starts_with("Node.js v"));
    }
    let npm = |line: &str| {
        let rest = line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "));
        rest.is_some_and(|rest| !NPM_FIELDS.iter().any(|field| rest.starts_with(field)))
    };
    let is_closing = |line: &str| CLOSING_LINES.iter().any(|closing| line.starts_with(closing));
    if let Some(line) = lines.iter().find(|line| npm(line) && !is_closing(line)) {
        return Some(line);
    }
    let is_frame = |line: &str| {
        let text = line.trim_start();
        is_indented(line) && ["at ", "from ", "... "].iter().any(|it| text.starts_with(it))
    };
    lines.iter().rfind(|line| !is_closing(line) && !is_frame(line) && **line != "}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_crash_is_found() {
        let node = "node:internal/modules/esm/resolve:275\n    throw new ERR_MODULE_NOT_FOUND(\n          ^\n\n\
            Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'acme'\n    at resolve (node:x:839:9) {\n  \
            code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v22.15.1\n";
        for (output, line) in [
            (node, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'acme'"),
            (
                "/srv/x.js:3\nfoo(\n   ^\n\nSyntaxError: missing )\n    at wrap (node:x)\n\nNode.js v22.1.0",
                "SyntaxError: missing )",
            ),
            (
                "x.js:1\nthrow 'no key';\n^\nno key\n(Use `node --trace-uncaught`)\nNode.js v22",
                "no key",
            ),
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://r.example/x\n\
                 npm error A complete log of this run can be found in: /home/me/.npm/_logs/1.log\n",
                "npm error 404 Not Found - GET https://r.example/x",
            ),
            ("npm ERR! code E1\nnpm ERR! A complete log of this run", "npm ERR! code E1"),
            (
                "thread 'main' (7) panicked at src/main.rs:2:5:\nno key\nnote: run with `RUST_BACKTRACE=1` \
                 environment variable to display a backtrace\n",
                "no key",
            ),
            (
                "thread 'main' panicked at 'no key', src/main.rs:2:5\nstack backtrace:\n   0: x",
                "thread 'main' panicked at 'no key', src/main.rs:2:5",
            ),
            (
                "panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:4 +0x1d\nexit status 2\n",
                "panic: no key",
            ),
            (
                "Exception in thread \"main\" java.lang.RuntimeException: x\n\tat A.main(A.java:3)\n\
                 Caused by: java.io.IOException: no key\n\tat A.b(A.java:9)\n\t... 1 more\n",
                "Caused by: java.io.IOException: no key",
            ),
            (
                "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'KEY'\n",
                "KeyError: 'KEY'",
            ),
            (
                "x.rb:1:in 'f': no key (RuntimeError)\n\tfrom x.rb:3:in '<main>'\n",
                "x.rb:1:in 'f': no key (RuntimeError)",
            ),
            (
                "Unhandled exception. System.Exception: no key\n   at P.Main()\n",
                "Unhandled exception. System.Exception: no key",
            ),
            (
                "error: Uncaught Error: no key\n    at file:///x.ts:1:7\n",
                "error: Uncaught Error: no key",
            ),
            ("starting\nno key\n\n", "no key"),
            ("}\n", "}"),
            ("", "nothing on standard error"),
        ] {
            assert_eq!(telling_line(output.as_bytes(), &Redactor::default()), line, "{output}");
        }
    }
}
