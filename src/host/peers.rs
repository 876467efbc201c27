//! The other processes of this user on this machine: their runs are listed, followed and steered through
//! sockets, without a server. Each process that plays runs listens at a socket in one folder that only
//! its user can open. A process that starts announces its socket to the others, so none of them polls. The
//! socket of a killed process is removed by the next process that finds it.
//!
//! A connection has one [`Request`], a line of JSON, and then replies, a line each.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep_until, timeout};

use super::Dirs;
use crate::base::private_file::make_dir;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::sha256_of_text;
use crate::base::time::millis;
use crate::engine::{Engine, RunHandle};
use crate::log::bus::LiveTextReader;
use crate::log::event::{Answer, Command, Event, EventKind, QuestionId, RunId, Seq, SpanId};
use crate::net::error::size;

/// Longest path of a socket, in bytes; the smallest limit of the systems.
const MAX_PATH: usize = 103;

/// Longest request, in bytes: an answer has arguments of a call, or a text.
const MAX_REQUEST: u64 = 2 << 20;

/// Longest reply, in bytes: an event has all of a model's reply or of a tool's result.
const MAX_REPLY: usize = 256 << 20;

/// Longest reply to a request that is not for a log, in bytes.
const MAX_SHORT_REPLY: usize = 4 << 20;

/// Timeout of a request, and of the reply to it.
const REPLY: Duration = Duration::from_secs(5);

/// Timeout of one line to a client. A client that does not read is disconnected.
const WRITE: Duration = Duration::from_secs(30);

/// How long a command may take to be stored before its sender learns that it was taken.
const STORED: Duration = Duration::from_secs(15);

/// Most connections without a request: the oldest makes room for a new one, so that those of a hostile
/// program do not keep others out, and do not use up the files of the process.
const MAX_PENDING: usize = 32;

/// Most connections with a request.
const MAX_OPEN: usize = 128;

/// Most runs of a process that are listed.
const MAX_RUNS: usize = 10_000;

/// Events read at a time.
const BATCH: usize = 256;

/// Least time between two texts of a span.
const TEXT_GAP: Duration = Duration::from_millis(50);

/// What a process asks of another one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// The runs that it plays now, then those that start later.
    Runs,
    /// The log of a run from its first event, and the text of replies while they are received.
    Follow { run: RunId },
    /// A command to a run. `by`: who sends it.
    Command { run: RunId, by: String, command: Box<Command> },
    /// What the script of the scenario would answer to a question.
    Suggest { run: RunId, id: QuestionId },
    /// A process has started, and listens at this socket.
    Announce { socket: String },
}

/// A line of the answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Run(PeerRun),
    /// The present runs or events were sent; what follows is new.
    UpToDate,
    /// The clock of the run that is followed, in microseconds.
    Clock(u64),
    /// A line of the log.
    Event(Box<RawValue>),
    Text {
        span: SpanId,
        text: Option<String>,
    },
    /// The command is in the log, as the command of this number.
    Taken(u64),
    Suggested(Option<Answer>),
    Refused(String),
}

/// A run that a process plays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRun {
    pub run: RunId,
    /// Number of its process.
    pub pid: u32,
    /// Kind of its last event; empty: it has none.
    pub last: String,
    /// Age of that event in milliseconds.
    pub silent_ms: u64,
}

impl PeerRun {
    fn of(run: &RunHandle) -> Self {
        let (bus, mut last) = (run.bus(), Vec::new());
        bus.reader(Seq(bus.len().saturating_sub(1))).take(&mut last, 1);
        let silent = last.first().map_or(Duration::ZERO, |event| bus.now().since(event.at));
        Self {
            run: run.id().clone(),
            pid: std::process::id(),
            last: last.first().map_or_else(String::new, |event| event.kind.name().to_owned()),
            silent_ms: millis(silent),
        }
    }
}

/// What a follower of a run learns.
#[derive(Debug)]
pub enum PeerNews {
    /// The next event.
    Event(Arc<Event>),
    /// Everything that the run has published is here.
    UpToDate,
    /// The text of a reply so far; `None`: the reply is in the log, or was dropped.
    Text(SpanId, Option<String>),
}

/// The socket of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(PathBuf);

impl Peer {
    async fn connect(&self) -> io::Result<UnixStream> {
        let connected = timeout(REPLY, UnixStream::connect(&self.0)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if stream.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // Its process was killed. No other process uses its name.
            let _ = fs::remove_file(&self.0);
        }
        stream
    }

