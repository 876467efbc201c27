//! A program that talks to this one for as long as a run lasts: one JSON message a line over its standard
//! input and output, in a process group of its own. MCP servers and coding agents are such programs.
//!
//! Written here because the transports of existing crates have no limit for a line, end at the first line
//! that is no message, and do not know our process groups.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::ToolSettings;
use super::command::{OutputTail, describe_exit, start_program, telling_line};
use super::link::{LinkFailures, ProgramLink};
use super::process_group::ProcessGroup;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::error::size;
use crate::net::json_rpc::LineRead;
use crate::scenario::tools::command::CommandSpec;

/// Most bytes of standard error that are kept; the last ones are kept.
const STDERR_BYTES: usize = 64 << 10;
/// Size of a read buffer in bytes.
const PIECE: usize = 16 << 10;
/// Capacity of the line buffer that is kept after a long line, in bytes.
const KEPT_CAPACITY: usize = 1 << 20;
/// Most bytes of a message that cannot be read that are kept to be quoted.
const UNREADABLE_BYTES: usize = 2_000;
/// Most lines before the first message: a program that writes more is no such program.
const MAX_LINES_BEFORE: u64 = 1_000;
/// Most messages that wait until the program reads them.
const MAX_QUEUED: usize = 1_024;
/// How long a program may take to end by itself.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the rest of the output may take to arrive after the end of the program.
const REST_TIMEOUT: Duration = Duration::from_millis(500);

/// Advice for a program that writes something else than messages.
const FIX_PROGRAM: &str = "Only messages may be on its standard output; is it the right program?";
/// Advice for a program that ended.
const SEE_WHY: &str = "Start its command in a shell to see why.";

/// A program, with the values of its variables.
#[derive(Debug)]
pub(crate) struct LinkedProgram {
    pub(crate) spec: CommandSpec,
    pub(crate) env: ToolSettings,
    /// Value of `PATH`, where programs are looked up.
    pub(crate) path: Option<String>,
    /// The folder that it works in; `None`: that of this program.
    pub(crate) folder: Option<PathBuf>,
}

/// Starts the program. It is killed when the link is closed.
pub(crate) async fn start(
    program: &LinkedProgram,
    link: &Arc<ProgramLink>,
    failures: &Arc<LinkFailures>,
) -> Result<(LineReader, LineWriter), Box<AttemptFailed>> {
    let (path, folder) = (program.path.as_deref(), program.folder.as_deref());
    let started = start_program(&program.spec, &program.env, path, folder).await;
    let mut group = started.map_err(|text| {
        let text = format!("{} cannot be started: {text}", failures.subject());
        AttemptFailed::new(FailureClass::Tool, text)
    })?;
    let (stdin, stdout, stderr) = group.pipes();
    let cap = usize::try_from(program.spec.max_bytes).unwrap_or(usize::MAX);
    let (breaks, broken) = mpsc::channel(4);
    let (messages, queue) = mpsc::unbounded_channel();
    let (at_end, stdout_ended) = oneshot::channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let writer = write_messages(stdin, queue, Arc::clone(&queued), breaks.clone());
    let keeper = ProgramKeeper {
        group,
        link: Arc::clone(link),
        failures: Arc::clone(failures),
        broken,
        stdout_ended,
        cap,
    };
    tokio::spawn(keeper.keep(stderr, writer));
    let reader = LineReader {
        stdout,
        buffer: Vec::new(),
        start: 0,
        searched: 0,
        cap,
        link: Arc::clone(link),
        has_spoken: false,
        breaks: breaks.clone(),
        at_end: Some(at_end),
    };
    Ok((reader, LineWriter { messages, queued, breaks }))
}

/// Why the connection to a program ends before the program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkBreak {
    /// A message was larger than the limit.
    TooLarge,
    /// A message cannot be read: why, and its beginning.
    Unreadable { why: String, line: String },
    /// There were only other lines.
    NoMessages,
    /// Standard output was closed.
    OutputClosed,
    /// Standard input was closed.
    InputClosed,
    /// Too many messages wait to be read.
    InputFull,
    /// This side closed the connection.
    Closed,
}

impl LinkBreak {
    /// Whether it is about what the program wrote. Such a program gets no time to end by itself.
    fn is_of_message(&self) -> bool {
        matches!(self, Self::TooLarge | Self::Unreadable { .. } | Self::NoMessages)
    }
}

