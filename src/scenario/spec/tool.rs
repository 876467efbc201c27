//! Tools as a scenario declares them: the implementation ([`ToolKind`]), the policy and the
//! contract of each, and the failures that a scenario scripts.

use crate::base::worded;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy::CallPolicy;
use crate::base::name::ToolName;
use crate::base::private_host::plain_name;
use crate::base::seeded_random::Latency;

/// The argument that tells a tool the id of the call. The program adds it.
pub(crate) const REQUEST_ID: &str = "request_id";

/// A tool behind the gateway.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name at the gateway.
    pub name: ToolName,
    /// Its implementation; `None`: there is none (`worker_missing`).
    pub kind: Option<ToolKind>,
    /// The gateway's policy for its calls.
    pub policy: CallPolicy,
    /// The fields that its result must have.
    pub contract: ResultContract,
    /// Whether the runs of one session share its breaker, bulkhead and retry budget.
    pub shared: bool,
    /// Faults that are injected from the start of the run.
    pub faults: Vec<InjectedFault>,
    /// Its description for the agents that may call it.
    pub offer: ToolOffer,
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ToolOffer {
    /// The name under which a model calls it.
    pub name: Arc<str>,
    /// What it does, for the model; may be empty.
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object.
    pub parameters: Arc<Value>,
}

impl ToolOffer {
    /// A tool with only a name: any object is a valid argument.
    pub fn bare(name: &str) -> Self {
        Self {
            name: name.into(),
            description: Arc::from(""),
            parameters: Arc::new(serde_json::json!({ "type": "object" })),
        }
    }
}

/// A tool call as the model requested it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The model's id of this call; the result is sent back with it.
    pub id: Arc<str>,
    /// Name of the called tool.
    pub name: Arc<str>,
    /// The arguments as the model wrote them; they may be invalid JSON.
    pub arguments: Arc<str>,
}

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
        }
    }
}

/// Results that the scenario lists: the first matching row is used.
#[derive(Debug, Clone, Default)]
pub struct FixtureSpec {
    /// The rows in the file's order.
    pub rows: Vec<FixtureRow>,
    /// The load model; `None`: load has no effect.
    pub load: Option<LoadSpec>,
}

/// One result of a fixture.
#[derive(Debug, Clone)]
pub struct FixtureRow {
    /// Arguments that a call must have with these values; it may have others.
    pub args: Map<String, Value>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// How long the result takes.
    pub latency: Latency,
    /// A failure before the result, if any.
    pub fault: Option<ScriptFault>,
    /// The result.
    pub answer: FixtureAnswer,
}

/// The result of a fixture row.
#[derive(Debug, Clone)]
pub enum FixtureAnswer {
    /// A value.
    Value(Arc<Value>),
    /// Text that is read as JSON, valid or not.
    Raw(Arc<str>),
}

/// Load model of a fixture: a vendor that is healthy up to its capacity, slower with errors beyond
/// it, and down at twice the capacity; and a time in which it is flaky by itself. Pauses of the run
/// do not count towards that time.
///
/// The number of concurrent requests depends on timing: with paused time two runs with the same
/// seed are identical, with real time they may differ slightly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSpec {
    /// Concurrent requests that it can handle.
    pub capacity: u32,
    /// Share of its requests that fail with 503 while it is flaky, from 0 to 1.
    pub flaky_rate: f64,
    /// Start of the flaky time, after the first request.
    pub flaky_from: Duration,
    /// End of the flaky time, after the first request.
    pub flaky_until: Duration,
    /// Whether its failures are spread evenly instead of at random.
    pub flaky_evenly: bool,
    /// How many times as long its requests take while it is slow.
    pub slow_factor: f64,
    /// Start of the slow time, after the first request.
    pub slow_from: Duration,
    /// End of the slow time, after the first request.
    pub slow_until: Duration,
}

/// A program that receives JSON on its standard input and returns JSON on its standard output. It
/// is started without a shell.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program; it is looked up in `PATH` unless it contains a slash.
    pub program: String,
    /// Its arguments. The arguments of a call are never among them.
    pub args: Vec<String>,
    /// Its whole environment, by name.
    pub env: BTreeMap<String, Setting>,
    /// Maximum size of its output, in bytes.
    pub max_bytes: u64,
}

/// The fields that a result must have; without them it counts as a failure of the tool
/// (`worker_bad_result`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultContract {
    /// Required keys, each with its type. The result is a JSON object.
    pub required: Vec<(String, FieldKind)>,
}

/// The type of a field of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A list.
    List,
    /// A table.
    Table,
    /// Any value, `null` included.
    Any,
}

worded! { FieldKind {
    Text = "text", Number = "number", Bool = "bool", List = "list", Table = "table", Any = "any",
} }

