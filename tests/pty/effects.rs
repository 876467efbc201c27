//! What the dashboard does beyond its screen: clipboard, files, the pager, and the question before a
//! foreign scenario reaches an endpoint.
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use crate::support::pty::{Start, Terminal};
use roundtable::bench::osc52;

/// The log of a dashboard that has ended.
fn log(terminal: &Terminal) -> String {
    let log = terminal.home.path().join("state/roundtable/roundtable.log");
    std::fs::read_to_string(log).expect("a log")
}

fn done(env: &[(&str, &str)]) -> Terminal {
    let args = &["run", "checkout-unanimous", "--instant"];
    let terminal = Terminal::start(Start { args, env, ..Start::default() });
    terminal.sees("DONE");
    terminal
}

#[test]
fn copy_reaches_terminal_clipboard() {
    let mut terminal = done(&[]);
    terminal.press("y");
    terminal.sees("Copied ");
    // OSC 52.
    terminal.writes(b"\x1b]52;c;");
}

#[test]
fn console_says_nothing_was_copied() {
    let mut terminal = done(&[("TERM", "linux")]);
    terminal.press("y");
    terminal.sees("Not copied: the Linux console has no clipboard");
}

/// The names of the files that were exported.
fn exported(terminal: &Terminal) -> Vec<String> {
    std::fs::read_dir(terminal.home.path())
        .expect("a folder")
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("r-"))
        .collect()
}

#[test]
fn copied_text_is_shell_safe() {
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    let answer = "{{campaign}} goes live";
    assert!(text.contains(answer));
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    let hostile = text.replace(answer, "\\u001b[201~rm -rf ~\\u009b\\u202e\\u200dgone");
    std::fs::write(file.path(), hostile).expect("written");
    let path = file.path().display().to_string();
    let args = &["run", path.as_str(), "--instant"];
    let mut terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("DONE");
    terminal.press("y");
    terminal.sees("Copied ");
    let start = osc52("␛[201~rm -rf ~\u{fffd}\u{fffd}\u{fffd}gone in");
    // Three bytes are four letters: all of them but the last, and without what ends the sequence.
    let start = &start[..start.len() - 6];
    terminal.writes(start);
}

#[test]
fn reports_size_limit_leaves_no_file() {
    let args = &["run", "checkout-unanimous", "--instant"];
    let under = &["sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"];
    let mut terminal = Terminal::start(Start { args, under, ..Start::default() });
    terminal.sees("DONE");
    terminal.press("e");
    let text = terminal.sees("raise ulimit -f");
    assert!(text.contains("cannot write r-"), "{text}");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(exported(&terminal), [""; 0], "no half of a file");
}