/// Writes messages to a program.
#[derive(Clone, Debug)]
pub(crate) struct LineWriter {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    /// Number of messages that wait to be written.
    queued: Arc<AtomicUsize>,
    breaks: mpsc::Sender<LinkBreak>,
}

/// A message that cannot be sent; the link says why.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the program is closed")]
pub(crate) struct LineNotSent;

impl LineWriter {
    /// Queues a message with its line end.
    pub(crate) fn send(&self, line: Vec<u8>) -> Result<(), LineNotSent> {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED {
            // If it is full, there is a reason already.
            let _ = self.breaks.try_send(LinkBreak::InputFull);
            return Err(LineNotSent);
        }
        self.messages.send(line).map_err(|_| LineNotSent)
    }
}

/// Reads messages, one a line.
pub(crate) struct LineReader {
    stdout: Option<ChildStdout>,
    buffer: Vec<u8>,
    /// Start of the current line in the buffer.
    start: usize,
    /// Bytes of the current line that are known to hold no line end.
    searched: usize,
    cap: usize,
    link: Arc<ProgramLink>,
    /// Whether there was a message.
    has_spoken: bool,
    breaks: mpsc::Sender<LinkBreak>,
    /// Dropped when standard output has ended.
    at_end: Option<oneshot::Sender<Infallible>>,
}

impl LineReader {
    /// Ends the connection. The first reason counts.
    pub(crate) fn break_off(&mut self, why: LinkBreak) {
        // If it is full, there is a reason already.
        let _ = self.breaks.try_send(why);
        self.at_end = None;
    }

    /// The messages of the next line that has any. Lines that are none are counted.
    ///
    /// Whatever this future has read stays in the reader if it is dropped.
    pub(crate) async fn next<M>(
        &mut self,
        read: impl Fn(&[u8]) -> LineRead<M>,
    ) -> Result<Vec<M>, LinkBreak> {
        loop {
            while let Some((start, end)) = self.next_line()? {
                let line = self.buffer.get(start..end).unwrap_or_default().trim_ascii();
                if line.is_empty() {
                    continue;
                }
                match read(line) {
                    LineRead::Messages(messages) => {
                        self.has_spoken = true;
                        return Ok(messages);
                    }
                    LineRead::Other => {
                        let count = self.link.add_stray(line);
                        if !self.has_spoken && count > MAX_LINES_BEFORE {
                            return Err(LinkBreak::NoMessages);
                        }
                    }
                    LineRead::Unreadable(why) => {
                        let line = line.get(..UNREADABLE_BYTES).unwrap_or(line);
                        let line = String::from_utf8_lossy(line).into_owned();
                        return Err(LinkBreak::Unreadable { why, line });
                    }
                }
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.is_empty() && self.buffer.capacity() > KEPT_CAPACITY {
                self.buffer.shrink_to(PIECE);
            }
            self.buffer.reserve(PIECE);
            let Some(stdout) = &mut self.stdout else { return Err(LinkBreak::OutputClosed) };
            if !matches!(stdout.read_buf(&mut self.buffer).await, Ok(1..)) {
                self.stdout = None;
                // The last line may have no line end.
                self.buffer.push(b'\n');
            }
        }
    }

    /// Start and end of the next line that is complete.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, LinkBreak> {
        let line = self.buffer.get(self.start..).unwrap_or_default();
        let rest = line.get(self.searched..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
        if end.unwrap_or(line.len()) > self.cap {
            return Err(LinkBreak::TooLarge);
        }
        self.searched = if end.is_some() { 0 } else { line.len() };
        Ok(end.map(|end| {
            let start = self.start;
            self.start += end + 1;
            (start, start + end)
        }))
    }
}

/// Writes messages to standard input until it is closed.
async fn write_messages(
    stdin: Option<ChildStdin>,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    breaks: mpsc::Sender<LinkBreak>,
) {
    let Some(mut stdin) = stdin else { return };
    while let Some(line) = queue.recv().await {
        queued.fetch_sub(1, Ordering::Relaxed);
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            let _ = breaks.try_send(LinkBreak::InputClosed);
            return;
        }
    }
}

