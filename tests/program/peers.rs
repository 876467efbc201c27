//! Runs that other processes of this user play: detached, steered and answered from elsewhere, and what
//! hostile programs and killed processes do to that.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, end};
use crate::support::people::DESK;

/// A home with detached runs. A test that fails leaves none of them running.
struct Scene(Home);

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        home.write("desk.toml", DESK);
        Self(home)
    }

    /// The id of a run that has begun.
    fn detach(&self, args: &[&str]) -> String {
        let begun = self.run(&[&["run", "desk.toml", "--instant", "--detach"], args].concat());
        assert_eq!(begun.code, Some(0), "{begun:?}");
        begun.out.trim().to_owned()
    }

    fn run(&self, args: &[&str]) -> Ended {
        self.0.run(args)
    }

    /// The program, as this user.
    fn run_as(&self, user: &str, args: &[&str]) -> Ended {
        end(self.0.command(args).env("USER", user))
    }

    fn row(&self, run: &str) -> Value {
        let rows = self.run(&["runs", "--json"]).json();
        let mut rows = rows.as_array().expect("rows").iter();
        rows.find(|row| row["id"] == run).cloned().unwrap_or_default()
    }

    fn pid(&self, run: &str) -> String {
        self.row(run)["process"]["pid"].to_string()
    }

    fn waits_until(&self, run: &str, is: impl Fn(&Value) -> bool) -> Value {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let row = self.row(run);
            if is(&row) {
                return row;
            }
            assert!(Instant::now() < limit, "{row}");
        }
    }

    fn asks(&self, run: &str, who: &str) {
        self.waits_until(run, |row| row["waits_for"] == json!([who]));
    }

    fn folder(&self) -> PathBuf {
        let uid = rustix::process::getuid().as_raw();
        self.0.path().join(format!("state/roundtable/live-{uid}"))
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder()).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// The events of one of these kinds.
    fn events(&self, run: &str, kind: &str) -> Vec<Value> {
        let lines = self.run(&["export", run]).lines();
        lines.into_iter().filter(|line| line["kind"] == kind).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for row in self.run(&["runs", "--json"]).json().as_array().into_iter().flatten() {
            signal("KILL", &row["process"]["pid"].to_string());
        }
    }
}

fn signal(name: &str, pid: &str) {
    let _ = Command::new("kill").args(["-s", name, pid]).output();
}

