//! The program that is watched: its environment, which points at the receiver; its output, input and end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ReceiverAddress;
use super::hub::HubInput;
use super::lines::PrintedLines;
use super::terminal::{self, ProgramInput};
use crate::base::private_file::{make_dir, replace_file};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::facts::observed::TextStream;

/// The tap: a file that Python imports at its start.
const TAP: [(&str, &str); 2] = [
    ("sitecustomize.py", include_str!("../../assets/watch/sitecustomize.py")),
    ("roundtable_tools.py", include_str!("../../assets/watch/roundtable_tools.py")),
];

/// How a program is watched.
#[derive(Clone, Debug)]
pub struct WatchedProgram {
    /// The program and its arguments; not empty.
    pub command: Vec<String>,
    /// Whether Python reports when something starts.
    pub has_tap: bool,
    /// Whether LangSmith's tracer reports here.
    pub has_langsmith: bool,
    /// Whether it gets its own input and its own process group. Otherwise it shares those of this program.
    pub is_apart: bool,
    /// Whether its standard output and its standard error are pseudo-terminals. Otherwise they are pipes.
    pub on_terminal: [bool; 2],
}

/// The key for LangSmith's tracer, which needs one; a real one is never read.
const DUMMY_KEY: &str = "roundtable";

/// Variables of OpenTelemetry with the address of the receiver, and the path in it.
const ENDPOINTS: [(&str, &str); 4] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces"),
    ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "/v1/logs"),
    ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/v1/metrics"),
];

/// Variables that would send spans elsewhere, or make an exporter raise. They are set, not removed, because
/// `load_dotenv()` sets each variable that is missing.
const OTEL: [(&str, &str); 16] = [
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
    ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf"),
    ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
    ("OTEL_EXPORTER_OTLP_HEADERS", ""),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", ""),
    ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", ""),
    ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", ""),
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", ""),
    ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", ""),
    ("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", ""),
    ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", ""),
    ("OTEL_EXPORTER_OTLP_INSECURE", "true"),
    ("OTEL_EXPORTER_OTLP_TRACES_INSECURE", "true"),
    ("OTEL_BSP_SCHEDULE_DELAY", "200"),
    ("PYTHONUNBUFFERED", "1"),
];

/// Variables of LangSmith's tracer, which ignores empty ones.
const LANGSMITH: [(&str, &str); 10] = [
    ("LANGSMITH_TRACING", "true"),
    ("LANGSMITH_TRACING_V2", "true"),
    ("LANGCHAIN_TRACING_V2", "true"),
    ("LANGCHAIN_TRACING", "false"),
    ("LANGSMITH_API_KEY", DUMMY_KEY),
    ("LANGCHAIN_API_KEY", DUMMY_KEY),
    ("LANGSMITH_RUNS_ENDPOINTS", ""),
    ("LANGSMITH_WORKSPACE_ID", ""),
    ("LANGSMITH_TRACING_SAMPLING_RATE", ""),
    // Otherwise the tracer warns on standard error that there is no compression.
    ("LANGSMITH_DISABLE_RUN_COMPRESSION", "true"),
];

