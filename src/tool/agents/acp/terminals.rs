//! The commands that a coding agent runs through this program, each in a process group of its own.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::{oneshot, watch};

use super::files::inside;
use crate::net::json_rpc::{INVALID_PARAMS, RpcError};
use crate::tool::ToolSettings;
use crate::tool::process_group::ProcessGroup;

/// Most commands of an agent at once.
const MAX_TERMINALS: usize = 16;
/// Most bytes of output that are kept of a command, the last ones.
const MAX_OUTPUT: usize = 1 << 20;
/// Code of a request that cannot be done.
const FAILED: i64 = -32_000;

/// `terminal/create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateParams {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
    #[serde(default)]
    cwd: Option<std::path::PathBuf>,
    #[serde(default)]
    output_byte_limit: Option<usize>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// The commands of an agent. Dropping this kills them.
#[derive(Default)]
pub(super) struct Terminals(Mutex<OpenTerminals>);

#[derive(Default)]
struct OpenTerminals {
    created: u64,
    open: HashMap<String, Arc<Terminal>>,
}

/// A command that runs or has ended.
struct Terminal {
    output: Mutex<Output>,
    /// How it ended, as the protocol says it.
    exit: watch::Receiver<Option<Value>>,
    /// Dropped to kill it.
    kill: Mutex<Option<oneshot::Sender<()>>>,
}

#[derive(Default)]
struct Output {
    text: Vec<u8>,
    cap: usize,
    is_cut: bool,
}

impl Output {
    fn push(&mut self, piece: &[u8]) {
        self.text.extend_from_slice(piece);
        if let Some(surplus @ 1..) = self.text.len().checked_sub(self.cap) {
            self.text.drain(..surplus);
            self.is_cut = true;
        }
    }
}

impl Terminal {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, OpenTerminals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, params: &Value) -> Result<Arc<Terminal>, RpcError> {
        let id = params.get("terminalId").and_then(Value::as_str).unwrap_or_default();
        let found = self.lock().open.get(id).cloned();
        found.ok_or_else(|| RpcError::new(INVALID_PARAMS, "there is no such terminal"))
    }

    /// Starts a command in the folder of the session, or in one below it.
    pub(super) async fn create(
        &self,
        folder: &Path,
        env: &ToolSettings,
        params: Value,
    ) -> Result<Value, RpcError> {
        let params: CreateParams = serde_json::from_value(params)
            .map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))?;
        let failed = |what: String| RpcError::new(FAILED, what);
        if self.lock().open.len() >= MAX_TERMINALS {
            return Err(failed(format!("{MAX_TERMINALS} terminals are open: release one")));
        }
        let place = match &params.cwd {
            Some(cwd) => inside(folder, cwd)?,
            None => folder.to_owned(),
        };
        // Some agents send a whole line of a shell.
        let is_line = params.args.is_empty() && params.command.contains(char::is_whitespace);
        let mut command = match is_line {
            true => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &params.command]);
                shell
            }
            false => {
                let mut command = Command::new(&params.command);
                command.args(&params.args);
                command
            }
        };
        command.current_dir(place).env_clear();
        command.envs(env.values.iter().map(|(name, value)| (name, value.expose())));
        command.envs(params.env.iter().map(|it| (&it.name, &it.value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::start(&mut command)
            .await
            .map_err(|error| failed(format!("{}: {error}", params.command)))?;
        let (_, stdout, stderr) = group.pipes();
        let (kill, killed) = oneshot::channel::<()>();
        let (ended, exit) = watch::channel(None);
        let cap = params.output_byte_limit.unwrap_or(MAX_OUTPUT).min(MAX_OUTPUT);
        let terminal = Arc::new(Terminal {
            output: Mutex::new(Output { cap, ..Output::default() }),
            exit,
            kill: Mutex::new(Some(kill)),
        });
        let written = Arc::clone(&terminal);
        tokio::spawn(async move {
            let read = async {
                tokio::join!(keep_output(stdout, &written), keep_output(stderr, &written));
            };
            let status = tokio::select! {
                (status, ()) = async { tokio::join!(group.wait(), read) } => status.ok(),
                _ = killed => None,
            };
            drop(group);
            let code = status.and_then(|status| status.code());
            let signal = code.is_none().then_some("killed");
            let _ = ended.send(Some(json!({ "exitCode": code, "signal": signal })));
        });
        let mut terminals = self.lock();
        terminals.created += 1;
        let id = format!("t{}", terminals.created);
        terminals.open.insert(id.clone(), terminal);
        Ok(json!({ "terminalId": id }))
    }

    /// The output so far.
    pub(super) fn output(&self, params: &Value) -> Result<Value, RpcError> {
        let terminal = self.of(params)?;
        let output = terminal.output();
        let exit = terminal.exit.borrow().clone();
        let text = String::from_utf8_lossy(&output.text).into_owned();
        let mut said = json!({ "output": text, "truncated": output.is_cut });
        if let Some(exit) = exit {
            said["exitStatus"] = exit;
        }
        Ok(said)
    }

    /// Waits until a command has ended.
    pub(super) async fn wait(&self, params: &Value) -> Result<Value, RpcError> {
        let mut exit = self.of(params)?.exit.clone();
        let ended = exit.wait_for(Option::is_some).await;
        Ok(ended.ok().and_then(|exit| exit.clone()).unwrap_or_default())
    }

    /// Kills a command; with `release` its output is forgotten.
    pub(super) fn end(&self, params: &Value, release: bool) -> Result<Value, RpcError> {
        let terminal = self.of(params)?;
        terminal.kill.lock().unwrap_or_else(PoisonError::into_inner).take();
        if release && let Some(id) = params.get("terminalId").and_then(Value::as_str) {
            self.lock().open.remove(id);
        }
        Ok(json!({}))
    }
}

async fn keep_output(from: Option<impl AsyncRead + Unpin>, to: &Terminal) {
    let Some(mut from) = from else { return };
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        to.output().push(piece.get(..read).unwrap_or_default());
    }
}
