//! Logs from elsewhere, given to each command that reads one: it ends soon, needs little memory, and
//! reports the fault.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::binary::{Ended, Home, end};
use crate::support::hostile_logs::{HostileLog, hostile_logs};

/// What a command may need.
struct Bounds {
    time: Duration,
    /// Memory of a process in kilobytes, on systems that report it (Linux).
    memory: u64,
}

/// Runs a command to its end, within bounds.
fn run(home: &Home, args: &[&str], bounds: &Bounds) -> Ended {
    let out = tempfile::NamedTempFile::new_in(home.path()).expect("a file");
    let mut command = home.command(args);
    let to_file = Stdio::from(out.reopen().expect("a file"));
    let since = Instant::now();
    let (ended, needed) = watched(command.stdout(to_file));
    let took = since.elapsed();
    assert!(took < bounds.time, "{args:?} took {took:?}");
    assert!(needed < bounds.memory, "{args:?} needed {needed} kB");
    assert!(matches!(ended.code, Some(0..=2 | 4)), "{args:?}: {ended:?}");
    let text = String::from_utf8(std::fs::read(out.path()).expect("read")).expect("UTF-8");
    Ended { out: text, ..ended }
}

/// Runs a command to its end, and looks at what memory it needs meanwhile.
fn watched(command: &mut Command) -> (Ended, u64) {
    let child = command.spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let watching = thread::spawn(move || {
        let mut needed = 0;
        // A process that has ended has no such line any more.
        while let Some(now) = high_water(&status) {
            needed = now;
            thread::park_timeout(Duration::from_millis(5));
        }
        needed
    });
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    let ended = Ended { code: output.status.code(), out: String::new(), err };
    (ended, watching.join().expect("no panic"))
}

fn high_water(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Gives a log to each command.
fn give(log: &HostileLog, bounds: &Bounds) {
    let home = Home::new();
    let (name, path) = (log.name, home.path().join("log.jsonl").display().to_string());
    std::fs::write(&path, &log.bytes).expect("written");
    let imported = run(&home, &["import", &path], bounds);
    let says = log.import.unwrap_or_default();
    assert!(imported.err.contains(says), "{name}: {}", imported.err);
    assert_eq!(imported.err.is_empty(), says.is_empty(), "{name}: {}", imported.err);
    let is_taken = imported.code == Some(0);
    assert_eq!(is_taken, !log.resume.is_empty(), "{name}");
    let formats: &[&str] =
        if is_taken { &["json", "jsonl", "text", "markdown"] } else { &["text"] };
    for format in formats {
        let shown = run(&home, &["show", &path, "--format", format], bounds);
        assert!(is_taken || shown.err.contains(says), "{name}: {}", shown.err);
    }
    let compared = run(&home, &["diff", &path, &path], bounds);
    assert_eq!(compared.code, Some(if is_taken { 0 } else { 2 }), "{name}: {}", compared.err);
    if !is_taken {
        let kept = run(&home, &["runs", "--json"], bounds).json();
        return assert_eq!(kept, serde_json::json!([]), "{name} leaves no run");
    }
    let page = run(&home, &["export", "last", "--html"], bounds).out;
    assert!(page.ends_with("</html>\n"), "{name}");
    let events = run(&home, &["export", "last"], bounds).out;
    assert_eq!(events.lines().count(), count_events(&log.bytes), "{name}");
    let resumed = run(&home, &["resume", "last"], bounds);
    assert!(resumed.err.contains(log.resume), "{name}: {}", resumed.err);
    for args in [
        &["fork", "last"][..],
        &["fork", "last@round:1"],
        &["run", "checkout-unanimous", "--replay", "last"],
        &["export", "last", "--redact"],
        &["export", "last", "--otlp=http://127.0.0.1:9", "--otlp-content"],
        &["runs", "--grep", "word"],
    ] {
        run(&home, args, bounds);
    }
}

fn count_events(log: &[u8]) -> usize {
    log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
}

/// Gives logs, those with many spans with so many and one with so many words, to each command.
fn give_all((spans, words): (u32, usize), bounds: &Bounds) {
    let logs = hostile_logs(spans, words);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(log) = logs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    give(log, bounds);
                }
            });
        }
    });
}

#[test]
fn a_hostile_log_breaks_no_command() {
    give_all((2_000, 500_000), &Bounds { time: Duration::from_secs(60), memory: 1 << 20 });
}

/// `cargo test --test program -- --ignored million_spans`
#[test]
#[ignore = "long and large; the test above is its sample"]
fn million_spans_break_no_command() {
    give_all(
        (1_000_000, 10_000_000),
        &Bounds { time: Duration::from_secs(1_200), memory: 4 << 20 },
    );
}

#[test]
fn error_names_non_file_log() {
    let home = Home::new();
    for path in ["./missing.jsonl", "./"] {
        let ended = end(&mut home.command(&["import", path]));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains(path), "{ended:?}");
    }
}

/// A text that could control a terminal, or hide in one.
const CONTROLS: &str = "r\u{1b}[2J\u{9b}31m\u{202e}\u{0}\u{7f}\u{fffe}";

#[test]
fn no_output_passes_on_controls() {
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--instant", "--no-store", "--format", "jsonl"];
    let mut lines = home.run(&args).lines();
    lines.pop().expect("an outcome");
    for line in &mut lines {
        for field in ["run", "text", "summary"] {
            if line.get(field).is_some_and(serde_json::Value::is_string) {
                line[field] = CONTROLS.into();
            }
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.write("foreign.jsonl", &text);
    let hides = |c: &char| *c != '\n' && roundtable::bench::is_hostile(*c);
    for format in ["text", "github", "json", "jsonl", "markdown"] {
        let ended = home.run(&["show", "foreign.jsonl", "--format", format]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Vec<char> = ended.out.chars().chain(ended.err.chars()).filter(hides).collect();
        assert!(found.is_empty(), "{format} prints {found:?}");
    }
    let ended = home.run(&["diff", "foreign.jsonl", "foreign.jsonl"]);
    assert!(!ended.out.chars().any(|c| hides(&c)), "{}", ended.out);
}

#[test]
fn refuses_overlong_names() {
    let home = Home::new();
    let args = ["run", "dev-team", "--instant", "--no-store", "--format", "jsonl"];
    let log = home.run(&args).out;
    let long = "t".repeat(66_000);
    for (name, what, most) in
        [("\"find_tickets\"", "a tool", 161), ("\"project_manager\"", "an agent", 64)]
    {
        assert!(log.contains(name), "{name}");
        home.write("long.jsonl", &log.replace(name, &format!("\"{long}\"")));
        for args in [&["show", "long.jsonl", "--format", "text"][..], &["import", "long.jsonl"]] {
            let ended = home.run(args);
            assert_eq!(ended.code, Some(1), "{args:?}");
            let says = format!("a name is too long: {what} has 66000 bytes, at most {most}");
            assert!(ended.err.contains(&says), "{}", ended.err);
        }
    }
}