impl WatchedProgram {
    /// What happens to a tracing set-up that the user has: sentences for the operator. `get`: the environment.
    pub fn notes(&self, get: impl Fn(&str) -> Option<OsString>) -> Vec<String> {
        let mut notes = Vec::new();
        let has = |names: &[&str]| names.iter().any(|name| get(name).is_some());
        if self.has_langsmith && has(&["LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"]) {
            notes.push(
                "LangSmith gets nothing from this program: its tracer reports here (--no-langsmith leaves it alone)"
                    .to_owned(),
            );
        }
        if has(&["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]) {
            notes.push(
                "your OTLP endpoint gets nothing from this program: its exporter reports here"
                    .to_owned(),
            );
        }
        let text = |name: &str| get(name).and_then(|it| it.into_string().ok()).unwrap_or_default();
        if text("OTEL_SDK_DISABLED").eq_ignore_ascii_case("true") {
            notes.push(
                "OpenTelemetry is off (OTEL_SDK_DISABLED): its spans are not seen".to_owned(),
            );
        }
        let sampler = text("OTEL_TRACES_SAMPLER");
        if !sampler.is_empty() && !sampler.ends_with("always_on") {
            notes.push(format!(
                "OpenTelemetry does not record all spans (OTEL_TRACES_SAMPLER={sampler}): the others are not seen"
            ));
        }
        let exporter = text("OTEL_TRACES_EXPORTER");
        if !exporter.is_empty() && !exporter.split(',').any(|it| it.starts_with("otlp")) {
            notes.push(format!(
                "OpenTelemetry does not export spans by OTLP (OTEL_TRACES_EXPORTER={exporter}): they may not be seen"
            ));
        }
        notes
    }

    /// The variables that the program gets. `tap`: the folder of the tap.
    pub fn environment(
        &self,
        address: &ReceiverAddress,
        tap: Option<&Path>,
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let url = address.url();
        let endpoints = ENDPOINTS.iter().map(|(name, path)| (*name, format!("{url}{path}").into()));
        let mut set: Vec<(&str, OsString)> = endpoints.collect();
        set.extend(OTEL.map(|(name, value)| (name, value.into())));
        if self.has_langsmith {
            set.extend(
                ["LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"].map(|name| (name, (&url).into())),
            );
            set.extend(LANGSMITH.map(|(name, value)| (name, value.into())));
        }
        // Otherwise a proxy would get the requests to this machine.
        for (name, twin) in [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")] {
            let known = [name, twin].into_iter().filter_map(&get).find(|list| !list.is_empty());
            let mut list = known.unwrap_or_default();
            if !list.is_empty() {
                list.push(",");
            }
            list.push("127.0.0.1,localhost");
            set.push((name, list));
        }
        if let Some(tap) = tap {
            let mut path = tap.as_os_str().to_owned();
            if let Some(own) = get("PYTHONPATH").filter(|own| !own.is_empty()) {
                path.push(if cfg!(windows) { ";" } else { ":" });
                path.push(own);
            }
            set.push(("PYTHONPATH", path));
            set.push(("ROUNDTABLE_TAP", url.into()));
        }
        set
    }
}

/// Writes the tap into a folder that only this user can change; returns the folder.
///
/// # Errors
/// It cannot be written.
pub fn write_tap(state: &Path) -> Result<PathBuf, Refused> {
    let folder = state.join("tap");
    let unwritten = "the tap cannot be written, so some starts are missing";
    make_dir(&folder).or_refuse(unwritten)?;
    for (name, text) in TAP {
        let file = folder.join(name);
        if std::fs::read(&file).is_ok_and(|known| known == text.as_bytes()) {
            continue;
        }
        replace_file(&file, text.as_bytes()).or_refuse(unwritten)?;
    }
    Ok(folder)
}

/// A program that runs.
pub struct RunningProgram {
    child: Child,
    signals: ProgramSignals,
    readers: Vec<JoinHandle<()>>,
    resizing: Option<JoinHandle<()>>,
    /// Whether it has ended, for the readers.
    over: watch::Sender<bool>,
}

/// Takes the bytes of an output as they come.
pub type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// How long the output may be silent after the end of the program: one that it has started may keep it open.
const OUTPUT: Duration = Duration::from_secs(1);

impl RunningProgram {
    /// Starts a program. Its output goes to the two sinks, and line by line to the hub.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        program: &WatchedProgram,
        environment: Vec<(&'static str, OsString)>,
        sinks: [OutputSink; 2],
        hub: &mpsc::Sender<HubInput>,
    ) -> io::Result<(Self, Option<ProgramInput>)> {
        let (name, args) = program.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(name);
        command.args(args).envs(environment);
        let started = terminal::start(command, program.is_apart, program.on_terminal)?;
        let (mut readers, (over, is_over)) = (Vec::new(), watch::channel(false));
        let streams = [TextStream::Stdout, TextStream::Stderr];
        for ((from, sink), stream) in started.outputs.into_iter().zip(sinks).zip(streams) {
            let to = (stream, sink, hub.clone());
            readers.extend(from.map(|from| tokio::spawn(read_output(from, to, is_over.clone()))));
        }
        let child = started.child;
        let signals = ProgramSignals {
            pid: child.id(),
            is_apart: program.is_apart,
            has_ended: Arc::default(),
            interrupted: Arc::default(),
        };
        let running = Self { child, signals, readers, resizing: started.resizing, over };
        Ok((running, started.input))
    }

    /// Waits for its end and the rest of its output; returns the exit code, of a signal 128 and its number.
    pub async fn wait(mut self) -> i32 {
        let code = self.child.wait().await.map_or(1, exit_code);
        self.signals.has_ended.store(true, Ordering::SeqCst);
        self.over.send_replace(true);
        for reader in self.readers {
            let _ = reader.await;
        }
        self.resizing.inspect(JoinHandle::abort);
        code
    }

    /// Its number; `None`: it has ended.
    pub fn number(&self) -> Option<u32> {
        self.signals.pid
    }

    /// What sends it signals while it is waited for.
    pub fn signals(&self) -> ProgramSignals {
        self.signals.clone()
    }
}

/// Interrupts within this time are one.
const SAME_INTERRUPT: Duration = Duration::from_secs(1);

/// Sends signals to a program until it has ended: its number may belong to another one then.
#[derive(Clone, Debug)]
pub struct ProgramSignals {
    pid: Option<u32>,
    is_apart: bool,
    has_ended: Arc<AtomicBool>,
    interrupted: Arc<Mutex<Option<Instant>>>,
}

impl ProgramSignals {
    /// Interrupts it, as Ctrl-C does. Interrupts at almost the same time are one: several runs may end at once, and
    /// many programs end without a clean-up at a second one.
    pub fn interrupt(&self) {
        let mut last = self.interrupted.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < SAME_INTERRUPT) {
            return;
        }
        *last = Some(Instant::now());
        #[cfg(unix)]
        self.send(rustix::process::Signal::INT);
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        #[cfg(unix)]
        self.send(rustix::process::Signal::TERM);
    }

