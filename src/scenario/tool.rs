//! Tools as a scenario declares them: what stands behind a name of the gateway, under which policy,
//! and what its answer must hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lookup::{ReadSpec, SearchSpec};
use super::model::{CallPolicy, Latency, ScriptFault};
use super::name::ToolName;

/// A tool behind the gateway.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name.
    pub name: ToolName,
    /// What answers; `None`: nothing is there (`worker_missing`).
    pub kind: Option<ToolKind>,
    /// What the gateway does with its calls.
    pub policy: CallPolicy,
    /// What its answer must hold.
    pub contract: Contract,
    /// Whether its breaker, bulkhead and budget are shared by the runs of one session.
    pub shared: bool,
    /// Faults that are injected from the start.
    pub faults: Vec<Fault>,
    /// What agents that may call it are told of it.
    pub offer: ToolOffer,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object.
    pub parameters: Arc<Value>,
}

impl ToolOffer {
    /// A tool of which nothing is said but its name: it takes any object.
    pub fn bare(name: &str) -> Self {
        Self {
            name: name.into(),
            description: Arc::from(""),
            parameters: Arc::new(serde_json::json!({ "type": "object" })),
        }
    }
}

/// A tool that a model calls, as the model said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own name for this call: its result is given back under it.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments as the model wrote them: JSON, where it kept to what it was told.
    pub arguments: Arc<str>,
}

/// What answers for a tool.
#[derive(Debug, Clone)]
pub enum ToolKind {
    /// Tables in the scenario.
    Fixture(Arc<FixtureSpec>),
    /// An HTTP request.
    Http(Arc<HttpSpec>),
    /// A program on this machine.
    Command(Arc<CommandSpec>),
    /// What finds sources.
    Search(Arc<SearchSpec>),
    /// What reads a source.
    Read(Arc<ReadSpec>),
}

impl ToolKind {
    /// Its word in files and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Fixture(_) => "fixture",
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            Self::Search(_) => "search",
            Self::Read(_) => "read",
        }
    }
}

/// Answers that stand in the scenario: the first row that fits.
#[derive(Debug, Clone, Default)]
pub struct FixtureSpec {
    /// The rows in the file's order.
    pub rows: Vec<FixtureRow>,
    /// How it bears load, where it is more than a table.
    pub load: Option<LoadSpec>,
}

/// One answer of a fixture.
#[derive(Debug, Clone)]
pub struct FixtureRow {
    /// Arguments that must be there with these values; others do not matter.
    pub args: Map<String, Value>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// How long the answer takes.
    pub latency: Latency,
    /// What goes wrong first, if anything.
    pub fault: Option<ScriptFault>,
    /// What it answers.
    pub answer: FixtureAnswer,
}

/// What a fixture answers.
#[derive(Debug, Clone)]
pub enum FixtureAnswer {
    /// A value.
    Value(Arc<Value>),
    /// A text that is read as JSON, good or malformed.
    Raw(Arc<str>),
}

/// How a fixture bears load: a vendor that is well up to its capacity, slower and failing past it,
/// and down at twice of it; and a time in which it is flaky by itself. Pauses of the run do not
/// count in that time.
///
/// How many requests are in at one moment depends on time: under paused time two runs of a seed
/// are the same, under real time they may differ a little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSpec {
    /// Requests at once that it bears.
    pub capacity: u32,
    /// Share of its requests that fail with 503 while it is flaky, from 0 to 1.
    pub flaky_rate: f64,
    /// When it becomes flaky, since the first request.
    pub flaky_from: Duration,
    /// When it has recovered, since the first request.
    pub flaky_until: Duration,
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// Such as `GET`.
    pub method: HttpMethod,
    /// The address; `{name}` stands for the argument of that name, percent-encoded.
    pub url: String,
    /// Headers by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether the arguments are sent as a JSON body.
    pub send_args: bool,
    /// Where in the answer the result stands, as a JSON pointer; empty: all of it.
    pub pointer: String,
    /// The most bytes of an answer.
    pub max_bytes: u64,
    /// Whether it may reach loopback, private and link-local addresses.
    pub allow_private: bool,
}

/// Methods of an HTTP tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
}

impl HttpMethod {
    /// As it stands in a request.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// A text of a header or of a program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// As it stands in the file.
    Text(String),
    /// What this environment variable holds; its value is a secret.
    Env(String),
}

/// A program that is given JSON on its standard input and answers JSON on its standard output. No
/// shell is between.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program, looked up in `PATH` where it has no slash.
    pub program: String,
    /// Its arguments; nothing of a call goes here.
    pub args: Vec<String>,
    /// All of its environment, by name.
    pub env: BTreeMap<String, Setting>,
    /// The most bytes it may print.
    pub max_bytes: u64,
}

/// What an answer must hold, or it is none (`worker_bad_result`, a failure of the tool).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contract {
    /// Keys that must be there, and what stands in each. The answer is a JSON object.
    pub required: Vec<(String, FieldKind)>,
}

/// What a field of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A list.
    List,
    /// A table.
    Table,
    /// Anything, `null` too.
    Any,
}

impl FieldKind {
    /// Its word in files and texts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Bool => "bool",
            Self::List => "list",
            Self::Table => "table",
            Self::Any => "any",
        }
    }
}

/// A fault that is injected into a tool, between the gateway and what answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// Each attempt takes so much longer.
    Latency {
        /// Milliseconds.
        ms: u64,
    },
    /// A share of the attempts fails with this status.
    Errors {
        /// In percent, from 1 to 100.
        percent: u8,
        /// Such as 503.
        status: u16,
    },
    /// Nothing comes until the time-out.
    Hang,
    /// The answer is no JSON.
    Malformed,
    /// The connection breaks in the middle of the body.
    Reset,
}

impl Fault {
    /// Its kind: of each a tool has at most one.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Latency { .. } => FaultKind::Latency,
            Self::Errors { .. } => FaultKind::Errors,
            Self::Hang => FaultKind::Hang,
            Self::Malformed => FaultKind::Malformed,
            Self::Reset => FaultKind::Reset,
        }
    }
}

/// Kinds of [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// [`Fault::Latency`]
    Latency,
    /// [`Fault::Errors`]
    Errors,
    /// [`Fault::Hang`]
    Hang,
    /// [`Fault::Malformed`]
    Malformed,
    /// [`Fault::Reset`]
    Reset,
}

impl FaultKind {
    /// Every kind, in the order in which the screen offers them.
    pub const ALL: [FaultKind; 5] =
        [Self::Latency, Self::Errors, Self::Hang, Self::Malformed, Self::Reset];

    /// Its word in files and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Errors => "errors",
            Self::Hang => "hang",
            Self::Malformed => "malformed",
            Self::Reset => "reset",
        }
    }
}
