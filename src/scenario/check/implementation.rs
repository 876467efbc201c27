//! What implements a tool: exactly one of a fixture, an HTTP request, a program, a search or a page
//! reader. Checks the rows of fixtures against the contract, and the URLs, in which `{name}` is an
//! argument.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::script;
use crate::base::private_host::has_private_host;
use crate::scenario::read::format::tools::{
    CommandTable, FieldsTable, FixtureRowTable, FixtureTable, HttpTable, LoadTable,
    PrivateHostsField, ReadTable, RetriesTable, SearchTable, ToolTable, fill_table,
    nonzero_duration, settings,
};
use crate::scenario::read::names::{NamedEntries, ResultKey};
use crate::scenario::read::shape::{NonBlankString, Positioned, StringField};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::TextSpan;
use crate::scenario::read::{ReadContext, names, suggest_name};
use crate::scenario::spec::tool::{
    CommandSpec, EndpointSpec, FieldKind, FixtureAnswer, FixtureRow, FixtureSpec, FolderSpec,
    HttpMethod, HttpSpec, LoadSpec, PrivateHosts, REQUEST_ID, ReadSpec, ResultFields, SearchSpec,
    Setting, ToolKind, WebSpec,
};

/// The implementations that a table of the file declares for a tool.
pub(crate) struct DeclaredImplementation<'f> {
    pub fixture: Option<&'f Positioned<FixtureTable>>,
    pub http: Option<&'f Positioned<HttpTable>>,
    pub command: Option<&'f Positioned<CommandTable>>,
    pub search: Option<&'f Positioned<SearchTable>>,
    pub read: Option<&'f Positioned<ReadTable>>,
    /// "worker" or "tool", for messages.
    pub what: &'static str,
    pub contract: &'f NamedEntries<FieldKind, ResultKey>,
}

impl<'f> DeclaredImplementation<'f> {
    pub fn from_tool(table: &'f ToolTable) -> Self {
        Self {
            fixture: table.fixture.as_ref(),
            http: table.http.as_ref(),
            command: table.command.as_ref(),
            search: table.search.as_ref(),
            read: table.read.as_ref(),
            what: "tool",
            contract: &table.contract,
        }
    }

    fn positions(&self) -> Vec<TextSpan> {
        let fixture = self.fixture.map(|table| table.at);
        let http = self.http.map(|table| table.at);
        let command = self.command.map(|table| table.at);
        let search = self.search.map(|table| table.at);
        let read = self.read.map(|table| table.at);
        [fixture, http, command, search, read].into_iter().flatten().collect()
    }

    /// Position of the first declaration; a contract counts too.
    pub fn first(&self) -> Option<TextSpan> {
        let contract = self.contract.entries.first().map(|entry| entry.at);
        self.positions().first().copied().or(contract)
    }

    pub fn has_implementation(&self) -> bool {
        self.first().is_some()
    }
}

/// How many attempts a call of a tool may have, as far as the file sets it.
pub(crate) struct AttemptLimit {
    /// Maximum number of attempts.
    pub most: u32,
    /// Set by an override: that holds for one run only, so rows for other runs are not reported.
    pub set: bool,
    /// The key that sets it, and its value.
    pub of: String,
}

impl AttemptLimit {
    pub fn from_retries(place: &str, retries: &RetriesTable) -> Self {
        let limit = &retries.max_attempts;
        let of = format!("{place}.retries.max_attempts is {}", limit.value.0);
        Self { most: limit.value.0, set: limit.at.text > 0, of }
    }

    /// An unguarded run may make more attempts.
    pub fn raise_to(&mut self, attempts: u32) {
        self.most = self.most.max(attempts);
    }
}

