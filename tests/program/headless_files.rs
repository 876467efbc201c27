//! The files that the real binary is given: logs, themes and scenarios that are pipes or devices, and
//! what a person trusts.
#![cfg(unix)]

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::binary::{Home, end};
use crate::support::pipe::make_pipe;

const SCENARIO: &str = include_str!("../../scenarios/checkout-unanimous.toml");

/// A named pipe.
fn pipe(home: &Home, name: &str) -> PathBuf {
    let path = home.path().join(name);
    make_pipe(&path);
    path
}

#[test]
fn reports_unwritable_log_before_start() {
    let home = Home::new();
    home.write("file", "a file where a folder should be");
    pipe(&home, "pipe");
    for (log, why) in [
        ("file/x.log", "file exists and is not a folder"),
        (".", "it is a folder"),
        ("pipe", "it is a pipe"),
    ] {
        for args in [&["run", "checkout-unanimous", "--instant"][..], &["doctor"], &["schema"]] {
            let args: Vec<&str> = args.iter().copied().chain(["--log-file", log]).collect();
            let ended = home.run(&args);
            assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}: {ended:?}");
            let says = format!("--log-file: cannot open {log}\n  cause: {why}");
            assert!(ended.err.contains(&says), "{args:?}: {}", ended.err);
            assert!(ended.err.contains("use a writable file"), "{}", ended.err);
        }
    }
}

/// The log of a run with a reply that fails once, at this level.
fn log_of(level: Option<&str>, set: &[&str]) -> String {
    let home = Home::new();
    let args = ["run", "checkout-launch", "--instant", "--log-file", "run.log"];
    let mut command = home.command(&[&args[..], set].concat());
    if let Some(level) = level {
        command.env("ROUNDTABLE_LOG", level);
    }
    let ended = end(&mut command);
    assert!(!ended.err.contains("roundtable::"), "the log goes to its file alone: {}", ended.err);
    std::fs::read_to_string(home.path().join("run.log")).expect("a log")
}

#[test]
fn log_records_actions_without_prompts() {
    let opens = ["--set", "tools.llm.breaker={ fail_threshold = 1, open_for_s = 0.001 }"];
    let few = log_of(None, &opens);
    for said in
        ["INFO roundtable::run: run.started", "run.closed", "breaker.changed llm OPEN", "run=\"r-"]
    {
        assert!(few.contains(said), "no {said} in\n{few}");
    }
    assert!(!few.contains("call.started"), "{few}");
    let more = log_of(Some("debug"), &[]);
    for said in
        ["DEBUG roundtable::run: call.started", "attempt.started", "call.retried", "attempt.failed"]
    {
        assert!(more.contains(said), "no {said} in\n{more}");
    }
    assert!(!more.contains("hyper"), "libraries are asked for by their names");
    let scenario = include_str!("../../scenarios/checkout-launch.toml");
    let prompts = scenario.split("prompt = \"\"\"\n").skip(1);
    let prompts: Vec<&str> = prompts.filter_map(|prompt| prompt.get(..30)).collect();
    assert_eq!(prompts.len(), 5, "four roles and the brief");
    let all = log_of(Some("trace"), &[]);
    for prompt in prompts {
        assert!(!all.contains(prompt), "{prompt}");
    }
}

#[test]
fn refuses_special_theme_file_promptly() {
    let home = Home::new();
    pipe(&home, "pipe");
    for (theme, why) in [("pipe", "it is a pipe"), ("/dev/zero", "it is a device")] {
        let ended = home.run(&["scenarios", "--theme", theme]);
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
        let says = format!("--theme {theme} cannot be read\n  cause: {why}, not a regular file");
        assert!(ended.err.contains(&says), "{}", ended.err);
    }
}

