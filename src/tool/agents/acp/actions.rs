//! What a coding agent does through this program, and what it asks permission for. The first is known: it is
//! asked about by what it is, and each is a step in the log. Of the second the agent says what it is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::files;
use super::terminals::{AgentCommand, Terminals};
use super::turn::{Turn, content_text};
use crate::base::visible::first_bytes;
use crate::log::event::{AgentStep, StepState};
use crate::model::host::PermissionRequest;
use crate::net::json_rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, REFUSED, RpcError};
use crate::net::redact::redact_forms;
use crate::scenario::tools::agent::ActionKind;

/// Most actions of a turn that this program carries out.
const MAX_ACTIONS: usize = 4_000;
/// Most bytes of a question. Of a longer one the person learns that there is more.
const QUESTION_BYTES: usize = 12 << 10;
/// Most characters of a command that the title of its step shows.
const TITLE_CHARS: usize = 150;
/// Most approvals of a turn that are kept until the agent acts on them.
const MAX_APPROVED: usize = 100;

/// What a person has approved word for word: the agent's own request was about it.
#[derive(Debug, PartialEq)]
enum Approved {
    Command(String),
    Write { path: PathBuf, content: String },
}

/// The actions of one turn.
pub(super) struct Actions<'a> {
    turn: &'a Turn<'a>,
    terminals: Terminals,
    approved: Mutex<Vec<Approved>>,
    count: AtomicUsize,
}

