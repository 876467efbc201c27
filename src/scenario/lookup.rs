//! Tools that find and read sources: an index over a folder of documents or an endpoint that
//! searches, and files or the web.

use std::path::PathBuf;
use std::time::Duration;

use super::tool::HttpSpec;

/// Where sources are searched.
#[derive(Debug, Clone)]
pub enum SearchSpec {
    /// In a folder of documents.
    Folder(FolderSpec),
    /// By an endpoint.
    Endpoint(EndpointSpec),
}

/// How a page is read.
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
    /// The folder; `None`: the corpus that is shipped.
    pub folder: Option<PathBuf>,
    /// The address under which its files stand, their path added to it. `None`: the first folder
    /// of each file is its host, as in a mirror of the web, and the extensions of texts are left
    /// off.
    pub base_url: Option<String>,
}

/// An endpoint that searches and answers JSON.
#[derive(Debug, Clone)]
pub struct EndpointSpec {
    /// What is asked: `{query}` and `{k}` are filled in.
    pub http: HttpSpec,
    /// Where the list of results stands, as a JSON pointer.
    pub results: String,
    /// Where the parts of one result stand.
    pub fields: ResultFields,
}

/// Where the parts of one result stand, as JSON pointers; an empty one: it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFields {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// What it is about.
    pub snippet: String,
    /// How well it fits.
    pub score: String,
    /// When it was published.
    pub published_at: String,
}

/// How the web is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSpec {
    /// The most bytes of a body, decompressed.
    pub max_bytes: u64,
    /// Redirects that are followed at most.
    pub max_redirects: u32,
    /// Which hosts may be at loopback, private and link-local addresses.
    pub allow_private: PrivateHosts,
    /// How long a page is taken from the disk without asking; `None`: none is kept.
    pub cache_ttl: Option<Duration>,
    /// Requests at once to one host.
    pub per_host: u32,
    /// The least time between the beginnings of two requests to one host.
    pub pace: Duration,
    /// Whether `robots.txt` is honoured.
    pub robots: bool,
}

/// Which hosts may be at loopback, private and link-local addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateHosts {
    /// None.
    None,
    /// Any.
    Any,
    /// These, each with its port where it is not the scheme's own.
    These(Vec<String>),
}

impl PrivateHosts {
    /// Whether this host may be.
    pub fn allow(&self, host: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::These(hosts) => hosts.iter().any(|it| it.eq_ignore_ascii_case(host)),
        }
    }
}
