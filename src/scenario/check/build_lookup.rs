//! Checks and converts the tables of tools that search for sources and read pages.

use std::path::PathBuf;
use std::time::Duration;

use super::url_template::{url, warn_of_private_host};
use crate::scenario::file::domain;
use crate::scenario::file::format_lookup::{
    FieldsTable, PrivateHostsField, ReadTable, SearchTable, nonzero_duration,
};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::setting::settings;
use crate::scenario::file::shape::{NonBlankString, Positioned, StringField};
use crate::scenario::file::template::TemplateScope;
use crate::scenario::spec::http::{HttpMethod, HttpSpec};
use crate::scenario::spec::lookup::{
    EndpointSpec, FolderSpec, PrivateHosts, ReadSpec, ResultFields, SearchSpec, WebSpec,
};

/// The arguments of a search call.
pub(crate) const SEARCHED: [&str; 2] = ["query", "k"];

/// Builds the search of a tool.
pub(crate) fn search(
    table: &Positioned<SearchTable>,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<SearchSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, &table.url) {
        (Some(path), None) => {
            folder(path, table.base_url.as_ref(), filling, cx).map(SearchSpec::Folder)
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

/// Builds the page reader of a tool.
pub(crate) fn read(
    table: &Positioned<ReadTable>,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ReadSpec> {
    let (at, table) = (table.at, &table.value);
    match (&table.folder, table.web.value) {
        (Some(path), false) => {
            folder(path, table.base_url.as_ref(), filling, cx).map(ReadSpec::Folder)
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
                        hosts.0.iter().map(|host| domain::request_host(&host.name)).collect(),
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
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FolderSpec> {
    let filled = cx.at_key("folder", |cx| filling.text(&path.text, path.at, cx));
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

/// A JSON pointer, or the default if none is given.
pub(crate) fn pointer(
    given: Option<&StringField>,
    otherwise: &str,
    cx: &mut ReadContext,
) -> Option<String> {
    let Some(text) = given else { return Some(otherwise.to_owned()) };
    if !text.text.is_empty() && !text.text.starts_with('/') {
        cx.error(
            text.at,
            format!("{:?} is not a JSON pointer", text.text),
            "write one such as /data/0",
        );
        return None;
    }
    Some(text.text.clone())
}