type Answer = Result<Value, RpcError>;

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Actions<'a> {
    pub(super) fn new(turn: &'a Turn<'a>) -> Self {
        let (terminals, approved) = (Terminals::default(), Mutex::default());
        Self { turn, terminals, approved, count: AtomicUsize::new(0) }
    }

    /// Answers a request of the agent.
    pub(super) async fn answer(&self, method: String, params: Value) -> Answer {
        let spec = self.turn.spec;
        match &*method {
            "session/request_permission" => self.permission(&params).await,
            "fs/read_text_file" if spec.files.may_read() => self.read(params).await,
            "fs/write_text_file" if spec.files.may_write() => self.write(params).await,
            "terminal/create" if spec.terminal => self.run(params).await,
            "terminal/output" if spec.terminal => self.terminals.output(&params),
            "terminal/wait_for_exit" if spec.terminal => self.terminals.wait(&params).await,
            "terminal/kill" if spec.terminal => self.terminals.end(&params, false),
            "terminal/release" if spec.terminal => self.terminals.end(&params, true),
            other => {
                let what = format!("{other}: this client does not offer that");
                Err(RpcError::new(METHOD_NOT_FOUND, what))
            }
        }
    }

    async fn read(&self, params: Value) -> Answer {
        let number = |key: &str| params.get(key).and_then(Value::as_u64);
        let mut lines = String::new();
        if let Some(first) = number("line") {
            lines = format!("from line {first}");
        }
        if let Some(limit) = number("limit") {
            lines = format!("{lines} {limit} lines");
        }
        let step = self.begin(format!("Read {}", self.shown_path(&params)), lines.trim())?;
        let (folder, cap) = (self.turn.folder.to_owned(), self.turn.agent.max_bytes);
        let read = blocking(move || files::read(&folder, params, cap)).await;
        let content = |read: &Value| {
            let content = read.get("content").and_then(Value::as_str).unwrap_or_default();
            format!("{} bytes", content.len())
        };
        self.end_step(&step, read.as_ref().map(content));
        read
    }

    async fn write(&self, params: Value) -> Answer {
        let title = format!("Write {}", self.shown_path(&params));
        let (folder, cap) = (self.turn.folder.to_owned(), self.turn.agent.max_bytes);
        let asked = params.clone();
        let change = blocking(move || files::change(&folder, asked, cap)).await;
        let change = change.inspect_err(|error| self.refuse(&title, &error.message))?;
        let files::FileChange { path, content, lines } = change;
        let lines = lines.trim_start().to_owned();
        let approved = |it: &Approved| match it {
            Approved::Write { path: at, content: text } => *at == path && *text == content,
            Approved::Command(_) => false,
        };
        self.ask(ActionKind::Edit, &title, &lines, approved).await?;
        let step = self.begin(title, &lines)?;
        let folder = self.turn.folder.to_owned();
        let bytes = content.len();
        let written = blocking(move || files::write(&folder, params)).await;
        self.end_step(&step, written.as_ref().map(|_| format!("{bytes} bytes written")));
        written
    }

    async fn run(&self, params: Value) -> Answer {
        let folder = self.turn.folder;
        let named = params.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
        let command = AgentCommand::read(folder, params)
            .inspect_err(|error| self.refuse(&format!("Run {named}"), &error.message))?;
        let (title, details) = (format!("Run {}", command.line()), command.details(folder));
        let approved = |it: &Approved| match it {
            Approved::Command(text) => command.is_just(text, folder),
            Approved::Write { .. } => false,
        };
        self.ask(ActionKind::Execute, &title, &details, approved).await?;
        // The title of a step is short.
        let text = match title.chars().count() > TITLE_CHARS || title.contains('\n') {
            true => format!("{}\n{details}", command.line()),
            false => details,
        };
        let step = self.begin(title, &text)?;
        let created = self.terminals.create(command, self.turn.env, step.clone()).await;
        if let Err(error) = &created {
            self.end_step(&step, Err(error));
        }
        created
    }

    /// Publishes the results of commands that have ended. Completes when it has published some.
    pub(super) async fn ended_commands(&self) {
        self.terminals.ended().await;
        self.publish_results(false);
    }

    /// The turn has ended: so do the commands that still run.
    pub(super) fn end(&self) {
        self.publish_results(true);
    }

    fn publish_results(&self, all: bool) {
        for terminal in self.terminals.take_untold(all) {
            let (is_success, text) = terminal.result();
            let state = if is_success { StepState::Done } else { StepState::Failed };
            self.publish(&terminal.step, state, &text);
        }
    }

    /// Whether an action may be carried out: the scenario allows its kind, the operator does, or a person has
    /// approved just this in a request of the agent.
    async fn ask(
        &self,
        kind: ActionKind,
        title: &str,
        details: &str,
        is_approved: impl Fn(&Approved) -> bool,
    ) -> Result<(), RpcError> {
        let turn = self.turn;
        if turn.spec.allow.contains(&kind) || lock(turn.always).contains(&kind) {
            return Ok(());
        }
        {
            let mut approved = lock(&self.approved);
            if let Some(at) = approved.iter().position(is_approved) {
                approved.remove(at);
                return Ok(());
            }
        }
        let what = if kind == ActionKind::Edit { "changes of files" } else { "commands" };
        let all = format!("Allow all {what} of {} in this run", turn.agent.name);
        let (text, _) = self.question(&format!("{title}\n{details}"));
        let choices = ["Allow", &all, "Reject"].map(Arc::from).into();
        let from = turn.agent.name.as_str().into();
        match turn.listener.host().permit(PermissionRequest { from, text, choices }).await {
            Some(0) => Ok(()),
            Some(1) => {
                lock(turn.always).push(kind);
                Ok(())
            }
            _ => {
                self.refuse(title, "not allowed");
                Err(RpcError::new(REFUSED, "the operator does not allow it"))
            }
        }
    }

    /// Answers a request for permission: as the scenario allows it, else as a person says.
    async fn permission(&self, params: &Value) -> Answer {
        let options = params.get("options").and_then(Value::as_array);
        let options = options.map(Vec::as_slice).unwrap_or_default();
        let text_of = |option: &Value, key: &str| {
            Some(option.get(key)?.as_str()?.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let options: Vec<(String, String, String)> = options
            .iter()
            .filter_map(|option| {
                let (id, name) = (text_of(option, "optionId")?, text_of(option, "name")?);
                Some((id, name, text_of(option, "kind").unwrap_or_default()))
            })
            .collect();
        if options.is_empty() {
            return Err(RpcError::new(INVALID_PARAMS, "there are no options"));
        }
        let of_kind = |kind: &str| options.iter().position(|option| option.2 == kind);
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let chosen = match of_kind("allow_once").filter(|_| is_allowed(call, &self.turn.spec.allow))
        {
            Some(at) => Some(at),
            None => {
                let mut text = permission_text(call);
                // The agent remembers it: nobody here knows which requests it takes to be alike.
                for (_, name, _) in options.iter().filter(|option| option.2 == "allow_always") {
                    text.push_str(&format!(
                        "\n\"{name}\" covers what the agent takes to be alike, in its session."
                    ));
                }
                let (text, is_whole) = self.question(&text);
                let from = self.turn.agent.name.as_str().into();
                let choices = unique(options.iter().map(|option| option.1.as_str()));
                let request = PermissionRequest { from, text, choices };
                let chosen = self.turn.listener.host().permit(request).await;
                let is_yes = chosen.is_some_and(|at| {
                    options.get(at).is_some_and(|option| option.2.starts_with("allow"))
                });
                if is_yes && is_whole {
                    let mut approved = lock(&self.approved);
                    approved.extend(approved_by(call, self.turn.folder));
                    approved.truncate(MAX_APPROVED);
                }
                chosen
            }
        };
        // An agent that is refused takes another way; one that gets no answer ends its turn.
        let chosen = chosen.or_else(|| of_kind("reject_once"));
        Ok(match chosen.and_then(|at| options.get(at)) {
            Some((id, ..)) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        })
    }

    /// A text as a person reads it, and whether that is all of it.
    fn question(&self, text: &str) -> (String, bool) {
        let text = self.turn.failures.redactor.redact_known(text.trim());
        let start = first_bytes(&text, QUESTION_BYTES);
        match text.len() - start.len() {
            0 => (text.into_owned(), true),
            more => (format!("{start}\n({more} bytes more are not shown)"), false),
        }
    }

    /// The path of a request as it is shown: from the folder of the session on.
    fn shown_path(&self, params: &Value) -> String {
        let path = Path::new(params.get("path").and_then(Value::as_str).unwrap_or_default());
        path.strip_prefix(self.turn.folder).unwrap_or(path).display().to_string()
    }

    /// The step of the next action: its id and its title.
    fn next_step(&self, title: String) -> Result<(String, String), RpcError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if number > MAX_ACTIONS {
            let what = format!("more than {MAX_ACTIONS} actions in one turn");
            return Err(RpcError::new(REFUSED, what));
        }
        Ok((format!("roundtable {number}"), title))
    }

    /// Publishes that an action begins.
    fn begin(&self, title: String, text: &str) -> Result<(String, String), RpcError> {
        let step = self.next_step(title)?;
        self.publish(&step, StepState::Started, text);
        Ok(step)
    }

    /// Publishes how an action ended.
    fn end_step(&self, step: &(String, String), result: Result<String, &RpcError>) {
        match result {
            Ok(text) => self.publish(step, StepState::Done, &text),
            Err(error) => self.publish(step, StepState::Failed, &error.message),
        }
    }

    /// Publishes that an action is not carried out, and why.
    fn refuse(&self, title: &str, why: &str) {
        if let Ok(step) = self.next_step(title.to_owned()) {
            self.publish(&step, StepState::Failed, why);
        }
    }

    fn publish(&self, (id, title): &(String, String), state: StepState, text: &str) {
        // Commands and files may have keys that this program does not know.
        let redactor = &self.turn.failures.redactor;
        let redacted = |text: &str| redact_forms(&redactor.redact_known(text)).as_ref().into();
        let (id, title, text) = (id.as_str().into(), redacted(title), redacted(text));
        let step = AgentStep { id, title, state, text, carried_out: true };
        self.turn.listener.host().step(step);
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(RpcError::new(REFUSED, "internal error")))
}

