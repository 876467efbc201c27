//! The format of a scenario file: tools that find and read sources.

use serde_json::{Value, json};

use super::amount::{Millis, Seconds, Units, WholeSeconds};
use super::domain::Domain;
use super::named::{Header, Named};
use super::reader::Reader;
use super::record::{Need, ObjectSchema, record};
use super::shape::{At, List, Prose, Shape, Text, Whole};
use super::tool::Setting;
use super::tree::{Node, Tree};

record! {
    /// What finds sources: a folder of documents, or an endpoint that answers JSON.
    struct SearchTable rule json!({ "oneOf": [{ "required": ["folder"] }, { "required": ["url"] }] }) => {
        /// A folder of documents: Markdown, HTML, text, PDF. Empty: the corpus that is shipped.
        /// `{{input}}` is filled in, and ~/ is your home.
        folder: Text = optional,
        /// The address under which the folder's files stand. Without it the first folder of each
        /// file is its host, as in a mirror of the web.
        base_url: Prose = optional,
        /// An endpoint: `{query}` and `{k}` stand for what is searched and how many are wanted.
        url: Prose = optional,
        /// Where the results stand in its answer, as a JSON pointer.
        results: Text = optional,
        /// Where the parts of one result stand, as JSON pointers.
        fields: FieldsTable = table,
        /// Headers by name: a text, or the environment variable that holds it.
        headers: Named<At<Setting>, Header> = default(Named::default()),
        /// The most bytes of its answer.
        max_bytes: Whole<1, 1_000_000_000> = default(Whole(1_000_000)),
        /// Whether it may be at a loopback, private or link-local address.
        allow_private: bool = default(false),
    }
}

record! {
    /// Where the parts of one result stand, as JSON pointers; an empty one: it has none. Without
    /// them: as SearXNG has them.
    struct FieldsTable => {
        /// Its address.
        url: Text = optional,
        /// Its title.
        title: Text = optional,
        /// What it is about.
        snippet: Text = optional,
        /// How well it fits, a number.
        score: Text = optional,
        /// When it was published.
        published_at: Text = optional,
    }
}

record! {
    /// What reads a page: a folder of documents, or the web.
    struct ReadTable rule json!({
        "oneOf": [
            { "required": ["folder"], "properties": { "web": { "const": false } } },
            { "required": ["web"], "properties": { "web": { "const": true } } },
        ]
    }) => {
        /// A folder of documents, as in `search`.
        folder: Text = optional,
        /// The address under which the folder's files stand, as in `search`.
        base_url: Prose = optional,
        /// The web: http and https, as far as both allowlists let it.
        web: At<bool> = default(At::nowhere(false)),
        /// The most bytes of a page, decompressed.
        max_bytes: Whole<1, 1_000_000_000> = default(Whole(2_000_000)),
        /// Redirects that are followed at most, each to a host that both allowlists hold.
        max_redirects: Whole<0, 20> = default(Whole(5)),
        /// Whether hosts may be at loopback, private and link-local addresses: true, false, or a
        /// list of the hosts that may, such as "wiki.corp" or "wiki.corp:8080": with its port where
        /// addresses have one.
        allow_private: Private = default(Private::Every(false)),
        /// Seconds that a page is taken from the disk without asking. 0: none is kept.
        cache_ttl_s: WholeSeconds<0, 31_536_000> = default(Units(3_600)),
        /// Requests at once to one host.
        per_host: Whole<1, 64> = default(Whole(2)),
        /// Milliseconds between the beginnings of two requests to one host, at least.
        pace_ms: Millis<0, 60_000> = default(Units(500)),
        /// Whether robots.txt is honoured.
        robots: bool = default(true),
    }
}

/// `true`, `false`, or a list of hosts.
#[derive(Debug, Clone)]
pub(super) enum Private {
    Every(bool),
    Hosts(List<Domain, 0, 100>),
}

impl Shape for Private {
    fn schema() -> Value {
        json!({ "oneOf": [{ "type": "boolean" }, List::<Domain, 0, 100>::schema()] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Truth(truth) => Some(Self::Every(*truth)),
            Tree::List(_) => List::read(node, cx).map(Self::Hosts),
            _ => {
                cx.wrong_type(node, "true, false, or a list of hosts");
                None
            }
        }
    }
    fn plain(&self) -> Value {
        match self {
            Self::Every(truth) => Value::Bool(*truth),
            Self::Hosts(_) => Value::Null,
        }
    }
}

/// The length of time that 0 turns off.
pub(super) fn unless_zero(seconds: WholeSeconds<0, 31_536_000>) -> Option<std::time::Duration> {
    (seconds.0 > 0).then(|| Seconds::whole(u64::from(seconds.0)).0)
}
