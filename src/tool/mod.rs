//! The tools behind the gateway: fixtures of a scenario, programs, HTTP services, search endpoints,
//! web pages and folders of documents. Each implements [`crate::gateway::Tool`]; policy is the
//! gateway's. Headers and variables that a scenario names are looked up before a run starts, so
//! that a missing one is reported before anything is spent.

pub(crate) mod agents;
pub mod command;
pub mod documents;
pub mod endpoint;
pub mod fixture;
pub mod folder;
pub mod http;
mod link;
pub mod mcp;
pub mod process_group;
mod program;
pub mod servers;
pub mod text;
pub mod web;

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use self::command::CommandTool;
use self::documents::DocumentTools;
use self::endpoint::EndpointSearch;
use self::fixture::FixtureTool;
use self::http::HttpTool;
use self::servers::ServerTools;
use crate::base::json_text;
use crate::base::visible::{visible_within, without_byte_order_mark};
use crate::gateway::Tool;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, NetError, Reach, Redactor, Secret};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::ToolKind;
use crate::scenario::tools::documents::{ReadSpec, SearchSpec};
use crate::scenario::tools::http::HttpSpec;
use crate::scenario::tools::mcp::{McpServerSpec, McpSpec};

/// Looks up an environment variable; tests pass their own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Makes the tools of one run, which share the HTTP clients by reach, and the caches of documents.
pub(crate) struct ToolMaker {
    anywhere: Http,
    internet: Http,
    documents: DocumentTools,
    instant: bool,
    servers: ServerTools,
}

impl ToolMaker {
    /// Makes tools that read documents with these; `instant` skips the delays of fixtures.
    pub fn new(documents: DocumentTools, instant: bool) -> Self {
        let (anywhere, internet) = (Http::direct(Reach::Anywhere), Http::direct(Reach::Internet));
        let servers = ServerTools::new(anywhere.clone(), internet.clone());
        Self { anywhere, internet, documents, instant, servers }
    }

    /// Makes tools of these MCP servers, too, where a scenario leaves them to the configuration.
    pub fn with_servers(self, configured: &BTreeMap<String, Arc<McpServerSpec>>) -> Self {
        Self { servers: self.servers.with_configured(configured), ..self }
    }

    /// A tool of this kind; `None` if its calls ask something outside of this program. Does not check
    /// that its folder can be read.
    pub fn make_local(&self, kind: &ToolKind) -> Option<Box<dyn Tool>> {
        match kind {
            ToolKind::Fixture(spec) => {
                Some(Box::new(FixtureTool::new(Arc::clone(spec), self.instant)))
            }
            ToolKind::Search(search) => match &**search {
                SearchSpec::Folder(spec) => Some(self.documents.search_folder(spec)),
                SearchSpec::Endpoint(_) => None,
            },
            ToolKind::Read(read) => match &**read {
                ReadSpec::Folder(spec) => Some(self.documents.read_folder(spec)),
                ReadSpec::Web(_) => None,
            },
            ToolKind::Http(_) | ToolKind::Command(_) | ToolKind::Mcp(_) | ToolKind::Agent(_) => {
                None
            }
        }
    }

    /// A tool of this kind, with its variables looked up in `env`. It is not called or started. `None`: it
    /// is an agent of another program, which a live run asks in place of a model.
    pub fn make(
        &self,
        kind: &ToolKind,
        env: Environment<'_>,
    ) -> Result<Option<Box<dyn Tool>>, Vec<NotReady>> {
        let client = |spec: &HttpSpec| {
            if spec.allow_private { &self.anywhere } else { &self.internet }.clone()
        };
        let documents = |checked: Result<(), NotReady>| checked.map_err(|why| vec![why]);
        Ok(Some(match kind {
            ToolKind::Agent(_) => return Ok(None),
            ToolKind::Fixture(spec) => Box::new(FixtureTool::new(Arc::clone(spec), self.instant)),
            ToolKind::Http(spec) => Box::new(HttpTool::new(Arc::clone(spec), client(spec), env)?),
            ToolKind::Command(spec) => Box::new(CommandTool::new(Arc::clone(spec), env)?),
            ToolKind::Mcp(spec) => self.make_server(spec, env)?,
            ToolKind::Search(search) => match &**search {
                SearchSpec::Folder(spec) => {
                    documents(self.documents.check_folder(spec))?;
                    self.documents.search_folder(spec)
                }
                SearchSpec::Endpoint(spec) => {
                    Box::new(EndpointSearch::new(spec, client(&spec.http), env)?)
                }
            },
            ToolKind::Read(read) => match &**read {
                ReadSpec::Folder(spec) => {
                    documents(self.documents.check_folder(spec))?;
                    self.documents.read_folder(spec)
                }
                ReadSpec::Web(spec) => self.documents.read_web(spec),
            },
        }))
    }

