//! Tools that search for sources and read pages: in a folder of documents, with an endpoint, or on
//! the web.

use std::path::PathBuf;
use std::time::Duration;

use super::http::HttpSpec;
use crate::base::private_host::plain_name;

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