/// The implementation of a tool. Outer `None`: invalid; inner `None`: none is declared. `args` are
/// the tool's arguments, where they are known.
pub(crate) fn tool_kind(
    declared: &DeclaredImplementation<'_>,
    args: &KnownArguments<'_>,
    attempts: &AttemptLimit,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Option<ToolKind>> {
    if let [_, second, ..] = declared.positions()[..] {
        let help = match declared.what {
            "tool" => "keep one of fixture, http, command, search and read",
            _ => "keep one of fixture, http and command",
        };
        cx.error(second, "the tool has two implementations", help);
        return None;
    }
    Some(Some(if let Some(table) = declared.fixture {
        let spec = cx.at_key("fixture", |cx| {
            check_row_arguments(&table.value, args, cx);
            fixture(&table.value, attempts, scope, cx)
        })?;
        ToolKind::Fixture(Arc::new(spec))
    } else if let Some(table) = declared.http {
        ToolKind::Http(Arc::new(
            cx.at_key("http", |cx| http(&table.value, args.names, declared.what, cx))?,
        ))
    } else if let Some(table) = declared.command {
        ToolKind::Command(Arc::new(command(&table.value)?))
    } else if let Some(table) = declared.search {
        ToolKind::Search(Arc::new(cx.at_key("search", |cx| build_search(table, scope, cx))?))
    } else if let Some(table) = declared.read {
        ToolKind::Read(Arc::new(cx.at_key("read", |cx| build_read(table, scope, cx))?))
    } else {
        return Some(None);
    }))
}

fn fixture(
    table: &FixtureTable,
    attempts: &AttemptLimit,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FixtureSpec> {
    let load = match &table.load {
        Some(table) => Some(cx.at_key("load", |cx| load(table, cx))?),
        None => None,
    };
    let rows = table.rows.as_ref()?;
    let read: Vec<Option<FixtureRow>> = rows
        .0
        .iter()
        .enumerate()
        .map(|(index, table)| {
            cx.at_key("rows", |cx| cx.at_index(index, |cx| row(table, scope, cx)))
        })
        .collect();
    for (index, later) in read.iter().enumerate() {
        let Some(later) = later else { continue };
        let earlier = read[..index]
            .iter()
            .position(|earlier| earlier.as_ref().is_some_and(|earlier| covers(earlier, later)));
        let place = rows.0[index].at;
        let why = match (earlier, &rows.0[index].value.attempt) {
            (Some(earlier), _) => Some((
                place,
                format!("rows[{earlier}] comes first and matches every call of this row"),
            )),
            (None, Some(attempt)) if attempt.value.0 > attempts.most && !attempts.set => {
                Some((attempt.at, attempts.of.clone()))
            }
            _ => None,
        };
        if let Some((at, help)) = why {
            cx.at_key("rows", |cx| {
                cx.at_index(index, |cx| cx.warn(at, "this row can never be used", help));
            });
        }
    }
    Some(FixtureSpec { rows: read.into_iter().collect::<Option<_>>()?, load })
}

/// Whether an earlier row matches every call that this row matches.
fn covers(earlier: &FixtureRow, row: &FixtureRow) -> bool {
    let same_attempt = earlier.attempt.is_none() || earlier.attempt == row.attempt;
    same_attempt && earlier.args.iter().all(|(key, value)| row.args.get(key) == Some(value))
}

fn row(
    row: &Positioned<FixtureRowTable>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FixtureRow> {
    let table = &row.value;
    let args = cx
        .at_key("args", |cx| fill_table(&table.args, &mut |text, at| scope.value_of(text, at, cx)));
    let fault = match &table.fault {
        Some(table) => Some(cx.at_key("fault", |cx| script::build_fault(table, cx))?),
        None => None,
    };
    let answer = match (&table.result, &table.raw) {
        (Some(result), None) => {
            let result = cx.at_key("result", |cx| {
                fill_table(result, &mut |text, at| scope.value_of(text, at, cx))
            });
            FixtureAnswer::Value(Arc::new(result.into()))
        }
        (None, Some(raw)) => {
            FixtureAnswer::Raw(cx.at_key("raw", |cx| scope.text(&raw.text, raw.at, cx)).into())
        }
        (None, None) if cx.has_error_here() => return None,
        (given, _) => {
            let what = match given {
                Some(_) => "the row has two results",
                None => "the row has no result",
            };
            cx.error(row.at, what, "write one of `result` and `raw`");
            return None;
        }
    };
    Some(FixtureRow {
        args,
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        latency: table.latency,
        fault,
        answer,
    })
}

fn load(table: &LoadTable, cx: &mut ReadContext) -> Option<LoadSpec> {
    for (kind, from, until) in [
        ("flaky", table.flaky_from, &table.flaky_until),
        ("slow", table.slow_from, &table.slow_until),
    ] {
        if until.value.0 < from.0 {
            let what = format!("the {kind} time ends before it begins");
            let help = format!("set it later than {kind}_from");
            cx.at_key(&format!("{kind}_until"), |cx| cx.error(until.at, what, help));
            return None;
        }
    }
    Some(LoadSpec {
        capacity: table.capacity?.0,
        flaky_rate: table.flaky_rate.0,
        flaky_from: table.flaky_from.0,
        flaky_until: table.flaky_until.value.0,
        flaky_evenly: table.flaky_evenly,
        slow_factor: table.slow_factor.0,
        slow_from: table.slow_from.0,
        slow_until: table.slow_until.value.0,
    })
}

fn http(
    table: &HttpTable,
    args: Option<&[&str]>,
    of: &str,
    cx: &mut ReadContext,
) -> Option<HttpSpec> {
    cx.at_key("headers", |cx| {
        for entry in &table.headers.entries {
            if let Some(Positioned { at, value: Setting::Text(text) }) = &entry.value
                && text.contains(|c: char| c.is_control())
            {
                let what = "a header is one line without control characters";
                cx.at_key(&entry.name, |cx| cx.error(*at, what, ""));
            }
        }
    });
    let pointer = cx.at_key("pointer", |cx| self::pointer(table.pointer.as_ref(), "", cx));
    let given = table.url.as_ref()?;
    cx.at_key("url", |cx| {
        self::url(given, args, of, cx)?;
        warn_of_private_host(given, table.allow_private, cx);
        Some(())
    })?;
    Some(HttpSpec {
        method: table.method,
        url: given.text.clone(),
        headers: settings(&table.headers),
        send_args: table.send_args,
        pointer: pointer.unwrap_or_default(),
        max_bytes: u64::from(table.max_bytes.0),
        allow_private: table.allow_private,
    })
}

fn command(table: &CommandTable) -> Option<CommandSpec> {
    Some(CommandSpec {
        program: table.program.as_ref()?.text.clone(),
        args: table.args.0.iter().map(|arg| arg.text.clone()).collect(),
        env: settings(&table.env),
        max_bytes: u64::from(table.max_bytes.0),
    })
}

/// Arguments that the program adds to every call.
const ADDED: [&str; 2] = [REQUEST_ID, "allowed_domains"];

/// Reports arguments in rows that no call has.
fn check_row_arguments(table: &FixtureTable, args: &KnownArguments<'_>, cx: &mut ReadContext) {
    let Some(names) = args.names else { return };
    // An agent's tool may declare no arguments and still be called with those of its rows.
    if names.is_empty() && !args.certain {
        return;
    }
    for (index, row) in table.rows.iter().flat_map(|rows| rows.0.iter().enumerate()) {
        let given = row.value.args.table.entries.iter().map(|(key, _)| key);
        for key in given.filter(|key| !names.contains(&&*key.text) && !ADDED.contains(&&*key.text))
        {
            let help = cx.suggest(&key.text, names.iter().copied());
            let what =
                format!("`{}` is not an argument of its calls: the row is never used", key.text);
            let tell = |cx: &mut ReadContext| match args.certain {
                true => cx.error(key.at, what, help),
                false => cx.warn(key.at, what, help),
            };
            cx.at_key("rows", |cx| {
                cx.at_index(index, |cx| cx.at_key("args", |cx| cx.at_key(&key.text, tell)));
            });
        }
    }
}

/// The arguments of a tool's calls.
pub(crate) struct KnownArguments<'a> {
    /// Their names; `None` if they are not known.
    pub names: Option<&'a [&'a str]>,
    /// The calls have no other arguments. For an author's tool a model may send any.
    pub certain: bool,
}

/// The arguments of a search call.
pub(crate) const SEARCHED: [&str; 2] = ["query", "k"];

/// Builds the search of a tool.
fn build_search(
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

/// Builds the page reader of a tool.
fn build_read(
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

/// Checks that the URL names its host itself, and that each `{name}` is an argument.
pub(crate) fn url(
    url: &NonBlankString,
    args: Option<&[&str]>,
    of: &str,
    cx: &mut ReadContext,
) -> Option<()> {
    let text = url.text.as_str();
    let Some(host) = ["http://", "https://"].iter().find_map(|start| text.strip_prefix(start))
    else {
        let what = format!("{text:?} is not a URL");
        cx.error(url.at, what, "begin it with http:// or https://");
        return None;
    };
    let host_at = text.len() - host.len();
    let path_at = host.find(['/', '?', '#']).map_or(text.len(), |at| host_at + at);
    if path_at == host_at {
        cx.error(url.at, format!("{text:?} has no host"), "such as https://vendor.example/v1");
        return None;
    }
    let mut good = true;
    let mut rest = 0;
    while let Some(found) = text[rest..].find('{') {
        let open = rest + found;
        let Some(length) = text[open..].find('}') else {
            let at = cx.inner_span(url.at, open, open + 1);
            cx.error(at, "`{` is not closed", "`{name}` is replaced by the argument of that name");
            return None;
        };
        let close = open + length;
        let name = &text[open + 1..close];
        let at = cx.inner_span(url.at, open, close + 1);
        if open < path_at {
            let help = "a model chooses the arguments: use them in the path or after it";
            cx.error(at, "an argument cannot choose the host", help);
            good = false;
        } else if let Some(args) = args.filter(|args| !args.contains(&name)) {
            let help = suggest_name(name, args.iter().copied());
            cx.error(at, format!("`{{{name}}}` is not an argument of this {of}"), help);
            good = false;
        }
        rest = close + 1;
    }
    good.then_some(())
}

/// Warns of a URL whose requests are refused, because its host is private.
fn warn_of_private_host(url: &NonBlankString, allow_private: bool, cx: &mut ReadContext) {
    if !allow_private && has_private_host(&url.text) {
        let what = "requests to this host are refused: it is this machine, or on a private network";
        cx.warn(url.at, what, "write allow_private = true below it, if you mean this host");
    }
}
