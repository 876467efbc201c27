//! What the proxy of `roundtable guard` costs: each call once straight to a vendor in this process and once through
//! the proxy, in turns; the first event of a stream; a thousand streams at once; the memory of a call more.
//!
//! `cargo bench --bench guard` prints the medians and fails above its bounds. `-- calls=N` makes so
//! many calls. Without `--bench` (as `cargo test --benches` starts it) it only makes sure that everything answers.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Longest time that the proxy may add to a call, and to the first event of a stream.
const ADDED: Duration = Duration::from_millis(1);
/// Streams at once.
const STREAMS: usize = 1_000;
/// Events of each of them, and the time between two.
const EVENTS: usize = 20;
const APART: Duration = Duration::from_millis(50);
/// Most memory of one more call, in KiB: the run keeps a row of each.
const ONE_MORE: f64 = 4.0;

const REPLY: &str = r#"{"id":"c1","model":"gpt-5.1","choices":[{"index":0,"message":{"role":"assistant","content":"Within limits."},"finish_reason":"stop"}],"usage":{"prompt_tokens":212,"completion_tokens":41}}"#;
const EVENT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Within limits. \"}}]}\n\n";

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if args.get(1).map(String::as_str) == Some("client") {
        return runtime.block_on(client(args.get(2).ok_or("calls")?.parse()?));
    }
    let measures = args.iter().any(|arg| arg == "--bench");
    let given = args.iter().find_map(|arg| arg.strip_prefix("calls="));
    let calls = given.map(str::parse).transpose()?.unwrap_or(if measures { 100_000 } else { 20 });
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let direct = listener.local_addr()?;
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let home = tempfile::tempdir()?;
    let mut guard = Command::new(env!("CARGO_BIN_EXE_roundtable"));
    guard.args(["guard", "--"]).arg(std::env::current_exe()?).args(["client", &calls.to_string()]);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        guard.env(name, home.path());
    }
    guard.env("DIRECT", direct.to_string()).env("OPENAI_BASE_URL", format!("http://{direct}/v1"));
    let mut guard = guard.stdout(Stdio::piped()).spawn()?;
    let mut failed = false;
    let mut early = None;
    for line in BufReader::new(guard.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        let (what, value) = line.split_once(' ').ok_or("a figure")?;
        match what {
            "memory" => {
                let (resident, calls) = (resident_kib(&guard)?, value.parse::<u64>()?);
                let (before, after) = *early.get_or_insert((resident, calls));
                let more = resident.saturating_sub(before) as f64;
                let each = more / calls.saturating_sub(after).max(1) as f64;
                println!(
                    "memory after {calls} calls: {} MiB, {each:.1} KiB a call",
                    resident >> 10
                );
                failed |= each > ONE_MORE;
            }
            _ => {
                let micros: u64 = value.parse()?;
                println!("{what}: {:.3} ms", micros as f64 / 1e3);
                failed |= what.starts_with("added") && Duration::from_micros(micros) > ADDED;
            }
        }
    }
    let status = guard.wait()?;
    if !status.success() {
        return Err("the client failed".into());
    }
    Ok(if measures && failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn resident_kib(of: &Child) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", of.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// A vendor: a whole reply, or a stream for `/stream`.
async fn serve(mut stream: TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut got = Vec::new();
    while let Some((head, _)) = read_message(&mut stream, &mut got).await? {
        if !head.contains("/stream") {
            let length = REPLY.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all([head.as_bytes(), REPLY.as_bytes()].concat().as_slice()).await?;
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        for _ in 0..EVENTS {
            stream.write_all(format!("{:x}\r\n{EVENT}\r\n", EVENT.len()).as_bytes()).await?;
            tokio::time::sleep(APART).await;
        }
        stream.write_all(b"0\r\n\r\n").await?;
    }
    Ok(())
}

/// Reads the head of a message and its body, if a length says how long it is. `None`: the other end has closed.
async fn read_message(
    stream: &mut TcpStream,
    got: &mut Vec<u8>,
) -> Outcome<Option<(String, usize)>> {
    loop {
        if let Some(end) = got.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(Ok(0), |it| it.trim().parse::<usize>())?;
            while got.len() < end + 4 + length {
                if stream.read_buf(got).await? == 0 {
                    return Ok(None);
                }
            }
            got.drain(..end + 4 + length);
            return Ok(Some((head, length)));
        }
        if stream.read_buf(got).await? == 0 {
            return Ok(None);
        }
    }
}

/// A connection to a vendor, straight or through the proxy.
struct Connection {
    stream: TcpStream,
    path: String,
    host: String,
    got: Vec<u8>,
}

impl Connection {
    async fn open(base: &str) -> Outcome<Self> {
        let (host, path) = base.trim_start_matches("http://").split_once('/').unwrap_or((base, ""));
        let stream = TcpStream::connect(host.parse::<SocketAddr>()?).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, path: format!("/{path}"), host: host.to_owned(), got: Vec::new() })
    }

    async fn send(&mut self, path: &str, nth: usize) -> Outcome<()> {
        let text = "Refund charge ch_2, please. ".repeat(30);
        let body = format!(
            r#"{{"model":"gpt-5.1","messages":[{{"role":"user","content":"{nth} {text}"}}]}}"#
        );
        let (host, length, base) = (&self.host, body.len(), &self.path);
        let head = format!(
            "POST {base}{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        self.stream.write_all([head, body].concat().as_bytes()).await?;
        Ok(())
    }

    async fn call(&mut self, nth: usize) -> Outcome<Duration> {
        let began = Instant::now();
        self.send("", nth).await?;
        let (head, _) = read_message(&mut self.stream, &mut self.got).await?.ok_or("closed")?;
        match head.starts_with("http/1.1 200") {
            true => Ok(began.elapsed()),
            false => Err(head.into()),
        }
    }

    /// A stream: how long its first event took, and how long all of it.
    async fn streamed(&mut self, nth: usize) -> Outcome<[Duration; 2]> {
        let began = Instant::now();
        self.send("/stream", nth).await?;
        let mut first = None;
        let mut got = Vec::new();
        while !got.ends_with(b"0\r\n\r\n") {
            if self.stream.read_buf(&mut got).await? == 0 {
                return Err("the stream broke off".into());
            }
            if got.windows(5).any(|it| it == b"data:") {
                first.get_or_insert_with(|| began.elapsed());
            }
        }
        Ok([first.ok_or("no event")?, began.elapsed()])
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The guarded program: it measures both ways, in turns.
async fn client(calls: usize) -> Outcome<ExitCode> {
    let direct = format!("http://{}/v1", std::env::var("DIRECT")?);
    let guarded = std::env::var("OPENAI_BASE_URL")?;
    let print = |what: &str, time: Duration| println!("{what} {}", time.as_micros());
    let (mut straight, mut through) =
        (Connection::open(&direct).await?, Connection::open(&guarded).await?);
    let pairs = calls.min(2_000);
    let (mut alone, mut passed) = (Vec::new(), Vec::new());
    for nth in 0..pairs {
        alone.push(straight.call(nth).await?);
        passed.push(through.call(nth).await?);
    }
    let (alone, passed) = (median(alone), median(passed));
    print("direct_call", alone);
    print("added_to_a_call", passed.saturating_sub(alone));
    let (mut alone, mut passed) = (Vec::new(), Vec::new());
    for nth in 0..pairs.min(20) {
        alone.push(straight.streamed(nth).await?[0]);
        passed.push(through.streamed(nth).await?[0]);
    }
    let (alone, passed) = (median(alone), median(passed));
    print("direct_first_event", alone);
    print("added_to_the_first_event", passed.saturating_sub(alone));
    let streams = if calls < STREAMS { calls } else { STREAMS };
    let at_once = (0..streams).map(|nth| {
        let guarded = guarded.clone();
        async move { Connection::open(&guarded).await?.streamed(nth).await }
    });
    let all = try_join_all(at_once).await?;
    print("all_streams_at_once", all.iter().map(|it| it[1]).max().unwrap_or_default());
    for nth in 0..calls {
        through.call(nth).await?;
        if nth + 1 == calls / 10 || nth + 1 == calls {
            println!("memory {}", nth + 1);
        }
    }
    Ok(ExitCode::SUCCESS)
}
