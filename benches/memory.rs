//! The memory of a run that goes on and on: a storm of 2,000 agents without a pause, through the
//! program itself, headless in each of its formats and in the dashboard on a terminal of its own, whose keys
//! are timed meanwhile. Linux only: it reads the peak from `/proc`.
//!
//! `cargo bench --bench memory` takes some minutes. `FACTS=200000 cargo bench --bench memory` is a
//! quick look; a format's name after `--` measures that alone, `dashboard` the dashboard.

mod paired;
#[path = "../tests/support/storm.rs"]
mod storm;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use paired::{held, own_folders, report};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;

const AGENTS: u64 = 2_000;
/// Facts of one call.
const CALL: u64 = 4;
/// The most that a headless run may take, and the dashboard, in MB.
const HEADLESS: f64 = 200.0;
const DASHBOARD: f64 = 600.0;
/// The longest that a key may wait for its frame, in milliseconds.
const KEY: f64 = 50.0;

fn main() -> ExitCode {
    let facts = std::env::var("FACTS").ok().and_then(|facts| facts.parse().ok());
    let turns = (facts.unwrap_or(5_000_000u64) / (AGENTS * CALL)).clamp(1, 10_000);
    let only: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let wanted = |what: &str| only.is_empty() || only.iter().any(|it| it == what);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("storm.toml"), storm::text(AGENTS as u32, turns as u32))
        .expect("a scenario");
    println!("{} facts of {AGENTS} agents, {turns} turns each", turns * AGENTS * CALL + 2);
    let mut ratios = Vec::new();
    let mut outcomes = Vec::new();
    // Markdown is of research, which a plan bounds.
    for format in ["json", "jsonl", "text"] {
        if !wanted(format) {
            continue;
        }
        let (peak, took, outcome) = headless(folder.path(), format);
        outcomes.extend(outcome);
        let measured = format!("{peak:.0} MB, {:.1} s", took.as_secs_f64());
        report(&format!("headless, --format {format}"), &measured, "200 MB");
        ratios.push(("headless", peak / HEADLESS, 1.0));
    }
    if wanted("dashboard") {
        let shown = dashboard(folder.path());
        outcomes.push(shown.outcome);
        let measured = format!("{:.0} MB, {:.1} s", shown.peak, shown.took.as_secs_f64());
        report("dashboard, 120x36", &measured, "600 MB");
        let at = |percent: usize| shown.keys[(shown.keys.len() - 1) * percent / 100];
        let keys = shown.keys.len();
        let measured = format!("{:.1} / {:.1} / {:.1} ms", at(50), at(95), at(100));
        report(&format!("a key until its frame, {keys} keys: p50 / p95 / max"), &measured, "50 ms");
        ratios.push(("dashboard", shown.peak / DASHBOARD, 1.0));
        ratios.push(("keys, p95", at(95) / KEY, 1.0));
    }
    for outcome in &outcomes {
        assert!(is_whole(outcome, turns), "{outcome}");
    }
    println!("{} outcomes, all of them whole and the same", outcomes.len());
    held(&ratios)
}

/// Whether every agent got an answer in every turn: the outcome of the run without any bound.
fn is_whole(outcome: &Value, turns: u64) -> bool {
    let rows = outcome["history"].as_array().map(Vec::as_slice).unwrap_or_default();
    outcome["stop_reason"] == "success"
        && outcome["usage"]["calls"] == AGENTS * turns
        && outcome["summary"]["answered"] == AGENTS * turns
        && rows.len() as u64 == AGENTS
        && rows.iter().all(|row| row["answered"] == turns && row["turn"] == turns)
}

