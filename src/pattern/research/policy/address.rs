//! Addresses of sources: their normal form, which deduplication and the allowlists use, and their
//! domain. Pure (`normalize_url` and `get_domain` in the research source document).
//!
//! They are read as the source document reads them, not as a browser does. What the two read
//! differently (a user name before the host, a backslash in it, control characters) is rejected as
//! an address, so it cannot be used to pass an allowlist.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::log::event::id::SourceNo;
use crate::log::facts::research::{DropReason, DroppedSource, FoundSource};
use crate::scenario::patterns::research::SamePage;
use crate::scenario::read::names::domain_in_ascii;

/// The normal form of an address: scheme and host in lower case, the host in ASCII, no fragment, no
/// slash at the end of the path; by [`SamePage::Query`] with the query, but without what only tracks
/// visitors. `None` unless it is `http` or `https` with a host.
pub fn normalize(url: &str, same: SamePage) -> Option<String> {
    let parts = UrlParts::split_url(url.trim())?;
    let (mut path, query) = match same {
        SamePage::Path => (without_parameters(parts.path), String::new()),
        SamePage::Query => (parts.path, own_query(parts.query)),
    };
    if path.is_empty() {
        path = "/";
    }
    if path != "/" {
        path = path.strip_suffix('/').unwrap_or(path);
    }
    Some(format!("{}://{}{path}{query}", parts.scheme, domain_in_ascii(parts.host)?))
}

/// Parameters that say where a visitor came from, never which page is shown; the names that end with
/// an underscore are prefixes.
const TRACKING: [&str; 19] = [
    "utm_",
    "_hsenc",
    "_hsmi",
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "srsltid",
    "ttclid",
    "twclid",
    "wbraid",
    "yclid",
];

/// A query with its `?`, without tracking parameters; empty if nothing is left.
fn own_query(query: &str) -> String {
    let own = query.split('&').filter(|part| {
        let name = part.split('=').next().unwrap_or_default().to_ascii_lowercase();
        let tracks = |it: &str| name == it || (it.ends_with('_') && name.starts_with(it));
        !part.is_empty() && !TRACKING.iter().any(|it| tracks(it))
    });
    let own: Vec<&str> = own.collect();
    if own.is_empty() { String::new() } else { format!("?{}", own.join("&")) }
}

/// The domain of an address as the allowlists spell it: its host in lower case and in ASCII, with
/// the port if it names one; empty without a host.
pub fn domain(url: &str) -> String {
    let rest = url.trim().split_once("//").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    domain_in_ascii(host).map_or_else(|| host.to_lowercase(), Cow::into_owned)
}

/// The address to fetch: as it was found, without its fragment.
pub fn without_fragment(url: &str) -> &str {
    let url = url.trim();
    url.split_once('#').map_or(url, |(before, _)| before)
}

struct UrlParts<'u> {
    scheme: &'static str,
    host: &'u str,
    path: &'u str,
    /// Without its `?`.
    query: &'u str,
}

impl<'u> UrlParts<'u> {
    fn split_url(url: &'u str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = ["http", "https"].into_iter().find(|it| scheme.eq_ignore_ascii_case(it))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        let odd = |c: char| c.is_whitespace() || matches!(c, '@' | '\\');
        let literal = host.strip_prefix('[').and_then(|host| host.split_once(']'));
        let name = match literal {
            Some((_, port)) if port.is_empty() || port.starts_with(':') => port,
            Some(_) => return None,
            None => host,
        };
        let nameless = literal.is_none() && (name.is_empty() || name.starts_with(':'));
        if nameless
            || name.contains(['[', ']'])
            || host.contains(odd)
            || url.contains(char::is_control)
        {
            return None;
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Some(Self { scheme, host, path, query })
    }
}

/// A path without the parameters (`;…`) of its last segment.
fn without_parameters(path: &str) -> &str {
    let last = path.rfind('/').map_or(0, |at| at + 1);
    path[last..].find(';').map_or(path, |at| &path[..last + at])
}

/// `dedupe_urls`: the distinct pages in the order in which they were found, at most `max_urls`; and
/// the sources that were dropped. Linear time.
pub fn dedupe(
    found: &[FoundSource],
    max_urls: u32,
    same: SamePage,
) -> (Vec<(SourceNo, String)>, Vec<DroppedSource>) {
    let mut seen: HashMap<String, SourceNo> = HashMap::with_capacity(found.len());
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for (place, it) in found.iter().enumerate() {
        let source = SourceNo::from_index(place);
        let mut drop_it = |reason| dropped.push(DroppedSource { source, reason });
        let Some(url) = normalize(&it.url, same) else {
            drop_it(DropReason::InvalidUrl);
            continue;
        };
        if let Some(of) = seen.get(&url) {
            drop_it(DropReason::Duplicate { duplicate_of: *of });
        } else if kept.len() >= max_urls as usize {
            drop_it(DropReason::MaxUrls);
        } else {
            seen.insert(url.clone(), source);
            kept.push((source, url));
        }
    }
    (kept, dropped)
}