    async fn request(&self, request: &Request) -> Result<Replies, Refused> {
        let stream = self.connect().await.or_refuse(GONE)?;
        if !is_own(&stream) {
            return Err(Refused::new("the socket is not one of this user"));
        }
        let (read, mut write) = stream.into_split();
        write_line(&mut write, request).await.or_refuse(GONE)?;
        let most = match request {
            Request::Follow { .. } => MAX_REPLY,
            _ => MAX_SHORT_REPLY,
        };
        Ok(Replies { read: BufReader::new(read), line: Vec::new(), most, _write: write })
    }

    /// Follows its runs.
    ///
    /// # Errors
    /// The process has ended, or does not answer.
    pub async fn runs(&self) -> Result<PeerRuns, Refused> {
        self.request(&Request::Runs).await.map(PeerRuns)
    }

    /// The runs that it plays now; none if it has ended or does not answer.
    async fn present_runs(&self) -> Result<Vec<PeerRun>, Refused> {
        let mut found = Vec::new();
        let Ok(mut replies) = self.request(&Request::Runs).await else { return Ok(found) };
        loop {
            match timeout(REPLY, replies.next()).await {
                Ok(Ok(Some(Reply::Run(run)))) if found.len() < MAX_RUNS => found.push(run),
                Ok(Ok(Some(refused @ Reply::Refused(_)))) => return Err(refused.refusal()),
                _ => return Ok(found),
            }
        }
    }

    /// Follows a run from its first event.
    ///
    /// # Errors
    /// The process has ended, or does not play this run.
    pub async fn follow(&self, run: &RunId) -> Result<PeerLog, Refused> {
        let mut replies = self.request(&Request::Follow { run: run.clone() }).await?;
        match replies.answer().await? {
            Reply::Clock(us) => Ok(PeerLog { replies, age: Duration::from_micros(us) }),
            other => Err(other.refusal()),
        }
    }

    /// Sends a command to a run, and waits until it is stored, if the run is. Returns its number in
    /// `command.taken`.
    ///
    /// # Errors
    /// The process has ended, or the run has.
    pub async fn send(&self, run: &RunId, command: &Command, by: &str) -> Result<u64, Refused> {
        let (run, by, command) = (run.clone(), by.to_owned(), Box::new(command.clone()));
        let mut replies = self.request(&Request::Command { run, by, command }).await?;
        match timeout(STORED + REPLY, replies.next()).await.or_refuse(SILENT)?? {
            Some(Reply::Taken(place)) => Ok(place),
            Some(other) => Err(other.refusal()),
            None => Err(Refused::new(GONE)),
        }
    }

    /// What the script of the scenario of a run would answer to a question; `None`: nothing.
    ///
    /// # Errors
    /// The process has ended, or the run has.
    pub async fn suggestion(&self, run: &RunId, id: QuestionId) -> Result<Option<Answer>, Refused> {
        let mut replies = self.request(&Request::Suggest { run: run.clone(), id }).await?;
        match replies.answer().await? {
            Reply::Suggested(answer) => Ok(answer),
            other => Err(other.refusal()),
        }
    }
}

/// What is wrong where a process does not answer any more.
const GONE: &str = "the process that plays it has ended";
const SILENT: &str = "the process that plays it does not answer";
const TOO_LONG: &str = "the process that plays it sends a reply without an end: more than";
const OTHER_VERSION: &str = "another version of roundtable plays it";

impl Reply {
    fn refusal(self) -> Refused {
        match self {
            Self::Refused(why) => Refused::new(why),
            _ => Refused::new(OTHER_VERSION),
        }
    }
}

/// The replies to a request.
struct Replies {
    read: BufReader<OwnedReadHalf>,
    /// The part of the next reply that has been read.
    line: Vec<u8>,
    /// Most bytes of a reply.
    most: usize,
    /// Its end would end the request.
    _write: OwnedWriteHalf,
}

