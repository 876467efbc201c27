//! Real servers, if ROUNDTABLE_MCP names the folder with them: `npm` has the packages
//! `@modelcontextprotocol/server-everything` and `server-filesystem`, `py` is a virtual environment with
//! `mcp-server-time` and `mcp-server-git`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{TestHost, call, call_with, environment, fail, fields, in_time, list, server_of, text};
use crate::gateway::{InputReply, NoHost};
use crate::log::event::FailureClass;
use crate::net::{Http, Reach};
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport, McpUrl};
use crate::tool::mcp::McpServer;

/// Path of a program of the real servers; `None`: the tests have none.
fn program(path: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("ROUNDTABLE_MCP") else {
        println!("SKIPPED: ROUNDTABLE_MCP is not set, so there are no real MCP servers");
        return None;
    };
    let program = PathBuf::from(folder).join(path);
    assert!(program.exists(), "ROUNDTABLE_MCP is set, but there is no {}", program.display());
    Some(program.to_string_lossy().into_owned())
}

fn started(path: &str, args: &[&str]) -> Option<Arc<McpServer>> {
    let program = program(path)?;
    // Node finds itself, but scripts that name `env node` do not: they get no PATH.
    Some(match path.starts_with("npm") {
        true => {
            let args: Vec<&str> = [&[program.as_str()], args].concat();
            server_of("node", &args, BTreeMap::new())
        }
        false => server_of(&program, args, BTreeMap::new()),
    })
}

const EVERYTHING: &str = "npm/node_modules/.bin/mcp-server-everything";

async fn names(server: &McpServer) -> Vec<String> {
    list(server).await.expect("tools").into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn everything_answers() {
    let Some(server) = started(EVERYTHING, &[]) else { return };
    let names = names(&server).await;
    for name in ["echo", "get-structured-content", "trigger-elicitation-request"] {
        assert!(names.iter().any(|it| it == name), "{name}: {names:?}");
    }
    for name in ["get-roots-list", "trigger-sampling-request", "trigger-url-elicitation"] {
        assert!(!names.iter().any(|it| it == name), "{name} needs what is not offered");
    }
    use_everything(&server).await;
}

/// Calls the tools of the everything server.
async fn use_everything(server: &McpServer) {
    assert_eq!(text(server, "echo", json!({ "message": "grün" })).await, "Echo: grün");
    let weather = json!({ "location": "New York" });
    let weather = call(server, "get-structured-content", weather).await.expect("a result");
    assert_eq!(weather.structured.expect("a part")["conditions"], "Cloudy");
    let image = text(server, "get-tiny-image", json!({})).await;
    assert!(image.contains("[image image/png, "), "{image}");
    let links = text(server, "get-resource-links", json!({ "count": 2 })).await;
    assert_eq!(links.matches("[resource ").count(), 2, "{links}");
    let resource = json!({ "resourceType": "Text", "resourceId": 1 });
    let resource = text(server, "get-resource-reference", resource).await;
    assert!(resource.contains("Resource 1: This is a plaintext resource"), "{resource}");
    let (class, text) = fail(server, "echo", json!({})).await;
    assert_eq!(class, FailureClass::Rejected);
    assert!(text.contains("-32602"), "{text}");
    let steps = json!({ "duration": 0.3, "steps": 3 });
    let host = TestHost::default();
    call_with(server, "trigger-long-running-operation", steps, &host).await.expect("done");
    let seen = host.seen();
    assert!(!seen.is_empty() && seen.iter().all(|it| it.total == Some(3.0)), "{seen:?}");
    let name = json!({ "name": "Ada" });
    for (reply, says) in [
        (InputReply::Accept(name), "Name: Ada"),
        (InputReply::Decline, "declined"),
        (InputReply::Cancel, "cancelled"),
    ] {
        let host = TestHost::replying(reply);
        let said = call_with(server, "trigger-elicitation-request", json!({}), &host).await;
        let said = said.expect("a result").text;
        assert!(said.contains(says), "{says}: {said}");
        assert_eq!(host.asked().len(), 1);
    }
    // A call that is dropped in the middle harms no other.
    let (args, host) = (fields(json!({ "duration": 60, "steps": 600 })), TestHost::default());
    in_time(async {
        tokio::select! {
            ended = server.call("trigger-long-running-operation", &args, &host) => {
                panic!("it ended: {ended:?}")
            }
            () = host.told.notified() => {}
        }
    })
    .await;
    assert_eq!(super::text(server, "echo", json!({ "message": "on" })).await, "Echo: on");
}

#[tokio::test]
async fn filesystem_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    std::fs::write(path.join("a.txt"), "the text").expect("a file");
    let path = path.to_string_lossy().into_owned();
    let bin = "npm/node_modules/.bin/mcp-server-filesystem";
    let Some(server) = started(bin, &[&path]) else { return };
    let tools = list(&server).await.expect("tools");
    let reads = |name: &str| tools.iter().find(|it| it.name == name).expect(name).reads_only;
    assert!(reads("read_text_file") && !reads("write_file"));
    let file = json!({ "path": format!("{path}/a.txt") });
    let read = call(&server, "read_text_file", file).await.expect("a result");
    assert_eq!(read.text, "the text");
    let (class, text) = fail(&server, "read_text_file", json!({ "path": "/etc/passwd" })).await;
    assert_eq!(class, FailureClass::Rejected);
    assert!(text.contains("Access denied"), "{text}");
}

