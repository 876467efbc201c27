//! However the dashboard ends, and whenever it is sent away: the terminal is as it was.
use std::io::Read as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};

/// How long a program may take to draw or to end.
const LIMIT: Duration = Duration::from_secs(60);

fn live() -> Terminal {
    let args = &["run", "checkout-launch"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("speaking");
    terminal
}

#[test]
fn signals_exit_with_own_code() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let terminal = live();
        terminal.signal(signal);
        assert_eq!(terminal.ends(), code, "{signal}");
        // What it leaves behind may still be on its way when it has ended.
        let left = terminal.sees("CANCELLED");
        assert!(left.contains("checkout-launch"), "{left}");
    }
}

/// The end of the input may come before or after the signal.
#[test]
fn hang_up_always_exits_with_129() {
    let home = Home::new();
    for nth in 0..4 {
        let pair = native_pty_system().openpty(PtySize::default()).expect("a pty");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_roundtable"));
        command.cwd(home.path());
        command.env_clear();
        home.env().into_iter().for_each(|(name, value)| command.env(name, value));
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let (drawn, is_drawn) = mpsc::channel();
        thread::spawn(move || {
            let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = output.read(&mut chunk) {
                bytes.extend_from_slice(&chunk[..read]);
                if String::from_utf8_lossy(&bytes).contains("Scenarios") {
                    break;
                }
            }
            drop(output);
            let _ = drawn.send(());
        });
        is_drawn.recv_timeout(LIMIT).expect("a first frame");
        drop(pair.master);
        let (end, ended) = mpsc::channel();
        thread::spawn(move || end.send(child.wait().expect("an end").exit_code()));
        assert_eq!(ended.recv_timeout(LIMIT).expect("it ends"), 129, "time {nth}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn panic_restores_terminal_and_reports() {
    for (place, says) in [("loop", "in the loop"), ("task", "in a task")] {
        let args = &["panic-test", place];
        let terminal = Terminal::start(Start { args, ..Start::default() });
        assert_eq!(terminal.ends(), 101, "{place}");
        let text = terminal.sees(says);
        assert!(text.contains("bug"), "{text}");
    }
}

/// A dashboard of which something is broken, with its first frame drawn.
#[cfg(debug_assertions)]
fn broken(place: &str) -> Terminal {
    let args = &["panic-test", place];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("1 Scenarios");
    terminal
}

#[cfg(debug_assertions)]
#[test]
fn an_abort_gives_the_terminal_back() {
    let args = &["panic-test", "abort"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    assert_ne!(terminal.ends(), 0);
    let bytes = terminal.bytes();
    assert!(String::from_utf8_lossy(&bytes).contains("\u{1b}[?1049h"), "it was taken before");
}

#[cfg(debug_assertions)]
#[test]
fn signals_end_stuck_loop_cleanly() {
    let terminal = broken("stuck");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
    terminal.sees("ended immediately; its runs were not finished");

    let mut terminal = broken("stuck");
    assert_eq!(terminal.ends_on("\u{3}"), 130);
}

#[cfg(debug_assertions)]
#[test]
fn keys_and_signals_need_no_runtime() {
    let mut terminal = broken("workers");
    terminal.sees("checkout-launch");
    terminal.press("\u{3}");
    terminal.sees("Ctrl-C again quits");
    terminal.press("\u{3}");
    assert_eq!(terminal.ends(), 130);
    let terminal = broken("workers");
    terminal.sees("checkout-launch");
    terminal.resize(100, 30);
    terminal.sees_that("the new size", |screen| {
        screen.contents().lines().all(|line| line.chars().count() <= 100)
            && screen.contents().contains("checkout-launch")
    });
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[cfg(target_os = "linux")]
#[test]
fn drawing_thread_outranks_run_threads() {
    let terminal = live();
    let own = std::fs::read_to_string("/proc/self/stat").expect("this process");
    let nice = |stat: &str| {
        // The name, in brackets, may hold anything.
        let after = stat.rsplit_once(')').expect("a name").1;
        after.split_whitespace().nth(16).expect("a niceness").parse::<i32>().expect("a number")
    };
    let tasks = format!("/proc/{}/task", terminal.pid());
    let mut threads = Vec::new();
    for task in std::fs::read_dir(tasks).expect("its threads").flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if !stat.is_empty() {
            threads.push((name.starts_with("tokio-rt"), nice(&stat) - nice(&own)));
        }
    }
    let of = |runs: bool| threads.iter().filter(move |(is, _)| *is == runs).map(|(_, nice)| *nice);
    assert!(of(true).count() > 0 && of(true).all(|nice| nice > 0), "{threads:?}");
    assert!(of(false).count() > 0 && of(false).all(|nice| nice == 0), "{threads:?}");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn endless_sequences_block_no_ctrl_c() {
    let unfinished = [
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}[<",
        "\u{1b}[<0;1",
        "\u{1b}[?",
        "\u{1b}[200~",
        "\u{1b}[M",
        "\u{1b}O",
        "\u{1b}]11;",
        "\u{1b}P",
    ];
    for junk in unfinished {
        let mut terminal = live();
        terminal.press(junk);
        terminal.press("\u{3}");
        terminal.sees("End run");
        terminal.press(junk);
        // An escape cancels the question, so that it is asked again.
        terminal.press("\u{3}\u{3}");
        assert_eq!(terminal.ends(), 130, "{junk:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_suspends_and_fg_resumes() {
    let mut terminal = live();
    terminal.press("\u{1a}");
    terminal.waits_for_state('T');
    terminal.is_as_it_was();
    terminal.signal("CONT");
    terminal.sees_that("the dashboard again", |screen| {
        screen.alternate_screen() && screen.contents().contains("Round table")
    });
    terminal.sees("DONE");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

/// A launcher that waits for the program, as those of npm do, is stopped too: else the shell that waits
/// for the launcher never gets the terminal back.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_stops_a_launcher_too() {
    let under = &["sh", "-c", "\"$@\"; exit $?", "sh"];
    let mut terminal = Terminal::start(Start { under, ..Start::default() });
    terminal.sees("checkout-launch");
    terminal.press("\u{1a}");
    terminal.waits_for_state('T');
    terminal.is_as_it_was();
    let group = format!("-{}", terminal.pid());
    let sent = std::process::Command::new("kill").args(["-s", "CONT", "--", &group]).status();
    assert!(sent.expect("kill").success());
    terminal.sees_that("the dashboard again", |screen| {
        screen.alternate_screen() && screen.contents().contains("checkout-launch")
    });
    assert_eq!(terminal.ends_on("q"), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn external_stop_resumes_too() {
    let terminal = live();
    terminal.signal("STOP");
    terminal.waits_for_state('T');
    terminal.signal("CONT");
    terminal.sees("DONE");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn wrong_argument_touches_no_screen() {
    let args = &["run", "checkout-lunch"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("checkout-launch");
    assert!(!terminal.text().is_empty());
    let bytes = terminal.bytes();
    assert!(!String::from_utf8_lossy(&bytes).contains("\u{1b}[?1049h"));
}