/// The most memory that a process has had so far, in MB.
fn peak(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Waits until a process has ended; gives its peak.
fn peak_until_end(child: &mut Child) -> f64 {
    let mut most = 0.0;
    while child.try_wait().expect("a child").is_none() {
        most = peak(child.id()).unwrap_or(most).max(most);
        thread::sleep(Duration::from_millis(20));
    }
    most
}

fn headless(folder: &Path, format: &str) -> (f64, Duration, Option<Value>) {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundtable"))
        .args(["run", "storm.toml", "--instant", "--format", format])
        .current_dir(folder)
        .envs(own_folders(folder))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut out = child.stdout.take().expect("a pipe");
    // Read as a pipe is, and only the end of it kept.
    let read = thread::spawn(move || {
        let (mut tail, mut chunk) = (Vec::new(), vec![0; 1 << 20]);
        while let Ok(read @ 1..) = out.read(&mut chunk) {
            tail.extend_from_slice(&chunk[..read]);
            if tail.len() > 4 << 20 {
                tail.drain(..tail.len() - (2 << 20));
            }
        }
        String::from_utf8_lossy(&tail).into_owned()
    });
    let peak = peak_until_end(&mut child);
    let tail = read.join().expect("a reader");
    let outcome = match format {
        "json" => serde_json::from_str(&tail).ok(),
        "jsonl" => tail.lines().last().and_then(|line| serde_json::from_str(line).ok()),
        _ => None,
    };
    assert!(outcome.is_some() || !format.starts_with("json"), "no outcome: {tail}");
    (peak, started.elapsed(), outcome)
}

struct Shown {
    peak: f64,
    took: Duration,
    /// Milliseconds, in their order.
    keys: Vec<f64>,
    outcome: Value,
}

/// The screen as it is now, and whether something has come since.
type Screen = Arc<(Mutex<vt100::Parser>, Condvar)>;

fn sees(screen: &Screen, within: Duration, is: impl Fn(&str) -> bool) -> Option<Duration> {
    let since = Instant::now();
    let parser = screen.0.lock().expect("a lock");
    let (_parser, late) = screen
        .1
        .wait_timeout_while(parser, within, |parser| !is(&parser.screen().contents()))
        .expect("a lock");
    (!late.timed_out()).then(|| since.elapsed())
}

fn dashboard(folder: &Path) -> Shown {
    let (rows, cols) = (36, 120);
    let pair = native_pty_system()
        .openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 })
        .expect("a pty");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_roundtable"));
    command.args(["run", "storm.toml", "--instant"]);
    command.cwd(folder);
    command.env("TERM", "xterm-256color");
    own_folders(folder).into_iter().for_each(|(name, folder)| command.env(name, folder));
    let mut reader = pair.master.try_clone_reader().expect("a reader");
    let keys = Arc::new(Mutex::new(pair.master.take_writer().expect("a writer")));
    let write = |bytes: &[u8]| keys.lock().expect("a lock").write_all(bytes).expect("a key");
    let started = Instant::now();
    let mut child = pair.slave.spawn_command(command).expect("the program");
    drop(pair.slave);
    let pid = child.process_id().expect("a process");
    let screen: Screen = Arc::new((Mutex::new(vt100::Parser::new(rows, cols, 0)), Condvar::new()));
    let (shared, answers) = (Arc::clone(&screen), Arc::clone(&keys));
    thread::spawn(move || {
        let (mut chunk, mut is_asked, mut first) = ([0; 65536], false, Vec::new());
        while let Ok(read @ 1..) = reader.read(&mut chunk) {
            shared.0.lock().expect("a lock").process(&chunk[..read]);
            shared.1.notify_all();
            if !is_asked {
                first.extend_from_slice(&chunk[..read]);
                is_asked = first.windows(3).any(|some| some == b"\x1b[c");
                if is_asked {
                    // Every terminal answers this question about its attributes.
                    let _ = answers.lock().expect("a lock").write_all(b"\x1b[?62;22c");
                }
            }
        }
    });
    let patience = Duration::from_secs(60);
    assert!(sees(&screen, patience, |text| text.contains("LIVE")).is_some(), "no run");
    let (mut times, mut most) = (Vec::new(), 0.0f64);
    let over = |text: &str| text.contains("DONE");
    // Help opens and closes again while the storm goes on.
    for nth in 0.. {
        if sees(&screen, Duration::from_millis(150), over).is_some() {
            break;
        }
        most = most.max(peak(pid).unwrap_or(most));
        let opens = nth % 2 == 0;
        write(if opens { b"?" } else { b"\x1b" });
        let is = |text: &str| text.contains("Help") == opens;
        let took = sees(&screen, patience, is).expect("an answer");
        times.push(took.as_secs_f64() * 1e3);
    }
    let took = started.elapsed();
    if sees(&screen, Duration::ZERO, |text| text.contains("Help")).is_some() {
        write(b"\x1b");
        assert!(sees(&screen, patience, |text| !text.contains("Help")).is_some(), "help stays");
    }
    write(b"e");
    assert!(sees(&screen, patience, |text| text.contains("exported")).is_some(), "no export");
    most = most.max(peak(pid).unwrap_or(most));
    write(b"\x03\x03");
    let _ = child.wait();
    let file = fs::read_dir(folder)
        .expect("a folder")
        .filter_map(Result::ok)
        .find(|file| file.file_name().to_string_lossy().ends_with(".outcome.json"));
    let text = fs::read_to_string(file.expect("an outcome").path()).expect("read");
    times.sort_by(f64::total_cmp);
    let outcome = serde_json::from_str(&text).expect("JSON");
    Shown { peak: most, took, keys: times, outcome }
}