/// Whether `allow` lets a request for permission through. The kind that the agent gives is only its claim:
/// everything that the request shows must be of an allowed kind too, and one that shows nothing asks.
fn is_allowed(call: &Value, allow: &[ActionKind]) -> bool {
    let word = call.get("kind").and_then(Value::as_str).unwrap_or_default();
    let claimed = ActionKind::ALL.into_iter().find(|kind| kind.word() == word);
    let claimed = claimed.unwrap_or(ActionKind::Other);
    let shown = shown_kinds(call);
    let is_allowed = |kind: &ActionKind| allow.contains(kind);
    is_allowed(&claimed) && shown.is_some_and(|shown| shown.iter().all(is_allowed))
}

/// Arguments that show what a call of a tool does, whatever its kind is said to be.
const TELLING_ARGUMENTS: [(ActionKind, &[&str]); 3] = [
    (ActionKind::Execute, &["command", "commands", "cmd", "argv", "script", "shell", "code"]),
    (
        ActionKind::Edit,
        &[
            "content",
            "contents",
            "new_string",
            "newstring",
            "newtext",
            "new_str",
            "patch",
            "edits",
            "diff",
        ],
    ),
    (ActionKind::Fetch, &["url", "urls", "uri"]),
];

/// The kinds of actions that a request shows by its arguments and its content; `None`: it shows nothing.
fn shown_kinds(call: &Value) -> Option<Vec<ActionKind>> {
    let input = call.get("rawInput").filter(|input| !input.is_null());
    let parts = call.get("content").and_then(Value::as_array).map(Vec::as_slice);
    let places = call.get("locations").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let parts = parts.unwrap_or_default();
    if input.is_none() && parts.is_empty() && !places {
        return None;
    }
    let mut kinds = Vec::new();
    match input {
        None => {}
        Some(Value::Object(fields)) => {
            for (kind, names) in TELLING_ARGUMENTS {
                let is_one = |name: &String| names.contains(&&*name.to_lowercase());
                kinds.extend(fields.keys().any(is_one).then_some(kind));
            }
        }
        // It may be a command.
        Some(_) => kinds.push(ActionKind::Execute),
    }
    for part in parts {
        match part.get("type").and_then(Value::as_str) {
            Some("diff") => kinds.push(ActionKind::Edit),
            Some("terminal") => kinds.push(ActionKind::Execute),
            _ => {}
        }
    }
    Some(kinds)
}