    /// Ends it.
    pub fn kill(&self) {
        #[cfg(unix)]
        self.send(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn send(&self, signal: rustix::process::Signal) {
        use rustix::process::{Pid, kill_process, kill_process_group};
        let pid = self.pid.filter(|_| !self.has_ended.load(Ordering::SeqCst));
        let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        let Some(pid) = pid else { return };
        let sent = match self.is_apart {
            true => kill_process_group(pid, signal),
            false => kill_process(pid, signal),
        };
        if let Err(error) = sent {
            tracing::debug!("the program gets no signal: {error}");
        }
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

/// How long an output is silent when the program waits for input, or has redrawn its lines.
const PAUSE: Duration = Duration::from_millis(400);

/// Waits until a program has ended, and then for as long as its output may be silent.
async fn silent_after(mut over: watch::Receiver<bool>) {
    let _ = over.wait_for(|over| *over).await;
    sleep(OUTPUT).await;
}

/// Maximum size of the queue of lines in bytes. Later lines are left out, so that the program never waits.
const MAX_QUEUED: usize = 8 << 20;

/// The queue of lines for the hub.
struct LineQueue {
    stream: TextStream,
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of lines that did not fit since the last one that did.
    left_out: u64,
}

impl LineQueue {
    fn add(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.bytes + line.len() > MAX_QUEUED {
                self.left_out += 1;
                continue;
            }
            self.note_left_out();
            self.bytes += line.len();
            self.lines.push_back(line);
        }
    }

    fn note_left_out(&mut self) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            self.lines.push_back(format!(
                "… lines left out: {count}, because they came faster than they are kept"
            ));
        }
    }

    fn next(&mut self) -> Option<HubInput> {
        let line = self.lines.pop_front()?;
        self.bytes = self.bytes.saturating_sub(line.len());
        Some(HubInput::Line(self.stream, line))
    }
}

async fn read_output(
    from: impl AsyncRead + Unpin,
    (stream, mut sink, hub): (TextStream, OutputSink, mpsc::Sender<HubInput>),
    over: watch::Receiver<bool>,
) {
    let (mut from, mut printed) = (BufReader::new(from), PrintedLines::default());
    let mut queue = LineQueue { stream, lines: VecDeque::new(), bytes: 0, left_out: 0 };
    loop {
        let read = tokio::select! {
            read = from.fill_buf() => read,
            Ok(place) = hub.reserve(), if !queue.lines.is_empty() => {
                if let Some(line) = queue.next() {
                    place.send(line);
                }
                continue;
            }
            () = silent_after(over.clone()) => break,
            () = sleep(PAUSE), if printed.is_waiting() => {
                queue.add(printed.pause());
                continue;
            }
        };
        let bytes = match read {
            // A terminal cannot be read after the program has closed it.
            Ok([]) | Err(_) => break,
            Ok(bytes) => bytes,
        };
        sink(bytes);
        let count = bytes.len();
        queue.add(printed.add(bytes));
        from.consume(count);
    }
    queue.add(printed.end());
    queue.note_left_out();
    while let Some(line) = queue.next() {
        let _ = hub.send(line).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of the output is read while nobody takes its lines, and the last line says how many are missing.
    #[tokio::test]
    async fn output_never_waits_for_the_hub() {
        let line = "a line of the output of a program\n";
        let count = MAX_QUEUED / line.len() * 2;
        let output = line.repeat(count);
        let (hub, mut inputs) = mpsc::channel(1);
        let (passed_on, mut passed) = mpsc::unbounded_channel();
        let sink: OutputSink = Box::new(move |bytes| {
            let _ = passed_on.send(bytes.len());
        });
        let (_over, is_over) = watch::channel(false);
        let read = async {
            read_output(output.as_bytes(), (TextStream::Stdout, sink, hub), is_over).await
        };
        let take = async {
            let mut bytes = 0;
            while bytes < output.len() {
                bytes += passed.recv().await.expect("all of the output");
            }
            let (mut lines, mut last) = (0, String::new());
            while let Some(HubInput::Line(_, line)) = inputs.recv().await {
                lines += 1;
                last = line;
            }
            (lines, last)
        };
        let ((), (lines, last)) = tokio::join!(read, take);
        let left_out = count + 1 - lines;
        assert!(left_out > count / 3, "{lines}");
        assert!(last.starts_with(&format!("… lines left out: {left_out}, ")), "{last}");
    }
}
