//! Kept runs, with the real binary: listed, shown, exported, imported, removed, compared, forked.

use serde_json::Value;

use crate::support::binary::{Home, Running, flat, press_enter, without_times};

#[test]
fn kept_run_is_shown_unchanged() {
    let home = Home::new();
    let ran = home.run(&["run", "front-desk", "--instant", "--format", "jsonl"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let listed = home.run(&["runs", "--json"]).json();
    let [row] = &listed.as_array().expect("a list")[..] else { panic!("{listed}") };
    assert_eq!(row["scenario"], "front-desk");
    assert_eq!((&row["status"], &row["stop_reason"]), (&"ended".into(), &"success".into()));
    assert_eq!(row["events"], ran.lines().len() - 1, "all but the outcome");
    let id = row["id"].as_str().expect("an id");
    for name in [id, &id[..4], &id[2..], "last", "last~0"] {
        let shown = home.run(&["show", name, "--format", "jsonl"]);
        assert_eq!(shown.out, ran.out, "{name}");
    }
    let json = home.run(&["show", "last"]).json();
    assert_eq!(json["run_id"], id);
    let text = home.run(&["show", "last", "--format", "text"]);
    assert!(text.out.contains("billing"), "{}", text.out);
    let table = home.run(&["runs"]).out;
    assert!(table.starts_with(id) && table.contains("front-desk  DONE"), "{table}");
    let none = home.run(&["show", "last~1"]);
    assert_eq!(none.code, Some(2));
    assert!(none.err.contains("no kept run is called last~1"), "{}", none.err);
}

#[test]
fn log_exports_and_imports() {
    let (home, other) = (Home::new(), Home::new());
    let ran = home.run(&["run", "checkout-unanimous", "--instant", "--format", "jsonl"]);
    let file = other.path().join("run.jsonl.gz").display().to_string();
    assert_eq!(home.run(&["export", "last", "-o", &file]).code, Some(0));
    let again = home.run(&["export", "last", "-o", &file]);
    assert!(again.code == Some(1) && again.err.contains("exists"), "{again:?}");
    let events = home.run(&["export", "last"]).out;
    assert!(ran.out.starts_with(&events));
    assert_eq!(other.run(&["show", &file, "--format", "jsonl"]).out, ran.out);
    let id = other.run(&["import", &file]).out;
    assert_eq!(other.run(&["export", id.trim()]).out, events);
    let second = other.run(&["import", &file]).out;
    assert_eq!(second.trim(), format!("{}-2", id.trim()), "both are kept");
    let bad = other.run(&["import", "Cargo.toml"]);
    assert_eq!(bad.code, Some(1));
}

#[test]
fn a_run_becomes_a_page() {
    let home = Home::new();
    home.run(&["run", "checkout-unanimous", "--instant"]);
    let page = home.run(&["export", "last", "--html"]);
    assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
    assert!(page.out.starts_with("<!doctype html>") && page.out.ends_with("</html>\n"));
    assert!(page.out.contains("default-src 'none'") && page.out.contains("Round 1"));
    let file = home.path().join("run.html").display().to_string();
    // The ending of the name says that a page is meant.
    assert_eq!(home.run(&["export", "last", "-o", &file]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&file).expect("reads"), page.out);
    let again = home.run(&["export", "last", "--html", "-o", &file]);
    assert!(again.code == Some(1) && again.err.contains("exists"), "{again:?}");
    let without = home.run(&["export", "last", "--html", "--redact"]).out;
    assert!(
        without.contains("redacted: lengths and digests only") && !without.contains("Checkout")
    );
    assert_eq!(home.run(&["export", "last~7", "--html"]).code, Some(2));
}

#[test]
fn redacted_log_cannot_be_resumed() {
    let (home, other) = (Home::new(), Home::new());
    let run = |flag: &str| {
        let args = ["run", "checkout-launch", "--instant", "--seed", "5", "--format", "json"];
        home.run(&[&args[..], &["--flag", flag]].concat()).json()
    };
    let outcome = run("legal_analyst=off");
    run("legal_analyst=on");
    let [plain, left, right] = ["plain.jsonl", "left.jsonl", "right.jsonl.gz"]
        .map(|name| home.path().join(name).display().to_string());
    assert_eq!(home.run(&["export", "last~1", "-o", &plain]).code, Some(0));
    assert_eq!(home.run(&["export", "last~1", "--redact", "-o", &left]).code, Some(0));
    assert_eq!(home.run(&["export", "last", "--redact", "-o", &right]).code, Some(0));
    let log = home.run(&["export", "last~1", "--redact"]).out;
    assert!(log == std::fs::read_to_string(&left).expect("reads") && log.contains("‹"), "{log}");
    assert!(!log.contains("Checkout"), "{log}");
    let shown = other.run(&["show", &left, "--format", "json"]).json();
    assert_eq!(
        (&shown["stop_reason"], &shown["usage"]),
        (&outcome["stop_reason"], &outcome["usage"])
    );

    let seq = |left: &str, right: &str| {
        let differs = home.run(&["diff", left, right, "--format", "json"]);
        assert_eq!(differs.code, Some(1), "{}", differs.err);
        let first = differs.json()["differences"][0].clone();
        (first["left"]["seq"].clone(), first["right"]["seq"].clone())
    };
    assert_eq!(seq(&left, &right), seq("last~1", "last"), "the same first difference");

    let lines: Vec<&str> = log.lines().collect();
    home.write("cut.jsonl", &(lines[..20].join("\n") + "\n"));
    let cut = home.path().join("cut.jsonl").display().to_string();
    assert_eq!(other.run(&["import", &cut]).code, Some(0));
    let refused = other.run(&["resume", "last"]);
    assert!(refused.err.contains("the texts of its log are redacted"), "{}", refused.err);
    assert_eq!(refused.code, Some(1));
}

#[test]
fn removes_restores_and_pins_runs() {
    let home = Home::new();
    home.write("config/roundtable/config.toml", "[store]\nkeep_runs = 1\n");
    let run = || home.run(&["run", "checkout-unanimous", "--instant", "--format", "json"]);
    let first = run().json()["run_id"].as_str().expect("an id").to_owned();
    let pinned = home.run(&["runs", "pin", "last"]);
    assert!(pinned.out.contains("is pinned"), "{pinned:?}");
    let second = run().json()["run_id"].as_str().expect("an id").to_owned();
    let third = run();
    assert!(third.err.contains("removed 1 old run"), "{}", third.err);
    let ids = || {
        let listed = home.run(&["runs", "--json"]).json();
        let rows = listed.as_array().expect("a list").iter();
        rows.map(|row| row["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert!(ids().contains(&first) && !ids().contains(&second) && ids().len() == 2);
    let removed = home.run(&["runs", "rm", &first]);
    assert!(removed.out.contains("restore"), "{removed:?}");
    assert_eq!(ids().len(), 1);
    assert!(home.run(&["runs", "restore", &first]).out.contains("is back"));
    assert_eq!(ids().len(), 2);
    let unkept = home.run(&["run", "checkout-unanimous", "--instant", "--no-store"]);
    assert_eq!((unkept.code, ids().len()), (Some(0), 2));
}

/// The files below a folder that have a word, in any case.
fn files_with(folder: &std::path::Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, word));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let has = bytes.windows(word.len()).any(|it| it.eq_ignore_ascii_case(word.as_bytes()));
            found.extend(has.then(|| path.display().to_string()));
        }
    }
    found
}

/// Nothing that was said in a removed run stays in a file, while another process has the store open.
#[test]
fn removed_words_leave_the_disk() {
    let home = Home::new();
    let said = |word: &str| {
        let goal = format!("goal=Decide on {word} and {word}s by noon.");
        assert_eq!(
            home.run(&["run", "checkout-launch", "--instant", "--set", &goal]).code,
            Some(0)
        );
    };
    let kept = |word: &str| files_with(home.path(), word);
    said("quizzaciously");
    said("oxyphenbutazone");
    assert_eq!(home.run(&["runs", "--grep", "quizzaciously"]).code, Some(0));
    assert!(!kept("quizzaciously").is_empty());
    let other = raw_store(&home);
    let count = || other.query_row("SELECT count(*) FROM run", [], |row| row.get::<_, i64>(0));
    assert_eq!(count(), Ok(2));
    assert_eq!(home.run(&["runs", "rm", "last~1"]).code, Some(0));
    assert!(home.run(&["runs", "prune"]).out.starts_with("removed 1 run"));
    assert_eq!(count(), Ok(1));
    assert_eq!(kept("quizzaciously"), [""; 0]);
    assert!(home.run(&["runs", "--grep", "oxyphenbutazones"]).out.contains("oxyphenbutazone"));

    // Beyond the limits of the configuration.
    home.write("config/roundtable/config.toml", "[store]\nkeep_runs = 1\n");
    said("xylographer");
    assert_eq!(count(), Ok(1));
    assert_eq!(kept("oxyphenbutazone"), [""; 0]);
    drop(other);

    // A version that did not overwrite has left texts in free pages: the next command does it.
    let old = raw_store(&home);
    let leave = "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = NONE; VACUUM; \
                 DELETE FROM event_group; DELETE FROM run; PRAGMA wal_checkpoint(TRUNCATE)";
    old.execute_batch(leave).expect("written");
    drop(old);
    assert!(!kept("xylographer").is_empty());
    assert_eq!(home.run(&["run", "front-desk", "--instant"]).code, Some(0));
    assert_eq!(kept("xylographer"), [""; 0]);
    assert_eq!(home.run(&["runs", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn search_finds_runs_by_text() {
    let home = Home::new();
    for scenario in ["checkout-unanimous", "front-desk", "front-desk"] {
        home.run(&["run", scenario, "--instant", "--format", "json"]);
    }
    let found = home.run(&["runs", "--grep", "dispute line"]);
    assert_eq!((found.code, found.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = found.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", found.out);
    assert!(lines[0].contains("front-desk  DONE") && lines[2].contains("front-desk"), "{lines:?}");
    assert!(lines[1].contains("  classify  reply  ") && lines[1].contains("disputes a line"));
    assert!(!found.out.contains('\u{1b}'), "no colours where the output is no terminal");
    let table: &[(&str, &[&str], usize)] = &[
        ("\"disputes a line\"", &[], 2),
        ("\"a disputes line\"", &[], 0),
        ("MARGIN", &[], 1),
        ("margin", &["--scenario", "front-desk"], 0),
        ("invoice", &["--status", "success"], 2),
        ("invoice", &["--status", "DONE"], 2),
        ("invoice", &["--status", "failed"], 0),
        ("invoice", &["--status", "STOPPED"], 0),
        ("\" OR * NOT", &[], 0),
    ];
    for (words, more, runs) in table {
        let found = home.run(&[&["runs", "--json", "--grep", words], *more].concat()).json();
        assert_eq!(found.as_array().expect("a list").len(), *runs, "{words} {more:?}");
    }
    let found = home.run(&["runs", "--json", "--grep", "\"15200\" orders"]).json();
    let hit = &found[0]["hits"][0];
    assert_eq!((&hit["what"], &hit["who"]), (&"reply".into(), &"demand_analyst".into()), "{found}");
    assert_eq!(hit["words"][0], "15200");
    assert!(hit["text"].as_str().expect("a text").contains("15200 orders"), "{hit}");
    assert!(found[0]["hit_count"].as_u64() >= Some(2), "{found}");
    let unknown = home.run(&["runs", "--status", "nonsense"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.contains("waiting, running") && unknown.err.contains("done"),
        "{unknown:?}"
    );
    let none = home.run(&["runs", "--grep", "zebra"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), "no kept run has these words\n"));
    let bad = home.run(&["runs", "--grep", "***"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.err.contains("needs a word"), "{}", bad.err);
}

#[test]
fn unusable_store_is_warning() {
    let home = Home::new();
    home.write("state/roundtable/runs.db", "this is no database, but it is long enough to be one");
    let ran = home.run(&["run", "checkout-unanimous", "--instant"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("runs are not kept"), "{}", ran.err);
    assert_eq!(home.run(&["runs"]).code, Some(1));
}

#[test]
fn comparison_finds_first_difference() {
    let home = Home::new();
    let mut ids = Vec::new();
    for more in [&[][..], &[], &["--flag", "legal_analyst=on@round:2"], &["--seed", "5"]] {
        let args = [&["run", "checkout-launch", "--instant", "--format", "json"], more].concat();
        ids.push(home.run(&args).json()["run_id"].as_str().expect("an id").to_owned());
    }
    let same = home.run(&["diff", &ids[0], &ids[1]]);
    assert_eq!(same.code, Some(0), "{}", same.out);
    assert!(same.out.ends_with("nothing differs but ids and times\n"), "{}", same.out);
    let flag = home.run(&["diff", &ids[0], &ids[2]]);
    assert_eq!(flag.code, Some(1));
    let after = flag.out.split("first difference").nth(1).expect("a difference");
    let first: Vec<&str> = after.lines().skip(1).take(3).collect();
    assert!(first[0].contains("flag.changed") && first[1].trim() == "left   -", "{first:?}");
    assert!(first[2].contains("legal_analyst  off to on"), "{first:?}");
    let json = home.run(&["diff", &ids[0], &ids[2], "--format", "json"]).json();
    assert_eq!((&json["same"], &json["left"]["run"]), (&false.into(), &ids[0].as_str().into()));
    assert_eq!(json["differences"][0]["right"]["kind"], "flag.changed");
    let seed = home.run(&["diff", &ids[0], "last", "--format", "json"]).json();
    assert_eq!(seed["setup"][0], serde_json::json!({ "what": "seed", "left": "42", "right": "5" }));
    let file = home.path().join("a.jsonl").display().to_string();
    home.run(&["export", &ids[0], "-o", &file]);
    assert_eq!(home.run(&["diff", &file, &ids[1]]).code, Some(0), "a file is as good");
    assert_eq!(home.run(&["diff", "none.jsonl", "last"]).code, Some(2));
}

/// Nothing in a run leads to its cancellation; its boundaries are known all the same.
#[test]
fn cancelled_run_lists_its_boundaries() {
    let home = Home::new();
    let mut run =
        Running::start(&mut home.command(&["run", "checkout-launch", "--format", "jsonl"]));
    run.until("contribution.accepted");
    run.signal("INT");
    let (_, out, _) = run.end();
    assert!(out.contains("\"reason\":\"cancelled\""), "{out}");
    let places = home.run(&["fork", "last"]);
    assert!(places.code == Some(0) && places.out.contains("round:1"), "{places:?}");
}

#[test]
fn forks_run_at_boundary_with_settings() {
    let home = Home::new();
    let ran = home.run(&["run", "checkout-launch", "--instant", "--format", "jsonl"]);
    assert_eq!(ran.code, Some(0));
    let id = home.run(&["runs", "--json"]).json()[0]["id"].clone();
    let places = home.run(&["fork", "last"]);
    assert!(places.out.contains("round:2") && places.code == Some(0), "{places:?}");
    let forked = home.run(&[
        "fork",
        "last@round:2",
        "--flag",
        "legal_analyst=on",
        "--set",
        "budget.max_seconds=39",
        "--format",
        "jsonl",
    ]);
    assert_eq!((forked.code, forked.err.as_str()), (Some(0), ""));
    let lines = forked.lines();
    let cut = lines.iter().position(|line| line["kind"] == "run.forked").expect("run.forked");
    assert_eq!((&lines[cut]["parent"], &lines[cut]["boundary"]), (&id, &"round:2".into()));
    assert_eq!(lines[cut + 1]["kind"], "flag.changed");
    assert_eq!(lines[0]["launch"]["forked"]["parent"], id);
    assert_eq!(lines[0]["launch"]["source"]["set"], serde_json::json!(["budget.max_seconds=39"]));
    let parent = ran.lines();
    let same = |line: &Value| (line["kind"].clone(), line["span"].clone(), line["at_us"].clone());
    let reused: Vec<_> = lines[1..cut].iter().map(same).collect();
    assert_eq!(reused, parent[1..cut].iter().map(same).collect::<Vec<_>>());
    let row = &home.run(&["runs", "--json"]).json()[0];
    assert_eq!((&row["parent"], &row["forked_at"]), (&id, &"round:2".into()));
    let page = home.run(&["export", "last", "--html"]).out;
    assert!(
        page.contains("<dt>Flags</dt><dd class=\"\">legal_analyst on from round:2, off before"),
        "{page}"
    );
    assert_eq!(home.run(&["diff", "last~1", "last"]).code, Some(1));
    // A fault is reported, and leaves no run.
    for (args, code, text) in [
        (&["fork", "last@round:9"][..], 1, "the run never came to round:9"),
        (&["fork", "last@round:3", "--set", "budget.max_rounds=2"], 1, "round:3, so fork earlier"),
        (&["fork", "last@round:2", "--flag", "nobody=on"], 2, "no such flag"),
        (&["fork", "last@round:2", "--set", "nonsense=1"], 2, "unknown key"),
        (&["fork", "last~9@round:2"], 2, "no kept run is called last~9"),
        (&["fork", "last", "--flag", "nobody=on"], 2, "`roundtable fork last@BOUNDARY"),
        (&["fork", "last", "--set", "budget.max_rounds=2"], 2, "`roundtable fork last` lists"),
        (&["fork", "last", "--instant"], 2, "a change needs the boundary"),
    ] {
        let refused = home.run(args);
        assert_eq!(refused.code, Some(code), "{args:?}: {refused:?}");
        assert!(refused.err.contains(text), "{args:?}: {refused:?}");
    }
    assert_eq!(home.run(&["runs", "--json"]).json().as_array().map(Vec::len), Some(2));
}

#[test]
fn recording_answers_until_prompt_differs() {
    let home = Home::new();
    for scenario in ["checkout-launch", "parallel-review", "morning-report", "fabricated-quote"] {
        let ran = home.run(&["run", scenario, "--instant", "--format", "json"]);
        // Of a session, the last message is answered again.
        let (before, outcome) = (ran.code, without_times(&home.run(&["show", "last"]).json()));
        let again =
            home.run(&["run", scenario, "--instant", "--format", "json", "--replay", "last"]);
        assert_eq!((again.code, without_times(&again.json())), (before, outcome), "{scenario}");
    }
    // A file works as well, and so does a run that was answered by a recording.
    let file = home.path().join("run.jsonl").display().to_string();
    assert_eq!(home.run(&["run", "checkout-launch", "--instant"]).code, Some(0));
    assert_eq!(home.run(&["export", "last", "-o", &file]).code, Some(0));
    let same = home.run(&["run", "checkout-launch", "--replay", &file, "--format", "jsonl"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.lines()[0]["launch"]["answered_by"].is_string());
    let resumed = home.run(&["fork", "last@round:2"]);
    assert!(resumed.err.contains("--replay"), "{resumed:?}");

    let goal = "goal=Decide by noon whether it may start.";
    let other = home.run(&["run", "checkout-launch", "--replay", &file, "--set", goal]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("has another prompt: message"), "{other:?}");
    assert!(other.err.contains("Decide by noon"), "{other:?}");
    let missing = home.run(&["run", "checkout-launch", "--replay", "nothing"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
}

/// The store of a home, as other programs see it.
fn raw_store(home: &Home) -> rusqlite::Connection {
    rusqlite::Connection::open(home.path().join("state/roundtable/runs.db")).expect("opens")
}

#[test]
fn database_copy_contains_runs() {
    let (home, other) = (Home::new(), Home::new());
    assert_eq!(home.run(&["run", "checkout-unanimous", "--instant"]).code, Some(0));
    let from = home.path().join("state/roundtable/runs.db");
    std::fs::create_dir_all(other.path().join("state/roundtable")).expect("made");
    std::fs::copy(&from, other.path().join("state/roundtable/runs.db")).expect("copied");
    assert_eq!(other.run(&["export", "last"]).out, home.run(&["export", "last"]).out);
}

#[cfg(unix)]
#[test]
fn removed_run_folder_is_reported() {
    for (args, code) in [
        (&["run", "checkout-unanimous"][..], 0),
        // One that is to be kept stops.
        (&["resume", "last"], 1),
    ] {
        let home = Home::new();
        let pause = ["--instant", "--format", "jsonl", "--pause-at", "finalize"];
        let first = ["run", "checkout-unanimous", "--pause-at", "round:1"];
        let mut started = home.command(&[&first[..], &pause].concat());
        let mut running = Running::start(started.stdin(std::process::Stdio::piped()));
        let stdin = running.stdin();
        running.until("paused");
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !home.run(&["export", "last"]).out.contains("\"paused\"") {
            assert!(std::time::Instant::now() < limit, "the pause is not stored");
        }
        running.kill();
        drop(stdin);
        let mut command = match args[0] {
            "run" => home.command(&[args, &pause].concat()),
            _ => home.command(&[args, &["--format", "jsonl"]].concat()),
        };
        let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
        let mut stdin = running.stdin();
        running.until("paused");
        std::fs::remove_dir_all(home.path().join("state")).expect("removed");
        press_enter(&mut stdin);
        let (status, _, err) = running.end();
        assert_eq!(status.code(), Some(code), "{args:?}: {err}");
        assert!(err.contains("was removed or replaced"), "{args:?}: {err}");
    }
}

#[test]
fn error_names_non_database_file() {
    let home = Home::new();
    home.write("state/roundtable/runs.db", &"no database at all\n".repeat(40));
    let path = home.path().join("state/roundtable/runs.db").display().to_string();
    for (args, code) in
        [(&["runs"][..], 1), (&["doctor"], 1), (&["run", "checkout-unanimous", "--instant"], 0)]
    {
        let ran = home.run(args);
        let said = flat(&format!("{} {}", ran.out, ran.err));
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(said.contains("the file is not a database"), "{args:?}: {said}");
        assert!(said.contains(&format!("move {path}")), "{args:?}: {said}");
        assert!(!said.contains("XDG_STATE_HOME"), "{args:?}: {said}");
    }
}

#[test]
fn damaged_log_never_exports_as_whole() {
    let home = Home::new();
    let doctor = || home.run(&["doctor"]);
    assert!(doctor().flat().contains("store none yet"), "{:?}", doctor());
    assert_eq!(home.run(&["run", "checkout-unanimous", "--instant"]).code, Some(0));
    assert!(doctor().flat().contains("runs.db: 1 run,") && doctor().code == Some(0));
    for damage in [
        "UPDATE event_group SET bytes = CAST(replace(CAST(bytes AS TEXT), 'go', 'no') AS BLOB)",
        "UPDATE event_group SET bytes = x'00', n = 1",
    ] {
        assert!(raw_store(&home).execute(damage, []).expect("damaged") > 0);
        for args in [
            &["export", "last"][..],
            &["export", "last", "--redact"],
            &["export", "last", "--html"],
            &["export", "last", "-o", "run.jsonl.gz"],
            &["show", "last", "--format", "jsonl"],
            &["diff", "last", "last"],
            &["fork", "last"],
            &["picture", "last", "--text"],
            &["run", "checkout-unanimous", "--replay", "last", "--no-store"],
            &["doctor"],
        ] {
            let ran = home.run(args);
            assert_ne!(ran.code, Some(0), "{args:?}: {ran:?}");
            let said = flat(&format!("{} {}", ran.out, ran.err));
            assert!(said.contains("are not those that were stored"), "{args:?}: {said}");
            assert!(args[0] == "doctor" || ran.out.is_empty(), "{args:?}: {}", ran.out);
        }
        assert!(!home.path().join("run.jsonl.gz").exists(), "no file of a damaged log");
    }
}

#[test]
fn a_damaged_row_hides_no_other() {
    let home = Home::new();
    for _ in 0..2 {
        assert_eq!(home.run(&["run", "checkout-unanimous", "--instant"]).code, Some(0));
    }
    let rows = home.run(&["runs", "--json"]).json();
    let id = |place: usize| rows[place]["id"].as_str().expect("an id").to_owned();
    let sql = "UPDATE run SET elapsed_ms = -5 WHERE id = ?1";
    assert_eq!(raw_store(&home).execute(sql, [id(0)]), Ok(1));
    let says = format!("{}: its row cannot be read", id(0));
    for args in [&["runs", "--json"][..], &["runs"], &["runs", "--grep", "margin"]] {
        let listed = home.run(args);
        assert_eq!(listed.code, Some(1), "{args:?}: {listed:?}");
        assert!(listed.out.contains(&id(1)) && !listed.out.contains(&id(0)), "{listed:?}");
        assert!(listed.err.contains(&says), "{args:?}: {listed:?}");
        assert!(listed.err.contains("`roundtable doctor`"), "{args:?}: {listed:?}");
    }
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == Some(1) && doctor.flat().contains(&says), "{doctor:?}");
}

#[test]
fn a_search_names_the_damaged_run() {
    let home = Home::new();
    for _ in 0..2 {
        assert_eq!(home.run(&["run", "front-desk", "--instant"]).code, Some(0));
    }
    let search = |json: bool| {
        let json: &[&str] = if json { &["--json"] } else { &[] };
        home.run(&[&["runs", "--grep", "dispute line"], json].concat())
    };
    // It is indexed before it is damaged.
    let whole = search(true).json();
    let id = |place: usize| whole[place]["id"].as_str().expect("an id").to_owned();
    let sql = "UPDATE event_group SET bytes = x'00' WHERE run = ?1";
    assert!(raw_store(&home).execute(sql, [id(0)]).expect("damaged") > 0);
    let found = search(true);
    assert_eq!((found.code, &found.json()[1]), (Some(1), &whole[1]), "{found:?}");
    let text = search(false);
    assert_eq!(text.code, Some(1), "{text:?}");
    assert!(text.out.contains("disputes a line"), "{text:?}");
    for ended in [found, text] {
        let named = ended.err.lines().filter(|line| line.contains(&id(0))).count();
        // The event depends on how the log was grouped when it was written.
        assert!(named == 1 && ended.err.contains("cannot be read: its bytes"), "{ended:?}");
    }
}

#[test]
fn list_shows_results_after_restart() {
    let home = Home::new();
    for (scenario, result, text) in [
        ("mixed-table", "go_with_caution", "go with caution"),
        ("checkout-unanimous", "go", "go"),
        ("front-desk", "billing", "billing"),
        ("fraud-check", "yellow", "yellow"),
        ("parallel-review", "review_lead", "review_lead"),
    ] {
        home.run(&["run", scenario, "--instant"]);
        let row = home.run(&["runs", "--json"]).json()[0].clone();
        assert_eq!((&row["scenario"], &row["result"]), (&scenario.into(), &result.into()));
        let list = home.run(&["runs"]).out;
        let line = flat(list.lines().next().expect("a row"));
        assert!(line.contains(&format!("DONE {text} ")), "{list}");
    }
    // A run that stopped says why.
    home.run(&["run", "runaway", "--instant"]);
    let row = home.run(&["runs", "--json"]).json()[0].clone();
    assert_eq!(row["stop_reason"], "max_handoffs", "{row}");
    assert!(home.run(&["runs"]).out.contains("handoff limit"));
    // For a reply that stopped it: the fault of the reply, and not the machine-readable reason.
    let table = "title = \"T\"\npattern = \"collaboration\"\ngoal = \"g\"\n\
         [collaboration]\nsequence = [\"ann\"]\nfinalize_prompt = \"f\"\n\
         [roles.ann]\nprompt = \"p\"\n[[script]]\nrole = \"ann\"\nraw = \"I agree.\"\n";
    home.write("t.toml", table);
    home.run(&["run", "t.toml", "--instant"]);
    let list = home.run(&["runs"]).out;
    assert!(list.lines().next().expect("a row").contains("ann's reply is not JSON"), "{list}");
    // In another store it is the same.
    let first = home.run(&["runs", "--scenario", "mixed-table", "--json"]).json();
    let first = first[0]["id"].as_str().expect("an id");
    assert_eq!(home.run(&["export", first, "-o", "run.jsonl"]).code, Some(0));
    let other = Home::new();
    let file = home.path().join("run.jsonl").display().to_string();
    assert_eq!(other.run(&["import", &file]).code, Some(0));
    assert_eq!(other.run(&["runs", "--json"]).json()[0]["result"], "go_with_caution");
}
