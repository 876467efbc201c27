//! A tool that is an HTTP request. In its URL, `{name}` is replaced by the argument of that name.

use std::collections::BTreeMap;

use super::KnownArguments;
use crate::base::private_host::has_private_host;
use crate::base::worded;
use crate::scenario::read::format::tools::settings;
use crate::scenario::read::names::{HeaderName, NamedEntries};
use crate::scenario::read::shape::{
    FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement, StringField,
    join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TomlNode, TomlValue};
use crate::scenario::read::{ReadContext, suggest_name};
use crate::scenario::spec::tool::Setting;

record! {
    /// An HTTP request that implements a tool.
    struct HttpTable => {
        /// The HTTP method.
        method: HttpMethod = default(HttpMethod::Get),
        /// The URL, with http:// or https://. `{name}` is replaced by the argument of that name.
        url: NonBlankString = needed,
        /// Headers by name: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Whether the arguments are sent as a JSON body.
        send_args: bool = default(false),
        /// Where the result is in the response, as a JSON pointer such as /data/0. Default: the
        /// whole response.
        pointer: StringField = optional,
        /// Maximum size of the response, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
        /// Whether it may connect to loopback, private and link-local addresses.
        allow_private: bool = default(false),
    }
}

words! { HttpMethod:
    "GET" => HttpMethod::Get, "Reads.";
    "POST" => HttpMethod::Post, "Sends.";
    "PUT" => HttpMethod::Put, "Replaces.";
    "DELETE" => HttpMethod::Delete, "Deletes.";
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The method, such as `GET`.
    pub method: HttpMethod,
    /// The URL; `{name}` is replaced by the argument of that name, percent-encoded.
    pub url: String,
    /// Headers by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether the arguments are sent as a JSON body.
    pub send_args: bool,
    /// Where the result is in the response, as a JSON pointer; empty: the whole response.
    pub pointer: String,
    /// Maximum size of the response, in bytes.
    pub max_bytes: u64,
    /// Whether it may connect to loopback, private and link-local addresses.
    pub allow_private: bool,
}

/// Methods of an HTTP tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
}

worded! { HttpMethod { Get = "GET", Post = "POST", Put = "PUT", Delete = "DELETE" } }

/// Builds a request; `args` are the arguments that its URL may name.
pub(super) fn build(
    table: &HttpTable,
    args: &KnownArguments<'_>,
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
    let pointer = cx.at_key("pointer", |cx| pointer(table.pointer.as_ref(), "", cx));
    let given = table.url.as_ref()?;
    cx.at_key("url", |cx| {
        url(given, args.names, of, cx)?;
        warn_of_private_host(given, table.allow_private, cx);
        // A pattern may give more arguments than a request that only reads needs.
        let only_reads = args.certain && table.method == HttpMethod::Get;
        if !table.send_args && !only_reads {
            warn_of_unsent_args(given, args.names.unwrap_or_default(), of, cx);
        }
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

/// Warns of arguments that a request does not have: they are approved and logged, and reach nobody.
fn warn_of_unsent_args(url: &NonBlankString, args: &[&str], of: &str, cx: &mut ReadContext) {
    let unsent = args.iter().filter(|name| !url.text.contains(&format!("{{{name}}}")));
    let unsent: Vec<String> = unsent.map(|name| format!("`{name}`")).collect();
    if !unsent.is_empty() {
        let what = format!("this {of} does not send {}", unsent.join(", "));
        let help = "add send_args = true for a JSON body, or use `{name}` in the URL";
        cx.warn(url.at, what, help);
    }
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
pub(super) fn warn_of_private_host(
    url: &NonBlankString,
    allow_private: bool,
    cx: &mut ReadContext,
) {
    if !allow_private && has_private_host(&url.text) {
        let what = "requests to this host are refused: it is this machine, or on a private network";
        cx.warn(url.at, what, "write allow_private = true below it, if you mean this host");
    }
}
