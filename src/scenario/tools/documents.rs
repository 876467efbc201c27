//! A tool that searches for sources, and one that reads their pages: in a folder of documents, with an
//! endpoint, from the web.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{HttpMethod, HttpSpec, pointer, url, warn_of_private_host};
use crate::base::private_host::plain_name;
use crate::scenario::read::amount::{Millis, Seconds, Units, WholeSeconds};
use crate::scenario::read::format::tools::settings;
use crate::scenario::read::names::{Domain, HeaderName, NamedEntries};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, record,
};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TomlNode, TomlValue};
use crate::scenario::read::{ReadContext, names};
use crate::scenario::spec::tool::Setting;

record! {
    /// Searches for sources: in a folder of documents, or with an endpoint that returns JSON.
    struct SearchTable rule json!({ "oneOf": [{ "required": ["folder"] }, { "required": ["url"] }] }) => {
        /// A folder of documents: Markdown, HTML, text, PDF. Empty: the shipped corpus. `{{input}}`
        /// is filled in, and ~/ is the home directory. A relative path begins in the folder in which
        /// roundtable is started.
        folder: StringField = optional,
        /// The base URL of the folder's files. Without it the first folder in a file's path is its
        /// host, as in a mirror of the web.
        base_url: NonBlankString = optional,
        /// The URL of an endpoint; `{query}` and `{k}` are replaced by the query and the number of
        /// results.
        url: NonBlankString = optional,
        /// Where the list of results is in the response, as a JSON pointer.
        results: StringField = optional,
        /// Where the parts of one result are, as JSON pointers.
        fields: FieldsTable = table,
        /// Headers by name: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Maximum size of the response, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
        /// Whether it may have a loopback, private or link-local address.
        allow_private: bool = default(false),
    }
}

record! {
    /// Where the parts of one result are, as JSON pointers. An empty pointer: results do not have
    /// this part. The defaults are those of SearXNG.
    struct FieldsTable => {
        /// The URL.
        url: StringField = optional,
        /// The title.
        title: StringField = optional,
        /// The snippet.
        snippet: StringField = optional,
        /// The score, a number.
        score: StringField = optional,
        /// The date of publication.
        published_at: StringField = optional,
    }
}

record! {
    /// Reads pages: from a folder of documents, or from the web.
    struct ReadTable rule json!({
        "oneOf": [
            { "required": ["folder"], "properties": { "web": { "const": false } } },
            { "required": ["web"], "properties": { "web": { "const": true } } },
        ]
    }) => {
        /// A folder of documents, as in `search`.
        folder: StringField = optional,
        /// The base URL of the folder's files, as in `search`.
        base_url: NonBlankString = optional,
        /// Whether pages are read from the web (http and https), from hosts in both allowlists.
        web: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Maximum size of a page, in bytes, decompressed.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(2_000_000)),
        /// Maximum number of redirects; each must lead to a host in both allowlists.
        max_redirects: IntegerField<0, 20> = default(IntegerField(5)),
        /// Which hosts may have loopback, private and link-local addresses: true (all), false
        /// (none), or a list of hosts such as "wiki.corp" or "wiki.corp:8080", each with its port
        /// if its URLs have one.
        allow_private: PrivateHostsField = default(PrivateHostsField::Every(false)),
        /// Seconds for which a page is served from the cache. 0: pages are not cached.
        cache_ttl_s: WholeSeconds<0, 31_536_000> = default(Units(3_600)),
        /// Maximum number of concurrent requests to one host.
        per_host: IntegerField<1, 64> = default(IntegerField(2)),
        /// Minimum number of milliseconds between the starts of two requests to one host.
        pace_ms: Millis<0, 60_000> = default(Units(500)),
        /// Whether robots.txt is honoured.
        robots: bool = default(true),
    }
}

/// `true`, `false`, or a list of hosts.
#[derive(Debug, Clone)]
pub(crate) enum PrivateHostsField {
    Every(bool),
    Hosts(BoundedList<Domain, 0, 100>),
}

