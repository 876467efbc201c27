//! Agents of other programs: a coding agent that speaks the agent client protocol (`acp`), or a server
//! that speaks AG-UI (`ag_ui`). Such an agent takes the place of a model: a live run asks it, an offline
//! run plays its script.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::command::CommandSpec;
use super::mcp::{McpServerSpec, build_server};
use crate::base::name::{AgentName, ToolName};
use crate::base::worded;
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::patterns::agents::table::AgentTable;
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::Seconds;
use crate::scenario::read::format::ScenarioFile;
use crate::scenario::read::format::tools::settings;
use crate::scenario::read::names::{EnvName, HeaderName, NamedEntries};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlValue};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::tool::Setting;

record! {
    /// A coding agent that speaks the agent client protocol (ACP). Its program is started with the first
    /// call of a live run, and ends with the run. It works with a login of its own.
    struct AcpTable => {
        /// The program.
        command: Positioned<AgentCommandTable> = needed,
        /// The folder that it works in; a relative one begins in the folder in which roundtable is started,
        /// which is also the default.
        cwd: NonBlankString = optional,
        /// The MCP servers that it may use itself, by their names in [mcp]. Each needs `command` or `url`.
        mcp: BoundedList<NonBlankString, 0, 20> = default(BoundedList(Vec::new())),
        /// The mode of its sessions, by its own name, such as plan or ask. Default: its own.
        mode: NonBlankString = optional,
        /// What it may do without asking the operator: kinds of actions. Everything else is a question. Of its
        /// own tools the agent says what kind they are; a request that shows a command, a change or an address
        /// needs the kind of that too, and one that shows nothing is always a question.
        allow: BoundedList<ActionKind, 0, { ActionKind::ALL.len() }> = default(BoundedList(Vec::new())),
        /// Whether it may read and write files of its folder through roundtable. Most agents do without. A
        /// change is a question unless `allow` has `edit`.
        files: FileAccess = default(FileAccess::None),
        /// Whether it may run commands in its folder through roundtable. Most agents do without. A command is
        /// a question unless `allow` has `execute`.
        terminal: bool = default(false),
        /// Timeout in seconds until it has started.
        start_timeout_s: Seconds = default(Seconds::from_whole_seconds(60)),
        /// Maximum size of a message of it, in bytes.
        max_bytes: IntegerField<1_000, 1_000_000_000> = default(IntegerField(10_000_000)),
        /// Where its cost comes from. `reported`: it says what each turn costs, and a turn without a cost
        /// stops a run that has budget.max_cost_usd. Default: its cost is unknown, and such a run is refused.
        cost: AgentCost = optional,
    }
}

record! {
    /// The program of a coding agent.
    struct AgentCommandTable => {
        /// The program; it is looked up in PATH unless it contains a slash.
        program: NonBlankString = needed,
        /// Its arguments.
        args: BoundedList<StringField, 0, 200> = default(BoundedList(Vec::new())),
        /// Variables of its environment: each is a string, or the environment variable that holds it. It
        /// also gets HOME, PATH, USER, LOGNAME, SHELL, LANG, LC_ALL, TMPDIR and the XDG folders, and nothing
        /// else.
        env: NamedEntries<Positioned<Setting>, EnvName> = default(NamedEntries::default()),
    }
}

record! {
    /// An agent that is a server and speaks AG-UI.
    struct AgUiTable => {
        /// The address, with http:// or https://.
        url: NonBlankString = needed,
        /// Headers of its requests: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Whether it may be at a loopback, private or link-local address.
        allow_private: bool = default(false),
        /// Maximum size of an event of it, and of all text of one reply, in bytes.
        max_bytes: IntegerField<1_000, 1_000_000_000> = default(IntegerField(4_000_000)),
        /// Where its cost comes from: see acp.cost.
        cost: AgentCost = optional,
    }
}

words! { FileAccess:
    "none" => FileAccess::None, "Neither.";
    "read" => FileAccess::Read, "It may read.";
    "write" => FileAccess::Write, "It may read and write.";
}

words! { AgentCost:
    "reported" => AgentCost::Reported, "The agent says it.";
}

words! { ActionKind:
    "read" => ActionKind::Read, "Read files.";
    "edit" => ActionKind::Edit, "Change files.";
    "delete" => ActionKind::Delete, "Delete files.";
    "move" => ActionKind::Move, "Move files.";
    "search" => ActionKind::Search, "Search.";
    "execute" => ActionKind::Execute, "Run commands.";
    "think" => ActionKind::Think, "Plan.";
    "fetch" => ActionKind::Fetch, "Fetch pages and data.";
    "other" => ActionKind::Other, "Anything else.";
}