/// Its terminal may be closed, and everything else comes from elsewhere.
#[test]
fn detached_run_is_steered() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let process = scene.row(&run)["process"].clone();
    assert!(process["silent_ms"].is_u64() && process["last"].is_string(), "{process}");
    let text = scene.run(&["runs"]).flat();
    assert!(text.contains(&format!("process {}", process["pid"])), "{text}");
    signal("HUP", &scene.pid(&run));

    let asked = scene.run(&["answer", &run]).out;
    assert!(asked.contains("q1 for operator") && asked.contains("--approve"), "{asked}");
    for (args, code, said) in [
        (&["ctl", "last", "pause"][..], 0, "ann pauses the run"),
        (&["ctl", &run, "fault", "refund", "latency=1"], 0, "ann injects latency into refund"),
        (&["ctl", &run, "limit", "refund", "max_in_flight=1"], 0, "ann changes a limit of refund"),
        (&["ctl", &run, "flag", "legal_analyst=on"], 2, "the run has no flags"),
        (&["ctl", &run, "fault", "nothing", "hang"], 2, "no tool nothing: it has"),
        (&["ctl", &run, "fault", "refund", "slow"], 2, "`slow` is no fault"),
        (&["ctl", &run, "resume"], 0, "ann resumes the run"),
        (&["ctl", "r-none", "pause"], 2, "no process of this user plays r-none"),
        (&["answer", &run, "q1", "--text", "yes"], 2, "approve it or deny it"),
        (&["answer", &run, "q2", "--approve"], 1, "q2 is not open"),
        (&["answer", &run, "q1", "--approve"], 0, "q1: approved by ann at"),
        (&["answer", &run, "q1", "--deny", "late"], 1, "not open any more: approved by ann"),
    ] {
        let ended = scene.run_as("ann", args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(format!("{}{}", ended.out, ended.err).contains(said), "{args:?}: {ended:?}");
    }
    scene.asks(&run, "manager");
    let said = scene.run_as("bob", &["answer", &run, "q2", "--text", "We are."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = scene.waits_until(&run, |row| row["status"] == "ended");
    assert_eq!(row["stop_reason"], "success");
    let taken = scene.events(&run, "command.taken");
    let by = |line: &Value| line["by"].as_str().map(str::to_owned);
    assert_eq!(taken.iter().filter_map(by).filter(|by| by == "ann").count(), 5);
    assert_eq!(scene.run(&["show", &run]).json()["answer"], "We are.");
    // Nothing is left of its process.
    assert!(scene.sockets().is_empty());

    let run = scene.detach(&[]);
    assert_eq!(scene.run(&["ctl", &run, "cancel"]).code, Some(0));
    let row = scene.waits_until(&run, |row| row["status"] == "ended");
    assert_eq!(row["stop_reason"], "cancelled");
}

fn ctl_of(scene: &Scene, run: &str, args: &[&str]) -> Ended {
    scene.run(&[&["ctl", run], args].concat())
}

/// `answer` says what became of its own answer: refused by a rule, counted though one before was refused, or too late.
#[test]
fn answer_says_what_became_of_it() {
    let scene = Scene::new();
    let rule =
        "[[approve]]\ntool = \"refund\"\nwhen = \"args.amount_usd > 500.0\"\ndo = \"deny\"\n";
    scene.0.write("desk.toml", &format!("{DESK}\n{rule}"));
    scene.0.write("more.json", r#"{ "charge": "ch_2", "amount_usd": 900.5 }"#);
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let listed = scene.run(&["answer", &run]).out;
    assert!(listed.contains("q1 for operator, asked by billing: refund"), "{listed}");
    for (args, code, said) in [
        (&["--args", "more.json"][..], 1, "the answer to q1 was refused: the rule"),
        (&["--approve"], 0, "q1: approved by ann at"),
        (&["--approve"], 1, "q1 is not open any more: approved by ann"),
    ] {
        let ended = scene.run_as("ann", &[&["answer", &run, "q1"], args].concat());
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(format!("{}{}", ended.out, ended.err).contains(said), "{args:?}: {ended:?}");
    }
    assert_eq!(scene.run(&["ctl", &run, "cancel"]).code, Some(0));
}

/// A contribution that the table refuses is not reported as given.
#[test]
fn refused_contribution_is_said() {
    let scene = Scene::new();
    scene.0.write("table.toml", TABLE);
    let begun = scene.run(&["run", "table.toml", "--instant", "--detach"]);
    let run = begun.out.trim().to_owned();
    scene.asks(&run, "chief");
    let listed = scene.run(&["answer", &run]).out;
    for part in ["q1 goal: Decide about the launch.", "q1 fields: stance (go, caution or block)"] {
        assert!(listed.contains(part), "no {part}: {listed}");
    }
    let give = |id: &str, contribution: &str| {
        let json = format!("{{\"contribution\":{contribution}}}");
        scene.run(&["answer", &run, id, "--json", &json])
    };
    let refused =
        give("q1", r#"{"stance":"maybe","confidence":0.5,"summary":"s","actions":["a"]}"#);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in ["the answer to q1 was refused: stance is \"maybe\"", "q2 is open"] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
    let again = scene.run(&["answer", &run]).out;
    assert!(again.contains("q2 refused: stance is \"maybe\""), "{again}");
    let given = give("q2", r#"{"stance":"go","confidence":0.5,"summary":"s","actions":["a"]}"#);
    assert_eq!(given.code, Some(0), "{given:?}");
    assert!(given.out.contains("q2: contributed by"), "{given:?}");
}

/// A table of a model and a person.
const TABLE: &str = r#"
title = "A table"
pattern = "collaboration"
goal = "Decide about the launch."
[people.chief]
description = "Decides."
[collaboration]
sequence = ["a", "cfo"]
finalize_prompt = "Write."
[roles.a]
prompt = "You are a."
[roles.cfo]
person = "chief"
[[script]]
role = "a"
reply = { stance = "go", summary = "a", confidence = 0.8, actions = ["act"] }
[[script]]
step = "finalize"
text = "The brief."
"#;

/// A run that pauses is stepped, and its flags are switched, from another terminal.
#[test]
fn paused_run_is_stepped_and_flagged() {
    let scene = Scene::new();
    let args = ["run", "checkout-launch", "--instant", "--detach", "--pause-at", "round:1"];
    let begun = scene.run(&args);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let run = begun.out.trim();
    let last = |kind: &str| scene.waits_until(run, |row| row["process"]["last"] == kind);
    last("paused");
    let steer = |args: &[&str], said: &str| {
        let ended = scene.run_as("ann", &[&["ctl", run], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        assert!(ended.out.contains(said), "{args:?}: {ended:?}");
    };
    let wrong = scene.run(&["ctl", run, "flag", "lawyer=on"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("no flag lawyer: it has legal_analyst"), "{wrong:?}");
    let wrong = scene.run(&["ctl", run, "message", "Well?"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("only teams and swarms take messages"), "{wrong:?}");
    // What can have no effect is refused with the reason.
    for (args, why) in [
        (&["parallel", "2"][..], "only an orchestrator has a number of tasks at a time"),
        (&["break", "plan"], "collaboration: it has no boundary plan"),
        (&["forget", "q1"], "the run remembers no approval of q1"),
        (&["fault", "llm", "latency", "--remove"], "llm has no fault latency"),
        (&["fault", "llm", "errors=5:200"], "the status is from 400 to 599"),
    ] {
        let wrong = ctl_of(&scene, run, args);
        assert_eq!(wrong.code, Some(2), "{args:?}: {wrong:?}");
        assert!(wrong.err.contains(why), "{args:?}: {wrong:?}");
    }
    steer(&["flag", "legal_analyst=on"], "ann switches legal_analyst on");
    steer(&["break", "finalize"], "ann sets a breakpoint");
    steer(&["break", "finalize", "--remove"], "ann removes the breakpoint");
    steer(&["step-round"], "ann steps to the next round");
    last("paused");
    steer(&["step"], "ann steps to the next boundary");
    last("paused");
    steer(&["resume"], "ann resumes the run");
    let row = scene.waits_until(run, |row| row["status"] == "ended");
    assert_eq!(row["stop_reason"], "success");
    let count = |kind: &str| scene.events(run, kind).len();
    assert_eq!((count("flag.changed"), count("stepped"), count("command.taken")), (1, 2, 6));
    assert_eq!(scene.events(run, "flag.changed")[0]["by"], "remote");
}

/// A flag that waits for the next boundary is not lost with the process.
#[test]
fn taken_flag_survives_the_process() {
    let scene = Scene::new();
    let args = ["run", "checkout-launch", "--instant", "--detach", "--pause-at", "round:2"];
    let run = scene.run(&args).out.trim().to_owned();
    scene.waits_until(&run, |row| row["process"]["last"] == "paused");
    assert_eq!(scene.run(&["ctl", &run, "flag", "legal_analyst=on"]).code, Some(0));
    signal("KILL", &scene.pid(&run));
    scene.waits_until(&run, |row| row["status"] == "interrupted");
    assert_eq!(scene.run(&["resume", &run]).code, Some(0));
    let changed = scene.events(&run, "flag.changed");
    assert_eq!((changed.len(), &changed[0]["boundary"]), (1, &json!("round:2")), "{changed:?}");
}

/// Messages from elsewhere are answered in one run more; a killed process loses none.
#[test]
fn queued_messages_are_answered() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    for (text, code, said) in [
        ("Thank you.", 0, "ann queues a message: Thank you."),
        ("Please write.", 0, "ann queues a message: Please write."),
        (" ", 2, "the text is empty"),
    ] {
        let sent = scene.run_as("ann", &["ctl", &run, "message", text]);
        assert_eq!(sent.code, Some(code), "{text}: {sent:?}");
        assert!(format!("{}{}", sent.out, sent.err).contains(said), "{text}: {sent:?}");
    }
    signal("KILL", &scene.pid(&run));
    scene.waits_until(&run, |row| row["status"] == "interrupted");
    let resumed = scene.run(&["resume", &run, "--detach"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    scene.asks(&run, "operator");
    assert_eq!(scene.run(&["answer", &run, "q1", "--approve"]).code, Some(0));
    scene.asks(&run, "manager");
    assert_eq!(scene.run(&["answer", &run, "q2", "--text", "We are."]).code, Some(0));
    scene.waits_until(&run, |row| row["status"] == "ended");
    let next = loop {
        let rows = scene.run(&["runs", "--json"]).json();
        let mut rows = rows.as_array().expect("rows").iter();
        if let Some(row) = rows.find(|row| row["id"] != *run) {
            break row["id"].as_str().expect("an id").to_owned();
        }
    };
    scene.asks(&next, "operator");
    let head = scene.events(&next, "run.started")[0].clone();
    assert_eq!(head["plan"]["session"]["text"], "Thank you.\n\nPlease write.", "{head}");
    assert_eq!(head["plan"]["session"]["previous_run"], *run);
    assert_eq!(scene.run(&["ctl", &next, "message", "Bye."]).code, Some(0));
    assert_eq!(scene.run(&["ctl", &next, "cancel"]).code, Some(0));
    scene.waits_until(&next, |row| row["status"] == "ended");
    let late = scene.run(&["ctl", &next, "message", "Bye."]);
    assert_eq!(late.code, Some(1), "{late:?}");
    // Nobody answers a message of a run that was cancelled.
    while !scene.sockets().is_empty() {}
    assert_eq!(scene.run(&["runs", "--json"]).json().as_array().map(Vec::len), Some(2));
}

/// What a detached run cannot do is said before it begins, as of any run.
#[test]
fn detach_refuses_what_needs_terminal() {
    let scene = Scene::new();
    for (args, code, said) in [
        (&["run", "nothing", "--detach"][..], 2, "no file nothing"),
        (&["run", "-", "--detach"], 2, "standard input"),
        (&["run", "desk.toml", "--detach", "--people", "ask"], 2, "on standard input"),
        (&["run", "desk.toml", "--detach", "--format", "json"], 2, "not printed"),
        (&["fork", "last", "--detach"], 2, "no kept run"),
        (&["run", "desk.toml", "--detach", "--times", "2"], 2, "many runs"),
    ] {
        let refused = scene.run(args);
        assert_eq!(refused.code, Some(code), "{args:?}: {refused:?}");
        assert!(refused.err.contains(said), "{args:?}: {refused:?}");
    }
    assert_eq!(scene.run(&["runs", "--json"]).json(), json!([]));
}

/// Three people at once: each question has one answer, and the others are told whose.
#[test]
fn first_answer_of_three_counts() {
    let scene = Scene::new();
    let runs: Vec<String> = (0..10).map(|_| scene.detach(&[])).collect();
    runs.iter().for_each(|run| scene.asks(run, "operator"));
    let people = ["ann", "bob", "cyd"];
    for (id, answer) in [("q1", &["--approve"][..]), ("q2", &["--text", "We are."])] {
        let given: Vec<Vec<Ended>> = thread::scope(|scope| {
            let person = |name: &'static str| {
                let (scene, runs) = (&scene, &runs);
                scope.spawn(move || {
                    let args = |run| [&["answer", run, id], answer].concat();
                    runs.iter().map(|run| scene.run_as(name, &args(run))).collect()
                })
            };
            let all: Vec<_> = people.into_iter().map(person).collect();
            all.into_iter().map(|it| it.join().expect("answered")).collect()
        });
        for (place, run) in runs.iter().enumerate() {
            let answers = scene.events(run, "question.answered");
            let counted: Vec<_> = answers.iter().filter(|line| line["id"] == id).collect();
            assert_eq!(counted.len(), 1, "{run} {id}");
            let winner = counted[0]["name"].as_str().expect("a name");
            for (name, given) in people.iter().zip(&given) {
                let said = &given[place];
                let expected = if *name == winner { 0 } else { 1 };
                assert_eq!(said.code, Some(expected), "{run} {id} {name}: {said:?}");
                let text = format!("{}{}", said.out, said.err);
                assert!(text.contains(winner), "{run} {id} {name}: {said:?}");
            }
            match id {
                "q1" => scene.asks(run, "manager"),
                _ => drop(scene.waits_until(run, |row| row["status"] == "ended")),
            }
        }
    }
}

#[test]
fn hostile_clients_harm_nothing() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let mode = |path: &PathBuf| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(&scene.folder()), 0o700);
    let socket = scene.sockets().pop().expect("a socket");
    let connect = || UnixStream::connect(&socket).expect("it listens");

    // Half open, and never a request.
    let silent: Vec<UnixStream> =
        (0..1_000).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    let long = [vec![b'x'; 10 << 20], b"\n".to_vec()].concat();
    for garbage in [&b"\n"[..], b"\xff\xfe\n", b"{}\n", b"{\"runs\":1}\n", b"[[[[[[[[\n", &long] {
        let mut stream = connect();
        // It stops reading a line that is too long.
        let _ = stream.write_all(garbage);
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    // A follower that reads nothing holds nobody up.
    let mut deaf = connect();
    writeln!(deaf, "{}", json!({ "follow": { "run": run } })).expect("sent");
    let mut foreign = connect();
    let path = "../../../etc/passwd";
    writeln!(foreign, "{}", json!({ "announce": { "socket": path } })).expect("sent");
    assert_eq!(scene.run(&["answer", &run, "q1", "--approve"]).code, Some(0));
    drop((silent, deaf));
    scene.asks(&run, "manager");
    assert_eq!(scene.run(&["answer", &run, "q2", "--text", "We are."]).code, Some(0));
    scene.waits_until(&run, |row| row["status"] == "ended");
}

/// A socket whose process never ends a line: what reads it stops soon, and says so.
#[test]
fn endless_reply_is_refused() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let listener = UnixListener::bind(scene.folder().join("0123abcd")).expect("a socket");
    let sent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        drop(listener);
        let (piece, mut sent) = ([b'x'; 64 << 10], 0);
        while stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        sent
    });
    assert_eq!(scene.run(&["answer", &run, "q1", "--deny"]).code, Some(0));
    assert!(sent.join().expect("no panic") < 16 << 20);
}

/// The connections of a process are limited, and one too many learns that.
#[test]
fn too_many_followers_are_refused() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let socket = scene.sockets().pop().expect("a socket");
    let follow = || {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        writeln!(stream, "{}", json!({ "follow": { "run": run } })).expect("sent");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a reply");
        (stream, line)
    };
    let followers: Vec<_> = (0..128).map(|_| follow()).collect();
    assert!(followers.iter().all(|(_, line)| line.starts_with("{\"clock\":")));
    assert_eq!(follow().1, "{\"refused\":\"too many connections: 128 are open\"}\n");
    let paused = scene.run(&["ctl", &run, "pause"]);
    assert!(paused.err.contains("too many connections: 128 are open"), "{paused:?}");
    drop(followers);
}

/// A process that was killed leaves its socket; the next one that finds it removes it. Nothing is lost.
#[test]
fn killed_process_leaves_nothing_behind() {
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    signal("KILL", &scene.pid(&run));
    scene.waits_until(&run, |row| row["status"] == "interrupted");
    assert_eq!(scene.sockets().len(), 1);
    let nobody = scene.run(&["answer", &run, "q1", "--approve"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.err.contains(&format!("roundtable resume {run}")), "{nobody:?}");
    assert!(scene.sockets().is_empty());
    let resumed = scene.run(&["resume", &run, "--detach"]);
    assert_eq!(resumed.out.trim(), run, "{resumed:?}");
    scene.asks(&run, "operator");
    assert_eq!(scene.run(&["answer", &run, "q1", "--approve"]).code, Some(0));
    scene.asks(&run, "manager");
    assert_eq!(scene.events(&run, "question.asked").len(), 2);
}

/// The path of a socket has about 100 bytes: where the state is deeper, another folder is used.
#[test]
fn deep_state_has_short_sockets() {
    let scene = Scene::new();
    for length in [60, 107, 200] {
        let state = scene.0.path().join("s".repeat(length));
        let as_there = |args: &[&str]| end(scene.0.command(args).env("XDG_STATE_HOME", &state));
        let begun = as_there(&["run", "desk.toml", "--instant", "--detach"]);
        let run = begun.out.trim();
        assert_eq!(begun.code, Some(0), "{begun:?}");
        let ended = as_there(&["ctl", run, "cancel"]);
        assert_eq!(ended.code, Some(0), "{length}: {ended:?}");
    }
}

/// Where the state of two users is one folder, each has a folder of sockets of its own. The folder of
/// another user, and a connection of one, are not used.
#[test]
fn other_users_are_refused() {
    if !rustix::process::getuid().is_root() {
        eprintln!("SKIPPED: other_users_are_refused needs root, to become another user");
        return;
    }
    let scene = Scene::new();
    let run = scene.detach(&[]);
    scene.asks(&run, "operator");
    let socket = scene.sockets().pop().expect("a socket");
    // Even if the folders were open to all.
    let mut folder = Some(socket.as_path());
    while let Some(path) = folder.filter(|path| *path != std::env::temp_dir()) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("changed");
        folder = path.parent();
    }
    let asked = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({socket:?})\n\
         s.sendall(b'{{\"runs\":null}}\\n\"runs\"\\n')\nprint(len(s.recv(100)))\n"
    );
    let asked_as = |uid: u32| {
        let mut python = Command::new("python3");
        end(python.args(["-c", &asked]).uid(uid).gid(uid))
    };
    const NOBODY: u32 = 65_534;
    let own = asked_as(0);
    assert!(own.out.trim().parse::<u32>().is_ok_and(|read| read > 0), "{own:?}");
    let foreign = asked_as(NOBODY);
    assert!(matches!(foreign.out.trim(), "" | "0"), "{foreign:?}");

    // A folder that somebody else has made is not used, and the run goes on unseen.
    std::fs::set_permissions(scene.folder(), PermissionsExt::from_mode(0o700)).expect("changed");
    assert_eq!(scene.run(&["ctl", &run, "cancel"]).code, Some(0));
    scene.waits_until(&run, |row| row["status"] == "ended");
    std::os::unix::fs::chown(scene.folder(), Some(NOBODY), None).expect("changed");
    let alone = scene.run(&["run", "checkout-unanimous", "--instant"]);
    assert_eq!(alone.code, Some(0), "{alone:?}");
    let refused = scene.run(&["ctl", "last", "pause"]);
    assert!(refused.err.contains("belongs to another user"), "{refused:?}");
}
