//! Tools that find and read sources: what their tables say, and whether it fits together.

use std::path::PathBuf;
use std::time::Duration;

use super::build_answers::url;
use super::domain;
use super::format_lookup::{FieldsTable, Private, ReadTable, SearchTable, unless_zero};
use super::format_tools::settings;
use super::lookup::{
    EndpointSpec, FolderSpec, PrivateHosts, ReadSpec, ResultFields, SearchSpec, WebSpec,
};
use super::reader::Reader;
use super::shape::{At, Prose, Text};
use super::template::Filling;
use super::tool::{HttpMethod, HttpSpec};

/// The arguments of a search.
pub(super) const SEARCHED: [&str; 2] = ["query", "k"];

/// What finds sources.
pub(super) fn search(
    table: &At<SearchTable>,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<SearchSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, &table.url) {
        (Some(path), None) => {
            folder(path, table.base_url.as_ref(), filling, cx).map(SearchSpec::Folder)
        }
        (None, Some(address)) => {
            if let Some(base) = &table.base_url {
                let what = "`base_url` belongs to a folder";
                cx.within("base_url", |cx| cx.error(base.at, what, "leave it out"));
            }
            cx.within("url", |cx| url(address, Some(&SEARCHED), "search", cx))?;
            let pointers = fields(table.fields.as_ref()?, cx);
            let results = table.results.as_ref();
            let results = cx.within("results", |cx| pointer(results, "/results", cx));
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
        _ if cx.failed_here() => None,
        (given, _) => {
            let what = match given {
                Some(_) => "a search is a folder or an endpoint, not both",
                None => "the search does not say where",
            };
            cx.error(at, what, "folder = \"notes\", or url = \"https://…?q={query}\"");
            None
        }
    }
}

/// What reads a page.
pub(super) fn read(
    table: &At<ReadTable>,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<ReadSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, table.web.value) {
        (Some(path), false) => {
            folder(path, table.base_url.as_ref(), filling, cx).map(ReadSpec::Folder)
        }
        (None, true) => {
            if let Some(base) = &table.base_url {
                let what = "`base_url` belongs to a folder";
                cx.within("base_url", |cx| cx.error(base.at, what, "leave it out"));
            }
            Some(ReadSpec::Web(WebSpec {
                max_bytes: u64::from(table.max_bytes.0),
                max_redirects: table.max_redirects.0,
                allow_private: match &table.allow_private {
                    Private::Every(true) => PrivateHosts::Any,
                    Private::Every(false) => PrivateHosts::None,
                    Private::Hosts(hosts) => PrivateHosts::These(
                        hosts.0.iter().map(|host| domain::asked(&host.name)).collect(),
                    ),
                },
                cache_ttl: unless_zero(table.cache_ttl_s),
                per_host: table.per_host.0,
                pace: Duration::from_millis(u64::from(table.pace_ms.0)),
                robots: table.robots,
            }))
        }
        _ if cx.failed_here() => None,
        (given, _) => {
            let what = match given {
                Some(_) => "pages are read from a folder or from the web, not from both",
                None => "it does not say where pages are read from",
            };
            cx.error(at, what, "folder = \"notes\", or web = true");
            None
        }
    }
}

/// A folder; an empty path is the shipped corpus.
fn folder(
    path: &Text,
    base: Option<&Prose>,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<FolderSpec> {
    let filled = cx.within("folder", |cx| filling.text(&path.text, path.at, cx));
    let base_url = match base {
        None => None,
        Some(base) => Some(cx.within("base_url", |cx| {
            url(base, Some(&[]), "folder", cx)?;
            if base.text.contains(['?', '#']) {
                cx.error(base.at, "the address of a folder has no ? or #", "leave them out");
                return None;
            }
            let text = base.text.as_str();
            Some(if text.ends_with('/') { text.to_owned() } else { format!("{text}/") })
        })?),
    };
    Some(FolderSpec { folder: at_home(filled.trim()), base_url })
}

fn at_home(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/").or_else(|| (path == "~").then_some("")) {
        Some(rest) => Some(etcetera::home_dir().map_or_else(|_| path.into(), |it| it.join(rest))),
        None => (!path.is_empty()).then(|| path.into()),
    }
}

fn fields(table: &FieldsTable, cx: &mut Reader) -> Option<ResultFields> {
    cx.within("fields", |cx| {
        let mut of = |name: &str, given: &Option<Text>, otherwise: &str| {
            cx.within(name, |cx| pointer(given.as_ref(), otherwise, cx))
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

/// A JSON pointer, or what stands for none.
pub(super) fn pointer(given: Option<&Text>, otherwise: &str, cx: &mut Reader) -> Option<String> {
    let Some(text) = given else { return Some(otherwise.to_owned()) };
    if !text.text.is_empty() && !text.text.starts_with('/') {
        cx.error(text.at, format!("{:?} is no JSON pointer", text.text), "such as /data/0");
        return None;
    }
    Some(text.text.clone())
}
