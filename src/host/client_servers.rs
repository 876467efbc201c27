//! MCP servers that other programs of the user are configured with: found, read, and written as tables of
//! a scenario. Values of variables and headers are never copied, because they may be keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};
use toml::Value as Toml;

use crate::base::private_host::has_private_host;
use crate::base::read_file;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::{visible, without_byte_order_mark};
use crate::net::Redactor;
use crate::scenario::read::names::{EnvName, HeaderName, NameRule};
use crate::scenario::tools::mcp::ServerName;
use crate::scenario::{self, ScenarioOrigin, Severity};

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// Variables that most programs need to start.
const USUAL_VARIABLES: [&str; 2] = ["HOME", "PATH"];
/// Longest name of a server, in characters.
const NAME_CHARS: usize = 32;
/// Keys that say nothing that a scenario needs: every call asks unless the scenario says otherwise.
const KNOWN_KEYS: [&str; 35] = [
    "alwaysAllow",
    "args",
    "autoApprove",
    "bearer_token_env_var",
    "command",
    "cwd",
    "description",
    "disabled",
    "enabled",
    "env",
    "envFile",
    "env_http_headers",
    "env_vars",
    "environment",
    "gallery",
    "headers",
    "httpUrl",
    "http_headers",
    "icon",
    "iconUrl",
    "name",
    "path",
    "serverUrl",
    "settings",
    "source",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "timeout",
    "tool_timeout_sec",
    "transport",
    "transportType",
    "trust",
    "type",
    "url",
    "version",
];

/// A server as another client is configured with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientServer {
    /// Its name, changed to one that a scenario takes.
    pub name: String,
    way: ClientWay,
    /// What is not carried over, and why.
    notes: Vec<String>,
    /// Why it is not used; `None`: it is.
    left_out: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ClientWay {
    /// Program, arguments, variables.
    Command(String, Vec<String>, Vec<NamedVariable>),
    /// Address, headers.
    Url(String, Vec<NamedVariable>),
}

/// A variable of a program or a header, and the environment variable that has its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedVariable {
    name: String,
    from: String,
}

impl ClientServer {
    /// Whether a scenario uses it.
    pub fn is_used(&self) -> bool {
        self.left_out.is_none()
    }

    /// Its table in a scenario or the configuration, with what is not carried over as comments. The table of
    /// one that is not used is a comment too.
    pub fn to_toml(&self) -> String {
        let text = |text: &str| Toml::from(text).to_string();
        let table = |variables: &[NamedVariable]| {
            let set = variables.iter().map(|it| {
                let bare = it.name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
                let name = if bare { it.name.clone() } else { text(&it.name) };
                format!("{name} = {{ env = {} }}", text(&it.from))
            });
            format!("{{ {} }}", set.collect::<Vec<_>>().join(", "))
        };
        let mut lines = vec![format!("[mcp.{}]", self.name)];
        match &self.way {
            ClientWay::Command(program, args, variables) => {
                let args: Vec<String> = args.iter().map(|arg| text(arg)).collect();
                lines.push(format!(
                    "command = {{ program = {}, args = [{}], env = {} }}",
                    text(program),
                    args.join(", "),
                    table(variables)
                ));
            }
            ClientWay::Url(url, headers) => {
                lines.push(format!("url = {}", text(url)));
                if has_private_host(url) {
                    lines.push("allow_private = true".to_owned());
                }
                if !headers.is_empty() {
                    lines.push(format!("headers = {}", table(headers)));
                }
            }
        }
        let left_out =
            self.left_out.as_ref().map(|why| format!("{} is left out: {why}", self.name));
        let notes = left_out.iter().chain(&self.notes);
        let notes = notes.map(|note| format!("# {}\n", visible(note).replace('\n', " ")));
        let commented = if self.is_used() { "" } else { "# " };
        let lines = lines.iter().map(|line| format!("{commented}{line}\n"));
        notes.chain(lines).collect()
    }

    /// The environment variables that have to be set before it is used, apart from those that every shell
    /// sets.
    fn variables(&self) -> impl Iterator<Item = &str> {
        let (ClientWay::Command(.., set) | ClientWay::Url(_, set)) = &self.way;
        let names = set.iter().map(|it| it.from.as_str());
        names.filter(move |name| self.is_used() && !USUAL_VARIABLES.contains(name))
    }
}

