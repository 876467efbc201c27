//! What implements a tool: exactly one of a fixture, an HTTP request, a program, a search or a page
//! reader.

use std::sync::Arc;

use super::{build_lookup, fault, fixture_contract, url_template};
use crate::scenario::check::fixture_contract::KnownArguments;
use crate::scenario::file::format_lookup::{ReadTable, SearchTable};
use crate::scenario::file::format_tools::{
    CommandTable, FixtureRowTable, FixtureTable, HttpTable, LoadTable, RetriesTable, ToolTable,
    fill_table,
};
use crate::scenario::file::named::{NamedEntries, ResultKey};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::setting::settings;
use crate::scenario::file::shape::Positioned;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::http::{HttpSpec, Setting};
use crate::scenario::spec::tool::{
    CommandSpec, FieldKind, FixtureAnswer, FixtureRow, FixtureSpec, LoadSpec, ToolKind,
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
pub(crate) fn kind(
    declared: &DeclaredImplementation<'_>,
    args: &KnownArguments<'_>,
    attempts: &AttemptLimit,
    filling: &TemplateScope<'_>,
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
            fixture_contract::check_row_arguments(&table.value, args, cx);
            fixture(&table.value, attempts, filling, cx)
        })?;
        ToolKind::Fixture(Arc::new(spec))
    } else if let Some(table) = declared.http {
        ToolKind::Http(Arc::new(
            cx.at_key("http", |cx| http(&table.value, args.names, declared.what, cx))?,
        ))
    } else if let Some(table) = declared.command {
        ToolKind::Command(Arc::new(command(&table.value)?))
    } else if let Some(table) = declared.search {
        ToolKind::Search(Arc::new(
            cx.at_key("search", |cx| build_lookup::search(table, filling, cx))?,
        ))
    } else if let Some(table) = declared.read {
        ToolKind::Read(Arc::new(cx.at_key("read", |cx| build_lookup::read(table, filling, cx))?))
    } else {
        return Some(None);
    }))
}

fn fixture(
    table: &FixtureTable,
    attempts: &AttemptLimit,
    filling: &TemplateScope<'_>,
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
            cx.at_key("rows", |cx| cx.at_index(index, |cx| row(table, filling, cx)))
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
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FixtureRow> {
    let table = &row.value;
    let args = cx.at_key("args", |cx| {
        fill_table(&table.args, &mut |text, at| filling.value_of(text, at, cx))
    });
    let fault = match &table.fault {
        Some(table) => Some(cx.at_key("fault", |cx| fault::fault(table, cx))?),
        None => None,
    };
    let answer = match (&table.result, &table.raw) {
        (Some(result), None) => {
            let result = cx.at_key("result", |cx| {
                fill_table(result, &mut |text, at| filling.value_of(text, at, cx))
            });
            FixtureAnswer::Value(Arc::new(result.into()))
        }
        (None, Some(raw)) => {
            FixtureAnswer::Raw(cx.at_key("raw", |cx| filling.text(&raw.text, raw.at, cx)).into())
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
    let pointer = cx.at_key("pointer", |cx| build_lookup::pointer(table.pointer.as_ref(), "", cx));
    let given = table.url.as_ref()?;
    cx.at_key("url", |cx| {
        url_template::url(given, args, of, cx)?;
        url_template::warn_of_private_host(given, table.allow_private, cx);
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
