//! MCP servers: fake ones that misbehave in every way, and real ones.

mod fake;
mod http;
mod lifecycle;
mod real;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::gateway::{AttemptHost, AttemptProgress, InputReply, InputRequest, NoHost};
use crate::log::event::tool::OfferedTool;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, Reach};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::command::CommandSpec;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport};
use crate::tool::mcp::{McpResult, McpServer};
use tokio::sync::Notify;

use super::environment;

fn server_of(program: &str, args: &[&str], env: BTreeMap<String, Setting>) -> Arc<McpServer> {
    let http = Http::direct(Reach::Anywhere);
    McpServer::new(spec_of(program, args, env), http, &environment).expect("all set")
}

fn spec_of(program: &str, args: &[&str], env: BTreeMap<String, Setting>) -> Arc<McpServerSpec> {
    let command = CommandSpec {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env,
        max_bytes: 0,
    };
    Arc::new(McpServerSpec {
        optional: false,
        name: "shop".to_owned(),
        transport: McpTransport::Command(command),
        start_timeout: Duration::from_secs(30),
        protocol_version: None,
        max_bytes: 1 << 20,
        allow: Vec::new(),
    })
}

fn fake_with(mode: &str, env: &[(&str, &str)]) -> Arc<McpServer> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_fake.py");
    let mut all: BTreeMap<String, Setting> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Setting::Text((*value).to_owned())))
        .collect();
    all.insert("TOKEN".to_owned(), Setting::Env("SHOP_TOKEN".to_owned()));
    server_of("python3", &["-S", script, mode], all)
}

fn fake(mode: &str) -> Arc<McpServer> {
    fake_with(mode, &[])
}

/// A test that hangs fails instead.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future).await.expect("it hangs")
}

fn fields(args: Value) -> Map<String, Value> {
    let Value::Object(args) = args else { panic!("arguments are a table") };
    args
}

async fn call_with(
    server: &McpServer,
    tool: &str,
    args: Value,
    host: &dyn AttemptHost,
) -> Result<McpResult, Box<AttemptFailed>> {
    in_time(server.call(tool, &fields(args), host)).await
}

async fn call(
    server: &McpServer,
    tool: &str,
    args: Value,
) -> Result<McpResult, Box<AttemptFailed>> {
    call_with(server, tool, args, &NoHost).await
}

async fn text(server: &McpServer, tool: &str, args: Value) -> String {
    call(server, tool, args).await.unwrap_or_else(|failed| panic!("{tool}: {failed:?}")).text
}

fn checked(failed: AttemptFailed) -> (FailureClass, String) {
    assert!(!failed.text.contains("hunter2"), "{}", failed.text);
    assert!(!failed.text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", failed.text);
    (failed.class, failed.text)
}

async fn fail(server: &McpServer, tool: &str, args: Value) -> (FailureClass, String) {
    checked(*call(server, tool, args).await.expect_err("a failure"))
}

async fn list(server: &McpServer) -> Result<Vec<OfferedTool>, Box<AttemptFailed>> {
    in_time(server.list(&NoHost)).await
}

/// A run that keeps what it is told and asked, and gives one reply to every question; without a reply its
/// questions stay open.
#[derive(Default)]
struct TestHost {
    seen: Mutex<Vec<AttemptProgress>>,
    asked: Mutex<Vec<InputRequest>>,
    reply: Option<InputReply>,
    told: Notify,
}

impl TestHost {
    fn replying(reply: InputReply) -> Self {
        Self { reply: Some(reply), ..Self::default() }
    }

    fn asked(&self) -> Vec<InputRequest> {
        self.asked.lock().expect("no panic").clone()
    }

    fn seen(&self) -> Vec<AttemptProgress> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl AttemptHost for TestHost {
    fn progress(&self, progress: AttemptProgress) {
        self.seen.lock().expect("no panic").push(progress);
        self.told.notify_one();
    }

    fn ask(&self, request: InputRequest) -> BoxFuture<'_, InputReply> {
        self.asked.lock().expect("no panic").push(request);
        self.told.notify_one();
        match self.reply.clone() {
            Some(reply) => Box::pin(std::future::ready(reply)),
            None => Box::pin(std::future::pending()),
        }
    }
}