#[tokio::test]
async fn time_answers() {
    let Some(server) = started("py/bin/mcp-server-time", &["--local-timezone=UTC"]) else { return };
    assert_eq!(names(&server).await, ["get_current_time", "convert_time"]);
    let noon = json!({
        "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"
    });
    let said: Value =
        serde_json::from_str(&text(&server, "convert_time", noon).await).expect("JSON");
    assert!(said["target"]["datetime"].as_str().expect("a time").contains("T21:00"), "{said}");
    let wrong = json!({ "timezone": "Mars/North" });
    let (class, text) = fail(&server, "get_current_time", wrong).await;
    assert_eq!(class, FailureClass::Rejected, "{text}");
}

#[tokio::test]
async fn git_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(folder.path()).args(args).stdout(Stdio::null());
        assert!(git.status().expect("git runs").success());
    };
    git(&["init", "-q", "-b", "trunk"]);
    let path = folder.path().to_string_lossy().into_owned();
    let env = std::env::var("PATH").expect("a PATH");
    let Some(program) = program("py/bin/mcp-server-git") else { return };
    let setting = crate::scenario::spec::tool::Setting::Text(env);
    let server =
        server_of(&program, &["--repository", &path], [("PATH".to_owned(), setting)].into());
    assert!(names(&server).await.iter().any(|name| name == "git_status"));
    let status = text(&server, "git_status", json!({ "repo_path": path })).await;
    assert!(status.contains("On branch trunk"), "{status}");
}

#[tokio::test]
async fn everything_answers_over_http() {
    let Some(program) = program(EVERYTHING) else { return };
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        free.local_addr().expect("a bound socket").port()
    };
    let mut child = tokio::process::Command::new("node");
    child.args([&program, "streamableHttp"]).env("PORT", port.to_string());
    child.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = child.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    in_time(async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            if line.contains("listening") {
                return;
            }
        }
        panic!("it does not listen");
    })
    .await;
    // The server must not stop because nobody reads what it says.
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let spec = McpServerSpec {
        optional: false,
        name: "shop".to_owned(),
        transport: McpTransport::Url(McpUrl {
            url: format!("http://127.0.0.1:{port}/mcp"),
            headers: BTreeMap::new(),
            allow_private: true,
        }),
        start_timeout: Duration::from_secs(30),
        protocol_version: None,
        max_bytes: 1 << 20,
        allow: Vec::new(),
    };
    let http = Http::direct(Reach::Anywhere);
    let server = McpServer::new(Arc::new(spec), http, &environment).expect("all set");
    names(&server).await;
    use_everything(&server).await;
    // A server that is killed in the middle of a call fails it.
    let (args, host) = (fields(json!({ "duration": 60, "steps": 600 })), TestHost::default());
    let failed = in_time(async {
        let call = server.call("trigger-long-running-operation", &args, &host);
        let kill = async {
            host.told.notified().await;
            child.kill().await.expect("it is killed");
        };
        tokio::join!(call, kill).0
    })
    .await;
    let failed = failed.expect_err("it was killed");
    assert!(matches!(failed.class, FailureClass::Reset | FailureClass::Connect), "{failed:?}");
    let _ = in_time(server.call("echo", &fields(json!({})), &NoHost)).await.expect_err("nobody");
    reading.abort();
}