/// The servers in the file of a client. Each client has its own name for the table. In `context_servers` of
/// Zed, `command` may be a table. Claude Code has those of a project in the table of its folder: of these the
/// servers of `here` and of the folders above it are read.
///
/// # Errors
/// The file cannot be read, or has no servers that can be used.
pub fn read_servers(path: &Path, here: &Path) -> Result<Vec<ClientServer>, Refused> {
    let shown = visible(&path.display().to_string()).into_owned();
    let bytes =
        read_file::read_file(path, MAX_BYTES).or_refuse(format_args!("cannot read {shown}"))?;
    let text = String::from_utf8_lossy(without_byte_order_mark(&bytes));
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    let value: Value = match is_toml {
        true => toml::from_str(&text).or_refuse(format_args!("{shown} is not TOML"))?,
        false => jsonc_parser::parse_to_serde_value(&text, &ParseOptions::default())
            .or_refuse(format_args!("{shown} is not JSON"))?,
    };
    let mut servers: Vec<ClientServer> = Vec::new();
    let (tables, others) = tables_of(&value, here);
    for (name, server) in tables.into_iter().flatten() {
        let mut server = client_server(name, server);
        server.name = unused_name(&server.name, &servers);
        if server.is_used()
            && let Some(problem) = problem_of(&server)
        {
            server.left_out = Some(problem);
        }
        servers.push(server);
    }
    if servers.iter().any(ClientServer::is_used) {
        return Ok(servers);
    }
    let mut reasons: Vec<String> = servers
        .iter()
        .map(|it| format!("{}: {}", it.name, it.left_out.as_deref().unwrap_or_default()))
        .collect();
    if !others.is_empty() {
        reasons.push(format!("it has servers of other folders: {}", others.join(", ")));
    }
    let help = match reasons.is_empty() {
        true => "it needs a table mcpServers: { NAME: { command, args, env } }".to_owned(),
        false => reasons.join("; "),
    };
    let what = if servers.is_empty() { "has no MCP servers" } else { "has no MCP server to use" };
    Err(Refused::new(format!("{shown} {what}")).help(help))
}

/// The tables of servers of a file, and the other folders that have servers of their own.
fn tables_of<'a>(value: &'a Value, here: &Path) -> (Vec<&'a Map<String, Value>>, Vec<String>) {
    let table = |value: &'a Value, at: &str| value.pointer(at).and_then(Value::as_object);
    let names =
        ["/mcpServers", "/servers", "/context_servers", "/mcp_servers", "/mcp/servers", "/mcp"];
    let mut tables: Vec<_> = names.iter().find_map(|at| table(value, at)).into_iter().collect();
    let here = Path::new(".").join(here).canonicalize().unwrap_or_else(|_| here.to_owned());
    let mut others = Vec::new();
    for (folder, project) in value.get("projects").and_then(Value::as_object).into_iter().flatten()
    {
        match table(project, "/mcpServers").filter(|servers| !servers.is_empty()) {
            Some(servers) if here.starts_with(folder) => tables.push(servers),
            Some(_) => others.push(visible(folder).into_owned()),
            None => {}
        }
    }
    (tables, others)
}

/// A name that no other server has.
fn unused_name(name: &str, servers: &[ClientServer]) -> String {
    let is_used = |name: &str| servers.iter().any(|server| server.name == name);
    if !is_used(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|number| {
        let end = format!("_{number}");
        let start: String = name.chars().take(NAME_CHARS - end.len()).collect();
        format!("{}{end}", start.trim_end_matches('_'))
    });
    let mut free = numbered.filter(|name| !is_used(name));
    free.next().unwrap_or_default()
}

/// Why a scenario with this server is refused; `None`: it is not.
fn problem_of(server: &ClientServer) -> Option<String> {
    let text = scenario_of(std::slice::from_ref(server));
    let checked = scenario::check(&text, ScenarioOrigin::File("new.toml".into()), &[]);
    let mut problems = checked.problems.iter();
    let error = problems.find(|problem| problem.severity == Severity::Error)?;
    Some(format!("a scenario does not take it: {}", error.what))
}

