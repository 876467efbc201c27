//! Runs whose disk is full before they end.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::binary::{Ended, Home, Running, end};
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::full_disk::{UNDER, set_full};

const SCENARIO: &str = "front-desk";

/// Starts a live run whose disk is full from its second request on.
fn live_run(home: &Home, endpoint: &CountingEndpoint, more: &[&str]) -> Running {
    endpoint.hold(2, false);
    let args = [&["run", SCENARIO, "--live", "--format", "json"], more];
    let mut command = home.command_under(&UNDER, &args.concat());
    let running = Running::start(command.envs(endpoint.env()));
    endpoint.wait_until_held();
    set_full(running.pid(), true);
    endpoint.release();
    running
}

#[test]
fn live_run_stops_and_resumes_later() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    let (status, out, err) = live_run(&home, &endpoint, &[]).end();
    let outcome: Value = serde_json::from_str(&out).expect("an outcome");
    assert_eq!((status.code(), &outcome["stop_reason"]), (Some(1), &"store_failed".into()));
    assert!(err.contains("cannot be stored"), "{err}");

    let row = home.run(&["runs", "--json"]).json()[0].clone();
    assert_eq!((&row["status"], &row["id"]), (&"interrupted".into(), &outcome["run_id"]));
    let before = ModelAttempts::of(&home.run(&["export", "last"]).lines());
    let asked = endpoint.prompts();
    assert_eq!(surplus(&count(asked.clone()), &before.started()), [""; 0]);
    let resumed = endpoint.run(&home, &["resume", "last", "--format", "json"]);
    assert_eq!(resumed.json()["stop_reason"], "success", "{resumed:?}");
    let after = ModelAttempts::of(&home.run(&["export", "last"]).lines());
    let more = count(endpoint.prompts().split_off(asked.len()));
    assert_eq!(surplus(&more, &after.started_after(&before)), [""; 0]);
}

#[test]
fn unstored_live_run_needs_no_room() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    let (status, out, err) = live_run(&home, &endpoint, &["--no-store"]).end();
    let outcome: Value = serde_json::from_str(&out).expect("an outcome");
    assert_eq!((status.code(), &outcome["stop_reason"]), (Some(0), &"success".into()), "{err}");
    assert!(!err.contains("store"), "{err}");
}

#[test]
fn scripted_run_warns_and_continues_unstored() {
    let home = Home::new();
    let args = ["run", "fraud-check", "--format", "jsonl"];
    let running = Running::start(&mut home.command_under(&UNDER, &args));
    // Some of it is stored.
    let limit = Instant::now() + Duration::from_secs(60);
    while home.run(&["runs", "--json"]).json()[0].is_null() {
        assert!(Instant::now() < limit, "nothing is stored");
    }
    set_full(running.pid(), true);
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("this run is not kept any more: the disk "), "{err}");
    assert!(err.contains("; make room on the disk"), "{err}");
    assert_eq!(err.matches("not kept").count(), 1, "said once: {err}");
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let warnings = lines.iter().filter(|line| line["kind"] == "warning");
    assert_eq!(warnings.count(), 1, "said once: {out}");
    assert_eq!(lines.last().map(|line| &line["stop_reason"]), Some(&"success".into()));

    // The runs stored before are unchanged, and another run is kept.
    let row = home.run(&["runs", "--json"]).json()[0].clone();
    assert_eq!(row["status"], "interrupted");
    let kept = home.run(&["export", "last"]).lines();
    assert!(!kept.is_empty() && kept.len() < lines.len(), "{}", kept.len());
    assert_eq!(home.run(&["run", "fraud-check", "--instant"]).code, Some(0));
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "ended");
}

#[test]
fn full_disk_start_keeps_no_run() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    // The shell itself has no room, and the program begins so.
    let full = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"];
    let args = ["run", SCENARIO, "--format", "json"];
    for (more, live) in [("--instant", false), ("--live", true)] {
        let mut command = home.command_under(&full, &[&args[..], &[more]].concat());
        let ran = end(command.envs(endpoint.env()));
        assert_eq!(ran.code, Some(0), "{live}: {ran:?}");
        assert!(ran.err.contains("runs are not kept: "), "{live}: {ran:?}");
    }
    assert_eq!(home.run(&["runs", "--json"]).json(), serde_json::json!([]));
}

