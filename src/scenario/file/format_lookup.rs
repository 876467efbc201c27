//! The file format of tools that search for sources and read pages.

use serde_json::{Value, json};

use super::amount::{Millis, Seconds, Units, WholeSeconds};
use super::named::{HeaderName, NamedEntries};
use super::reader::ReadContext;
use super::record::{ObjectSchema, Requirement, record};
use super::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, Positioned, StringField,
};
use super::tree::{TomlNode, TomlValue};
use crate::scenario::file::domain::Domain;
use crate::scenario::spec::http::Setting;

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

/// The duration, or `None` for 0.
pub(crate) fn nonzero_duration(
    seconds: WholeSeconds<0, 31_536_000>,
) -> Option<std::time::Duration> {
    (seconds.0 > 0).then(|| Seconds::from_whole_seconds(u64::from(seconds.0)).0)
}
