//! MCP servers, and tools that are one of theirs. A server is a program that is started with the run, or
//! an address. Which tools it offers is known when the run asks it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ToolTable;
use super::command::CommandSpec;
use crate::base::sha256_of_text;
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::people::names_tool;
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Seconds;
use crate::scenario::read::format::ScenarioFile;
use crate::scenario::read::format::tools::settings;
use crate::scenario::read::names::{EnvName, HeaderName, NameRule, NamedEntries, ResultKey};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlValue};
use crate::scenario::spec::tool::Setting;

/// Between the name of a server and the name of one of its tools, in files and on the screen.
pub const OF_SERVER: char = '.';
/// The same in a request to a model, whose names have no dots.
const OF_SERVER_FOR_MODELS: &str = "__";
/// Most characters of the name of a tool in a request to a model.
const MODEL_NAME_CHARS: usize = 64;
/// Hex digits of a hash in such a name.
const HASH_DIGITS: usize = 8;

record! {
    /// An MCP server: a program (`command`), or an address (`url`). With neither it is the server of this
    /// name in the configuration. Its limits are those of [tools.NAME].
    struct McpTable => {
        /// The program. It talks over its standard input and output, and ends with the run.
        command: Positioned<ServerCommandTable> = optional,
        /// The address, with http:// or https://.
        url: NonBlankString = optional,
        /// Headers of its requests: a string, or the environment variable that holds it.
        headers: Positioned<NamedEntries<Positioned<Setting>, HeaderName>> = default(Positioned::not_in_file(NamedEntries::default())),
        /// Whether it may be at a loopback, private or link-local address.
        allow_private: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Tools whose calls need no approval: a name, or the beginning of names and `*`. All others do.
        allow: BoundedList<NonBlankString, 0, 200> = default(BoundedList(Vec::new())),
        /// Timeout in seconds until it has started and has listed its tools.
        start_timeout_s: Seconds = default(Seconds::from_whole_seconds(30)),
        /// The protocol version that it is spoken to with. Default: it is asked which it speaks.
        protocol_version: McpVersion = optional,
        /// Maximum size of a message of it, in bytes.
        max_bytes: IntegerField<1_000, 1_000_000_000> = default(IntegerField(4_000_000)),
        /// Whether agents can do without its tools: then a server that does not start does not end the run.
        optional: bool = default(false),
        /// Limits of single tools, by the server's name of the tool. Default: they share those of
        /// [tools.NAME], its breaker and its bulkhead.
        tools: NamedEntries<ToolTable, ResultKey> = default(NamedEntries::default()),
    }
}

words! { McpVersion:
    "2024-11-05" => McpVersion::V20241105, "The first one.";
    "2025-03-26" => McpVersion::V20250326, "With streamable HTTP.";
    "2025-06-18" => McpVersion::V20250618, "With forms and structured results.";
    "2025-11-25" => McpVersion::V20251125, "The last one with `initialize`.";
    "2026-07-28" => McpVersion::V20260728, "With `server/discover`.";
}

record! {
    /// The program of an MCP server.
    struct ServerCommandTable => {
        /// The program; it is looked up in PATH unless it contains a slash. A relative path begins in the
        /// folder in which roundtable is started.
        program: NonBlankString = needed,
        /// Its arguments.
        args: BoundedList<StringField, 0, 200> = default(BoundedList(Vec::new())),
        /// Its whole environment: each variable is a string, or the environment variable that holds
        /// it.
        env: NamedEntries<Positioned<Setting>, EnvName> = default(NamedEntries::default()),
    }
}

record! {
    /// A tool of an MCP server.
    struct McpToolTable => {
        /// The server, by its name in [mcp].
        server: NonBlankString = needed,
        /// The server's name of the tool.
        tool: NonBlankString = needed,
    }
}

/// The name of an MCP server. It has no `__`, so that the name of a tool in a request says whose it is.
#[derive(Debug, Clone)]
pub(crate) struct ServerName;

impl NameRule for ServerName {
    const PATTERN: &'static str = "^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$";
    const WORDS: &'static str = "use letters, digits, - and single _ between them, at most 32";
    fn fits(text: &str) -> bool {
        text.len() <= 32
            && text.split('_').all(|part| {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                !part.is_empty() && part.bytes().all(is_plain)
            })
    }
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerSpec {
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Timeout until it has started and has listed its tools.
    pub start_timeout: Duration,
    /// The protocol version that it is spoken to with; `None`: it is asked which it speaks.
    pub protocol_version: Option<McpVersion>,
    /// Maximum size of a message of it, in bytes.
    pub max_bytes: u64,
    /// Tools whose calls need no approval: names, or beginnings of names and `*`.
    pub allow: Vec<String>,
    /// Whether agents can do without its tools.
    pub optional: bool,
}

/// Versions of the protocol that this program speaks, by their dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpVersion {
    /// 2024-11-05
    V20241105,
    /// 2025-03-26
    V20250326,
    /// 2025-06-18
    V20250618,
    /// 2025-11-25
    V20251125,
    /// 2026-07-28
    V20260728,
}

/// The tools of an MCP server, or one of them.
#[derive(Debug, Clone)]
pub struct McpSpec {
    pub server: Arc<McpServerSpec>,
    /// The server's name of the only tool; `None`: every tool that it offers.
    pub tool: Option<String>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    /// A program, over its standard input and output.
    Command(CommandSpec),
    /// An address, over HTTP.
    Url(McpUrl),
    /// As the configuration says.
    Configured,
}

/// The address of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpUrl {
    /// The address.
    pub url: String,
    /// Headers of its requests, by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether it may be at a loopback, private or link-local address.
    pub allow_private: bool,
}