/// A command under a limit for each file, in blocks of 512 bytes.
fn limited(home: &Home, blocks: usize, args: &[&str]) -> Ended {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    end(&mut home.command_under(&["sh", "-c", &script, "sh"], args))
}

/// A home with a run that has ended, whose log is exported, and its id.
fn kept() -> (Home, String) {
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--instant", "--format", "json"];
    let id = home.run(&args).json()["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(home.run(&["export", &id, "-o", "run.jsonl"]).code, Some(0));
    (home, id)
}

#[test]
fn a_command_says_truly_what_fitted() {
    /// The largest limit: more than a store with two runs, its log and its index need.
    const MAX_LIMIT: usize = 4_096;
    /// 24 KiB: a page of the store and more.
    const STEP: usize = 48;
    let commands: [&[&str]; 5] = [
        &["run", "checkout-unanimous", "--instant", "--format", "jsonl"],
        &["runs", "pin", "ID"],
        &["runs", "rm", "ID"],
        &["import", "run.jsonl"],
        &["fork", "ID@finalize", "--instant", "--format", "jsonl"],
    ];
    let (from, id) = kept();
    let play = |args: &[&str], blocks: usize| -> bool {
        let home = Home::new();
        std::fs::create_dir_all(home.path().join("state/roundtable")).expect("made");
        for name in ["state/roundtable/runs.db", "run.jsonl"] {
            std::fs::copy(from.path().join(name), home.path().join(name)).expect("copied");
        }
        let rows = |home: &Home| home.run(&["runs", "--json"]).json();
        let (before, log) = (rows(&home), home.run(&["export", &id]).out);
        let args: Vec<String> = args.iter().map(|word| word.replace("ID", &id)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let began = Instant::now();
        let ran = limited(&home, blocks, &args);
        let about = format!("{args:?} with {blocks} blocks: {ran:?}");
        assert!(began.elapsed() < Duration::from_secs(12), "{about}");
        let after = rows(&home);
        let is_removed = args[1] == "rm" && ran.code == Some(0);
        assert!(is_removed || home.run(&["export", &id]).out == log, "{about}");
        let is_whole = ran.code == Some(0) && !ran.err.contains("not kept");
        if args[0] == "run" {
            // It goes on unkept and says so.
            assert_eq!(ran.code, Some(0), "{about}");
            assert_eq!(ran.lines().last().expect("an outcome")["stop_reason"], "success");
        } else if !is_whole {
            assert_eq!(ran.code, Some(1), "{about}");
            let says = ["the disk ", "is full", "File too large"];
            assert!(says.iter().any(|text| ran.err.contains(text)), "{about}");
        }
        match args[0] {
            "run" | "fork" => {
                let whole = after[0]["status"] == "ended" && after[0]["id"] != id.as_str();
                // Its last words may be missing in the row, which the next command completes.
                assert_eq!(whole, is_whole, "{about}: {after}");
                if whole {
                    let kept = home.run(&["export", "last"]).lines();
                    assert_eq!(kept, ran.lines()[..kept.len()], "{about}");
                }
            }
            "import" => assert_eq!(after.as_array().map_or(0, Vec::len), 1 + usize::from(is_whole)),
            _ => assert_eq!(after != before, is_whole, "{about}: {after}"),
        }
        is_whole
    };
    std::thread::scope(|scope| {
        for args in commands {
            let play = &play;
            scope.spawn(move || {
                let sizes = (0..MAX_LIMIT).step_by(STEP);
                let fitted = sizes.map(|blocks| play(args, blocks)).take_while(|it| !it).count();
                assert!(
                    fitted > 0 && fitted < MAX_LIMIT / STEP,
                    "{args:?}: {fitted} sizes are too small"
                );
            });
        }
    });
}
