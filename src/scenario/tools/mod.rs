//! The kinds of tool: what a file says of each, its checks, its settings. Search and read share
//! `documents.rs`. This is their registry; `ToolMaker` of `tool/mod.rs` makes the tool. Other code
//! asks a kind what it does outside of the program ([`ToolKind::action`]) and does not match it.

pub mod agent;
pub mod command;
pub mod documents;
pub mod fixture;
pub mod http;
pub mod mcp;

use std::sync::Arc;

use self::agent::OutsideAgent;
use self::command::{CommandSpec, CommandTable};
use self::documents::{FolderSpec, ReadSpec, ReadTable, SearchSpec, SearchTable, WebSpec};
use self::fixture::{FixtureSpec, FixtureTable};
use self::http::{HttpSpec, HttpTable};
use self::mcp::{McpServerSpec, McpSpec, McpToolTable};
use super::people::{ApproveKey, Effects};
use super::read::ReadContext;
use super::read::amount::Seconds;
use super::read::format::ScenarioFile;
use super::read::format::tools::{
    BreakerTable, BulkheadTable, InjectedTable, RetriesTable, RetryBudgetTable, SafeModeTable,
};
use super::read::names::{NamedEntries, ResultKey};
use super::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    TextOrTable, record,
};
use super::read::template::TemplateScope;
use super::read::tree::{TextSpan, TomlNode};
use super::spec::policy::max;
use super::spec::tool::FieldKind;

/// The implementation of a tool.
#[derive(Debug, Clone)]
pub enum ToolKind {
    /// Results that the scenario lists.
    Fixture(Arc<FixtureSpec>),
    /// An HTTP request.
    Http(Arc<HttpSpec>),
    /// A program on this machine.
    Command(Arc<CommandSpec>),
    /// A search for sources.
    Search(Arc<SearchSpec>),
    /// A page reader.
    Read(Arc<ReadSpec>),
    /// The tools of an MCP server, or one of them.
    Mcp(Arc<McpSpec>),
    /// An agent of another program: no tool, but behind the gateway like one.
    Agent(Arc<OutsideAgent>),
}

