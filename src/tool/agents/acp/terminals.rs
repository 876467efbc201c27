//! The commands that a coding agent runs through this program, each in a process group of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::{Notify, oneshot, watch};

use super::files::inside;
use crate::base::visible::shell_word;
use crate::net::json_rpc::{INVALID_PARAMS, RpcError};
use crate::tool::ToolSettings;
use crate::tool::command::describe_exit;
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
    cwd: Option<PathBuf>,
    #[serde(default)]
    output_byte_limit: Option<usize>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// A command that an agent wants to run.
pub(super) struct AgentCommand {
    program: String,
    args: Vec<String>,
    env: Vec<Variable>,
    /// The folder that it runs in.
    place: PathBuf,
    /// Most bytes of its output that are kept.
    cap: usize,
}

impl AgentCommand {
    /// Reads `terminal/create`. The command runs in the folder of the session, or in one below it.
    pub(super) fn read(folder: &Path, params: Value) -> Result<Self, RpcError> {
        let params: CreateParams = serde_json::from_value(params)
            .map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))?;
        let place = match &params.cwd {
            Some(cwd) => inside(folder, cwd)?,
            None => folder.to_owned(),
        };
        // Some agents send a whole line of a shell.
        let is_line = params.args.is_empty() && params.command.contains(char::is_whitespace);
        let (program, args) = match is_line {
            true => ("sh".to_owned(), vec!["-c".to_owned(), params.command]),
            false => (params.command, params.args),
        };
        let cap = params.output_byte_limit.unwrap_or(MAX_OUTPUT).min(MAX_OUTPUT);
        Ok(Self { program, args, env: params.env, place, cap })
    }

    /// The command as a shell takes it.
    pub(super) fn line(&self) -> String {
        match self.script() {
            Some(script) => script.to_owned(),
            None => {
                let words = std::iter::once(&self.program).chain(&self.args);
                words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// What a shell is to run.
    fn script(&self) -> Option<&str> {
        let shell = self.program.rsplit('/').next()?;
        match self.args.as_slice() {
            [flag, script] if ["-c", "-lc"].contains(&&**flag) => {
                ["sh", "bash", "zsh", "dash"].contains(&shell).then_some(script.as_str())
            }
            _ => None,
        }
    }

    /// Where it runs and with which variables, a line each.
    pub(super) fn details(&self, folder: &Path) -> String {
        let mut lines = Vec::new();
        if self.place != folder {
            lines.push(format!("in {}", self.place.display()));
        }
        lines.extend(self.env.iter().map(|it| format!("{}={}", it.name, it.value)));
        lines.join("\n")
    }

    /// Whether it is exactly this command: with no variables that a person has not seen, and in the
    /// session's folder.
    pub(super) fn is_just(&self, command: &str, folder: &Path) -> bool {
        let words = std::iter::once(&self.program).chain(&self.args);
        let joined = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        self.env.is_empty() && self.place == folder && (self.line() == command || joined == command)
    }
}

/// The commands of a turn. Dropping this kills them.
#[derive(Default)]
pub(super) struct Terminals {
    open: Mutex<OpenTerminals>,
    /// Notified when a command has ended.
    ended: Arc<Notify>,
}

#[derive(Default)]
struct OpenTerminals {
    created: u64,
    open: HashMap<String, Arc<Terminal>>,
    /// Those whose end is not told yet, released ones too.
    untold: Vec<Arc<Terminal>>,
}

/// A command that runs or has ended.
pub(super) struct Terminal {
    /// The step that it is in the log: its id and its title.
    pub(super) step: (String, String),
    output: Mutex<Output>,
    exit: watch::Receiver<Option<CommandEnd>>,
    /// Dropped to kill it.
    kill: Mutex<Option<oneshot::Sender<()>>>,
}

/// How a command ended.
#[derive(Clone, Copy)]
enum CommandEnd {
    Exited(ExitStatus),
    Killed,
}

impl CommandEnd {
    /// As the protocol says it.
    fn to_json(self) -> Value {
        let code = match self {
            Self::Exited(status) => status.code(),
            Self::Killed => None,
        };
        json!({ "exitCode": code, "signal": code.is_none().then_some("killed") })
    }
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
    /// Whether it has succeeded, and how it ended, with its output.
    pub(super) fn result(&self) -> (bool, String) {
        let end = *self.exit.borrow();
        let how = match end {
            Some(CommandEnd::Exited(status)) => describe_exit(status),
            Some(CommandEnd::Killed) => "killed".to_owned(),
            None => "still ran at the end of the turn, and was killed".to_owned(),
        };
        let is_success = matches!(end, Some(CommandEnd::Exited(status)) if status.success());
        let output = String::from_utf8_lossy(&self.output().text).trim().to_owned();
        (is_success, if output.is_empty() { how } else { format!("{how}\n{output}") })
    }

    fn kill(&self) {
        self.kill.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        let terminals = self.lock();
        terminals.open.values().chain(&terminals.untold).for_each(|terminal| terminal.kill());
    }
}

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, OpenTerminals> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, params: &Value) -> Result<Arc<Terminal>, RpcError> {
        let id = params.get("terminalId").and_then(Value::as_str).unwrap_or_default();
        let found = self.lock().open.get(id).cloned();
        found.ok_or_else(|| RpcError::new(INVALID_PARAMS, "there is no such terminal"))
    }

    /// Starts a command. `step`: what it is in the log.
    pub(super) async fn create(
        &self,
        asked: AgentCommand,
        env: &ToolSettings,
        step: (String, String),
    ) -> Result<Value, RpcError> {
        let failed = |what: String| RpcError::new(FAILED, what);
        if self.lock().open.len() >= MAX_TERMINALS {
            return Err(failed(format!("{MAX_TERMINALS} terminals are open: release one")));
        }
        let mut command = Command::new(&asked.program);
        command.args(&asked.args).current_dir(&asked.place).env_clear();
        command.envs(env.values.iter().map(|(name, value)| (name, value.expose())));
        command.envs(asked.env.iter().map(|it| (&it.name, &it.value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::start(&mut command)
            .await
            .map_err(|error| failed(format!("{}: {error}", asked.program)))?;
        let (_, stdout, stderr) = group.pipes();
        let (kill, killed) = oneshot::channel::<()>();
        let (end, exit) = watch::channel(None);
        let terminal = Arc::new(Terminal {
            step,
            output: Mutex::new(Output { cap: asked.cap, ..Output::default() }),
            exit,
            kill: Mutex::new(Some(kill)),
        });
        let (written, ended) = (Arc::clone(&terminal), Arc::clone(&self.ended));
        tokio::spawn(async move {
            let read = async {
                tokio::join!(keep_output(stdout, &written), keep_output(stderr, &written));
            };
            let status = tokio::select! {
                (status, ()) = async { tokio::join!(group.wait(), read) } => status.ok(),
                _ = killed => None,
            };
            drop(group);
            end.send_replace(Some(status.map_or(CommandEnd::Killed, CommandEnd::Exited)));
            ended.notify_one();
        });
        let mut terminals = self.lock();
        terminals.created += 1;
        let id = format!("t{}", terminals.created);
        terminals.untold.push(Arc::clone(&terminal));
        terminals.open.insert(id.clone(), terminal);
        Ok(json!({ "terminalId": id }))
    }

    /// Completes when a command may have ended.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// The commands whose end is not told yet: those that have ended, or all of them.
    pub(super) fn take_untold(&self, all: bool) -> Vec<Arc<Terminal>> {
        let mut terminals = self.lock();
        let is_over = |terminal: &mut Arc<Terminal>| all || terminal.exit.borrow().is_some();
        terminals.untold.extract_if(.., is_over).collect()
    }

    /// The output so far.
    pub(super) fn output(&self, params: &Value) -> Result<Value, RpcError> {
        let terminal = self.of(params)?;
        let output = terminal.output();
        let exit = *terminal.exit.borrow();
        let text = String::from_utf8_lossy(&output.text).into_owned();
        let mut said = json!({ "output": text, "truncated": output.is_cut });
        if let Some(exit) = exit {
            said["exitStatus"] = exit.to_json();
        }
        Ok(said)
    }

    /// Waits until a command has ended.
    pub(super) async fn wait(&self, params: &Value) -> Result<Value, RpcError> {
        let mut exit = self.of(params)?.exit.clone();
        let ended = exit.wait_for(Option::is_some).await;
        let end = ended.ok().and_then(|end| *end);
        Ok(end.unwrap_or(CommandEnd::Killed).to_json())
    }

    /// Kills a command; with `release` its output is forgotten.
    pub(super) fn end(&self, params: &Value, release: bool) -> Result<Value, RpcError> {
        let terminal = self.of(params)?;
        terminal.kill();
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
