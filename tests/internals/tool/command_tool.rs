//! Programs as tools: what they are given, how they fail, and that nothing of them outlives its
//! attempt.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::command::CommandSpec;
use crate::support::pipe::{gone, make_pipe, processes};
use crate::tool::command::CommandTool;
use rustix::process::test_kill_process;
use serde_json::{Map, Value, json};

use super::environment;

fn spec(program: &str, args: &[&str], env: &[(&str, Setting)]) -> CommandSpec {
    CommandSpec {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        max_bytes: 1 << 20,
    }
}

fn tool(spec: CommandSpec) -> CommandTool {
    CommandTool::new(Arc::new(spec), &environment).expect("every variable is set")
}

fn script(text: &str) -> CommandTool {
    tool(spec("sh", &["-c", text], &[("TOKEN", Setting::Env("SHOP_TOKEN".to_owned()))]))
}

fn request(args: &Map<String, Value>) -> ToolRequest<'_> {
    ToolRequest::bare(args)
}

async fn ask(tool: &CommandTool, args: Value) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let Value::Object(args) = args else { panic!("arguments are a table") };
    // A test that hangs fails instead.
    tokio::time::timeout(Duration::from_secs(30), tool.ask(request(&args))).await.expect("it hangs")
}

async fn fail(tool: &CommandTool) -> (FailureClass, String) {
    let failed = ask(tool, json!({})).await.expect_err("a failure");
    assert!(!failed.text.contains("hunter2"), "{}", failed.text);
    assert!(!failed.text.chars().any(char::is_control), "{:?}", failed.text);
    (failed.class, failed.text)
}

#[tokio::test]
async fn exchanges_arguments_and_answer_as_json() {
    let args = json!({ "region": "EU", "note": "grün \"x\"; rm -rf $HOME", "n": [1, 2.5] });
    let answer = ask(&tool(spec("cat", &[], &[])), args.clone()).await.expect("an answer");
    assert_eq!(*answer, args);
}

#[tokio::test]
async fn environment_holds_only_named_variables() {
    let plain = Setting::Text("b c".to_owned());
    let (class, text) = fail(&tool(spec("env", &[], &[("A", plain)]))).await;
    assert_eq!(class, FailureClass::BadResponse);
    let own = "the output of env is not JSON: expected value at line 1 column 1: A=b c";
    let rest = text.strip_prefix(own).unwrap_or_else(|| panic!("{text}"));
    assert!(rest.contains("ROUNDTABLE_STARTED_BY=/") && rest.matches('=').count() == 1, "{rest}");
}

#[tokio::test]
async fn answers_hide_secrets() {
    let echo = script(r#"printf '{"said":["%s"]}' "token $TOKEN""#);
    assert_eq!(*ask(&echo, json!({})).await.expect("an answer"), json!({ "said": ["token ***"] }));
}

#[tokio::test]
async fn failed_program_reports_last_line() {
    let loud = r#"echo first >&2; printf 'no %s \033[2J today\n\n' "$TOKEN" >&2; exit 3"#;
    for (program, says) in [
        (loud, "sh ended with exit code 3: no *** ␛[2J today"),
        ("echo '{}'; exit 1", "sh ended with exit code 1: nothing on standard error"),
        ("kill -9 $$", "sh ended with signal 9: nothing on standard error"),
    ] {
        assert_eq!(fail(&script(program)).await, (FailureClass::Tool, says.to_owned()));
    }
}

#[tokio::test]
async fn keeps_only_last_whole_error_line() {
    let many =
        r#"i=0; while [ $i -lt 2000 ]; do echo "line $i $TOKEN" >&2; i=$((i+1)); done; exit 1"#;
    assert_eq!(fail(&script(many)).await.1, "sh ended with exit code 1: line 1999 ***");
    let long = r#"i=0; while [ $i -lt 2000 ]; do printf "$TOKEN" >&2; i=$((i+1)); done; exit 1"#;
    assert_eq!(
        fail(&script(long)).await.1,
        "sh ended with exit code 1: (one line, too long to show)"
    );
}

#[tokio::test]
async fn refuses_integers_beyond_64_bits() {
    let (class, text) = fail(&script("echo '{\"id\": 12345678901234567890123}'")).await;
    assert_eq!(class, FailureClass::BadResponse);
    assert!(
        text.contains("holds 12345678901234567890123, a whole number beyond 64 bits"),
        "{text}"
    );
}

#[tokio::test]
async fn invalid_json_error_names_position() {
    for (program, says) in [
        ("true", "the output of sh is empty, JSON was expected"),
        (
            r#"printf '{"a":\n oops}'"#,
            "the output of sh is not JSON: expected value at line 2 column 2: {\"a\":␊ oops}",
        ),
        (
            "echo '{}'; echo '{}'",
            "the output of sh is not JSON: trailing characters at line 2 column 1: {}␊{}",
        ),
    ] {
        assert_eq!(fail(&script(program)).await, (FailureClass::BadResponse, says.to_owned()));
    }
}

#[tokio::test]
async fn silent_exit_breaks_contract() {
    let args = json!({ "much": "x".repeat(1 << 20) });
    let failed = ask(&script("exec 0<&- 1>&-; exit 0"), args).await.expect_err("nothing came");
    assert_eq!(failed.class, FailureClass::BadResponse);
}

#[tokio::test]
async fn missing_program_error_advises_fix() {
    for (program, says) in [
        (
            "no-such-program-here",
            "program no-such-program-here not found: install it, or give its full path",
        ),
        ("python3 x.py", "program python3 x.py not found: write its arguments in args"),
        (
            "Cargo.toml",
            "program Cargo.toml not found: did you mean ./Cargo.toml, which is not in PATH?",
        ),
        ("/no/such", "program /no/such not found: there is no /no/such"),
    ] {
        let failure = fail(&tool(spec(program, &[], &[]))).await;
        assert_eq!(failure, (FailureClass::Tool, says.to_owned()));
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (class, text) = fail(&tool(spec(&file.path().to_string_lossy(), &[], &[]))).await;
    assert_eq!(class, FailureClass::Tool);
    assert!(text.ends_with(": make it executable"), "{text}");
}

#[test]
fn reports_unset_variable_before_start() {
    let needs = spec("true", &[], &[("TOKEN", Setting::Env("NOT_SET".to_owned()))]);
    let told = CommandTool::new(Arc::new(needs), &environment).expect_err("it is missing");
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["TOKEN comes from $NOT_SET, which is not set: set it and start again"]);
}

/// A named pipe that every process of a script holds open: they write their process ids to it, and it
/// ends when the last of them has ended.
struct Witness {
    folder: tempfile::TempDir,
}

impl Witness {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        make_pipe(&folder.path().join("pipe"));
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }

    /// A script that has the pipe as file 3.
    fn script(&self, text: &str) -> CommandTool {
        let pipe = Setting::Text(self.path().to_string_lossy().into_owned());
        tool(spec("sh", &["-c", &format!("exec 3>\"$PIPE\"; {text}")], &[("PIPE", pipe)]))
    }
}