/// What an agent may do with files through this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Nothing.
    None,
    Read,
    /// Read and write.
    Write,
}

impl FileAccess {
    /// Whether it may read.
    pub fn may_read(self) -> bool {
        self != Self::None
    }

    /// Whether it may write.
    pub fn may_write(self) -> bool {
        self == Self::Write
    }
}

/// Where the cost of an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentCost {
    /// It says what a turn costs.
    Reported,
}

/// Kinds of what a coding agent does, as its protocol has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// It reads files.
    Read,
    /// It changes files.
    Edit,
    /// It deletes files.
    Delete,
    /// It moves files.
    Move,
    Search,
    /// It runs a command.
    Execute,
    /// It plans.
    Think,
    Fetch,
    /// Anything else.
    Other,
}

worded! { ActionKind + ALL {
    Read = "read", Edit = "edit", Delete = "delete", Move = "move", Search = "search",
    Execute = "execute", Think = "think", Fetch = "fetch", Other = "other",
} }

/// An agent of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideAgent {
    /// Its name in the scenario.
    pub name: AgentName,
    /// How it is reached.
    pub link: AgentLink,
    /// Maximum size of a message of it, in bytes.
    pub max_bytes: u64,
    /// Whether it says what a turn costs.
    pub reports_cost: bool,
}

/// How an agent of another program is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentLink {
    /// It is a program that speaks the agent client protocol.
    Acp(AcpSpec),
    /// It is a server that speaks AG-UI.
    AgUi(AgUiSpec),
}

/// A coding agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpSpec {
    /// Its program. The environment is what the file names.
    pub command: CommandSpec,
    /// The folder that it works in; `None`: that in which this program was started.
    pub cwd: Option<PathBuf>,
    /// The MCP servers that it may use.
    pub servers: Vec<McpServerSpec>,
    /// The mode of its sessions.
    pub mode: Option<String>,
    /// What it may do without asking.
    pub allow: Vec<ActionKind>,
    /// What it may do with files through this program.
    pub files: FileAccess,
    /// Whether it may run commands through this program.
    pub terminal: bool,
    /// Timeout until it has started.
    pub start_timeout: Duration,
}

/// An agent that is a server.
#[derive(Debug, Clone, PartialEq)]
pub struct AgUiSpec {
    /// Its address.
    pub url: String,
    /// Headers of its requests, by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether it may be at a loopback, private or link-local address.
    pub allow_private: bool,
}

/// A caller of a pattern for which an agent of another program answers.
#[derive(Debug, Clone)]
pub struct OutsideCaller {
    /// The role, the agent or the step.
    pub caller: ModelCaller,
    /// Who answers.
    pub agent: Arc<OutsideAgent>,
}

/// Variables that the program of a coding agent gets in any case: where it finds its login, its settings
/// and other programs.
pub const AGENT_VARIABLES: [&str; 13] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
];

impl OutsideAgent {
    /// The word for how it is reached, in files and on the screen.
    pub fn word(&self) -> &'static str {
        match self.link {
            AgentLink::Acp(_) => "acp",
            AgentLink::AgUi(_) => "ag_ui",
        }
    }

    /// The name under which its calls pass the gateway: `coder.acp`. A call of the agent as a member of
    /// a team has the agent's name.
    pub fn guard_name(&self) -> ToolName {
        format!("{}.{}", self.name, self.word()).into()
    }

    /// The name of its program, or the host of its address.
    pub fn place(&self) -> String {
        match &self.link {
            AgentLink::Acp(acp) => {
                let program = acp.command.program.as_str();
                program.rsplit('/').next().unwrap_or(program).to_owned()
            }
            AgentLink::AgUi(ag_ui) => url::Url::parse(&ag_ui.url)
                .ok()
                .and_then(|url| Some(url.host_str()?.to_owned()))
                .unwrap_or_else(|| ag_ui.url.clone()),
        }
    }
}

