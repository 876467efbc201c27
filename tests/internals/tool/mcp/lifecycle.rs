//! When a server starts and ends, and that no process outlives it.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{call, fail, fake, fake_with, fields, in_time, text};
use crate::gateway::NoHost;
use crate::log::event::FailureClass;
use crate::support::pipe::{gone, make_pipe, processes};
use crate::tool::mcp::McpServer;

/// A fake server that holds a named pipe open, which ends with the last of its processes.
struct Watched {
    server: Arc<McpServer>,
    _folder: tempfile::TempDir,
    pipe: PathBuf,
}

impl Watched {
    fn new(mode: &str, env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        make_pipe(&pipe);
        let path = pipe.to_string_lossy().into_owned();
        let mut all = vec![("WITNESS", path.as_str())];
        all.extend(env);
        Self { server: fake_with(mode, &all), _folder: folder, pipe }
    }
}

#[tokio::test]
async fn end_and_drop_leave_no_process() {
    for is_end in [true, false] {
        let Watched { server, _folder, pipe } = Watched::new("stays", &[]);
        let (started, (pids, pipe)) =
            in_time(async { tokio::join!(call(&server, "family", json!({})), processes(pipe, 3)) })
                .await;
        started.expect("its processes run");
        match is_end {
            true => {
                server.end();
                let (class, text) = fail(&server, "echo", json!({})).await;
                assert_eq!(class, FailureClass::Cancelled);
                assert_eq!(text, "the MCP server shop has ended. Its run has ended.");
            }
            false => drop(server),
        }
        gone(pids, pipe).await;
    }
}

#[tokio::test]
async fn end_lets_server_end_itself() {
    let Watched { server, _folder, pipe } = Watched::new("says_bye", &[]);
    let args = fields(json!({}));
    let (_, mut pipe) = in_time(async {
        tokio::select! {
            ended = server.call("never", &args, &NoHost) => panic!("it ended: {ended:?}"),
            started = processes(pipe, 1) => started,
        }
    })
    .await;
    server.end();
    let mut rest = String::new();
    let read = tokio::task::spawn_blocking(move || pipe.read_to_string(&mut rest).map(|_| rest));
    assert_eq!(in_time(read).await.expect("a thread").expect("the pipe ends"), "bye\n");
}

#[tokio::test]
async fn end_fails_calls_in_flight() {
    let Watched { server, _folder, pipe } = Watched::new("plain", &[]);
    let args = fields(json!({}));
    let (failed, (pids, pipe)) = in_time(async {
        tokio::join!(server.call("never", &args, &NoHost), async {
            let started = processes(pipe, 1).await;
            server.end();
            started
        })
    })
    .await;
    assert_eq!(failed.expect_err("it has ended").class, FailureClass::Cancelled);
    gone(pids, pipe).await;
}

#[tokio::test]
async fn dropped_start_leaves_no_process() {
    let Watched { server, _folder, pipe } = Watched::new("silent", &[]);
    let args = fields(json!({}));
    let (pids, pipe) = in_time(async {
        tokio::select! {
            ended = server.call("echo", &args, &NoHost) => panic!("it ended: {ended:?}"),
            started = processes(pipe, 1) => started,
        }
    })
    .await;
    gone(pids, pipe).await;
}

#[tokio::test]
async fn dropped_call_is_cancelled() {
    let Watched { server, _folder, pipe } = Watched::new("plain", &[]);
    let args = fields(json!({}));
    let (_, _pipe) = in_time(async {
        tokio::select! {
            ended = server.call("report_cancel", &args, &NoHost) => panic!("it ended: {ended:?}"),
            started = processes(pipe, 1) => started,
        }
    })
    .await;
    // The server reads this only after it was told.
    assert_eq!(text(&server, "was_cancelled", json!({})).await, "True");
}

#[tokio::test]
async fn closed_input_ends_server() {
    let Watched { server, _folder, pipe } = Watched::new("plain", &[]);
    let args = fields(json!({}));
    let closes = server.call("close_input", &args, &NoHost);
    let (failed, (_, (pids, pipe))) = in_time(async {
        tokio::join!(closes, async {
            let started = processes(pipe, 1).await;
            // This cannot be written.
            (server.call("echo", &args, &NoHost).await, started)
        })
    })
    .await;
    let text = failed.expect_err("it was ended").text;
    let says = "the MCP server shop closed its standard input: nothing on standard error.";
    assert!(text.starts_with(says), "{text}");
    gone(pids, pipe).await;
}

#[tokio::test]
async fn killed_server_starts_again() {
    let server = fake("plain");
    let pid = text(&server, "pid", json!({})).await;
    let number = Pid::from_raw(pid.parse().expect("a number")).expect("a process");
    let args = fields(json!({}));
    let hangs = server.call("never", &args, &NoHost);
    let killed = async { kill_process(number, Signal::KILL).expect("it runs") };
    let (failed, ()) = in_time(async { tokio::join!(hangs, killed) }).await;
    let failed = failed.expect_err("it was killed");
    assert_eq!(failed.class, FailureClass::Tool);
    assert!(failed.text.starts_with("the MCP server shop ended with signal 9"), "{}", failed.text);
    assert_ne!(text(&server, "pid", json!({})).await, pid);
}

#[tokio::test]
async fn death_after_cancel_harms_nothing() {
    let server = fake("plain");
    let args = fields(json!({}));
    text(&server, "echo", json!({})).await;
    let mut dies = Box::pin(server.call("die_after_cancel", &args, &NoHost));
    assert!(futures::poll!(dies.as_mut()).is_pending());
    drop(dies);
    // This may be lost with the server; the next one is not.
    let _ = call(&server, "echo", json!({})).await;
    assert_eq!(text(&server, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn callers_share_one_start() {
    let server = fake("plain");
    let args = fields(json!({}));
    let calls = (0..10).map(|_| server.call("pid", &args, &NoHost));
    let results = in_time(futures::future::join_all(calls)).await;
    let mut pids: Vec<String> = results.into_iter().map(|it| it.expect("a pid").text).collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    // The first of them may be dropped while the server starts.
    let server = fake("plain");
    let mut first = Box::pin(server.call("pid", &args, &NoHost));
    let mut second = Box::pin(server.call("pid", &args, &NoHost));
    assert!(futures::poll!(first.as_mut()).is_pending());
    assert!(futures::poll!(second.as_mut()).is_pending());
    drop(first);
    in_time(second).await.expect("it goes on");
}

#[test]
fn end_outside_of_runtime_is_harmless() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = fake("plain");
    runtime.block_on(text(&server, "echo", json!({})));
    drop(runtime);
    server.end();
    drop(server);
}
