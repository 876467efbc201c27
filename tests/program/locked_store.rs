//! Commands whose store is locked by another program: for a second, for five, and for ever; at their
//! start and in the middle of a run. Each ends within twelve seconds with a true exit code, and what it
//! said to have stored is stored. The rows of the table run at the same time, each in its own home.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::binary::{Home, Running, flat, press_enter};
use crate::support::counting_endpoint::CountingEndpoint;
use crate::support::locked_store::StoreLock;

const SCENARIO: &str = "checkout-unanimous";

/// The longest that a command may take while the store stays locked.
const LONGEST: Duration = Duration::from_secs(12);

/// The message to the operator after two seconds.
const TOLD: &str = "another program holds the lock of the store; waiting for it";

/// A line of the log, which is for the developer: the operator reads plain sentences.
const LOGGED: &str = " WARN ";

/// Most rows at a time: they mostly wait, but each starts a program.
const AT_A_TIME: usize = 10;

/// A home with an ended run, a removed one and an interrupted one, which pauses once more.
struct Kept {
    home: Home,
    ended: String,
    removed: String,
    interrupted: String,
}

impl Kept {
    fn make() -> Self {
        let home = Home::new();
        let play = || home.run(&["run", SCENARIO, "--instant", "--format", "json"]).json();
        let id = |outcome: Value| outcome["run_id"].as_str().expect("an id").to_owned();
        let (ended, removed) = (id(play()), id(play()));
        assert_eq!(home.run(&["runs", "rm", &removed]).code, Some(0));
        assert_eq!(home.run(&["export", &ended, "-o", "run.jsonl"]).code, Some(0));
        let (mut running, _stdin) = paused(&home, &["--pause-at", "round:1"]);
        let row = wait_until_stored(&home);
        running.kill();
        // The file alone has its log once the last process has ended in order.
        assert_eq!(home.run(&["runs"]).code, Some(0));
        Self { home, ended, removed, interrupted: row["id"].as_str().expect("an id").to_owned() }
    }

    /// The same in a home of its own.
    fn copy(&self) -> Self {
        let home = Home::new();
        let (from, to) = (self.home.path(), home.path());
        std::fs::create_dir_all(to.join("state/roundtable")).expect("made");
        for name in ["state/roundtable/runs.db", "run.jsonl"] {
            std::fs::copy(from.join(name), to.join(name)).expect("copied");
        }
        let [ended, removed, interrupted] =
            [&self.ended, &self.removed, &self.interrupted].map(Clone::clone);
        Self { home, ended, removed, interrupted }
    }

    /// The arguments of a command, with the names of its runs.
    fn args(&self, command: &str) -> Vec<String> {
        let words = command.split(' ').map(|word| {
            word.replace("ENDED", &self.ended)
                .replace("REMOVED", &self.removed)
                .replace("INTERRUPTED", &self.interrupted)
        });
        words.collect()
    }

    fn start(&self, command: &str) -> Running {
        let args = self.args(command);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Running::start(&mut self.home.command(&args))
    }

    /// What the list says: id, status and pin of each run.
    fn rows(&self) -> Vec<String> {
        let rows = self.home.run(&["runs", "--json"]).json();
        let rows = rows.as_array().expect("a list").iter();
        rows.map(|row| format!("{} {} {}", row["id"], row["status"], row["pinned"])).collect()
    }
}

/// Starts a run that pauses before it decides, and here too, and waits for its first pause.
fn paused(home: &Home, more: &[&str]) -> (Running, std::process::ChildStdin) {
    let args = ["run", SCENARIO, "--instant", "--format", "jsonl", "--pause-at", "finalize"];
    let mut command = home.command(&[&args[..], more].concat());
    let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
    let stdin = running.stdin();
    running.until("paused");
    (running, stdin)
}

/// The row of the last run, once its pause is stored.
fn wait_until_stored(home: &Home) -> Value {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let row = home.run(&["runs", "--json"]).json()[0].clone();
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        let kept = if row["status"] == "running" { home.run(&["export", &id]).out } else { id };
        if kept.contains("\"paused\"") {
            return row;
        }
        assert!(Instant::now() < limit, "the pause is not stored");
    }
}