impl Replies {
    /// The next reply; `None`: the process has ended. Cancel safe.
    async fn next(&mut self) -> Result<Option<Reply>, Refused> {
        loop {
            let bytes = self.read.fill_buf().await.or_refuse(GONE)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + length > self.most {
                return Err(Refused::new(format!("{TOO_LONG} {}", size(self.most))));
            }
            self.line.extend_from_slice(bytes.get(..length).unwrap_or_default());
            self.read.consume(length);
            if end.is_some() {
                let reply = serde_json::from_slice(&self.line);
                self.line = Vec::new();
                return reply.or_refuse(OTHER_VERSION).map(Some);
            }
        }
    }

    async fn answer(&mut self) -> Result<Reply, Refused> {
        let reply = timeout(REPLY, self.next()).await.or_refuse(SILENT)??;
        reply.ok_or_else(|| Refused::new(GONE))
    }
}

/// Follows the runs of a process.
pub struct PeerRuns(Replies);

impl PeerRuns {
    /// The next run; `None`: the process has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<PeerRun> {
        loop {
            match self.0.next().await {
                Ok(Some(Reply::Run(run))) => return Some(run),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// Follows a run.
pub struct PeerLog {
    replies: Replies,
    /// The clock of the run when it was requested.
    pub age: Duration,
}

impl PeerLog {
    /// What comes next; `None`: the run, or its process, has ended. Cancel safe.
    ///
    /// # Errors
    /// What came cannot be read.
    pub async fn next(&mut self) -> Result<Option<PeerNews>, Refused> {
        loop {
            return Ok(match self.replies.next().await? {
                Some(Reply::Event(line)) => {
                    let event = Event::from_line(line.get());
                    Some(PeerNews::Event(Arc::new(event.or_refuse(OTHER_VERSION)?)))
                }
                Some(Reply::UpToDate) => Some(PeerNews::UpToDate),
                Some(Reply::Text { span, text }) => Some(PeerNews::Text(span, text)),
                Some(_) => continue,
                None => None,
            });
        }
    }
}

/// The folder of the sockets of this user.
#[derive(Clone, Debug)]
pub struct PeerFolder(PathBuf);

impl PeerFolder {
    /// Finds the folder, and makes it if it is missing.
    ///
    /// # Errors
    /// It cannot be made, or belongs to somebody else.
    pub fn open() -> Result<Self, Refused> {
        let dirs = Dirs::find().ok_or_else(|| Refused::new("there is no home directory"))?;
        Self::in_state(&dirs.state).or_refuse("other processes cannot see the runs of this one")
    }

    /// The folder for this folder of the state. Several users may share that one. Where the path of a
    /// socket would be too long, the folder is one of temporary files, named after it.
    fn in_state(state: &Path) -> io::Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let usual = state.join(format!("live-{uid}"));
        let path = match usual.as_os_str().len() + 1 + NAME <= MAX_PATH {
            true => usual,
            false => {
                let hash = sha256_of_text(&state.to_string_lossy());
                let hash = hash.get(..12).unwrap_or_default();
                Path::new("/tmp").join(format!("roundtable-{uid}-{hash}"))
            }
        };
        make_dir(&path)?;
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != uid {
            let text = format!("{} belongs to another user", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self(path))
    }

    /// The sockets in it. A process may have ended meanwhile.
    fn peers(&self) -> Vec<Peer> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        names.filter_map(|name| self.peer(&name)).collect()
    }

    /// The socket with this name, which another process may have sent.
    fn peer(&self, name: &str) -> Option<Peer> {
        let fits = name.len() == NAME && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| Peer(self.0.join(name)))
    }

    /// The runs that other processes play now, with their processes, and why a process does not say its runs,
    /// if one does not.
    pub async fn runs(&self) -> (Vec<(Peer, PeerRun)>, Option<Refused>) {
        let (mut found, mut refused) = (Vec::new(), None);
        let asked =
            self.peers().into_iter().map(|peer| async { (peer.present_runs().await, peer) });
        for (runs, peer) in futures::future::join_all(asked).await {
            match runs {
                Ok(runs) => found.extend(runs.into_iter().map(|run| (peer.clone(), run))),
                Err(why) => refused = Some(why),
            }
        }
        (found, refused)
    }
}

/// Characters of the name of a socket.
const NAME: usize = 8;

/// Lets other processes of this user see and steer the runs of an engine, until it is dropped.
pub struct PeerServer {
    path: PathBuf,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The other processes, and those that start later.
pub type FoundPeers = mpsc::UnboundedReceiver<Peer>;

impl PeerServer {
    /// Listens, and announces the socket to the other processes. Must be called within a runtime.
    ///
    /// # Errors
    /// No socket can be made. The runs of this process are not seen then.
    pub fn start(engine: &Engine, folder: &PeerFolder) -> Result<(Self, FoundPeers), Refused> {
        let name = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let name = name.get(..NAME).unwrap_or_default().to_owned();
        let path = folder.0.join(&name);
        // Others remove a socket without a listener, so it gets its name after it has one.
        let unnamed = folder.0.join(format!("{name}-"));
        let unheard = "other processes cannot see the runs of this one";
        let listener = UnixListener::bind(&unnamed).or_refuse(unheard)?;
        fs::rename(&unnamed, &path).or_refuse(unheard)?;
        let (found, peers) = mpsc::unbounded_channel();
        let others = folder.peers();
        let announced = announce(others, name, path.clone(), found.clone());
        let server = Arc::new(Server {
            engine: engine.clone(),
            folder: folder.clone(),
            found,
            open: Semaphore::new(MAX_OPEN),
        });
        let tasks = vec![tokio::spawn(accept(server, listener)), tokio::spawn(announced)];
        Ok((Self { path, tasks }, peers))
    }
}

/// Announces the socket of this process to the others.
async fn announce(
    others: Vec<Peer>,
    name: String,
    own: PathBuf,
    found: mpsc::UnboundedSender<Peer>,
) {
    for peer in others.into_iter().filter(|peer| peer.0 != own) {
        let (found, name) = (found.clone(), name.clone());
        tokio::spawn(async move {
            if peer.request(&Request::Announce { socket: name }).await.is_ok() {
                let _ = found.send(peer);
            }
        });
    }
}

/// What the connections of a process share.
struct Server {
    engine: Engine,
    folder: PeerFolder,
    found: mpsc::UnboundedSender<Peer>,
    open: Semaphore,
}

async fn accept(server: Arc<Server>, listener: UnixListener) {
    let mut pending: VecDeque<AbortHandle> = VecDeque::new();
    let (asked, mut requests) = mpsc::channel::<(UnixStream, Request)>(1);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) if is_own(&stream) => stream,
                    Ok(_) => continue,
                    Err(error) => {
                        // Such as too many open files.
                        tracing::warn!("another process cannot connect: {error}");
                        tokio::time::sleep(TEXT_GAP).await;
                        continue;
                    }
                };
                pending.retain(|task| !task.is_finished());
                if pending.len() >= MAX_PENDING {
                    pending.pop_front().inspect(AbortHandle::abort);
                }
                let asked = asked.clone();
                let read = tokio::spawn(async move {
                    let mut stream = stream;
                    if let Some(request) = read_request(&mut stream).await {
                        let _ = asked.send((stream, request)).await;
                    }
                });
                pending.push_back(read.abort_handle());
            }
            Some((stream, request)) = requests.recv() => {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    let served = match server.open.try_acquire() {
                        Ok(_open) => serve(&server, stream, request).await,
                        Err(_) => {
                            let why = format!("too many connections: {MAX_OPEN} are open");
                            refuse(stream.into_split().1, why).await
                        }
                    };
                    if let Err(error) = served {
                        tracing::debug!("another process is not served any more: {error}");
                    }
                });
            }
        }
    }
}