fn client_server(name: &str, server: &Value) -> ClientServer {
    let mut notes = Vec::new();
    // Zed: { "command": { "path": …, "args": …, "env": … } }.
    let inner = server.get("command").filter(|it| it.is_object()).unwrap_or(server);
    let text_of = |names: &[&str]| {
        names.iter().find_map(|key| inner.get(key)?.as_str()).unwrap_or_default().to_owned()
    };
    for key in server.as_object().into_iter().flat_map(Map::keys) {
        if !KNOWN_KEYS.contains(&key.as_str()) {
            notes.push(format!("`{key}` is not carried over"));
        }
    }
    let transport = text_of(&["type", "transport", "transportType"]).to_lowercase();
    let url = text_of(&["url", "httpUrl", "serverUrl"]);
    let name = server_name(name);
    let way = match url.is_empty() {
        true => command_of(inner, &text_of, &mut notes),
        false => url_of(&name, url, server, &mut notes),
    };
    let is = |key: &str, value: bool| server.get(key) == Some(&Value::Bool(value));
    let named = match &way {
        ClientWay::Command(program, ..) => program,
        ClientWay::Url(url, _) => url,
    };
    let left_out = if is("disabled", true) || is("enabled", false) {
        Some("it is disabled".to_owned())
    } else if transport == "sse" {
        Some(
            "its type is sse, the transport before HTTP, which roundtable does not speak"
                .to_owned(),
        )
    } else if transport.starts_with("ws") || transport.starts_with("websocket") {
        Some(format!("roundtable does not speak its type, {transport}"))
    } else if named.trim().is_empty() {
        Some("it has neither a command nor an address".to_owned())
    } else {
        placeholder(named)
            .map(|it| format!("{it} is replaced by nothing here: write what it stands for"))
    };
    ClientServer { name, way, notes, left_out }
}

fn command_of(
    server: &Value,
    text_of: &impl Fn(&[&str]) -> String,
    notes: &mut Vec<String>,
) -> ClientWay {
    let mut words: Vec<&Value> = Vec::new();
    // Some clients have the arguments in `command`.
    words.extend(server.get("command").and_then(Value::as_array).into_iter().flatten());
    words.extend(server.get("args").and_then(Value::as_array).into_iter().flatten());
    let mut args: Vec<String> = Vec::new();
    for word in words {
        match word {
            Value::String(text) => args.push(with_defaults(text, notes)),
            Value::Number(_) | Value::Bool(_) => args.push(word.to_string()),
            _ => notes.push(format!("an argument is no text and is left out: {word}")),
        }
    }
    let mut program = with_defaults(&text_of(&["command", "path"]), notes);
    if program.is_empty() && !args.is_empty() {
        program = args.remove(0);
    }
    hide_keys(&mut args, notes);
    for arg in &args {
        if let Some(placeholder) = placeholder(arg) {
            notes.push(format!(
                "{placeholder} in an argument is passed on as it is: write its value"
            ));
        }
    }
    let mut variables: Vec<NamedVariable> = USUAL_VARIABLES.map(same_name).into();
    for table in [server.get("env"), server.get("environment")].into_iter().flatten() {
        for (name, value) in table.as_object().into_iter().flatten() {
            if !EnvName::fits(name) {
                notes.push(format!(
                    "the variable {name:?} is left out: its name is not one of a shell"
                ));
            } else if !USUAL_VARIABLES.contains(&&**name) {
                let from = variable_in(value).unwrap_or_else(|| name.clone());
                variables.push(NamedVariable { name: name.clone(), from });
            }
        }
    }
    let passed_on = server.get("env_vars").and_then(Value::as_array).into_iter().flatten();
    let passed_on = passed_on.filter_map(Value::as_str).filter(|name| EnvName::fits(name));
    for name in passed_on {
        if variables.iter().all(|it| it.name != name) {
            variables.push(same_name(name));
        }
    }
    for (key, what) in [
        ("cwd", "it is started in the folder of roundtable, not in"),
        ("envFile", "add the variables that it needs to env: they are not read from"),
    ] {
        if let Some(value) = server.get(key).and_then(Value::as_str) {
            notes.push(format!("`{key}` is not carried over: {what} {value}"));
        }
    }
    ClientWay::Command(program, args, variables)
}

