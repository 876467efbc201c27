//! What a command that serves one client on standard input and output is made of: the pipes, the engine and
//! the store of its runs, and why it ends.
//!
//! Standard output has messages of the protocol and nothing else. Two threads of their own read and write:
//! neither a silent client nor one that does not read blocks a worker of the runtime.

use std::io;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::args::Global;
use super::exit::Exit;
use super::headless::on_stop;
#[cfg(unix)]
use super::launch::serve_peers;
use super::launch::{FOLLOWED, OnStoreFailure, StoreOfCommand, engine_settings, print_notes};
use super::streams;
use super::streams::{print_message, print_on_stderr};
use crate::base::json_text::repaired;
use crate::engine::Engine;
use crate::host::day_account::user_engine;
#[cfg(unix)]
use crate::host::peers::{FoundPeers, PeerServer};
use crate::host::traced_runs::traced;
use crate::log::event::safe_json;

/// Most runs, or sessions of runs, that a client plays at the same time.
pub const MAX_PLAYED: usize = 8;

/// Longest message of a client, in bytes.
const MAX_LINE: u64 = 4 << 20;

/// Bytes between a thread and the service.
const PIPE: usize = 64 << 10;

/// Timeout for the last messages to be written.
const WRITTEN: Duration = Duration::from_secs(1);

/// Why the service ends. The first reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceEnd {
    /// The client has closed its end.
    Input,
    /// A message cannot be read or written.
    Broken,
    Signal,
}

type EndSender = watch::Sender<Option<ServiceEnd>>;

fn end(ends: &EndSender, why: ServiceEnd) {
    ends.send_if_modified(|end| {
        let is_first = end.is_none();
        end.get_or_insert(why);
        is_first
    });
}

/// A service on standard input and output, with the engine that plays its runs.
pub struct StdioService {
    pub engine: Engine,
    pub stored: StoreOfCommand,
    /// Why it ends; `None`: it does not.
    pub ended: watch::Receiver<Option<ServiceEnd>>,
    ends: EndSender,
    written: Option<oneshot::Receiver<()>>,
    /// `attach`, `ctl` and `answer` reach the runs.
    #[cfg(unix)]
    _peers: Option<(PeerServer, FoundPeers)>,
}

impl StdioService {
    /// Opens the store and the engine. `how`: for a person who starts the command in a terminal.
    ///
    /// # Errors
    /// The exit code: the command cannot be served, which has been printed.
    pub fn open(global: &Global, how: &str) -> Result<Self, Exit> {
        if io::stdin().is_terminal() {
            print_on_stderr(how, false);
            return Err(Exit::Usage);
        }
        streams::check_stdout()?;
        let (ends, ended) = watch::channel(None);
        let stored = StoreOfCommand::open(global, OnStoreFailure::Stop);
        print_notes(&stored.problems);
        // Without a store a run is read from memory only.
        let window = if stored.keeper().is_some() { FOLLOWED } else { u64::MAX };
        let engine = user_engine(engine_settings(window), traced(stored.keeper()));
        #[cfg(unix)]
        let _peers = serve_peers(&engine).ok();
        Ok(Self {
            engine,
            stored,
            ended,
            ends,
            written: None,
            #[cfg(unix)]
            _peers,
        })
    }

    /// The ends of standard input and output for the service. From now on a signal ends it.
    pub fn connect(&mut self) -> (DuplexStream, DuplexStream) {
        let of_signal = self.ends.clone();
        let on_signal = move || end(&of_signal, ServiceEnd::Signal);
        if let Err(error) = on_stop(on_signal, Exit::Cancelled.code()) {
            tracing::warn!("signals end the program immediately: {error}");
        }
        let (input, written, output) = open_pipes(&self.ends);
        self.written = Some(written);
        (input, output)
    }

    /// Waits for a signal or for a message that cannot be read or written: then the client is not waited for.
    pub fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            let at_once = [Some(ServiceEnd::Signal), Some(ServiceEnd::Broken)];
            let _ = ended.wait_for(|end| at_once.contains(end)).await;
        }
    }

    /// Ends the runs, and waits until they are stored.
    pub async fn end_runs(&self) {
        end(&self.ends, ServiceEnd::Input);
        let is_signal = *self.ended.borrow() == Some(ServiceEnd::Signal);
        if let Some(keeper) = self.engine.keeper().filter(|_| is_signal) {
            keeper.end_waits();
        }
        self.engine.shutdown().await;
        print_notes(&self.stored.finish().await);
    }

    /// Waits until all output is written. `exit`: the exit code if the connection did not break.
    pub async fn finish(self, exit: Exit) -> Exit {
        if let Some(written) = self.written {
            let _ = timeout(WRITTEN, written).await;
        }
        match *self.ended.borrow() {
            Some(ServiceEnd::Broken) => Exit::Stopped,
            _ => exit,
        }
    }
}

/// The ends of standard input and output for the service, and a receiver that ends once everything is
/// written.
fn open_pipes(ends: &EndSender) -> (DuplexStream, oneshot::Receiver<()>, DuplexStream) {
    let (input, to_service) = tokio::io::duplex(PIPE);
    let (output, from_service) = tokio::io::duplex(PIPE);
    let (done, written) = oneshot::channel();
    let (runtime, of_input, of_output) = (Handle::current(), ends.clone(), ends.clone());
    let writer = runtime.clone();
    thread::spawn(move || {
        let mut to_service = to_service;
        let why = read_messages(&runtime, &mut to_service);
        // Before the service sees its end.
        end(&of_input, why);
        drop(to_service);
    });
    thread::spawn(move || {
        if let Err(error) = write_messages(&writer, from_service) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                print_message(&format!("cannot write to standard output: {error}"));
            }
            end(&of_output, ServiceEnd::Broken);
        }
        let _ = done.send(());
    });
    (input, written, output)
}

/// Passes on each line of standard input, repaired: a message that cannot be read would get no answer.
fn read_messages(runtime: &Handle, to: &mut DuplexStream) -> ServiceEnd {
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdin.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line) {
            Ok(0) => return ServiceEnd::Input,
            Ok(_) if line.len() as u64 > MAX_LINE => {
                print_message("the connection ends: a message of the client has more than 4 MB");
                return ServiceEnd::Broken;
            }
            Ok(_) => {}
            Err(error) => {
                print_message(&format!("cannot read standard input: {error}"));
                return ServiceEnd::Broken;
            }
        }
        let message = str::from_utf8(&line).map(repaired);
        let message = message.as_ref().map_or(&line[..], |message| message.as_bytes());
        if runtime.block_on(to.write_all(message)).is_err() {
            return ServiceEnd::Input;
        }
    }
}

/// Writes each message of the service. What models and files say in it is escaped: some clients show the
/// messages in a terminal.
fn write_messages(runtime: &Handle, from: DuplexStream) -> io::Result<()> {
    let (mut from, mut out) = (BufReader::new(from), streams::stdout_data());
    let mut line = Vec::new();
    loop {
        line.clear();
        if runtime.block_on(from.read_until(b'\n', &mut line))? == 0 {
            return Ok(());
        }
        out.write_all(safe_json::escape(&String::from_utf8_lossy(&line), true).as_bytes())?;
        out.flush()?;
    }
}