/// A command, its exit code while the store stays locked, and whether it has done what it is for.
struct Row {
    command: &'static str,
    code_if_locked: i32,
    is_done: fn(&Kept) -> bool,
}

fn has_row(kept: &Kept, wanted: &str) -> bool {
    kept.rows().iter().any(|row| row.contains(wanted))
}

const ROWS: &[Row] = &[
    // A scripted run goes on unkept.
    Row {
        command: "run checkout-unanimous --instant --format json",
        code_if_locked: 0,
        is_done: |kept| kept.rows().len() == 3,
    },
    Row {
        command: "runs pin ENDED",
        code_if_locked: 1,
        is_done: |kept| has_row(kept, &format!("\"{}\" \"ended\" true", kept.ended)),
    },
    Row {
        command: "runs rm ENDED",
        code_if_locked: 1,
        is_done: |kept| !has_row(kept, &kept.ended),
    },
    Row {
        command: "runs restore REMOVED",
        code_if_locked: 1,
        is_done: |kept| has_row(kept, &kept.removed),
    },
    Row {
        command: "runs prune",
        code_if_locked: 1,
        is_done: |kept| kept.home.run(&["runs", "restore", &kept.removed]).code == Some(2),
    },
    Row { command: "import run.jsonl", code_if_locked: 1, is_done: |kept| kept.rows().len() == 3 },
    Row {
        command: "fork ENDED@finalize --instant --format json",
        code_if_locked: 1,
        is_done: |kept| kept.rows().len() == 3,
    },
    Row {
        command: "resume INTERRUPTED --format json",
        code_if_locked: 1,
        is_done: |kept| has_row(kept, &format!("\"{}\" \"ended\"", kept.interrupted)),
    },
];

/// How long the other program holds the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    For(Duration),
    Longer,
}

/// Runs a row under a lock that is held from the start.
fn at_the_start(kept: &Kept, row: &Row, held: Held) {
    let about = format!("{} while the lock is held {held:?}", row.command);
    let before = kept.rows();
    let log = kept.home.run(&["export", &kept.ended]).out;
    let lock = StoreLock::of(&kept.home);
    let begun = Instant::now();
    let running = kept.start(row.command);
    let (end, ended) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let ended = running.end();
        end.send(()).expect("waited for");
        ended
    });
    let early = match held {
        Held::For(time) => ended.recv_timeout(time).is_ok(),
        Held::Longer => ended.recv_timeout(LONGEST).is_err(),
    };
    let taken = begun.elapsed();
    assert!(!early, "{about}: ended early or not at all: {taken:?}");
    lock.release();
    let (status, out, err) = waiting.join().expect("no panic");
    let about = format!("{about}: {status}, out {out}, err {err}");
    assert!(!err.contains(LOGGED), "{about}");
    match held {
        Held::For(time) => {
            assert_eq!(status.code(), Some(0), "{about}");
            assert_eq!(err.contains(TOLD), time > Duration::from_secs(3), "{about}");
            assert!((row.is_done)(kept), "{about}");
        }
        Held::Longer => {
            assert_eq!(status.code(), Some(row.code_if_locked), "{about}");
            assert!(err.contains(TOLD), "{about}");
            let why = err.lines().filter(|line| line.contains("holds the lock")).count();
            assert!(why >= 2, "the reason is said at the end: {about}");
            let advice = "another program holds the lock of the store; end that program";
            assert!(err.replace("\n  help: ", "; ").contains(advice), "{about}");
            let unkept = err.contains("this run is not kept: another program");
            assert_eq!(unkept, row.command.starts_with("run "), "nothing was stored: {about}");
            assert_eq!(out.is_empty(), row.code_if_locked != 0, "{about}");
            assert_eq!(kept.rows(), before, "{about}");
            assert!(!(row.is_done)(kept), "{about}");
        }
    }
    if !row.command.starts_with("runs rm") {
        assert_eq!(kept.home.run(&["export", &kept.ended]).out, log, "{about}");
    }
}