/// The agent of another program in this table of an agent. Outer `None`: it is invalid; inner `None`: the
/// agent is not one.
pub(crate) fn build(
    name: &str,
    table: &AgentTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<Option<Arc<OutsideAgent>>> {
    let build = |link, max_bytes: u32, cost: Option<AgentCost>| {
        let max_bytes = u64::from(max_bytes);
        let name = AgentName::from(name);
        Some(Some(Arc::new(OutsideAgent { name, link, max_bytes, reports_cost: cost.is_some() })))
    };
    match (&table.acp, &table.ag_ui) {
        (None, None) => Some(None),
        (Some(_), Some(second)) => {
            let what = "the agent has `acp` and `ag_ui`";
            cx.at_key("ag_ui", |cx| cx.error(second.at, what, "keep one of them"));
            None
        }
        (Some(acp), None) => {
            let link = AgentLink::Acp(cx.at_key("acp", |cx| build_acp(&acp.value, file, cx))?);
            build(link, acp.value.max_bytes.0, acp.value.cost)
        }
        (None, Some(ag_ui)) => {
            let link = AgentLink::AgUi(cx.at_key("ag_ui", |cx| build_ag_ui(&ag_ui.value, cx))?);
            build(link, ag_ui.value.max_bytes.0, ag_ui.value.cost)
        }
    }
}

fn build_acp(table: &AcpTable, file: &ScenarioFile, cx: &mut ReadContext) -> Option<AcpSpec> {
    let mut servers = Vec::new();
    cx.at_key("mcp", |cx| {
        for (index, named) in table.mcp.0.iter().enumerate() {
            servers.push(cx.at_index(index, |cx| server_of_agent(named, file, cx)));
        }
    });
    let command = &table.command.as_ref()?.value;
    Some(AcpSpec {
        command: CommandSpec {
            program: command.program.as_ref()?.text.clone(),
            args: command.args.0.iter().map(|arg| arg.text.clone()).collect(),
            env: settings(&command.env),
            max_bytes: u64::from(table.max_bytes.0),
        },
        cwd: table.cwd.as_ref().map(|folder| PathBuf::from(&folder.text)),
        servers: servers.into_iter().collect::<Option<_>>()?,
        mode: table.mode.as_ref().map(|mode| mode.text.clone()),
        allow: table.allow.0.clone(),
        files: table.files,
        terminal: table.terminal,
        start_timeout: table.start_timeout_s.0,
    })
}

/// An MCP server that a coding agent may use.
fn server_of_agent(
    named: &NonBlankString,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<McpServerSpec> {
    let Some(entry) = file.mcp.entries.iter().find(|entry| entry.name == named.text) else {
        if !file.mcp.has(&named.text) {
            report_unknown_name(named, "an MCP server", file.mcp.names(), cx);
        }
        return None;
    };
    // What is wrong with a server is reported at its table.
    let server = build_server(&named.text, entry.value.as_ref()?).ok()?;
    if server.is_configured() {
        let what = format!("`{}` has neither `command` nor `url`", named.text);
        let help = "an agent gets only servers that the file describes: add one of them";
        cx.error(named.at, what, help);
        return None;
    }
    Some(server)
}

/// Whether a coding agent of the file uses this MCP server itself.
pub(crate) fn names_server(server: &str, file: &ScenarioFile) -> bool {
    let agents = file.agents.entries.iter().filter_map(|it| it.value.as_ref()?.acp.as_ref());
    agents.flat_map(|acp| &acp.value.mcp.0).any(|named| named.text == server)
}

fn build_ag_ui(table: &AgUiTable, cx: &mut ReadContext) -> Option<AgUiSpec> {
    let url = table.url.as_ref()?;
    let scheme = ["http://", "https://"].iter().any(|it| url.text.starts_with(it));
    if !scheme || url::Url::parse(&url.text).is_err() {
        let what = format!("`{}` is not an address", url.text);
        let help = "write one such as http://127.0.0.1:8000/agent";
        cx.at_key("url", |cx| cx.error(url.at, what, help));
        return None;
    }
    Some(AgUiSpec {
        url: url.text.clone(),
        headers: settings(&table.headers),
        allow_private: table.allow_private,
    })
}

/// Reports a limit of the cost of a run with an agent whose cost is not known.
pub(crate) fn check_cost(
    name: &str,
    table: &AgentTable,
    at: TextSpan,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let cost = match (&table.acp, &table.ag_ui) {
        (Some(acp), _) => acp.value.cost,
        (None, Some(ag_ui)) => ag_ui.value.cost,
        (None, None) => return,
    };
    let is_limited = file.budget.as_ref().is_some_and(|budget| budget.max_cost_usd.is_some());
    if is_limited && cost.is_none() {
        let what = format!("budget.max_cost_usd is set, but the cost of `{name}` is not known");
        let help = "add cost = \"reported\" if the agent says it, or remove the limit";
        cx.error(at, what, help);
    }
}