/// Reads standard error to its end and keeps the last of it.
async fn read_errors(stderr: Option<ChildStderr>, tail: Arc<Mutex<OutputTail>>) {
    let Some(mut stderr) = stderr else { return };
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let piece = piece.get(..read).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

/// Owns the process group of a program and closes the link when it ends.
struct ProgramKeeper {
    group: ProcessGroup,
    link: Arc<ProgramLink>,
    failures: Arc<LinkFailures>,
    broken: mpsc::Receiver<LinkBreak>,
    stdout_ended: oneshot::Receiver<Infallible>,
    cap: usize,
}

/// How a program ended.
enum ProgramEnd {
    /// By itself, or the system's error.
    Exited(io::Result<ExitStatus>),
    /// The connection was broken.
    Broken(LinkBreak),
    /// It was to end with its run.
    Ended,
    /// Nobody uses it any more.
    Unused,
}

impl ProgramKeeper {
    /// Runs until the program has ended, then kills what is left of its group.
    async fn keep(
        mut self,
        stderr: Option<ChildStderr>,
        writer: impl Future<Output = ()> + Send + 'static,
    ) {
        let tail = Arc::new(Mutex::new(OutputTail::new(STDERR_BYTES)));
        // Dropping a set ends its tasks.
        let (mut reading, mut writing) = (JoinSet::new(), JoinSet::new());
        reading.spawn(read_errors(stderr, Arc::clone(&tail)));
        writing.spawn(writer);
        let mut end = tokio::select! {
            biased;
            status = self.group.wait() => ProgramEnd::Exited(status),
            () = self.link.over() => match self.link.is_ending() {
                true => ProgramEnd::Ended,
                false => ProgramEnd::Unused,
            },
            why = self.broken.recv() => {
                ProgramEnd::Broken(why.unwrap_or(LinkBreak::Closed))
            }
        };
        let may_end_itself = match &end {
            ProgramEnd::Ended => true,
            ProgramEnd::Broken(why) => !why.is_of_message(),
            ProgramEnd::Exited(_) | ProgramEnd::Unused => false,
        };
        if may_end_itself {
            // Closes its standard input.
            writing.abort_all();
            let exited = tokio::time::timeout(END_TIMEOUT, self.group.wait()).await;
            // Then the exit says more than the closed pipe.
            if let (Ok(status), ProgramEnd::Broken(why)) = (exited, &end)
                && *why != LinkBreak::Closed
            {
                end = ProgramEnd::Exited(status);
            }
        }
        drop(writing);
        let Self { group, link, failures, stdout_ended, cap, .. } = self;
        drop(group);
        if matches!(end, ProgramEnd::Exited(_) | ProgramEnd::Broken(_)) {
            let rest = async { tokio::join!(reading.join_next(), stdout_ended) };
            let _ = tokio::time::timeout(REST_TIMEOUT, rest).await;
        }
        let tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        let stray = link.stray_note(&failures);
        link.close(failure_of(&failures, &end, &tail.whole_lines(), &stray, cap));
    }
}

/// The failure of an attempt whose program ended like this.
fn failure_of(
    failures: &LinkFailures,
    end: &ProgramEnd,
    errors: &[u8],
    stray: &str,
    cap: usize,
) -> Box<AttemptFailed> {
    let what = match end {
        ProgramEnd::Ended | ProgramEnd::Unused | ProgramEnd::Broken(LinkBreak::Closed) => {
            return failures.ended();
        }
        ProgramEnd::Broken(LinkBreak::TooLarge) => {
            let what = format!("sent a message larger than {} and was ended", size(cap));
            let advice = "Ask for less, or raise max_bytes.";
            return failures.failure(FailureClass::TooLarge, &what, advice);
        }
        ProgramEnd::Broken(LinkBreak::Unreadable { why, line }) => {
            let line = failures.quoted(line);
            let what = format!("sent a message that cannot be read ({why}) and was ended: {line}");
            return failures.failure(FailureClass::BadResponse, &what, FIX_PROGRAM);
        }
        ProgramEnd::Broken(LinkBreak::NoMessages) => {
            let what = format!("writes no messages and was ended{stray}");
            return failures.failure(FailureClass::BadResponse, &what, FIX_PROGRAM);
        }
        ProgramEnd::Exited(Ok(status)) => format!("ended with {}", describe_exit(*status)),
        ProgramEnd::Exited(Err(error)) => format!("was ended early: {error}"),
        ProgramEnd::Broken(LinkBreak::OutputClosed) => "closed its standard output".to_owned(),
        ProgramEnd::Broken(LinkBreak::InputClosed) => "closed its standard input".to_owned(),
        ProgramEnd::Broken(LinkBreak::InputFull) => {
            format!("does not read its standard input: {MAX_QUEUED} messages wait")
        }
    };
    // First the shorter part: the text is cut at its end.
    let what = format!("{what}: {}{stray}", telling_line(errors, &failures.redactor));
    failures.failure(FailureClass::Tool, &what, SEE_WHY)
}