    /// The tools of an MCP server, which is not started yet.
    pub fn make_server(
        &self,
        spec: &McpSpec,
        env: Environment<'_>,
    ) -> Result<Box<dyn Tool>, Vec<NotReady>> {
        self.servers.make(spec, env)
    }
}

/// Settings with their values.
#[derive(Debug, Default)]
pub struct ToolSettings {
    /// Values by name. A value from the environment is a secret and never shown.
    pub(crate) values: BTreeMap<String, Secret>,
    /// Redacts the values that came from the environment.
    pub(crate) redactor: Redactor,
}

impl ToolSettings {
    /// Looks up the values that come from the environment. An empty variable counts as not set.
    ///
    /// # Errors
    /// Every variable that is not set.
    pub fn look_up(
        settings: &BTreeMap<String, Setting>,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let (mut values, mut secrets, mut missing) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, setting) in settings {
            let value = match setting {
                Setting::Text(text) => Secret::new(text.as_str()),
                Setting::Env(variable) => match env(variable).filter(|value| !value.is_empty()) {
                    Some(value) => {
                        let value = Secret::new(value);
                        secrets.push(value.clone());
                        // For `Bearer abc`, a server may echo `abc` alone.
                        let bare = value.expose().split_once(' ').map(|(_, bare)| bare.trim());
                        secrets.extend(bare.map(Secret::new));
                        value
                    }
                    None => {
                        let (name, variable) = (name.clone(), variable.clone());
                        missing.push(NotReady::Variable { name, variable });
                        continue;
                    }
                },
            };
            values.insert(name.clone(), value);
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(Self { values, redactor: Redactor::with_secrets(secrets) })
    }
}

/// Values of headers that a scenario names, marked as sensitive.
pub(crate) fn sendable_headers(settings: &ToolSettings) -> Result<HeaderMap, Vec<NotReady>> {
    let (mut headers, mut wrong) = (HeaderMap::new(), Vec::new());
    for (name, value) in &settings.values {
        let unsendable = |part| NotReady::Header { name: name.clone(), part };
        match (HeaderName::try_from(name), HeaderValue::try_from(value.expose())) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (Err(_), _) => wrong.push(unsendable("name")),
            (_, Err(_)) => wrong.push(unsendable("value")),
        }
    }
    if wrong.is_empty() { Ok(headers) } else { Err(wrong) }
}

/// The address of a server. `what`: the server in a message, such as `the agent support`.
pub(crate) fn server_address(what: &str, url: &str, example: &str) -> Result<Url, NotReady> {
    let wrong = |fault: &str| NotReady::Server {
        why: format!("the url of {what} {fault}: write one such as {example}"),
    };
    let url = Url::parse(url).map_err(|error| wrong(&format!("is invalid ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a user name or password, which belong into a header"));
    }
    Ok(url)
}

/// What to do about a request without a complete response. `whose`: the owner of the url, such as `agent`.
pub(crate) fn network_advice(error: &NetError, whose: &str) -> String {
    match error {
        NetError::Resolve { .. } => format!("Check the host in the {whose}'s url and the network."),
        NetError::Connect { .. } => format!("Is the server running? Check the {whose}'s url."),
        NetError::Proxy { .. } | NetError::UnusableProxy { .. } => "Check the proxy.".to_owned(),
        NetError::OutOfReach { .. } => {
            "If you mean this host, set allow_private = true.".to_owned()
        }
        NetError::Tls { .. } => {
            "Does the server use https, and is its certificate valid?".to_owned()
        }
        NetError::Client { .. } => "Install the system's CA certificates.".to_owned(),
        NetError::Broken { .. } => "Try again.".to_owned(),
        NetError::NotHttp { .. } => format!("Check the {whose}'s url."),
        NetError::Encoding { .. } => "Turn compression off in the server.".to_owned(),
        NetError::TooLarge { .. } => "Ask for less, or raise max_bytes.".to_owned(),
    }
}