impl FormatShape for PrivateHostsField {
    fn schema() -> Value {
        json!({ "oneOf": [{ "type": "boolean" }, BoundedList::<Domain, 0, 100>::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Every(*truth)),
            TomlValue::List(_) => BoundedList::read(node, cx).map(Self::Hosts),
            _ => {
                cx.wrong_type(node, "true, false, or a list of hosts");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        match self {
            Self::Every(truth) => Value::Bool(*truth),
            Self::Hosts(_) => Value::Null,
        }
    }
}

/// Where a tool searches for sources.
#[derive(Debug, Clone)]
pub enum SearchSpec {
    /// In an index of a folder of documents.
    Folder(FolderSpec),
    Endpoint(EndpointSpec),
}

/// Where pages are read from.
#[derive(Debug, Clone)]
pub enum ReadSpec {
    /// From a folder of documents.
    Folder(FolderSpec),
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
    pub url: String,
    pub title: String,
    pub snippet: String,
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
    Any,
    /// These, each with its port unless it is the scheme's default.
    These(Vec<String>),
}

/// The arguments of a search call.
pub(crate) const SEARCHED: [&str; 2] = ["query", "k"];

pub(super) fn build_search(
    table: &Positioned<SearchTable>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<SearchSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, &table.url) {
        (Some(path), None) => {
            folder(path, table.base_url.as_ref(), scope, cx).map(SearchSpec::Folder)
        }
        (None, Some(address)) => {
            if let Some(base) = &table.base_url {
                let what = "`base_url` is only for a folder";
                cx.at_key("base_url", |cx| cx.error(base.at, what, "remove it"));
            }
            cx.at_key("url", |cx| {
                url(address, Some(&SEARCHED), "search", cx)?;
                warn_of_private_host(address, table.allow_private, cx);
                Some(())
            })?;
            let pointers = fields(table.fields.as_ref()?, cx);
            let results = table.results.as_ref();
            let results = cx.at_key("results", |cx| pointer(results, "/results", cx));
            Some(SearchSpec::Endpoint(EndpointSpec {
                http: HttpSpec {
                    method: HttpMethod::Get,
                    url: address.text.clone(),
                    headers: settings(&table.headers),
                    send_args: false,
                    pointer: String::new(),
                    max_bytes: u64::from(table.max_bytes.0),
                    allow_private: table.allow_private,
                },
                results: results?,
                fields: pointers?,
            }))
        }
        _ if cx.has_error_here() => None,
        (given, _) => {
            let what = match given {
                Some(_) => "a search has a folder or an endpoint, not both",
                None => "the search has no folder and no endpoint",
            };
            cx.error(at, what, "write folder = \"notes\", or url = \"https://…?q={query}\"");
            None
        }
    }
}

pub(super) fn build_read(
    table: &Positioned<ReadTable>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ReadSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, table.web.value) {
        (Some(path), false) => {
            folder(path, table.base_url.as_ref(), scope, cx).map(ReadSpec::Folder)
        }
        (None, true) => {
            if let Some(base) = &table.base_url {
                let what = "`base_url` is only for a folder";
                cx.at_key("base_url", |cx| cx.error(base.at, what, "remove it"));
            }
            Some(ReadSpec::Web(WebSpec {
                max_bytes: u64::from(table.max_bytes.0),
                max_redirects: table.max_redirects.0,
                allow_private: match &table.allow_private {
                    PrivateHostsField::Every(true) => PrivateHosts::Any,
                    PrivateHostsField::Every(false) => PrivateHosts::None,
                    PrivateHostsField::Hosts(hosts) => PrivateHosts::These(
                        hosts.0.iter().map(|host| names::request_host(&host.name)).collect(),
                    ),
                },
                cache_ttl: nonzero_duration(table.cache_ttl_s),
                per_host: table.per_host.0,
                pace: Duration::from_millis(u64::from(table.pace_ms.0)),
                robots: table.robots,
            }))
        }
        _ if cx.has_error_here() => None,
        (given, _) => {
            let what = match given {
                Some(_) => "pages are read from a folder or from the web, not both",
                None => "neither a folder nor the web is set to read pages from",
            };
            cx.error(at, what, "write folder = \"notes\", or web = true");
            None
        }
    }
}

/// Builds a folder; an empty path means the shipped corpus.
fn folder(
    path: &StringField,
    base: Option<&NonBlankString>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FolderSpec> {
    let filled = cx.at_key("folder", |cx| scope.text(&path.text, path.at, cx));
    let base_url = match base {
        None => None,
        Some(base) => Some(cx.at_key("base_url", |cx| {
            url(base, Some(&[]), "folder", cx)?;
            if base.text.contains(['?', '#']) {
                cx.error(base.at, "the base URL of a folder may not have ? or #", "remove them");
                return None;
            }
            let text = base.text.as_str();
            Some(if text.ends_with('/') { text.to_owned() } else { format!("{text}/") })
        })?),
    };
    Some(FolderSpec { folder: expand_home(filled.trim()), base_url })
}

fn expand_home(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/").or_else(|| (path == "~").then_some("")) {
        Some(rest) => Some(etcetera::home_dir().map_or_else(|_| path.into(), |it| it.join(rest))),
        None => (!path.is_empty()).then(|| path.into()),
    }
}

fn fields(table: &FieldsTable, cx: &mut ReadContext) -> Option<ResultFields> {
    cx.at_key("fields", |cx| {
        let mut of = |name: &str, given: &Option<StringField>, otherwise: &str| {
            cx.at_key(name, |cx| pointer(given.as_ref(), otherwise, cx))
        };
        let url = of("url", &table.url, "/url");
        let title = of("title", &table.title, "/title");
        let snippet = of("snippet", &table.snippet, "/content");
        let score = of("score", &table.score, "/score");
        let published_at = of("published_at", &table.published_at, "/publishedDate");
        Some(ResultFields {
            url: url?,
            title: title?,
            snippet: snippet?,
            score: score?,
            published_at: published_at?,
        })
    })
}

/// The duration, or `None` for 0.
fn nonzero_duration(seconds: WholeSeconds<0, 31_536_000>) -> Option<Duration> {
    (seconds.0 > 0).then(|| Seconds::from_whole_seconds(u64::from(seconds.0)).0)
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