impl McpServerSpec {
    /// Whether the configuration says how it is reached.
    pub fn is_configured(&self) -> bool {
        matches!(self.transport, McpTransport::Configured)
    }

    /// Whether the file allows calls of this tool without approval. `tool`: the server's name of it.
    pub fn allows(&self, tool: &str) -> bool {
        self.allow.iter().any(|named| names_tool(named, tool))
    }
}

/// The name of a server's tool in the run: `files.read_text_file`.
pub fn full_name(server: &str, tool: &str) -> String {
    format!("{server}{OF_SERVER}{tool}")
}

/// The server and the tool of such a name; `None`: it is not the tool of a server.
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    name.split_once(OF_SERVER)
}

/// The name of a tool in a request to a model: `files__read_text_file`. At most 64 letters, digits, `_` and
/// `-`; a name that is changed to fit ends with a hash, so that no two tools have the same.
pub fn model_name(name: &str) -> String {
    let Some((server, tool)) = split_name(name) else { return name.to_owned() };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain = format!("{server}{OF_SERVER_FOR_MODELS}{tool}");
    if plain.len() <= MODEL_NAME_CHARS && plain.chars().all(fits) {
        return plain;
    }
    let hash = sha256_of_text(name);
    let hash = hash.get(..HASH_DIGITS).unwrap_or(&hash);
    let kept = plain.chars().map(|c| if fits(c) { c } else { '_' });
    let kept: String = kept.take(MODEL_NAME_CHARS - HASH_DIGITS - 1).collect();
    format!("{kept}_{hash}")
}

/// What is wrong with the table of a server.
pub(crate) struct WrongServer<'f> {
    key: &'static str,
    at: TextSpan,
    what: String,
    help: &'f str,
}

impl WrongServer<'_> {
    pub fn report(self, cx: &mut ReadContext) {
        cx.at_key(self.key, |cx| cx.error(self.at, self.what, self.help));
    }
}

/// Builds a server.
pub(crate) fn build_server<'f>(
    name: &str,
    table: &'f McpTable,
) -> Result<McpServerSpec, WrongServer<'f>> {
    let wrong = |key, at, what: String, help| WrongServer { key, at, what, help };
    let transport = match (&table.command, &table.url) {
        (Some(_), Some(url)) => {
            let what = "the server has a command and an address".to_owned();
            return Err(wrong("url", url.at, what, "remove one of them"));
        }
        (Some(command), None) => McpTransport::Command(CommandSpec {
            // A missing program is reported where the table is read.
            program: command.value.program.as_ref().map(|it| it.text.clone()).unwrap_or_default(),
            args: command.value.args.0.iter().map(|arg| arg.text.clone()).collect(),
            env: settings(&command.value.env),
            max_bytes: u64::from(table.max_bytes.0),
        }),
        (None, Some(url)) => {
            let scheme = ["http://", "https://"].iter().any(|it| url.text.starts_with(it));
            if !scheme || url::Url::parse(&url.text).is_err() {
                let what = format!("`{}` is not an address", url.text);
                let help = "write one such as https://tools.example/mcp";
                return Err(wrong("url", url.at, what, help));
            }
            McpTransport::Url(McpUrl {
                url: url.text.clone(),
                headers: settings(&table.headers.value),
                allow_private: table.allow_private.value,
            })
        }
        (None, None) => McpTransport::Configured,
    };
    if !matches!(transport, McpTransport::Url(_)) {
        let of_url = [("headers", table.headers.at), ("allow_private", table.allow_private.at)];
        if let Some((key, at)) = of_url.into_iter().find(|(_, at)| at.end > 0) {
            let what = format!("`{key}` is for a server with `url`");
            return Err(wrong(key, at, what, "remove it"));
        }
    }
    Ok(McpServerSpec {
        name: name.to_owned(),
        transport,
        start_timeout: table.start_timeout_s.0,
        protocol_version: table.protocol_version,
        max_bytes: u64::from(table.max_bytes.0),
        allow: table.allow.0.iter().map(|tool| tool.text.trim().to_owned()).collect(),
        optional: table.optional,
    })
}

/// Builds a tool that is one of a server's.
pub(super) fn build(
    table: &McpToolTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<McpSpec> {
    let named = table.server.as_ref()?;
    let entry = file.mcp.entries.iter().find(|entry| entry.name == named.text);
    if entry.is_none() && !file.mcp.has(&named.text) {
        cx.at_key("server", |cx| {
            report_unknown_name(named, "an MCP server", file.mcp.names(), cx);
        });
    }
    // What is wrong with a server is reported at its table.
    let server = build_server(&named.text, entry?.value.as_ref()?).ok()?;
    Some(McpSpec { server: Arc::new(server), tool: Some(table.tool.as_ref()?.text.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_models_are_unique() {
        assert_eq!(model_name("files.read_text_file"), "files__read_text_file");
        assert_eq!(model_name("refund"), "refund");
        let [dots, slashes] = [model_name("a.x.y"), model_name("a.x/y")];
        assert!(dots.starts_with("a__x_y_") && slashes.starts_with("a__x_y_"), "{dots} {slashes}");
        assert_ne!(dots, slashes);
        let long = |end: &str| model_name(&format!("files.{}{end}", "a".repeat(100)));
        assert_eq!(long("1").len(), MODEL_NAME_CHARS);
        assert_ne!(long("1"), long("2"));
    }

    #[test]
    fn server_names_have_no_double_underscore() {
        for good in ["files", "my_files", "a-b", "0"] {
            assert!(ServerName::fits(good), "{good}");
        }
        for bad in ["", "a__b", "_a", "a_", "a.b", "ä", &"a".repeat(33)] {
            assert!(!ServerName::fits(bad), "{bad}");
        }
    }
}