/// Whether the process at the other end belongs to the user of this one.
fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::getuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// The request of a connection; `None`: it sends none, or one that cannot be read.
async fn read_request(stream: &mut UnixStream) -> Option<Request> {
    let mut line = Vec::new();
    let mut limited = BufReader::new(stream.take(MAX_REQUEST));
    timeout(REPLY, limited.read_until(b'\n', &mut line)).await.ok()?.ok()?;
    match serde_json::from_slice(&line) {
        Ok(request) => Some(request),
        Err(error) => {
            tracing::debug!("a request cannot be read: {error}");
            let why = "another version of roundtable plays the run, or this is no request";
            let _ = write_line(stream, &Reply::Refused(why.to_owned())).await;
            None
        }
    }
}

async fn write_line(
    out: &mut (impl tokio::io::AsyncWrite + Unpin),
    line: &impl Serialize,
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    timeout(WRITE, out.write_all(&bytes)).await.map_err(|_| io::ErrorKind::TimedOut)?
}

async fn serve(server: &Server, stream: UnixStream, request: Request) -> io::Result<()> {
    let (read, write) = stream.into_split();
    match request {
        Request::Runs => serve_runs(&server.engine, read, write).await,
        Request::Follow { run } => match live_run(&server.engine, &run) {
            Ok(run) => serve_log(&run, read, write).await,
            Err(why) => refuse(write, why).await,
        },
        Request::Command { run, by, command } => {
            let taken = live_run(&server.engine, &run).and_then(|run| {
                let taken = run.take_remote(*command, &by)?;
                Ok((run, taken))
            });
            match taken {
                Ok((run, place)) => {
                    let _ = timeout(STORED, run.bus().wait_until_stored()).await;
                    let mut write = write;
                    write_line(&mut write, &Reply::Taken(place)).await
                }
                Err(why) => refuse(write, why).await,
            }
        }
        Request::Suggest { run, id } => match live_run(&server.engine, &run) {
            Ok(run) => {
                let mut write = write;
                write_line(&mut write, &Reply::Suggested(run.suggested_answer(id))).await
            }
            Err(why) => refuse(write, why).await,
        },
        Request::Announce { socket } => {
            if let Some(peer) = server.folder.peer(&socket) {
                let _ = server.found.send(peer);
            }
            Ok(())
        }
    }
}