#[tokio::test]
async fn timeout_kills_process_tree() {
    let witness = Witness::new();
    let stubborn = witness.script(
        "trap '' TERM INT HUP; echo $$ >&3
         sh -c 'trap \"\" TERM; echo $$ >&3; sleep 1000; sleep 1000' &
         sh -c 'echo $$ >&3; exec sleep 1000' &
         wait; wait; sleep 1000",
    );
    let args = Map::new();
    let mut asked = stubborn.ask(request(&args));
    let (pids, pipe) = tokio::select! {
        ended = &mut asked => panic!("it ended by itself: {ended:?}"),
        started = processes(witness.path(), 3) => started,
    };
    for pid in &pids {
        test_kill_process(*pid).expect("it runs");
    }
    // What the gateway does when the time is up, or the run is cancelled.
    drop(asked);
    gone(pids, pipe).await;
}

#[tokio::test]
async fn output_flood_stops_at_cap() {
    let witness = Witness::new();
    let flood = witness.script(
        "trap '' PIPE; sleep 1000 & echo $$ >&3; echo $! >&3
         head -c 1073741824 /dev/zero; sleep 1000",
    );
    let (asked, (pids, pipe)) = tokio::join!(ask(&flood, json!({})), processes(witness.path(), 2));
    let failed = asked.expect_err("too much");
    assert_eq!(failed.class, FailureClass::TooLarge);
    assert_eq!(
        failed.text,
        "sh printed more than 1 MiB and was killed: print less, or raise max_bytes"
    );
    gone(pids, pipe).await;
}

#[tokio::test]
async fn kills_leftover_processes_without_delay() {
    let witness = Witness::new();
    // In the group, in a session of its own, and a daemon, whose parent has ended.
    let litter = witness.script(
        "sh -c 'echo $$ >&3; exec sleep 1000' &
         setsid sh -c 'echo $$ >&3; exec sleep 1000' &
         sh -c 'setsid sh -c \"echo \\$\\$ >&3; exec sleep 1000\" & exit'
         echo '{\"ok\":true}'; read -r go <\"$PIPE.go\"",
    );
    let go = witness.path().with_file_name("pipe.go");
    assert!(Command::new("mkfifo").arg(&go).status().expect("mkfifo runs").success());
    let (answer, (pids, pipe)) = tokio::join!(ask(&litter, json!({})), async {
        let started = processes(witness.path(), 3).await;
        // Only now may the program end, so that there is somebody to leave behind.
        tokio::task::spawn_blocking(move || std::fs::write(go, "\n"))
            .await
            .expect("a thread")
            .expect("it listens");
        started
    });
    assert_eq!(*answer.expect("an answer"), json!({ "ok": true }));
    gone(pids, pipe).await;
}

#[tokio::test]
async fn many_run_side_by_side() {
    let cat = tool(spec("cat", &[], &[]));
    let asked = (0..20).map(|n| ask(&cat, json!({ "n": n })));
    for (n, answer) in futures::future::join_all(asked).await.into_iter().enumerate() {
        assert_eq!(*answer.expect("an answer"), json!({ "n": n }));
    }
}