fn url_of(name: &str, url: String, server: &Value, notes: &mut Vec<String>) -> ClientWay {
    let mut url = with_defaults(&url, notes);
    let redacted = Redactor::default().redact(&url).into_owned();
    if redacted != url {
        notes.push(
            "its address has a key, which is not copied: use a header if the server takes one"
                .to_owned(),
        );
        url = redacted;
    }
    let mut headers: Vec<NamedVariable> = Vec::new();
    let mut add = |header: &str, from: Option<String>| {
        if !HeaderName::fits(header) {
            notes.push(format!("{header:?} is left out: it is not the name of a header"));
        } else if headers.iter().all(|it| !it.name.eq_ignore_ascii_case(header)) {
            let from = from.unwrap_or_else(|| header_variable(name, header));
            headers.push(NamedVariable { name: header.to_owned(), from });
        }
    };
    for table in ["headers", "http_headers"] {
        for (header, value) in server.get(table).and_then(Value::as_object).into_iter().flatten() {
            add(header, variable_in(value));
        }
    }
    for (header, variable) in
        server.get("env_http_headers").and_then(Value::as_object).into_iter().flatten()
    {
        add(header, variable.as_str().filter(|it| EnvName::fits(it)).map(str::to_owned));
    }
    if let Some(token) = server.get("bearer_token_env_var").and_then(Value::as_str) {
        add("Authorization", None);
        let variable = header_variable(name, "Authorization");
        notes.push(format!("${token} has only the token: set {variable} to \"Bearer ${token}\""));
    }
    ClientWay::Url(url, headers)
}

fn same_name(name: &str) -> NamedVariable {
    NamedVariable { name: name.to_owned(), from: name.to_owned() }
}

fn header_variable(server: &str, header: &str) -> String {
    let name = format!("{server}_{header}").to_uppercase();
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name: String = name.collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The first `${…}` of a text.
fn placeholder(text: &str) -> Option<&str> {
    let start = text.find("${")?;
    let rest = text.get(start..)?;
    rest.get(..=rest.find('}')?)
}

/// The environment variable that a value consists of: `${NAME}` or `${env:NAME}`.
fn variable_in(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    let name = placeholder(text).filter(|it| *it == text)?;
    let name = name.strip_prefix("${")?.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    EnvName::fits(name).then(|| name.to_owned())
}

/// The text with the default of each `${NAME:-default}`.
fn with_defaults(text: &str, notes: &mut Vec<String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(found) = placeholder(rest) {
        let at = rest.find(found).unwrap_or_default();
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + found.len()..).unwrap_or_default();
        match found.split_once(":-") {
            Some((_, default)) => {
                out.push_str(default.trim_end_matches('}'));
                notes.push(format!("{found} is replaced by its default"));
            }
            None => out.push_str(found),
        }
    }
    out + rest
}

/// Replaces arguments that look like keys: `--token VALUE`, `--token=VALUE`, and known forms of keys.
fn hide_keys(args: &mut [String], notes: &mut Vec<String>) {
    const NAMES: [&str; 7] =
        ["token", "password", "passwd", "secret", "api-key", "apikey", "api_key"];
    const HIDDEN: &str = "***";
    let redactor = Redactor::default();
    let mut is_value = false;
    for arg in args {
        let lower = arg.to_lowercase();
        let (flag, given) =
            lower.split_once('=').map_or((&*lower, false), |(flag, _)| (flag, true));
        let is_flag = flag.starts_with('-') && NAMES.iter().any(|name| flag.ends_with(name));
        let hidden = match (is_flag && given, is_value && !arg.starts_with('-')) {
            (true, _) => format!("{}={HIDDEN}", arg.split('=').next().unwrap_or_default()),
            (_, true) => HIDDEN.to_owned(),
            _ => redactor.redact(arg).into_owned(),
        };
        is_value = is_flag && !given;
        if hidden != *arg && placeholder(arg).is_none() {
            notes.push(format!("an argument looks like a key and is not copied: {hidden}"));
            *arg = hidden;
        }
    }
}

/// The nearest name that a scenario takes.
fn server_name(name: &str) -> String {
    if ServerName::fits(name) {
        return name.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let text: String = name.chars().map(plain).take(NAME_CHARS).collect();
    let parts: Vec<&str> = text.split('_').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "server".to_owned() } else { parts.join("_") }
}