/// A fault that is injected between the gateway and the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum InjectedFault {
    /// Each attempt takes longer.
    Latency {
        /// Added milliseconds.
        ms: u64,
    },
    /// A share of the attempts fails with this status.
    Errors {
        /// Percentage, from 1 to 100.
        percent: u8,
        /// The status, such as 503.
        status: u16,
    },
    /// No response until the timeout.
    Hang,
    /// The response is not JSON.
    Malformed,
    /// The connection breaks in the middle of the body.
    Reset,
}

impl InjectedFault {
    /// Its kind. A tool has at most one fault of each kind.
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

/// Kinds of [`InjectedFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum FaultKind {
    /// Each attempt takes longer.
    Latency,
    /// A share of the attempts fails with a status.
    Errors,
    /// No response until the timeout.
    Hang,
    /// The response is not JSON.
    Malformed,
    /// The connection breaks in the middle of the body.
    Reset,
}

worded! { FaultKind + ALL {
    Latency = "latency", Errors = "errors", Hang = "hang", Malformed = "malformed",
    Reset = "reset",
} }

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The method, such as `GET`.
    pub method: HttpMethod,
    /// The URL; `{name}` is replaced by the argument of that name, percent-encoded.
    pub url: String,
    /// Headers by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether the arguments are sent as a JSON body.
    pub send_args: bool,
    /// Where the result is in the response, as a JSON pointer; empty: the whole response.
    pub pointer: String,
    /// Maximum size of the response, in bytes.
    pub max_bytes: u64,
    /// Whether it may connect to loopback, private and link-local addresses.
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

worded! { HttpMethod { Get = "GET", Post = "POST", Put = "PUT", Delete = "DELETE" } }

/// The value of a header, or of a variable of a program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The string in the file.
    Text(String),
    /// The value of this environment variable; it is a secret.
    Env(String),
}

/// Where a tool searches for sources.
#[derive(Debug, Clone)]
pub enum SearchSpec {
    /// In an index of a folder of documents.
    Folder(FolderSpec),
    /// With an endpoint.
    Endpoint(EndpointSpec),
}

/// Where pages are read from.
#[derive(Debug, Clone)]
pub enum ReadSpec {
    /// From a folder of documents.
    Folder(FolderSpec),
    /// From the web.
    Web(WebSpec),
}

/// A folder of documents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FolderSpec {
    /// The folder; `None` means the shipped corpus.
    pub folder: Option<PathBuf>,
    /// The base URL of its files, to which their path is appended. `None`: the first folder of a
    /// file's path is its host, as in a mirror of the web, and the extensions of texts are left
    /// out.
    pub base_url: Option<String>,
}

/// A search endpoint that returns JSON.
#[derive(Debug, Clone)]
pub struct EndpointSpec {
    /// The request; `{query}` and `{k}` are filled in.
    pub http: HttpSpec,
    /// Where the list of results is in the response, as a JSON pointer.
    pub results: String,
    /// Where the parts of one result are.
    pub fields: ResultFields,
}

/// Where the parts of one result are, as JSON pointers. An empty pointer: results do not have this
/// part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFields {
    /// The URL.
    pub url: String,
    /// The title.
    pub title: String,
    /// The snippet.
    pub snippet: String,
    /// The score.
    pub score: String,
    /// The date of publication.
    pub published_at: String,
}

/// How pages of the web are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSpec {
    /// Maximum size of a body in bytes, decompressed.
    pub max_bytes: u64,
    /// Maximum number of redirects.
    pub max_redirects: u32,
    /// Which hosts may have loopback, private and link-local addresses.
    pub allow_private: PrivateHosts,
    /// How long a page is served from the cache; `None` means no cache.
    pub cache_ttl: Option<Duration>,
    /// Concurrent requests to one host.
    pub per_host: u32,
    /// Minimum time between the starts of two requests to one host.
    pub pace: Duration,
    /// Whether `robots.txt` is honoured.
    pub robots: bool,
}

/// Which hosts may have loopback, private and link-local addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateHosts {
    /// None.
    None,
    /// Any.
    Any,
    /// These, each with its port unless it is the scheme's default.
    These(Vec<String>),
}

impl PrivateHosts {
    /// Whether this host may have such an address.
    pub fn allow(&self, host: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::These(hosts) => hosts.iter().any(|it| plain_name(it) == plain_name(host)),
        }
    }
}

/// A failure of the first `times` attempts of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// The kind of failure.
    pub kind: ScriptFaultKind,
    /// How many attempts of a call fail, from the first on.
    pub times: u32,
}

/// The failures of a scripted attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFaultKind {
    /// The endpoint returns this HTTP status.
    Status {
        /// The status, such as 503.
        status: u16,
        /// The value of its `Retry-After` header, if any.
        retry_after: Option<Duration>,
    },
    /// No response until the timeout.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks in the middle of the reply.
    Reset,
    /// A response body that is not a chat completion.
    BadResponse,
}

/// Name of the handoff tool. No agent and no other tool may use it.
pub const TRANSFER: &str = "transfer_to_agent";