/// Why a tool cannot be called at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// A variable is not set.
    #[error("{name} comes from ${variable}, which is not set: set it and start again")]
    Variable {
        /// The header, or the program's own variable.
        name: String,
        /// The environment variable to set.
        variable: String,
    },
    /// A header's name or value is not valid.
    #[error("the header {name} cannot be sent: its {part} has characters that headers cannot have")]
    Header {
        /// Name of the header.
        name: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// The URL cannot be called.
    #[error("{why}: write an address such as https://shop.example/v1/orders/{{id}}")]
    Address {
        /// What is wrong with it.
        why: String,
    },
    /// An MCP server cannot be started.
    #[error("{why}")]
    Server {
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Documents cannot be read.
    #[error("{why}")]
    Documents {
        /// What is wrong with it, and what to do.
        why: String,
    },
}

/// Most characters of a result that an error message quotes.
const QUOTED_CHARS: usize = 140;

/// Most characters of a number that an error message quotes.
const NUMBER_CHARS: usize = 40;

/// Parses a result as JSON, its secrets redacted. `from` names the sender in the error message.
pub(crate) fn parse_json(
    bytes: &[u8],
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let bad = |text: String| AttemptFailed::new(FailureClass::BadResponse, text);
    let bytes = without_byte_order_mark(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(bad(format!("{from} is empty, JSON was expected")));
    }
    match json_text::read_lenient(bytes) {
        Ok(value) if redactor.has_no_secrets() => Ok(Arc::new(value)),
        Ok(value) => Ok(Arc::new(redact_json(value, redactor))),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            Err(bad(format!("{from} is not JSON: {error}: {}", quoted_text(&text, redactor))))
        }
    }
}

/// Rejects a result with a whole number beyond 64 bits: parsing would change it silently. `value` is
/// the part of the result that is used, `bytes` the whole result.
pub(crate) fn check_integers(
    bytes: &[u8],
    value: Arc<Value>,
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let text = String::from_utf8_lossy(bytes);
    let Some(number) = json_text::first_changed_integer(&text, &value) else { return Ok(value) };
    let number = visible_within(&redactor.redact(number), NUMBER_CHARS);
    let text = format!(
        "{from} holds {number}, a whole number beyond 64 bits, which would lose digits: send it \
         as a string"
    );
    Err(AttemptFailed::new(FailureClass::BadResponse, text))
}

/// Redacts known secrets in a result: a tool may echo its credentials, and the log must not hold
/// them.
fn redact_json(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact_known(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| redact_json(item, redactor)).collect(),
        Value::Object(fields) => {
            let clean = |(key, value): (String, Value)| {
                (redactor.redact_known(&key).into_owned(), redact_json(value, redactor))
            };
            fields.into_iter().map(clean).collect()
        }
        plain => plain,
    }
}

/// Text of others, ready to quote. Redacted first and cut afterwards, because the redactor does not
/// recognise half a key.
pub(crate) fn quoted_text(text: &str, redactor: &Redactor) -> String {
    visible_within(&redactor.redact(text.trim()), QUOTED_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_all_missing_variables_at_once() {
        let settings = BTreeMap::from([
            ("A".to_owned(), Setting::Text("plain".to_owned())),
            ("B".to_owned(), Setting::Env("TOKEN".to_owned())),
            ("C".to_owned(), Setting::Env("EMPTY".to_owned())),
            ("D".to_owned(), Setting::Env("NONE".to_owned())),
        ]);
        let env = |name: &str| match name {
            "TOKEN" => Some("hunter2hunter2".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let missing = ToolSettings::look_up(&settings, &env).expect_err("two are missing");
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(
            missing,
            [
                "C comes from $EMPTY, which is not set: set it and start again",
                "D comes from $NONE, which is not set: set it and start again",
            ]
        );
        let there = |_: &str| Some("hunter2hunter2".to_owned());
        let found = ToolSettings::look_up(&settings, &there).expect("all there");
        assert_eq!(found.redactor.redact("plain hunter2hunter2"), "plain ***");
        assert!(!format!("{found:?}").contains("hunter2"));
    }

    #[test]
    fn result_drops_byte_order_mark() {
        let read = |bytes: &str| parse_json(bytes.as_bytes(), "it", &Redactor::default());
        assert_eq!(
            *read("\u{feff}{\"a\":\"\u{feff}\"}").expect("JSON"),
            json!({ "a": "\u{feff}" })
        );
        let empty = read("\u{feff} ").expect_err("nothing");
        assert_eq!(empty.text, "it is empty, JSON was expected");
        assert!(read("\u{feff}\u{feff}1").is_err());
    }
}