#[test]
fn export_is_private_to_owner() {
    let mut terminal = done(&[]);
    terminal.press("e");
    terminal.sees("exported ");
    let files = exported(&terminal);
    assert!(!files.is_empty(), "nothing was written");
    for file in files {
        let file = terminal.home.path().join(file);
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let log = log(&terminal);
    assert!(log.contains("roundtable::files: written"), "{log}");
}

#[test]
fn picture_files_are_not_replaced() {
    let mut terminal = done(&[]);
    let files = |terminal: &Terminal, start: &str| {
        let files = std::fs::read_dir(terminal.home.path()).expect("a folder");
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        names
    };
    let read = |terminal: &Terminal, name: &str| {
        std::fs::read_to_string(terminal.home.path().join(name)).expect("a file")
    };
    terminal.press("\u{10}");
    let said = terminal.sees("exported ");
    let [svg, text] = &files(&terminal, "roundtable-r-")[..] else { panic!("{said}") };
    assert!(svg.ends_with(".svg") && text.ends_with(".txt"), "{svg} {text}");
    let (svg, text) = (read(&terminal, svg), read(&terminal, text));
    assert!(svg.contains("<title>A run of checkout-unanimous in the dashboard, at 00:0"), "{svg}");
    assert!(text.contains("DONE") && text.contains("Round table"), "{text}");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("?");
    terminal.sees("Help");
    for number in ["", "-2"] {
        terminal.press("\u{10}");
        let name = format!("roundtable-home{number}.txt");
        terminal.sees_that(&name, |_| files(&terminal, "roundtable-home").contains(&name));
        assert!(read(&terminal, &name).contains("Help"), "the window on it too");
    }
    terminal.press("\u{1b}");
    terminal.loses("Help for");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn pager_borrows_and_returns_terminal() {
    let mut terminal = done(&[("PAGER", "cat > paged; echo in the pager; read line </dev/tty")]);
    terminal.press("5");
    terminal.press("o");
    terminal.sees_that("the pager", |screen| {
        !screen.alternate_screen() && screen.contents().contains("in the pager")
    });
    terminal.is_as_it_was();
    // Ctrl-C is the pager's here; the dashboard lives on.
    terminal.press("\u{3}");
    terminal.sees_that("the dashboard", |screen| {
        screen.alternate_screen() && screen.contents().contains("Round table")
    });
    let paged = std::fs::read_to_string(terminal.home.path().join("paged")).expect("paged");
    assert!(paged.trim_start().starts_with('{'), "{paged}");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[cfg(target_os = "linux")]
#[test]
fn signal_ends_pager_and_program() {
    // One that ends when asked, one that does not, one whose shell waits for it.
    for pager in [
        "echo $$ > pid; echo in the pager; read line </dev/tty",
        "trap '' TERM; echo $$ > pid; echo in the pager; read line </dev/tty",
        "sh -c 'echo $$ > pid; echo in the pager; exec sleep 600'; true",
    ] {
        let mut terminal = done(&[("PAGER", pager)]);
        terminal.press("5");
        terminal.press("o");
        terminal.sees("in the pager");
        terminal.signal("TERM");
        assert_eq!(terminal.ends(), 143, "{pager}");
        let pid = std::fs::read_to_string(terminal.home.path().join("pid")).expect("a pager");
        ends(pid.trim());
    }
}

/// Waits until there is no such process any more, or only a zombie.
#[cfg(target_os = "linux")]
fn ends(pid: &str) {
    let limit = Instant::now() + Duration::from_secs(60);
    while let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        if stat.contains(") Z ") {
            return;
        }
        assert!(Instant::now() < limit, "the pager goes on: {stat}");
        std::thread::yield_now();
    }
}

#[test]
fn reports_missing_pager() {
    let mut terminal = done(&[("PAGER", "no-such-pager")]);
    terminal.press("5");
    terminal.press("o");
    terminal.sees("no-such-pager");
    terminal.sees("Round table");
}

/// An endpoint that says when it was asked, and answers 500.
fn endpoint() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let host = listener.local_addr().expect("bound").to_string();
    let (asked, was_asked) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = asked.send(());
            let _ = stream.read(&mut [0; 65536]);
            let head = "HTTP/1.1 500 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
        }
    });
    (host, was_asked)
}

#[test]
fn foreign_scenario_asks_before_endpoint() {
    let (host, asked) = endpoint();
    let url = format!("http://{host}/v1");
    let env = &[("OPENAI_API_KEY", "sk-test-1234567890"), ("OPENAI_BASE_URL", url.as_str())];
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(file.path(), format!("{text}\n# mine\n")).expect("written");
    let path = file.path().display().to_string();
    let args = &["run", path.as_str(), "--live"];
    let mut terminal = Terminal::start(Start { args, env, ..Start::default() });
    terminal.sees("Confirm");
    terminal.sees(&host);
    assert!(!terminal.text().contains("sk-test"), "the key is shown");
    assert!(asked.try_recv().is_err(), "asked before the answer");
    terminal.press("y");
    asked.recv_timeout(Duration::from_secs(60)).expect("asked after the yes");
    terminal.sees("STOPPED");
    terminal.sees("model: HTTP 500");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let kept = terminal.home.path().join("config/roundtable/trusted");
    assert!(std::fs::read_to_string(kept).expect("kept").lines().count() == 1);
    let log = log(&terminal);
    for said in ["roundtable::trust: allowed by the operator", "run.started", "run.closed"] {
        assert!(log.contains(said), "no {said} in\n{log}");
    }
    assert!(!log.contains("sk-test"), "the key is in the log");
}

#[test]
fn missing_key_opens_no_dashboard() {
    let args = &["run", "checkout-unanimous", "--live"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("OPENAI_API_KEY");
    assert!(!String::from_utf8_lossy(&terminal.bytes()).contains("\u{1b}[?1049h"));
}