impl ToolKind {
    /// The word for it in files and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Fixture(_) => "fixture",
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            Self::Search(_) => "search",
            Self::Read(_) => "read",
            Self::Mcp(_) => "mcp",
            Self::Agent(agent) => agent.word(),
        }
    }

    /// What its calls do outside of this program, for those who must allow it; `None`: nothing.
    pub fn action(&self) -> Option<ToolAction<'_>> {
        match self {
            Self::Fixture(_) => None,
            Self::Http(http) => Some(ToolAction::Request(http)),
            Self::Command(command) => Some(ToolAction::Start(command)),
            Self::Search(search) => Some(match &**search {
                SearchSpec::Folder(folder) => ToolAction::ReadFolder(folder),
                SearchSpec::Endpoint(endpoint) => ToolAction::Query(&endpoint.http),
            }),
            Self::Read(read) => Some(match &**read {
                ReadSpec::Folder(folder) => ToolAction::ReadFolder(folder),
                ReadSpec::Web(web) => ToolAction::ReadWeb(web),
            }),
            Self::Mcp(mcp) => Some(ToolAction::Serve(&mcp.server)),
            Self::Agent(agent) => Some(ToolAction::Employ(agent)),
        }
    }

    /// Whether a call may change something outside of the run. One that only searches or reads does not.
    pub fn has_effects(&self) -> bool {
        matches!(
            self.action(),
            Some(
                ToolAction::Start(_)
                    | ToolAction::Request(_)
                    | ToolAction::Serve(_)
                    | ToolAction::Employ(_)
            )
        )
    }

    /// The MCP server, if it is one or a tool of one.
    pub fn mcp(&self) -> Option<&McpSpec> {
        match self {
            Self::Mcp(mcp) => Some(mcp),
            _ => None,
        }
    }

    /// The agent of another program, if it is one.
    pub fn agent(&self) -> Option<&Arc<OutsideAgent>> {
        match self {
            Self::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// The results that the scenario lists, if this is a fixture.
    pub fn fixture(&self) -> Option<&FixtureSpec> {
        match self {
            Self::Fixture(fixture) => Some(fixture),
            _ => None,
        }
    }
}

/// What the calls of a tool do outside of this program.
#[derive(Debug, Clone, Copy)]
pub enum ToolAction<'s> {
    /// They start a program.
    Start(&'s CommandSpec),
    /// They send a request.
    Request(&'s HttpSpec),
    /// They send a search query.
    Query(&'s HttpSpec),
    /// They read a folder of documents.
    ReadFolder(&'s FolderSpec),
    /// They read pages of the web.
    ReadWeb(&'s WebSpec),
    /// They use an MCP server, which is started or connected to.
    Serve(&'s McpServerSpec),
    /// In a live run an agent of another program answers, which is started or connected to.
    Employ(&'s OutsideAgent),
}

record! {
    /// The gateway's policy for calls of a tool, and its implementation. Under the name of a worker
    /// it replaces the orchestrator's own policy; under the name of an agent it is the policy for
    /// consulting that agent, with one attempt unless max_attempts is set.
    struct ToolTable => {
        /// What it does, shown to the agents that may call it.
        description: NonBlankString = optional,
        /// Its arguments, all of them required: the description of each, or its JSON schema.
        args: Positioned<NamedEntries<TextOrTable, ResultKey>> = default(Positioned::not_in_file(NamedEntries::default())),
        /// Timeout of one attempt in seconds, until its result is complete. Default:
        /// task_timeout_seconds for an orchestrator's worker; for `read_source` of research
        /// max_seconds / (max_read_pages + 2), clamped to 2 to 10, so that slow pages cannot use up
        /// the run; otherwise 10.
        timeout_s: Seconds = optional,
        /// Retries of a failed call.
        retries: RetriesTable = table,
        /// Whether a call may be retried at all. Default: true, but false for a tool with approve.
        idempotent: Positioned<bool> = default(Positioned::not_in_file(true)),
        /// Whether its calls need approval: true, false, or when, and who approves.
        approve: Positioned<ApproveKey> = optional,
        /// What a call does. Default: write for a program or a request, read otherwise.
        effects: Effects = optional,
        /// Retry budget: how many attempts may be retries.
        retry_budget: RetryBudgetTable = table,
        /// Circuit breaker: when calls are rejected without an attempt. Default: a breaker with its
        /// default values; none for `read` from the web, which covers many hosts.
        breaker: BreakerTable = optional,
        /// Bulkhead: how many attempts may run concurrently.
        bulkhead: BulkheadTable = table,
        /// Most attempts that start in a minute; more wait as in the queue of the bulkhead. Default: any number.
        rate: IntegerField<1, { max::RATE }> = optional,
        /// Safe mode: the fallback for a call that fails. It is on unless `enabled` is false.
        safe_mode: SafeModeTable = table,
        /// Whether the runs of one session share breaker, bulkhead and retry budget.
        shared: bool = default(false),
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
        /// Results that are listed in this file.
        fixture: Positioned<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: Positioned<HttpTable> = optional,
        /// A program whose output is the result.
        command: Positioned<CommandTable> = optional,
        /// A search in a folder of documents or with an endpoint.
        search: Positioned<SearchTable> = optional,
        /// A page reader for a folder of documents or the web.
        read: Positioned<ReadTable> = optional,
        /// A tool of an MCP server.
        mcp: Positioned<McpToolTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: NamedEntries<FieldKind, ResultKey> = default(NamedEntries::default()),
    }
}

/// The table of an implementation.
#[derive(Clone, Copy)]
pub(crate) enum KindTable<'f> {
    Fixture(&'f Positioned<FixtureTable>),
    Http(&'f Positioned<HttpTable>),
    Command(&'f Positioned<CommandTable>),
    Search(&'f Positioned<SearchTable>),
    Read(&'f Positioned<ReadTable>),
    Mcp(&'f Positioned<McpToolTable>),
}

impl KindTable<'_> {
    pub fn at(self) -> TextSpan {
        match self {
            Self::Fixture(table) => table.at,
            Self::Http(table) => table.at,
            Self::Command(table) => table.at,
            Self::Search(table) => table.at,
            Self::Read(table) => table.at,
            Self::Mcp(table) => table.at,
        }
    }
}

/// What a table of the file declares for a tool.
pub(crate) struct DeclaredImplementation<'f> {
    /// One, unless the file has a mistake.
    pub kinds: Vec<KindTable<'f>>,
    /// "worker" or "tool", for messages.
    pub what: &'static str,
    pub contract: &'f NamedEntries<FieldKind, ResultKey>,
}

impl<'f> DeclaredImplementation<'f> {
    pub fn from_tool(table: &'f ToolTable) -> Self {
        let kinds = [
            table.fixture.as_ref().map(KindTable::Fixture),
            table.http.as_ref().map(KindTable::Http),
            table.command.as_ref().map(KindTable::Command),
            table.search.as_ref().map(KindTable::Search),
            table.read.as_ref().map(KindTable::Read),
            table.mcp.as_ref().map(KindTable::Mcp),
        ];
        let kinds = kinds.into_iter().flatten().collect();
        Self { kinds, what: "tool", contract: &table.contract }
    }

    /// Position of the first declaration; a contract counts too.
    pub fn first(&self) -> Option<TextSpan> {
        let contract = self.contract.entries.first().map(|entry| entry.at);
        self.kinds.first().map(|kind| kind.at()).or(contract)
    }

    pub fn has_implementation(&self) -> bool {
        self.first().is_some()
    }
}

/// The number of attempts that a call of a tool may have, if the file sets it.
pub(crate) struct AttemptLimit {
    /// Maximum number of attempts.
    pub most: u32,
    /// Set by an override: that holds for one run only, so rows for other runs are not reported.
    pub set: bool,
    /// The key that sets it, and its value.
    pub of: String,
}

impl AttemptLimit {
    pub fn from_retries(place: &str, retries: &RetriesTable) -> Self {
        let limit = &retries.max_attempts;
        let of = format!("{place}.retries.max_attempts is {}", limit.value.0);
        Self { most: limit.value.0, set: limit.at.text > 0, of }
    }

    /// An unguarded run may make more attempts.
    pub fn raise_to(&mut self, attempts: u32) {
        self.most = self.most.max(attempts);
    }
}

/// The implementation of a tool. Outer `None`: invalid; inner `None`: none is declared. `args` are
/// the tool's arguments, where they are known.
pub(crate) fn tool_kind(
    declared: &DeclaredImplementation<'_>,
    args: &KnownArguments<'_>,
    attempts: &AttemptLimit,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Option<ToolKind>> {
    if let [_, second, ..] = &declared.kinds[..] {
        let help = match declared.what {
            "tool" => "keep one of fixture, http, command, search, read and mcp",
            _ => "keep one of fixture, http, command and mcp",
        };
        cx.error(second.at(), "the tool has two implementations", help);
        return None;
    }
    let Some(kind) = declared.kinds.first() else { return Some(None) };
    let kind = match *kind {
        KindTable::Fixture(table) => ToolKind::Fixture(Arc::new(cx.at_key("fixture", |cx| {
            fixture::check_row_arguments(&table.value, args, cx);
            fixture::build(&table.value, attempts, scope, cx)
        })?)),
        KindTable::Http(table) => ToolKind::Http(Arc::new(
            cx.at_key("http", |cx| http::build(&table.value, args, declared.what, cx))?,
        )),
        KindTable::Command(table) => ToolKind::Command(Arc::new(command::build(&table.value)?)),
        KindTable::Search(table) => ToolKind::Search(Arc::new(
            cx.at_key("search", |cx| documents::build_search(table, scope, cx))?,
        )),
        KindTable::Read(table) => ToolKind::Read(Arc::new(
            cx.at_key("read", |cx| documents::build_read(table, scope, cx))?,
        )),
        KindTable::Mcp(table) => {
            ToolKind::Mcp(Arc::new(cx.at_key("mcp", |cx| mcp::build(&table.value, file, cx))?))
        }
    };
    Some(Some(kind))
}

/// The arguments of a tool's calls.
pub(crate) struct KnownArguments<'a> {
    /// Their names; `None` if they are not known.
    pub names: Option<&'a [&'a str]>,
    /// The calls have no other arguments. For an author's tool a model may send any.
    pub certain: bool,
}
