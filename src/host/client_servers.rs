//! MCP servers that other programs of the user are configured with: found, read, and written as tables of
//! a scenario. Values of variables and headers are never copied, because they may be keys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Value as Toml;

use crate::base::read_file;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::visible;
use crate::scenario::read::names::NameRule as _;
use crate::scenario::tools::mcp::ServerName;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// Variables that most programs need to start.
const USUAL_VARIABLES: [&str; 2] = ["HOME", "PATH"];

/// A server as another client is configured with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientServer {
    /// Its name, changed to one that a scenario takes.
    pub name: String,
    way: ClientWay,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ClientWay {
    /// Program, arguments, names of variables.
    Command(String, Vec<String>, Vec<String>),
    /// Address, names of headers.
    Url(String, Vec<String>),
}

impl ClientServer {
    /// Its table in a scenario or the configuration.
    pub fn to_toml(&self) -> String {
        let text = |text: &str| Toml::from(text).to_string();
        let env = |variable: &str| format!("{{ env = {} }}", text(variable));
        let mut lines = vec![format!("[mcp.{}]", self.name)];
        match &self.way {
            ClientWay::Command(program, args, variables) => {
                let args: Vec<String> = args.iter().map(|arg| text(arg)).collect();
                let mut names: Vec<&str> = USUAL_VARIABLES.to_vec();
                names.extend(variables.iter().map(String::as_str));
                names.dedup();
                let variables = names.iter().map(|name| format!("{name} = {}", env(name)));
                let variables = variables.collect::<Vec<_>>().join(", ");
                lines.push(format!(
                    "command = {{ program = {}, args = [{}], env = {{ {variables} }} }}",
                    text(program),
                    args.join(", ")
                ));
            }
            ClientWay::Url(url, headers) => {
                lines.push(format!("url = {}", text(url)));
                if !headers.is_empty() {
                    let set = headers.iter().map(|header| {
                        format!("{} = {}", text(header), env(&self.header_variable(header)))
                    });
                    let set = set.collect::<Vec<_>>().join(", ");
                    lines.push(format!("headers = {{ {set} }}"));
                }
            }
        }
        lines.join("\n") + "\n"
    }

    /// The variables that have to be set before it is used, apart from those that every shell sets.
    pub fn variables(&self) -> Vec<String> {
        match &self.way {
            ClientWay::Command(_, _, variables) => variables.clone(),
            ClientWay::Url(_, headers) => {
                headers.iter().map(|header| self.header_variable(header)).collect()
            }
        }
    }

    fn header_variable(&self, header: &str) -> String {
        let name = format!("{}_{header}", self.name).to_uppercase();
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    }
}

/// The servers in the file of a client. Each client has its own name for the table. In `context_servers` of
/// Zed, `command` may be a table.
///
/// # Errors
/// The file cannot be read, or has no servers.
pub fn read_servers(path: &Path) -> Result<Vec<ClientServer>, Refused> {
    let shown = visible(&path.display().to_string()).into_owned();
    let bytes =
        read_file::read_file(path, MAX_BYTES).or_refuse(format_args!("cannot read {shown}"))?;
    let text = String::from_utf8_lossy(&bytes);
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    let value: Value = match is_toml {
        true => toml::from_str(&text).or_refuse(format_args!("{shown} is not TOML"))?,
        false => serde_json::from_str(&without_comments(&text))
            .or_refuse(format_args!("{shown} is not JSON"))?,
    };
    let tables = ["mcpServers", "servers", "context_servers", "mcp_servers"];
    let found = tables.iter().find_map(|key| value.get(key)?.as_object());
    let servers: Vec<ClientServer> = found
        .into_iter()
        .flatten()
        .filter_map(|(name, server)| client_server(name, server))
        .collect();
    if servers.is_empty() {
        let why = Refused::new(format!("{shown} has no MCP servers"));
        return Err(why.help("it needs a table mcpServers: { NAME: { command, args, env } }"));
    }
    Ok(servers)
}

fn client_server(name: &str, server: &Value) -> Option<ClientServer> {
    let name = server_name(name);
    let names = |table: Option<&Value>| -> Vec<String> {
        table.and_then(Value::as_object).map_or_else(Vec::new, |it| it.keys().cloned().collect())
    };
    let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| server.get(key)?.as_str());
    if let Some(url) = url {
        let way = ClientWay::Url(url.to_owned(), names(server.get("headers")));
        return Some(ClientServer { name, way });
    }
    // Zed: { "command": { "path": …, "args": …, "env": … } }.
    let inner = server.get("command").filter(|it| it.is_object()).unwrap_or(server);
    let program = ["command", "path"].iter().find_map(|key| inner.get(key)?.as_str())?;
    let args = inner.get("args").and_then(Value::as_array).into_iter().flatten();
    let args = args.filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
    let way = ClientWay::Command(program.to_owned(), args, names(inner.get("env")));
    Some(ClientServer { name, way })
}

/// The nearest name that a scenario takes.
fn server_name(name: &str) -> String {
    if ServerName::fits(name) {
        return name.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let text: String = name.chars().map(plain).take(32).collect();
    let parts: Vec<&str> = text.split('_').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "server".to_owned() } else { parts.join("_") }
}

/// JSON without comments: several clients write them.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut chars, mut in_text) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(next)) if in_text => {
                out.extend([c, *next]);
                chars.next();
            }
            ('"', _) => {
                in_text = !in_text;
                out.push(c);
            }
            ('/', Some('/')) if !in_text => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
            }
            _ => out.push(c),
        }
    }
    out
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
    files.filter_map(|file| Some((file.clone(), read_servers(&file).ok()?))).collect()
}

/// A scenario with one agent, which may call every tool of these servers.
pub fn scenario_of(servers: &[ClientServer]) -> String {
    let tools: Vec<String> =
        servers.iter().map(|server| format!("\"{}.*\"", server.name)).collect();
    let tables: Vec<String> = servers.iter().map(ClientServer::to_toml).collect();
    let variables: Vec<String> = servers.iter().flat_map(ClientServer::variables).collect();
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
        read_servers(&path)
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