async fn refuse(mut write: OwnedWriteHalf, why: String) -> io::Result<()> {
    write_line(&mut write, &Reply::Refused(why)).await
}

fn has_ended(run: &RunId) -> String {
    format!("{run} has ended")
}

fn live_run(engine: &Engine, run: &RunId) -> Result<RunHandle, String> {
    match engine.run(run) {
        Some(found) if !found.is_over() => Ok(found),
        Some(_) => Err(has_ended(run)),
        None => Err(format!("this process does not play {run}")),
    }
}

/// Sends the runs that are played now, then those that start.
async fn serve_runs(
    engine: &Engine,
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
) -> io::Result<()> {
    let log = engine.log();
    let mut begun = log.reader(Seq(log.len()));
    for run in engine.runs().iter().filter(|run| !run.is_over()) {
        write_line(&mut write, &Reply::Run(PeerRun::of(run))).await?;
    }
    write_line(&mut write, &Reply::UpToDate).await?;
    let mut events = Vec::new();
    loop {
        let came = tokio::select! {
            came = begun.next_batch(&mut events, BATCH) => came,
            () = until_closed(&mut read) => 0,
        };
        if came == 0 {
            return Ok(());
        }
        for event in events.drain(..) {
            if let EventKind::SessionRunStarted { run, .. } = &event.kind
                && let Some(run) = engine.run(run)
            {
                write_line(&mut write, &Reply::Run(PeerRun::of(&run))).await?;
            }
        }
    }
}

/// Sends the log of a run, and the text of its replies while they are received.
async fn serve_log(
    run: &RunHandle,
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
) -> io::Result<()> {
    let bus = run.bus();
    let clock = u64::try_from(bus.now().duration().as_micros()).unwrap_or(u64::MAX);
    write_line(&mut write, &Reply::Clock(clock)).await?;
    let (mut reader, mut events) = (bus.reader(Seq(0)), Vec::new());
    let (mut live, mut next_text) = (LiveTextReader::new(bus), Instant::now());
    let mut is_behind = true;
    loop {
        let texts = async {
            sleep_until(next_text).await;
            live.changes().await
        };
        tokio::select! {
            biased;
            came = reader.next_batch(&mut events, BATCH), if !is_behind || reader.position().0 < bus.len() => {
                if came == 0 {
                    return Ok(());
                }
                for event in events.drain(..) {
                    let line = RawValue::from_string(event.to_line()?)?;
                    write_line(&mut write, &Reply::Event(line)).await?;
                }
            }
            changes = texts, if !is_behind => {
                next_text = Instant::now() + TEXT_GAP;
                for (span, text) in changes {
                    write_line(&mut write, &Reply::Text { span, text }).await?;
                }
            }
            () = until_closed(&mut read) => return Ok(()),
            () = std::future::ready(()), if is_behind => {
                is_behind = false;
                write_line(&mut write, &Reply::UpToDate).await?;
            }
        }
    }
}

/// Waits until the other end is closed. It sends nothing after its request.
async fn until_closed(read: &mut OwnedReadHalf) {
    let mut bytes = [0; 64];
    while matches!(read.read(&mut bytes).await, Ok(1..)) {}
}