/// What a person has approved with a request, as this program would carry it out.
fn approved_by(call: &Value, folder: &Path) -> Vec<Approved> {
    let mut approved = Vec::new();
    for name in ["command", "cmd"] {
        match call.get("rawInput").and_then(|input| input.get(name)) {
            Some(Value::String(text)) => approved.push(Approved::Command(text.clone())),
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                approved.push(Approved::Command(words.join(" ")));
            }
            _ => {}
        }
    }
    let parts = call.get("content").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let text_of = |key: &str| part.get(key).and_then(Value::as_str);
        if let (Some("diff"), Some(path), Some(content)) =
            (text_of("type"), text_of("path"), text_of("newText"))
            && let Ok(path) = files::inside(folder, Path::new(path))
        {
            approved.push(Approved::Write { path, content: content.to_owned() });
        }
    }
    approved
}

/// The names of options, each of them another text.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Arc<str>> {
    let mut all: Vec<Arc<str>> = Vec::new();
    for name in names {
        let mut text = name.to_owned();
        let mut nth = 1;
        while all.iter().any(|other| **other == *text) {
            nth += 1;
            text = format!("{name} ({nth})");
        }
        all.push(text.into());
    }
    all
}

/// What a person has to know about a call: what it is, where, with which arguments, and the change.
fn permission_text(call: &Value) -> String {
    let text_of = |key: &str| call.get(key).and_then(Value::as_str);
    let title = text_of("title").unwrap_or("a call of a tool");
    let mut lines = vec![match text_of("kind") {
        Some(kind) => format!("{title} ({kind})"),
        None => title.to_owned(),
    }];
    if let Some(input) = call.get("rawInput").filter(|input| !input.is_null()) {
        let input = match input.as_object() {
            Some(fields) => fields
                .iter()
                .map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}: {text}"),
                    None => format!("{name}: {value}"),
                })
                .collect::<Vec<_>>()
                .join("\n"),
            None => input.to_string(),
        };
        lines.push(input);
    }
    let content = content_text(call);
    if !content.is_empty() {
        lines.push(content);
    }
    let places = call.get("locations").and_then(Value::as_array);
    for place in places.into_iter().flatten().filter_map(|it| it.get("path")?.as_str()) {
        if !lines.iter().any(|line| line.contains(place)) {
            lines.push(place.to_owned());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind that the agent gives is believed only where nothing in its request is of another one.
    #[test]
    fn claimed_kind_cannot_hide_an_action() {
        use ActionKind::{Edit, Execute, Fetch, Read};
        let path = json!({ "path": "/a" });
        let diff = json!([{ "type": "diff", "path": "/a", "newText": "x" }]);
        for (kind, input, content, allow, expected) in [
            ("read", path.clone(), json!([]), vec![Read], true),
            ("read", path.clone(), json!([]), vec![Edit], false),
            ("read", json!({ "command": "rm -rf /" }), json!([]), vec![Read], false),
            ("read", json!({ "Command": ["rm", "-rf", "/"] }), json!([]), vec![Read], false),
            ("read", json!({ "command": "cat a" }), json!([]), vec![Read, Execute], true),
            ("read", json!("rm -rf /"), json!([]), vec![Read], false),
            ("read", json!({ "file_path": "/a", "content": "x" }), json!([]), vec![Read], false),
            ("read", path.clone(), diff.clone(), vec![Read], false),
            ("read", path.clone(), json!([{ "type": "terminal" }]), vec![Read], false),
            ("read", json!({ "url": "https://a.example" }), json!([]), vec![Read], false),
            ("fetch", json!({ "url": "https://a.example" }), json!([]), vec![Fetch], true),
            ("edit", path.clone(), diff, vec![Edit], true),
            ("read", Value::Null, json!([]), vec![Read], false),
            ("new", path, json!([]), vec![Read], false),
        ] {
            let call = json!({ "kind": kind, "rawInput": input, "content": content });
            assert_eq!(is_allowed(&call, &allow), expected, "{call} with {allow:?}");
        }
    }
}