/// Sends SIGTERM once the operator was told of the wait.
fn signalled(kept: &Kept, row: &Row) {
    let _lock = StoreLock::of(&kept.home);
    let mut running = kept.start(row.command);
    loop {
        let line = running.complains();
        assert!(!line.is_empty(), "{} ended before it was told to wait", row.command);
        if line.contains(TOLD) {
            break;
        }
    }
    let asked = Instant::now();
    running.signal("TERM");
    let (status, out, err) = running.end();
    let taken = asked.elapsed();
    assert!(taken < Duration::from_secs(2), "{}: {taken:?} {err}", row.command);
    assert_ne!(status.code(), Some(0), "{}: {out} {err}", row.command);
}

/// A scripted run that is locked while it plays; `resumed`: one that continues an interrupted one.
fn in_the_middle(kept: &Kept, resumed: bool, held: Held) {
    let about = format!("resumed: {resumed}, {held:?}");
    let (running, mut stdin) = match resumed {
        false => paused(&kept.home, &[]),
        true => {
            let args = ["resume", &kept.interrupted, "--format", "jsonl"];
            let mut command = kept.home.command(&args);
            let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
            let stdin = running.stdin();
            // The pause in which it was interrupted, then the next one.
            running.until("resumed");
            running.until("paused");
            (running, stdin)
        }
    };
    let lock = StoreLock::of(&kept.home);
    let begun = Instant::now();
    press_enter(&mut stdin);
    let (end, ended) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let ended = running.end();
        end.send(()).expect("waited for");
        ended
    });
    match held {
        Held::For(time) => {
            assert!(ended.recv_timeout(time).is_err(), "{about}: it waits");
        }
        Held::Longer => ended.recv_timeout(LONGEST).expect("it ends"),
    }
    let taken = begun.elapsed();
    lock.release();
    let (status, out, err) = waiting.join().expect("no panic");
    let about = format!("{about}: {status} after {taken:?}: {err} {out}");
    assert!(!err.contains(LOGGED), "{about}");
    let kept_log = kept.home.run(&["export", "last"]).out;
    match held {
        Held::For(_) => {
            assert_eq!(status.code(), Some(0), "{about}");
            assert!(kept_log.contains("\"run.closed\""), "{about}");
        }
        Held::Longer => {
            assert_eq!(status.code(), Some(i32::from(resumed)), "{about}");
            // A run that is over before the wait ends says so of its end.
            let says = ["cannot be stored", "not kept"].iter().any(|says| err.contains(says));
            assert!(err.contains(TOLD) && says, "{about}");
            assert!(!kept_log.contains("\"run.closed\""), "{about}");
        }
    }
}

/// A live run whose store is locked while its second request is answered.
fn live_in_the_middle(held: Held) {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of("front-desk"));
    endpoint.hold(2, false);
    let args = ["run", "front-desk", "--live", "--format", "json"];
    let running = Running::start(&mut endpoint.command(&home, &args));
    endpoint.wait_until_held();
    let lock = StoreLock::of(&home);
    let begun = Instant::now();
    endpoint.release();
    let (end, ended) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let ended = running.end();
        end.send(()).expect("waited for");
        ended
    });
    match held {
        Held::For(time) => assert!(ended.recv_timeout(time).is_err(), "it waits"),
        Held::Longer => {
            ended.recv_timeout(LONGEST).expect("it ends");
            assert_eq!(endpoint.prompts().len(), 2, "no call is paid that is not stored");
        }
    }
    let taken = begun.elapsed();
    lock.release();
    let (status, out, err) = waiting.join().expect("no panic");
    let about = format!("{held:?}: {status} after {taken:?}: {err} {out}");
    assert!(!err.contains(LOGGED), "{about}");
    let reason = serde_json::from_str::<Value>(&out).expect("an outcome")["stop_reason"].clone();
    match held {
        Held::For(_) => assert_eq!((status.code(), reason), (Some(0), "success".into()), "{about}"),
        Held::Longer => {
            assert_eq!((status.code(), reason), (Some(1), "store_failed".into()), "{about}");
            assert!(err.contains(TOLD) && err.contains("cannot be stored"), "{about}");
        }
    }
}