#[test]
fn reads_piped_scenario_with_timeout() {
    let home = Home::new();
    let path = pipe(&home, "pipe");
    for args in [&["validate", "pipe"][..], &["run", "pipe", "--instant"]] {
        let to = path.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(to).expect("a reader");
            pipe.write_all(SCENARIO.as_bytes()).expect("written");
        });
        let ended = home.run(args);
        writer.join().expect("written");
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    }
    // As a shell's `<(generate)` and `generate |` are opened.
    let mut child = home
        .command(&["run", "/dev/stdin", "--instant"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(SCENARIO.as_bytes()).expect("written");
    drop(stdin);
    assert!(child.wait_with_output().expect("it ends").status.success());

    let silent = home.run(&["validate", "pipe"]);
    assert_eq!(silent.code, Some(2), "{silent:?}");
    assert!(silent.err.contains("no data from this pipe for 10 s"), "{}", silent.err);
    let device = home.run(&["validate", "/dev/zero"]);
    assert_eq!(device.code, Some(2), "{device:?}");
    assert!(device.err.contains("it is a device"), "{}", device.err);
}

/// A foreign scenario that runs a program beside it.
fn foreign(home: &Home) {
    let text = include_str!("../../scenarios/real-services.toml");
    let start = text.find("program = \"sh\"").expect("a command");
    let end = start + text[start..].find("[\"-c\"").expect("its arguments");
    let end = end + text[end..].find(']').expect("their end") + 1;
    let command =
        "program = \"./disk.sh\"\nargs = []\nenv = { BASH_ENV = \"./x\", PATH = \"/bin\" }";
    home.write("mine.toml", &format!("{}{command}{}", &text[..start], &text[end..]));
    program(home, "#!/bin/sh\necho '{}'\n");
}

fn program(home: &Home, text: &str) {
    home.write("disk.sh", text);
    let mode = Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path().join("disk.sh"), mode).expect("changed");
}

/// The message if a person has to allow it; `None`: it was started.
fn asks(home: &Home, args: &[&str]) -> Option<String> {
    // No service is there, so the run itself fails at once.
    let ended = home.run(&[&["run", "mine.toml", "--format", "json"], args].concat());
    assert_eq!(ended.code == Some(2), ended.out.is_empty(), "{ended:?}");
    (ended.code == Some(2)).then_some(ended.err)
}

#[test]
fn permission_holds_until_program_changes() {
    let home = Home::new();
    foreign(&home);
    let asked = asks(&home, &[]).expect("it asks");
    let program_at = home.path().join("disk.sh").canonicalize().expect("there");
    for said in [
        "run ./disk.sh\n",
        &format!("./disk.sh is {} (SHA-256 ", program_at.display()),
        "with BASH_ENV=./x\n",
        "with PATH=/bin\n",
        "and of its programs",
    ] {
        assert!(asked.contains(said), "no {said} in\n{asked}");
    }
    assert_eq!(asks(&home, &["--trust"]), None);
    assert_eq!(asks(&home, &[]), None, "the answer is kept");
    program(&home, "#!/bin/sh\nrm -rf everything\n");
    assert!(asks(&home, &[]).is_some(), "another program asks again");
    program(&home, "#!/bin/sh\necho '{}'\n");
    assert_eq!(asks(&home, &[]), None, "the one that was allowed");
}

#[test]
fn ignores_trust_file_others_can_write() {
    let home = Home::new();
    foreign(&home);
    assert_eq!(asks(&home, &["--trust"]), None);
    let kept = home.path().join("config/roundtable/trusted");
    let mode = |mode| {
        std::fs::set_permissions(&kept, Permissions::from_mode(mode)).expect("changed");
    };
    mode(0o666);
    let asked = asks(&home, &[]).expect("it asks again");
    assert!(asked.contains("trusted is not used: others can write to it"), "{asked}");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("✗ trust"), "{}", doctor.out);
    mode(0o600);
    let text = std::fs::read(&kept).expect("reads");
    std::fs::write(&kept, [b"\xff\xfe what is this\n", &text[..]].concat()).expect("written");
    assert_eq!(asks(&home, &[]), None, "a line that is no text costs that line alone");

    let elsewhere = home.path().join("elsewhere");
    std::fs::rename(&kept, &elsewhere).expect("moved");
    symlink(Path::new(&elsewhere), &kept).expect("a link");
    let asked = asks(&home, &[]).expect("it asks again");
    assert!(asked.contains("a symbolic link"), "{asked}");
    std::fs::remove_file(&kept).expect("removed");
    pipe(&home, "config/roundtable/trusted");
    let asked = asks(&home, &[]).expect("it asks again");
    assert!(asked.contains("it is a pipe"), "{asked}");
}