/// The files of other clients that have servers, each with them.
pub fn find_servers(home: &Path, here: &Path) -> BTreeMap<PathBuf, Vec<ClientServer>> {
    let of_user = [
        ".claude.json",
        ".cursor/mcp.json",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        ".codeium/windsurf/mcp_config.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        ".config/zed/settings.json",
        ".copilot/mcp-config.json",
    ];
    let of_project = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json"];
    let files = of_user.iter().map(|file| home.join(file));
    let files = files.chain(of_project.iter().map(|file| here.join(file)));
    let used = |file: &Path| {
        let servers = read_servers(file, here).ok()?;
        Some(servers.into_iter().filter(ClientServer::is_used).collect())
    };
    files.filter_map(|file| Some((file.clone(), used(&file)?))).collect()
}

/// A scenario with one agent, which may call every tool of these servers.
pub fn scenario_of(servers: &[ClientServer]) -> String {
    let used = servers.iter().filter(|server| server.is_used());
    let tools: Vec<String> = used.map(|server| format!("\"{}.*\"", server.name)).collect();
    let tables: Vec<String> = servers.iter().map(ClientServer::to_toml).collect();
    let variables: BTreeSet<&str> = servers.iter().flat_map(ClientServer::variables).collect();
    let variables: Vec<&str> = variables.into_iter().collect();
    let note = match variables.is_empty() {
        true => String::new(),
        false => {
            format!("# Their values were not copied. Set before a run: {}\n", variables.join(", "))
        }
    };
    format!(
        "title = \"An assistant with tools\"\n\
         pattern = \"team\"\n\
         about = \"A coordinator consults an assistant, which calls tools of MCP servers.\"\n\
         goal = \"{{{{task}}}}\"\n\n\
         [inputs]\n\
         task = {{ value = \"Say which tools you have, and what each is for.\" }}\n\n\
         [team]\n\
         root = \"desk\"\n\n\
         # `roundtable tools FILE` lists what they offer. Each call asks, unless `allow` names its tool.\n\
         {note}{}\n\
         [agents.desk]\n\
         description = \"Talks to the user.\"\n\
         instruction = \"Let the assistant do what needs tools. Then answer in a few sentences.\"\n\
         members = [\"assistant\"]\n\n\
         [agents.assistant]\n\
         description = \"Does what needs tools.\"\n\
         tools = [{}]\n\n\
         [[script]]\n\
         agent = \"desk\"\n\
         round = 1\n\
         calls = [{{ tool = \"assistant\", args = {{ request = \"{{{{task}}}}\" }} }}]\n\n\
         [[script]]\n\
         agent = \"desk\"\n\
         text = \"The assistant is ready.\"\n\n\
         [[script]]\n\
         agent = \"assistant\"\n\
         text = \"I have tools. A live run (--live) uses them.\"\n",
        tables.join("\n"),
        tools.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Vec<ClientServer>, Refused> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        read_servers(&path, folder.path())
    }

    #[test]
    fn reads_tables_of_known_clients() {
        let files = r#"{ "command": "npx", "args": ["-y", "x"], "env": { "TOKEN": "hunter2" } }"#;
        for (name, text) in [
            ("mcp.json", format!("{{ \"mcpServers\": {{ \"files\": {files} }} }}")),
            ("mcp.json", format!("{{ // mine\n\"servers\": {{ \"files\": {files} }} }}")),
            (
                "settings.json",
                format!(
                    "{{ \"context_servers\": {{ \"files\": {{ \"command\": {} }} }} }}",
                    files.replace("command", "path")
                ),
            ),
            (
                "config.toml",
                "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\n\
                 env = { TOKEN = \"hunter2\" }\n"
                    .to_owned(),
            ),
        ] {
            let servers = read(name, &text).unwrap_or_else(|why| panic!("{text}: {why:#}"));
            let written = servers[0].to_toml();
            assert_eq!(
                written,
                "[mcp.files]\ncommand = { program = \"npx\", args = [\"-y\", \"x\"], env = { \
                 HOME = { env = \"HOME\" }, PATH = { env = \"PATH\" }, TOKEN = { env = \"TOKEN\" } } }\n",
                "{text}"
            );
        }
        assert!(read("mcp.json", "{}").is_err() && read("mcp.json", "{").is_err());
    }

    /// The scenario of a file with one server, which is checked.
    fn imported(server: &str) -> String {
        let servers = read("mcp.json", &format!("{{ \"mcpServers\": {{ \"a\": {server} }} }}"));
        let servers = servers.unwrap_or_else(|why| panic!("{server}: {why:#}"));
        let scenario = scenario_of(&servers);
        let origin = crate::scenario::ScenarioOrigin::File("x.toml".into());
        let checked = crate::scenario::load(&scenario, origin, &[]);
        assert!(checked.is_ok(), "{checked:?}\n{scenario}");
        scenario
    }

    #[test]
    fn files_of_clients_are_read() {
        let server = r#""a": { "command": "node", "args": ["x.js"] }"#;
        for text in [
            format!("{{ \"servers\": {{ {server} }} }}"),
            format!("{{\n // shared\n \"servers\": {{ /* local */ {server} }} }}"),
            format!("{{ \"servers\": {{ {server}, }}, }}"),
            format!("\u{feff}{{ \"servers\": {{ {server} }} }}"),
            format!("{{ \"mcp\": {{ \"servers\": {{ {server} }} }} }}"),
        ] {
            let servers = read("mcp.json", &text).unwrap_or_else(|why| panic!("{text}: {why:#}"));
            assert!(servers[0].to_toml().contains("program = \"node\""), "{text}");
        }
    }

    #[test]
    fn everything_is_carried_over_or_said() {
        for (server, says) in [
            (
                r#"{"command": "n", "args": ["--port", 8080, true]}"#,
                r#"args = ["--port", "8080", "true"]"#,
            ),
            (r#"{"command": "n", "args": [{"a": 1}]}"#, "# an argument is no text and is left out"),
            (
                r#"{"command": ["n", "x"], "environment": {"A": "1"}}"#,
                r#"program = "n", args = ["x"], env = { HOME = { env = "HOME" }, PATH = { env = "PATH" }, A ="#,
            ),
            (
                r#"{"command": "n", "cwd": "/srv/app"}"#,
                "# `cwd` is not carried over: it is started in the folder of roundtable, not in /srv/app",
            ),
            (r#"{"command": "n", "envFile": "/srv/.env"}"#, "read from /srv/.env"),
            (r#"{"command": "n", "oauth": {}}"#, "# `oauth` is not carried over"),
            (
                r#"{"command": "n", "env": {"A B": "x", "acme.key": "y"}}"#,
                "# the variable \"acme.key\" is left out",
            ),
            (
                r#"{"command": "n", "env": {"A": "${B}", "C": "${env:D}"}}"#,
                r#"A = { env = "B" }, C = { env = "D" }"#,
            ),
            (
                r#"{"command": "n", "env": {"PATH": "/bin"}}"#,
                r#"env = { HOME = { env = "HOME" }, PATH = { env = "PATH" } }"#,
            ),
            (
                r#"{"command": "n", "env_vars": ["A", "HOME"]}"#,
                r#"PATH = { env = "PATH" }, A = { env = "A" } }"#,
            ),
            (
                r#"{"command": "n", "args": ["${DB}"]}"#,
                "# ${DB} in an argument is passed on as it is: write its value",
            ),
            (
                r#"{"command": "n", "args": ["--api-key", "hunter2", "-v"]}"#,
                r#"args = ["--api-key", "***", "-v"]"#,
            ),
            (r#"{"command": "n", "args": ["--Token=hunter2"]}"#, r#"args = ["--Token=***"]"#),
            (
                r#"{"command": "n", "args": ["postgres://me:hunter2@h/db"]}"#,
                "# an argument looks like a key and is not copied",
            ),
            (
                r#"{"url": "${BASE:-https://b.example}/mcp"}"#,
                "# ${BASE:-https://b.example} is replaced by its default\n[mcp.a]\nurl = \"https://b.example/mcp\"",
            ),
            (r#"{"url": "http://localhost:3000/mcp"}"#, "allow_private = true"),
            (
                r#"{"url": "https://b.example/mcp?api_key=hunter2hunter2"}"#,
                "# its address has a key",
            ),
            (
                r#"{"url": "https://b.example/mcp", "headers": {"X-Key": "${K}"}}"#,
                r#"headers = { X-Key = { env = "K" } }"#,
            ),
            (
                r#"{"url": "https://b.example/mcp", "headers": {"X Key": "k"}}"#,
                "# \"X Key\" is left out",
            ),
            (
                r#"{"url": "https://b.example/mcp", "bearer_token_env_var": "T"}"#,
                "# $T has only the token: set A_AUTHORIZATION to \"Bearer $T\"\n[mcp.a]\nurl = \"https://b.example/mcp\"\nheaders = { Authorization = { env = \"A_AUTHORIZATION\" } }",
            ),
            (
                r#"{"url": "https://b.example/mcp", "env_http_headers": {"X-Key": "K"}}"#,
                r#"headers = { X-Key = { env = "K" } }"#,
            ),
        ] {
            let scenario = imported(server);
            assert!(scenario.contains(says), "{server}: {says}\n{scenario}");
            assert!(!scenario.contains("hunter2"), "{scenario}");
        }
    }

    #[test]
    fn unusable_servers_stay_switched_off() {
        for (server, why) in [
            (r#"{"command": "n", "disabled": true}"#, "it is disabled"),
            (r#"{"command": "n", "enabled": false}"#, "it is disabled"),
            (r#"{"type": "sse", "url": "https://old.example/x"}"#, "its type is sse"),
            (r#"{"url": "${BASE}/mcp"}"#, "${BASE} is replaced by nothing here"),
            (r#"{"url": "b.example/mcp"}"#, "a scenario does not take it: "),
            (r#"{"args": []}"#, "it has neither a command nor an address"),
            ("7", "it has neither a command nor an address"),
        ] {
            let alone = read("mcp.json", &format!("{{ \"servers\": {{ \"a\": {server} }} }}"));
            let alone = format!("{:#}", alone.expect_err(server));
            assert!(alone.contains(why), "{alone}");
            let both = format!(
                "{{ \"servers\": {{ \"a\": {server}, \"b\": {{ \"command\": \"n\" }} }} }}"
            );
            let scenario = scenario_of(&read("mcp.json", &both).expect("one of them"));
            assert!(scenario.contains(&format!("# a is left out: {why}")), "{scenario}");
            assert!(
                scenario.contains("# [mcp.a]\n") && scenario.contains("tools = [\"b.*\"]"),
                "{scenario}"
            );
        }
    }

    #[test]
    fn equal_names_are_told_apart() {
        let text = r#"{ "mcpServers": { "My Server": { "command": "a" }, "My_Server": { "command": "b" },
            "My.Server": { "command": "c" } } }"#;
        let names = read("mcp.json", text).expect("servers");
        let names: Vec<&str> = names.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["My_Server", "My_Server_2", "My_Server_3"]);
    }

    #[test]
    fn servers_of_this_project_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path().canonicalize().expect("its path").join("app");
        std::fs::create_dir(&here).expect("a folder");
        let path = folder.path().join("claude.json");
        let text = serde_json::json!({
            "mcpServers": {},
            "projects": {
                &*here.to_string_lossy(): { "mcpServers": { "mine": { "command": "n" } } },
                "/srv/other": { "mcpServers": { "theirs": { "command": "n" } } },
            },
        });
        std::fs::write(&path, text.to_string()).expect("written");
        let servers = read_servers(&path, &here).expect("one");
        assert_eq!(servers[0].name, "mine");
        let why = format!("{:#}", read_servers(&path, folder.path()).expect_err("none here"));
        assert!(
            why.contains("it has servers of other folders: ") && why.contains("/srv/other"),
            "{why}"
        );
    }

    #[test]
    fn no_value_is_copied() {
        let text = r#"{ "mcpServers": { "My Server!": { "url": "https://a.example/mcp",
            "headers": { "Authorization": "Bearer hunter2" } } } }"#;
        let servers = read("mcp.json", text).expect("a server");
        let scenario = scenario_of(&servers);
        assert!(!scenario.contains("hunter2"));
        assert!(scenario.contains("MY_SERVER_AUTHORIZATION"), "{scenario}");
        let origin = crate::scenario::ScenarioOrigin::File("x.toml".into());
        let checked = crate::scenario::load(&scenario, origin, &[]);
        assert!(checked.is_ok(), "{checked:?}\n{scenario}");
    }
}