/// A live run whose store is locked before it starts pays nothing.
fn live_at_the_start() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of("front-desk"));
    assert_eq!(home.run(&["run", SCENARIO, "--instant"]).code, Some(0));
    let _lock = StoreLock::of(&home);
    let begun = Instant::now();
    let ran = endpoint.run(&home, &["run", "front-desk", "--live", "--format", "json"]);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
    assert_eq!((ran.code, &ran.json()["stop_reason"]), (Some(1), &"store_failed".into()));
    assert_eq!(endpoint.prompts().len(), 0, "{ran:?}");
}

/// Readers do not need the lock: each prints the stored state at once.
fn readers(kept: &Kept) {
    let _lock = StoreLock::of(&kept.home);
    let begun = Instant::now();
    for (command, code) in [
        ("runs", 0),
        ("show ENDED --format json", 0),
        ("show ENDED --format json --follow", 0),
        // No process plays it, so no events follow.
        ("show INTERRUPTED --format jsonl --follow", 0),
        ("show INTERRUPTED --format json --follow", 1),
        ("export ENDED", 0),
        ("fork ENDED", 0),
    ] {
        let (status, out, err) = kept.start(command).end();
        assert_eq!(status.code(), Some(code), "{command}: {out} {err}");
    }
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

/// Commands that read, and their exit codes while another program has the store for itself.
const READERS: &[(&str, i32)] = &[
    ("runs", 1),
    ("runs --grep margin", 1),
    ("show ENDED", 1),
    // 1 would say that they differ.
    ("diff ENDED ENDED", 2),
    ("diff run.jsonl ENDED", 2),
    ("run checkout-unanimous --instant --format json --replay ENDED", 1),
    // It is worth knowing; nothing has to be fixed.
    ("doctor", 0),
];

fn exclusively(kept: &Kept, command: &str, code: i32) {
    let _lock = StoreLock::exclusive(&kept.home);
    let begun = Instant::now();
    let (status, out, err) = kept.start(command).end();
    let about = format!("{command} after {:?}: {status}, out {out}, err {err}", begun.elapsed());
    assert!(begun.elapsed() < LONGEST, "{about}");
    assert_eq!(status.code(), Some(code), "{about}");
    assert!(flat(&(out + &err)).contains("holds the lock"), "{about}");
    assert!(!err.contains(LOGGED), "{about}");
}

type Case<'a> = Box<dyn FnOnce() + Send + 'a>;

fn cases<'a>(kept: &'a Kept, all: bool) -> Vec<Case<'a>> {
    let held = [Held::For(Duration::from_secs(1)), Held::For(Duration::from_secs(5)), Held::Longer];
    let mut cases: Vec<Case<'a>> = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        for held in held {
            // Of five seconds a sample is enough.
            if all || held != held_for_five() || number < 2 {
                cases.push(Box::new(move || at_the_start(&kept.copy(), row, held)));
            }
        }
        if all || number < 2 || row.command.starts_with("resume") {
            cases.push(Box::new(move || signalled(&kept.copy(), row)));
        }
    }
    for held in held {
        if all || held != held_for_five() {
            for resumed in [false, true] {
                cases.push(Box::new(move || in_the_middle(&kept.copy(), resumed, held)));
            }
            cases.push(Box::new(move || live_in_the_middle(held)));
        }
    }
    for (command, code) in READERS {
        cases.push(Box::new(move || exclusively(&kept.copy(), command, *code)));
    }
    cases.push(Box::new(live_at_the_start));
    cases.push(Box::new(move || readers(&kept.copy())));
    // The long ones first.
    cases.reverse();
    cases
}

fn held_for_five() -> Held {
    Held::For(Duration::from_secs(5))
}

/// Plays all cases, some at a time, and fails with what each of them says.
fn play(all: bool) {
    let kept = Kept::make();
    let queue = std::sync::Mutex::new(cases(&kept, all));
    let next = || queue.lock().expect("a queue").pop();
    let failed: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            while let Some(case) = next() {
                if let Err(why) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(case)) {
                    let text = why.downcast_ref::<String>().cloned();
                    failed.push(text.unwrap_or_else(|| "a case failed".to_owned()));
                }
            }
            failed
        };
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|it| it.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn commands_end_while_store_locked() {
    play(false);
}

/// `cargo test --test program -- --ignored locked_anywhere`
#[test]
#[ignore = "a minute; the test above is its sample"]
fn commands_end_while_locked_anywhere() {
    play(true);
}
